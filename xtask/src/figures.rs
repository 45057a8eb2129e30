//! Figures in documents, taken from the project's own results.
//!
//! Input: `docs/benchmarks/results/*.json`, as `lydian-lab` writes them, and the texts with markers: README.md and
//! `docs/benchmarks/*.md`; output: the texts with every marked figure as in the results. A marker is a Markdown
//! comment, so that a rendered page does not show it:
//!
//!     <!-- lab: FILE NODE FIGURE -->2.05<!-- / -->
//!     <!-- lab: FILE NODE FIGURE / NODE .3 -->0.146<!-- / -->
//!     <!-- lab-table: FILE FIGURE... -->  lines of a table  <!-- / -->
//!
//! The second form is a ratio of two nodes (or `/ FILE NODE`), here with three decimals. FILE is the name without
//! `.json`. NODE is a node of the file's summary (`lydian(cold)` for cold runs), or `chain`, `machine`, `settings` or
//! `floor`. FIGURE is one of its fields, of which the median is used, or `wall_seconds.min`, `.max` or `.range`.
//!
//! Invariant: a text without problems is a fixed point. It must never depend on a crate of the product, or keep an old
//! figure without an error when its file is gone.

use crate::tree::Tree;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

const FOLDER: &str = "docs/benchmarks/results/";
/// Limit for the total size of all results.
pub(crate) const RESULTS_SIZE_MAX: u64 = 1_000_000;
const START: &str = "<!-- lab";
const END: &str = "<!-- / -->";
const TABLE_DEFAULT: &[&str] = &["wall_seconds", "cpu_seconds", "peak_rss_bytes", "write_bytes", "wall_ratio"];

/// A problem with a marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) line: usize,
    pub(crate) message: String,
}

/// The result files by their names without `.json`; for a file that is not valid JSON, the error.
#[derive(Debug, Default)]
pub(crate) struct Numbers(BTreeMap<String, Result<Value, String>>);

impl Numbers {
    pub(crate) fn of(tree: &Tree) -> Numbers {
        let name = |path: &str| Some(path.strip_prefix(FOLDER)?.strip_suffix(".json")?.to_owned());
        let files = tree.files.iter().filter_map(|file| {
            let text = file.text.as_deref().ok_or_else(|| "too large, or no text".to_owned());
            let value = text.and_then(|text| serde_json::from_str(text).map_err(|error| error.to_string()));
            Some((name(&file.path)?, value))
        });
        Numbers(files.collect())
    }

    fn file(&self, name: &str) -> Result<&Value, String> {
        match self.0.get(name) {
            Some(Ok(value)) => Ok(value),
            Some(Err(why)) => Err(format!("{FOLDER}{name}.json: {why}")),
            None => Err(format!("there is no {FOLDER}{name}.json")),
        }
    }
}

/// Whether the text may have markers. Other texts only describe them.
pub(crate) fn has_numbers(path: &str) -> bool {
    let name = path.strip_prefix("docs/benchmarks/");
    path == "README.md" || name.is_some_and(|name| name.ends_with(".md") && !name.contains('/'))
}

/// Returns the total size of all results in bytes.
pub(crate) fn results_size(tree: &Tree) -> u64 {
    tree.files.iter().filter(|file| file.path.starts_with(FOLDER)).map(|file| file.size_bytes).sum()
}

/// Returns the text with every marked figure computed again. A marker with a problem keeps its old figure.
pub(crate) fn rewritten(text: &str, numbers: &Numbers) -> (String, Vec<Problem>) {
    let (mut out, mut problems, mut rest) = (String::new(), Vec::new(), text);
    while let Some(at) = rest.find(START) {
        let line = text[..text.len() - rest.len() + at].matches('\n').count() + 1;
        let (before, marker) = rest.split_at(at);
        out.push_str(before);
        let Some((head, body, after)) = split(marker) else {
            problems.push(Problem { line, message: format!("a marker without its {END}") });
            out.push_str(START);
            rest = &marker[START.len()..];
            continue;
        };
        let new = made(head, numbers).unwrap_or_else(|why| {
            problems.push(Problem {
                line,
                message: format!("{}: {why}", head.trim_start_matches("<!-- ").trim_end_matches(" -->")),
            });
            body.to_owned()
        });
        out.extend([head, &new, END]);
        rest = after;
    }
    out.push_str(rest);
    (out, problems)
}

/// Splits a text that starts with a marker into head, body and the text after it. Returns `None` if the marker has no
/// end, or if another marker starts before its end.
fn split(marker: &str) -> Option<(&str, &str, &str)> {
    let head_end = marker.find("-->")? + 3;
    let (head, rest) = marker.split_at(head_end);
    let body_end = rest.find(END)?;
    let body = &rest[..body_end];
    (!body.contains(START) && !head.contains('\n')).then(|| (head, body, &rest[body_end + END.len()..]))
}

