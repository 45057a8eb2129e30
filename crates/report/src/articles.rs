//! The table of the yearly articles: what a sync from a peer took in hours and gigabytes, and the change since an older
//! result file.
//!
//! Input: results, optionally older ones. Output: Markdown. A run's CPU use is the share of all cores that it kept
//! busy. Must never: compare a node with another node of the older file, or hide that the two files end at different
//! heights.

use crate::page::words;
use crate::results::{Cache, Figures, Results, Summary, Validation};
use std::fmt::Write;

const GIGABYTE: f64 = 1e9;
const HOUR_SECONDS: f64 = 3_600.0;

/// One row per node; a node without a counted run has dashes, and its reason is in the table of `summary`.
pub fn to_markdown(results: &Results, since: Option<&Results>) -> String {
    let mut text = String::from(
        "| node | hours | peak memory GB | disk read GB | disk written GB | downloaded GB | CPU hours | CPU use | wall / floor |",
    );
    text.push_str(if since.is_some() { " change |\n" } else { "\n" });
    let columns = if since.is_some() { 10 } else { 9 };
    let _ = writeln!(text, "|{}", "---|".repeat(columns));
    for node in &results.nodes {
        let Some(figures) = figures_of(results, &node.name) else {
            let _ = writeln!(text, "| {} |{}", node.name, " - |".repeat(columns - 1));
            continue;
        };
        let change = since.map(|older| format!(" {} |", change_of(figures, figures_of(older, &node.name))));
        let cells = cells(results, figures).join(" | ");
        let _ = writeln!(text, "| {} | {cells} |{}", node.name, change.unwrap_or_default());
    }
    text.push('\n');
    for line in remarks(results, since) {
        let _ = writeln!(text, "{line}");
    }
    text
}

fn figures_of<'a>(results: &'a Results, node: &str) -> Option<&'a Figures> {
    let is_it = |summary: &&Summary| summary.node == node && summary.cache == Cache::Warm;
    results.summary.iter().find(is_it)?.figures.as_ref()
}

fn cells(results: &Results, figures: &Figures) -> [String; 8] {
    let gigabytes = |bytes: f64| format!("{:.2}", bytes / GIGABYTE);
    let wall = figures.wall_seconds.median;
    #[allow(clippy::cast_precision_loss, reason = "a number of cores is small")]
    let cores = results.machine.cores.max(1) as f64;
    let share = if wall > 0.0 { figures.cpu_seconds.median / (wall * cores) * 100.0 } else { 0.0 };
    [
        hours(wall),
        gigabytes(figures.peak_rss_bytes.median),
        gigabytes(figures.read_bytes.median),
        gigabytes(figures.write_bytes.median),
        figures.received_bytes.map_or_else(|| "-".to_owned(), |spread| gigabytes(spread.median)),
        hours(figures.cpu_seconds.median),
        format!("{share:.0} %"),
        figures.floor_ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}")),
    ]
}

/// `12 h 07`; with seconds below an hour.
fn hours(seconds: f64) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "seconds of a run")]
    let minutes = (seconds / 60.0).round() as u64;
    if seconds < HOUR_SECONDS { format!("{seconds:.1} s") } else { format!("{} h {:02}", minutes / 60, minutes % 60) }
}

fn change_of(new: &Figures, old: Option<&Figures>) -> String {
    match old {
        Some(old) if old.wall_seconds.median > 0.0 => {
            format!("{:+.1} %", (new.wall_seconds.median / old.wall_seconds.median - 1.0) * 100.0)
        }
        _ => "new".to_owned(),
    }
}

fn remarks(results: &Results, since: Option<&Results>) -> Vec<String> {
    let mut lines = Vec::new();
    lines.push(match results.settings.validation {
        Validation::Full => "Every node checked every script.".to_owned(),
        Validation::Default => {
            "Every node used its own default assumptions, and skipped the scripts that these cover.".to_owned()
        }
    });
    if let Some(limit) = results.settings.cgroup_memory_bytes {
        lines.push(format!(
            "Each node had {limit} bytes of memory including its page cache, and was killed if it needed more."
        ));
    }
    if results.floor.is_none() {
        lines.push("No floor: the checks of this chain were not counted.".to_owned());
    }
    if let Some(older) = since {
        lines.push(format!("Change: wall time since the results of {}.", words::date(older.started)));
        if (&older.chain.network, older.chain.height) != (&results.chain.network, results.chain.height) {
            lines.push(format!(
                "The older results end at height {} of {}, these at height {} of {}: part of the change is the chain's.",
                older.chain.height, older.chain.network, results.chain.height, results.chain.network
            ));
        }
        if older.machine.cpu != results.machine.cpu || older.machine.cores != results.machine.cores {
            lines.push(format!(
                "The older results are those of another machine: {}, {} cores.",
                older.machine.cpu, older.machine.cores
            ));
        }
        if older.settings.validation != results.settings.validation {
            lines.push("The older results were made with another validation.".to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = include_str!("../../../docs/formats/lab-results.md");

    fn example() -> Results {
        let (_, rest) = DOCUMENT.split_once("```json\n").unwrap();
        serde_json::from_str(rest.split_once("```").unwrap().0).unwrap()
    }

    #[test]
    fn times_are_those_of_the_articles() {
        assert_eq!([43_620.0, 3_599.0, 2.34].map(hours), ["12 h 07", "3599.0 s", "2.3 s"]);
    }

    #[test]
    fn a_change_is_that_of_the_same_node_with_what_differs_beside_it() {
        let (mut old, mut new) = (example(), example());
        let node = new.nodes[0].name.clone();
        let wall = |results: &mut Results, seconds: f64| {
            let summary = results.summary.iter_mut().find(|summary| summary.node == node).unwrap();
            summary.figures.as_mut().unwrap().wall_seconds.median = seconds;
        };
        wall(&mut old, 10.0);
        wall(&mut new, 9_000.0);
        old.summary.retain(|summary| summary.node == node);
        let text = to_markdown(&new, Some(&old));
        let row = |name: &str| text.lines().find(|line| line.starts_with(&format!("| {name} |"))).unwrap();
        assert!(row(&node).contains("| 2 h 30 |") && row(&node).ends_with("| +89900.0 % |"), "{text}");
        assert!(row(&new.nodes[1].name).ends_with("| new |"), "{text}");
        assert!(!text.contains("part of the change"), "{text}");
        old.chain.height -= 1;
        old.settings.validation = Validation::Default;
        old.machine.cores += 1;
        let text = to_markdown(&new, Some(&old));
        for word in ["part of the change", "another validation", "another machine", "checked every script"] {
            assert!(text.contains(word), "{word} is not in\n{text}");
        }
        assert!(!to_markdown(&new, None).contains("change"));
    }

    #[test]
    fn cpu_use_is_the_share_of_all_cores() {
        let mut results = example();
        results.machine.cores = 2;
        results.settings.cgroup_memory_bytes = Some(2 << 30);
        results.floor = None;
        let figures = results.summary[0].figures.as_mut().unwrap();
        figures.wall_seconds.median = 10.0;
        figures.cpu_seconds.median = 15.0;
        let text = to_markdown(&results, None);
        assert!(text.lines().nth(2).unwrap().contains("| 75 % |"), "{text}");
        assert!(text.contains("2147483648 bytes of memory") && text.contains("No floor"), "{text}");
    }
}
