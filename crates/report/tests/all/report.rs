//! The report of recorded results: what it contains and what it must not, and its treatment of other files.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and reads its own files"
)]

use crate::report_samples;
use lydian_oracle::Scratch;
use lydian_report::ReportError;
use lydian_report::limits::REPORT_FILES_MAX;
use lydian_report::page::{Input, write};
use std::path::Path;

fn everything() -> Vec<Input> {
    vec![
        Input::Runs(Box::new(report_samples::reindex())),
        Input::Runs(Box::new(report_samples::sync_with_everything())),
        Input::Electrum(Box::new(report_samples::electrum())),
    ]
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// The page and the Markdown have the same figures and the same reasons; the charts are also files of their own.
#[test]
fn the_report_says_what_was_measured_and_what_was_not() {
    let scratch = Scratch::new("report-all");
    let written = write(&everything(), scratch.path()).unwrap();
    let (page, markdown) = (read(&scratch.path().join("index.html")), read(&scratch.path().join("report.md")));
    let is_there = |text: &str| {
        let page = page.replace('\u{a0}', " ").replace("&#39;", "'");
        assert!(page.contains(text), "{text} is not in the page");
        assert!(markdown.replace('\u{a0}', " ").replace('\\', "").contains(text), "{text} is not in the Markdown");
    };
    for text in [
        "Lydian 2.05 s, Bitcoin Core 14.03 s: 6.8 times as fast; floor 8.41 s",
        "Lydian 2.39 s, Bitcoin Core 13.66 s: 5.7 times as fast; floor 9.95 s",
        "52.78",
        "read by calls MB",
        "written by calls MB",
        "it was not at the tip after 600 seconds",
        "not validating tapscript",
        "✗ accepts",
        "takes no part: Floresta needs utreexo peers",
        "not measured: knows no regtest",
        "not measured: dead since 2023",
        "https://github.com/piotrnar/gocoin",
        "busy with something else during runs of Bitcoin Knots",
        "btcd tells no UTXO hash",
        "signatures",
        "445e7dc3f4446cc083b1786cf7f42d97a2f0bf4caed4e69ecfac5b9976a16a74",
        "2b877069f2ac53c777ecc714ac05234c9d8039a1dbf13d6fc548d76b1cc3daa8",
        "lydian-lab sync --preset mainnet-mix",
        "31ae79c80598b14fa6eefef22701badae242d7c4",
        "it takes no part in this example",
        "it ended with exit code 1 before it answered",
        "Differences between answers: 1",
    ] {
        is_there(text);
    }
    let bars = |line: &str| line.replace("\\|", "").matches('|').count();
    let lines: Vec<&str> = markdown.lines().collect();
    for two in lines.windows(2).filter(|two| two.iter().all(|line| line.starts_with('|'))) {
        assert_eq!(bars(two[0]), bars(two[1]), "rows of different lengths: {two:#?}");
    }
    for path in written.iter().filter(|path| path.extension().is_some_and(|end| end == "svg")) {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(markdown.contains(&format!("({name})")), "{name} is not in the Markdown");
        let svg = read(path);
        assert!(svg.starts_with("<svg xmlns=") && svg.contains("<title>") && svg.contains("<desc>"), "{name}");
    }
    assert!(written.len() == 24, "{written:?}");
}

/// Nothing is fetched and nothing is executed: addresses occur only in links to follow and as XML namespaces, and text
/// from elsewhere is escaped.
#[test]
fn the_page_holds_no_address_to_fetch_and_no_foreign_markup() {
    let scratch = Scratch::new("report-safe");
    write(&everything(), scratch.path()).unwrap();
    let page = read(&scratch.path().join("index.html"));
    for (at, _) in page.match_indices("://") {
        let before = page[..at].trim_end_matches(char::is_alphanumeric);
        assert!(before.ends_with("<a href=\"") || before.ends_with("xmlns=\""), "{}", &page[at - 20..at + 60]);
    }
    for word in ["<script", "src=", "url(", "@import", "<link", "<iframe", "<img", " onload=", "\u{1b}"] {
        assert!(!page.contains(word), "{word}");
    }
    assert!(page.contains("&lt;script&gt;alert('x')&lt;/script&gt; &amp; \u{fffd}[31mred"));
    assert!(page.contains("default-src 'none'"));
    assert!(!read(&scratch.path().join("report.md")).contains("\n<script"));
}

#[test]
fn the_same_results_give_the_same_bytes() {
    let (one, two) = (Scratch::new("report-one"), Scratch::new("report-two"));
    let written = write(&everything(), one.path()).unwrap();
    write(&everything(), two.path()).unwrap();
    for path in written {
        let name = path.file_name().unwrap();
        assert_eq!(read(&one.path().join(name)), read(&two.path().join(name)), "{}", path.display());
    }
}

/// A run that does not count has no bar; if none counts, that is the headline.
#[test]
fn runs_that_do_not_count_are_not_drawn() {
    let mut results = report_samples::reindex();
    results.runs.iter_mut().for_each(|run| {
        run.answer = None;
        run.outcome = lydian_report::results::Outcome::Failed;
        run.reason = Some("it was killed by signal 9".into());
    });
    results.settle(None);
    let scratch = Scratch::new("report-failed");
    write(&[Input::Runs(Box::new(results))], scratch.path()).unwrap();
    let page = read(&scratch.path().join("index.html"));
    assert!(page.contains("<h1>No run counts"));
    assert!(page.contains("no run counts: it was killed by signal 9"));
    let chart = read(&scratch.path().join("reindex-1-ranking.svg"));
    assert!(!chart.contains("class=\"f-n0\"") && !scratch.path().join("reindex-1-height.svg").exists());
}

/// limit: REPORT_FILES_MAX at
/// limit: REPORT_FILES_MAX above
#[test]
fn a_page_has_a_largest_number_of_files() {
    let scratch = Scratch::new("report-many");
    let one = Input::Runs(Box::new(report_samples::reindex()));
    let many = vec![one; REPORT_FILES_MAX + 1];
    write(&many[1..], scratch.path()).unwrap();
    assert!(matches!(write(&many, scratch.path()), Err(ReportError::Usage(_))));
    assert!(matches!(write(&[], scratch.path()), Err(ReportError::Usage(_))));
}

#[test]
fn a_file_that_is_no_result_is_named_with_what_to_do() {
    let scratch = Scratch::new("report-foreign");
    std::fs::create_dir_all(scratch.path()).unwrap();
    let whole = report_samples::reindex().to_json();
    for (name, text, say) in [
        ("cut.json", &whole[..whole.len() / 2], "copy it again, or measure again"),
        ("foreign.json", "{\"a\": 1}", "it has no format number"),
        ("newer.json", &whole.replacen("\"format\": 1", "\"format\": 2", 1), "newer lydian-lab"),
        ("electrum.json", "{\"format\": 1, \"experiment\": \"electrum\"}", "missing field"),
    ] {
        let path = scratch.path().join(name);
        std::fs::write(&path, text).unwrap();
        let error = Input::read(&path).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains(say), "{error}");
    }
    assert!(Input::read(&scratch.path().join("absent.json")).unwrap_err().to_string().contains("absent.json"));
    let path = scratch.path().join("electrum.json");
    std::fs::write(&path, report_samples::electrum().to_json()).unwrap();
    assert_eq!(Input::read(&path).unwrap(), Input::Electrum(Box::new(report_samples::electrum())));
}