fn made(head: &str, numbers: &Numbers) -> Result<String, String> {
    let inner = head.trim_start_matches("<!--").trim_end_matches("-->").trim();
    if let Some(words) = inner.strip_prefix("lab-table:") {
        return table(&words.split_whitespace().collect::<Vec<_>>(), numbers);
    }
    let words = inner.strip_prefix("lab:").ok_or("neither `lab:` nor `lab-table:`")?;
    number(&words.split_whitespace().collect::<Vec<_>>(), numbers)
}

fn number(words: &[&str], numbers: &Numbers) -> Result<String, String> {
    let (words, decimals) = match words.split_last() {
        Some((last, rest)) if last.starts_with('.') => {
            let count: usize = last[1..].parse().map_err(|_| format!("`{last}` is no count of decimals"))?;
            (rest, Some(count))
        }
        _ => (words, None),
    };
    match words {
        [file, node, figure] => shown(&find(numbers.file(file)?, node, figure)?, figure, decimals),
        [file, node, figure, "/", other] => ratio(numbers, figure, (file, node), (file, other), decimals),
        [file, node, figure, "/", other_file, other] => {
            ratio(numbers, figure, (file, node), (other_file, other), decimals)
        }
        _ => Err("FILE NODE FIGURE is what it takes, then `/ NODE` and decimals such as `.2`".to_owned()),
    }
}

/// Returns one node's figure divided by another's.
fn ratio(
    numbers: &Numbers,
    figure: &str,
    above: (&str, &str),
    below: (&str, &str),
    decimals: Option<usize>,
) -> Result<String, String> {
    let value = |(file, node): (&str, &str)| {
        find(numbers.file(file)?, node, figure)?.as_f64().ok_or_else(|| "a ratio is of numbers".to_owned())
    };
    let (above, divisor) = (value(above)?, value(below)?);
    if divisor == 0.0 {
        return Err(format!("{figure} of {} is 0", below.1));
    }
    Ok(format!("{:.*}", decimals.unwrap_or(2), above / divisor))
}

/// Returns a figure of a node, or a field of the file.
fn find(file: &Value, node: &str, figure: &str) -> Result<Value, String> {
    let (figure, part) = figure.split_once('.').unwrap_or((figure, "median"));
    let fields = match node {
        "chain" | "machine" | "settings" | "floor" => &file[node],
        _ => figures(file, node)?,
    };
    let value = &fields[figure];
    let found = match (value, part) {
        (Value::Object(spread), "range") => match (spread.get("min"), spread.get("max")) {
            (Some(min), Some(max)) => {
                Value::String(format!("{}-{}", shown(min, figure, None)?, shown(max, figure, None)?))
            }
            _ => Value::Null,
        },
        (Value::Object(spread), part) => spread.get(part).cloned().unwrap_or(Value::Null),
        (value, "median") => value.clone(),
        _ => Value::Null,
    };
    if found.is_null() { Err(format!("{node} has no {figure} ({part})")) } else { Ok(found) }
}

fn figures<'a>(file: &'a Value, node: &str) -> Result<&'a Value, String> {
    let (name, cache) = node.strip_suffix("(cold)").map_or((node, "warm"), |name| (name, "cold"));
    let summaries = file["summary"].as_array().ok_or("the file has no summary")?;
    let found = summaries.iter().find(|summary| summary["node"] == name && summary["cache"] == cache);
    let summary = found.ok_or_else(|| format!("no {cache} runs of a node {name}"))?;
    if summary["figures"].is_null() { Err(format!("no run of {name} counts")) } else { Ok(&summary["figures"]) }
}

/// Formats seconds with two decimals, bytes in MB, nanoseconds in microseconds and counts with commas. Strings are
/// returned unchanged.
fn shown(value: &Value, figure: &str, decimals: Option<usize>) -> Result<String, String> {
    let figure = figure.split('.').next().unwrap_or(figure);
    if let Some(text) = value.as_str() {
        return Ok(text.to_owned());
    }
    let value = value.as_f64().ok_or_else(|| format!("{figure} is no number"))?;
    let (value, usual) = match figure {
        _ if figure.ends_with("_seconds")
            || figure.ends_with("_ratio")
            || figure.ends_with("_share")
            || figure == "seconds" =>
        {
            (value, 2)
        }
        _ if figure.ends_with("_bytes") => (value / 1e6, 0),
        _ if figure.ends_with("_ns") => (value / 1e3, 1),
        _ => (value, 0),
    };
    Ok(with_commas(&format!("{value:.*}", decimals.unwrap_or(usual))))
}