/// The fastest server gave a wrong answer, and the next one answered only a few scripts: neither is ranked as the
/// fastest.
#[test]
fn the_headline_ranks_no_server_whose_answers_are_wrong_or_missing() {
    let headline = |electrum| {
        let scratch = Scratch::new("report-headline");
        write(&[Input::Electrum(Box::new(electrum))], scratch.path()).unwrap();
        let text = read(&scratch.path().join("report.md")).replace('\u{a0}', " ").replace('\\', "");
        text.lines().find(|line| line.contains("A script's history")).unwrap().to_owned()
    };
    let mut electrum = report_samples::electrum();
    let all = headline(electrum.clone());
    assert!(all.contains("scripts that all of these answered") && !all.contains("not ranked"), "{all}");
    let asked: Vec<usize> = electrum.servers.iter().map(|server| server.queries.len()).collect();
    assert!(asked[0] > 0 && asked[1] > 0, "{asked:?}");
    for (server, is_wrong) in [(0, true), (1, false)] {
        let query = electrum.servers[server].queries.iter_mut().find(|query| query.name == "history").unwrap();
        if is_wrong {
            query.wrong = 1;
        } else {
            query.warm_ms.iter_mut().skip(10).for_each(|time| *time = None);
        }
    }
    let fewer = headline(electrum);
    assert!(fewer.contains("not ranked, since answers are wrong or missing: Fulcrum and ElectrumX"), "{fewer}");
    assert!(!fewer.contains("of the 10 of"), "{fewer}");
}

#[test]
fn a_projection_from_two_builds_of_a_node_says_so() {
    let (one, mut other) = (report_samples::reindex(), report_samples::reindex());
    let text = |other: &lydian_report::results::Results| {
        let scratch = Scratch::new("report-builds");
        let inputs = [one.clone(), other.clone()].map(|results| Input::Runs(Box::new(results)));
        write(&inputs, scratch.path()).unwrap();
        read(&scratch.path().join("report.md"))
    };
    assert!(!text(&other).contains("not of one build"));
    other.nodes[1].version.push_str(" of another day");
    assert!(text(&other).contains("not of one build"));
}