fn with_commas(number: &str) -> String {
    let (whole, fraction) = number.split_once('.').map_or((number, None), |(whole, fraction)| (whole, Some(fraction)));
    let mut text = String::new();
    let digits = whole.trim_start_matches('-').len();
    for (index, digit) in whole.chars().enumerate() {
        let left = digits + (whole.len() - digits) - index;
        if index > whole.len() - digits && left.is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if let Some(fraction) = fraction {
        text.extend([".", fraction]);
    }
    text
}

/// Returns a table with one row per node. The row of a node that did not take part has the reason.
fn table(words: &[&str], numbers: &Numbers) -> Result<String, String> {
    let (name, columns) = words.split_first().ok_or("FILE FIGURE... is what it takes")?;
    let columns = if columns.is_empty() { TABLE_DEFAULT } else { columns };
    let file = numbers.file(name)?;
    let heads: Vec<String> = columns.iter().map(|column| title(column)).collect();
    let mut text = format!("\n| node | {} |\n|---|{}\n", heads.join(" | "), "---|".repeat(columns.len()));
    for summary in file["summary"].as_array().ok_or("the file has no summary")? {
        let cold = summary["cache"] == "cold";
        let node = format!("{}{}", summary["node"].as_str().unwrap_or("?"), if cold { "(cold)" } else { "" });
        let cells: Vec<String> = columns.iter().map(|column| cell(file, &node, column)).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {node} | {} |", cells.join(" | "));
    }
    for node in file["nodes"].as_array().into_iter().flatten() {
        if let (Some(name), Some(reason)) = (node["name"].as_str(), node["cannot"].as_str()) {
            let _ = writeln!(text, "| {name} | takes no part: {reason} |{}", " |".repeat(columns.len() - 1));
        }
    }
    let left_out = file["left_out"].as_array().into_iter().flatten();
    let lines = left_out.filter_map(|one| Some(format!("{}: {}", one["name"].as_str()?, one["reason"].as_str()?)));
    for line in lines {
        let _ = writeln!(text, "| {} |{}", line.replacen(": ", " | left out: ", 1), " |".repeat(columns.len() - 1));
    }
    Ok(text)
}

fn title(figure: &str) -> String {
    match figure {
        "peak_rss_bytes" => "RSS MB".to_owned(),
        "write_bytes" => "written MB".to_owned(),
        "cpu_seconds" => "CPU s".to_owned(),
        "floor_ratio" => "wall / floor".to_owned(),
        _ => figure.replace("_bytes", " MB").replace("_seconds", " s").replace('_', " "),
    }
}

/// Returns one cell. Times are shown with their range.
fn cell(file: &Value, node: &str, figure: &str) -> String {
    let one = |part: &str| find(file, node, &format!("{figure}.{part}")).and_then(|value| shown(&value, figure, None));
    match (one("median"), figure.ends_with("_seconds")) {
        (Ok(median), true) => one("range").map_or(median.clone(), |range| format!("{median} [{range}]")),
        (Ok(median), false) => median,
        (Err(_), _) => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULTS: &str = r#"{
        "chain": {"inputs": 586370, "preset": "mainnet-mix"}, "machine": {"cores": 2}, "floor": {"ecdsa_ns": 28924.0, "seconds": 9.97},
        "nodes": [{"name": "lydian"}, {"name": "bitcoind"}, {"name": "btcd", "cannot": "it has no reindex"}],
        "left_out": [{"name": "Gocoin", "reason": "no regtest: main only", "source": null}],
        "summary": [
            {"node": "lydian", "cache": "warm", "figures": {"wall_seconds": {"median": 2.052775, "min": 2.015, "max": 2.057},
                "peak_rss_bytes": {"median": 146000000.0, "min": 1.0, "max": 2.0}, "wall_ratio": 1.0, "inputs_per_second": 285645.0}},
            {"node": "bitcoind", "cache": "warm", "figures": {"wall_seconds": {"median": 14.0325, "min": 14.017, "max": 14.21},
                "peak_rss_bytes": {"median": 1598787584.0, "min": 1.0, "max": 2.0}, "wall_ratio": null}},
            {"node": "lydian", "cache": "cold", "figures": null}
        ]}"#;

    fn numbers() -> Numbers {
        Numbers::of(&Tree::of(&[
            ("docs/benchmarks/results/mix.json", RESULTS),
            ("docs/benchmarks/results/broken.json", "{"),
            ("docs/benchmarks/hash.json", "{}"),
        ]))
    }

    fn made_of(words: &str) -> Result<String, String> {
        made(&format!("<!-- lab: {words} -->"), &numbers())
    }

    #[test]
    fn numbers_are_shown_as_people_write_them() {
        for (words, text) in [
            ("mix lydian wall_seconds", "2.05"),
            ("mix lydian wall_seconds .1", "2.1"),
            ("mix bitcoind wall_seconds", "14.03"),
            ("mix lydian wall_seconds.range", "2.02-2.06"),
            ("mix bitcoind wall_seconds.max", "14.21"),
            ("mix bitcoind peak_rss_bytes", "1,599"),
            ("mix lydian wall_seconds / bitcoind .3", "0.146"),
            ("mix bitcoind wall_seconds / lydian .1", "6.8"),
            ("mix bitcoind wall_seconds / mix lydian .1", "6.8"),
            ("mix lydian inputs_per_second", "285,645"),
            ("mix chain inputs", "586,370"),
            ("mix chain preset", "mainnet-mix"),
            ("mix floor ecdsa_ns", "28.9"),
            ("mix floor seconds", "9.97"),
        ] {
            assert_eq!(made_of(words).as_deref(), Ok(text), "{words}");
        }
        for (number, text) in
            [("0", "0"), ("999", "999"), ("1000", "1,000"), ("-1234567.5", "-1,234,567.5"), ("-123", "-123")]
        {
            assert_eq!(with_commas(number), text);
        }
    }

    #[test]
    fn what_is_not_there_is_a_problem_and_says_what() {
        for (words, text) in [
            ("none lydian wall_seconds", "there is no docs/benchmarks/results/none.json"),
            ("broken lydian wall_seconds", "docs/benchmarks/results/broken.json: EOF"),
            ("mix knots wall_seconds", "no warm runs of a node knots"),
            ("mix lydian(cold) wall_seconds", "no run of lydian counts"),
            ("mix lydian mood", "lydian has no mood"),
            ("mix bitcoind wall_ratio", "bitcoind has no wall_ratio"),
            ("mix lydian", "FILE NODE FIGURE"),
            ("mix lydian wall_seconds .x", "no count of decimals"),
            ("hash lydian wall_seconds", "there is no"),
        ] {
            let error = made_of(words).unwrap_err();
            assert!(error.contains(text), "{words}: {error}");
        }
    }

    #[test]
    fn a_text_is_made_anew_and_then_stays() {
        let old = "a **<!-- lab: mix lydian wall_seconds -->9.99<!-- / --> s** beside <!-- lab: mix bitcoind wall_seconds --><!-- / --> s\n";
        let (new, problems) = rewritten(old, &numbers());
        assert_eq!(problems, []);
        assert_eq!(new, old.replace("9.99", "2.05").replace("--><!--", "-->14.03<!--"));
        assert_eq!(rewritten(&new, &numbers()), (new.clone(), vec![]));
        assert_eq!(rewritten("no marker <!-- x -->\n", &numbers()), ("no marker <!-- x -->\n".to_owned(), vec![]));
    }

    #[test]
    fn a_broken_marker_keeps_its_text_and_is_reported_with_its_line() {
        let text = "one\ntwo <!-- lab: mix nobody wall_seconds -->1<!-- / -->\n<!-- lab: mix lydian wall_seconds -->2\n\
                    <!-- lab: mix lydian wall_seconds -->3<!-- / --> <!-- lab: mix";
        let (new, problems) = rewritten(text, &numbers());
        assert_eq!(new, text.replace(">3<", ">2.05<"));
        assert_eq!(problems.iter().map(|problem| problem.line).collect::<Vec<_>>(), [2, 3, 4]);
        assert!(problems[0].message.starts_with("lab: mix nobody wall_seconds: no warm runs"));
    }

    #[test]
    fn a_table_has_every_node_and_those_left_out() {
        let text = "<!-- lab-table: mix wall_seconds peak_rss_bytes wall_ratio -->old<!-- / -->\n";
        let (new, problems) = rewritten(text, &numbers());
        assert_eq!(problems, []);
        let expected = "\n| node | wall s | RSS MB | wall ratio |\n|---|---|---|---|\n\
            | lydian | 2.05 [2.02-2.06] | 146 | 1.00 |\n\
            | bitcoind | 14.03 [14.02-14.21] | 1,599 | - |\n\
            | lydian(cold) | - | - | - |\n\
            | btcd | takes no part: it has no reindex | | |\n\
            | Gocoin | left out: no regtest: main only | | |\n";
        assert_eq!(new, text.replace("old", expected));
        assert!(table(&["mix"], &numbers()).is_ok());
        assert!(table(&[], &numbers()).is_err());
    }

    #[test]
    fn markers_count_in_these_files_alone() {
        for (path, is_one) in [
            ("README.md", true),
            ("docs/benchmarks/sync.md", true),
            ("docs/lab.md", false),
            ("docs/benchmarks/results/x.md", false),
        ] {
            assert_eq!(has_numbers(path), is_one, "{path}");
        }
    }
}
