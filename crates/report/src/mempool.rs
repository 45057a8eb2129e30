//! The results of `lydian-lab mempool`: the types of the JSON file, and the table made of them.
//!
//! Input: figures as they are measured. Output: one document; Markdown. Invariants: a figure is a list of values with
//! the number of the run that each comes from; a session that failed has no figures and is named with its reason.
//! Format: `docs/formats/lab-mempool.md`, whose example a test reads and writes.

use crate::results::{Lab, Machine, MachineFacts, NodeFacts, Spread};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// Changes when a field changes its meaning or is removed.
pub const FORMAT: u32 = 1;

/// The value of [`MempoolResults::experiment`].
pub const EXPERIMENT: &str = "mempool";

/// The whole document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MempoolResults {
    pub format: u32,
    pub lab: Lab,
    /// [`EXPERIMENT`].
    pub experiment: String,
    /// Seconds since 1970.
    pub started: f64,
    pub machine: MachineFacts,
    pub data: DataFacts,
    pub settings: MempoolSettings,
    /// In the order of `--nodes`; Lydian with `-sigengine=reference` is a node of its own.
    pub nodes: Vec<NodeFacts>,
    pub sessions: Vec<Session>,
    pub figures: Vec<Figure>,
    /// The content of each node's mempool after the import; `None` where they differ or none was reported.
    pub content: Option<Content>,
    /// Every session gave its figures, and all nodes reported the same content.
    pub is_agreed: bool,
}

/// The chain and the mempool that all nodes got.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFacts {
    pub seed: u64,
    /// Height of the chain below the mempool.
    pub height: u32,
    pub transactions: usize,
    pub inputs: usize,
    /// Bytes and weight of these transactions.
    pub bytes: usize,
    pub weight: usize,
    /// Transactions and weight of the first block above the tip.
    pub block_transactions: usize,
    pub block_weight: usize,
    /// SHA-256 over the transactions in order.
    pub sha256: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MempoolSettings {
    pub runs: u32,
    pub threads: usize,
    pub cache_mib: u64,
    /// For each step of a session.
    pub timeout_seconds: u64,
    /// The rows that were measured.
    pub rows: Vec<String>,
    /// Seconds during which the peers of the row `peers` announce.
    pub peers_seconds: u32,
}

/// One process of a node, from its start to its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Session {
    pub node: String,
    pub session: String,
    pub number: u32,
    /// How the machine's time was used meanwhile.
    pub machine: Machine,
    /// Others used more than 5 % of the machine, or their share is unknown.
    pub is_disturbed: bool,
    /// Why it has no figures, or not all.
    pub failure: Option<String>,
    /// The end of its log, if it failed.
    pub log_end: Option<String>,
}

/// One figure of one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The row: `import`.
    pub row: String,
    /// What was measured: `wall`, `cpu`, `growth`.
    pub what: String,
    pub unit: Unit,
    pub node: String,
    /// In the order of the runs; some rows measure several times in a run.
    pub values: Vec<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Seconds,
    Milliseconds,
    Microseconds,
    Bytes,
    Count,
}

/// The content of a mempool, as `getmempoolinfo` reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    pub size: u64,
    pub bytes: u64,
    pub usage: u64,
}

impl std::fmt::Display for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "size {}, bytes {}, usage {}", self.size, self.bytes, self.usage)
    }
}

impl MempoolResults {
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Adds a value to a figure.
    pub fn add(&mut self, node: &str, row: &str, what: &str, unit: Unit, value: f64) {
        let value = crate::results::rounded(value);
        let is_it = |figure: &&mut Figure| (figure.node.as_str(), &*figure.row, &*figure.what) == (node, row, what);
        match self.figures.iter_mut().find(is_it) {
            Some(figure) => figure.values.push(value),
            None => self.figures.push(Figure {
                row: row.to_owned(),
                what: what.to_owned(),
                unit,
                node: node.to_owned(),
                values: vec![value],
            }),
        }
    }

    fn values(&self, node: &str, row: &str, what: &str) -> Option<Spread> {
        let found =
            self.figures.iter().find(|figure| (&*figure.node, &*figure.row, &*figure.what) == (node, row, what));
        Spread::of(found?.values.clone())
    }
}

/// One line per figure and a column per node: median, lowest and highest, ratio to the first node.
pub fn to_markdown(results: &MempoolResults) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = head(results, &mut text).and_then(|()| table(results, &mut text)).and_then(|()| tail(results, &mut text));
    text
}

fn head(results: &MempoolResults, text: &mut String) -> std::fmt::Result {
    let data = &results.data;
    writeln!(
        text,
        "{} transactions, {} inputs, {:.1} Mvb, above height {}; blocks of {} transactions, {:.2} M weight. {} runs; median (lowest - highest), ratio to the first node.\n",
        data.transactions,
        data.inputs,
        millions(data.weight) / 4.0,
        data.height,
        data.block_transactions,
        millions(data.block_weight),
        results.settings.runs
    )
}

fn table(results: &MempoolResults, text: &mut String) -> std::fmt::Result {
    let names: Vec<&str> = results.nodes.iter().map(|node| node.name.as_str()).collect();
    writeln!(text, "| measure | {} |", names.join(" | "))?;
    writeln!(text, "|---{}|", "|---".repeat(names.len()))?;
    let mut lines: Vec<(&str, &str, Unit)> = Vec::new();
    for figure in &results.figures {
        if !lines.iter().any(|(row, what, _)| (*row, *what) == (&*figure.row, &*figure.what)) {
            lines.push((&figure.row, &figure.what, figure.unit));
        }
    }
    let place = |row: &str| results.settings.rows.iter().position(|name| name == row).unwrap_or(usize::MAX);
    lines.sort_by_key(|(row, _, _)| place(row));
    for (row, what, unit) in lines {
        let first = names.first().and_then(|name| results.values(name, row, what));
        let cells = names.iter().map(|name| cell(results.values(name, row, what), unit, first.as_ref()));
        writeln!(text, "| {row}: {what} | {} |", cells.collect::<Vec<_>>().join(" | "))?;
    }
    Ok(())
}

fn cell(values: Option<Spread>, unit: Unit, first: Option<&Spread>) -> String {
    let Some(Spread { median, min, max }) = values else { return "-".to_owned() };
    let shown = |value: f64| match unit {
        Unit::Seconds => format!("{value:.3}"),
        Unit::Milliseconds => format!("{value:.2}"),
        Unit::Microseconds => format!("{value:.1}"),
        Unit::Bytes => format!("{:.1}", value / f64::from(1_u32 << 20)),
        Unit::Count => format!("{value:.0}"),
    };
    let name = match unit {
        Unit::Seconds => " s",
        Unit::Milliseconds => " ms",
        Unit::Microseconds => " us",
        Unit::Bytes => " MiB",
        Unit::Count => "",
    };
    let ratio = first.filter(|first| first.median > 0.0 && unit != Unit::Count);
    let ratio = ratio.map_or(String::new(), |first| format!(", {:.2}", median / first.median));
    format!("{}{name} ({} - {}){ratio}", shown(median), shown(min), shown(max))
}

fn tail(results: &MempoolResults, text: &mut String) -> std::fmt::Result {
    writeln!(text)?;
    for node in &results.nodes {
        writeln!(text, "* {}: {}", node.name, node.version)?;
    }
    if let Some(content) = &results.content {
        writeln!(text, "* content of every mempool after the import: {content}")?;
    }
    let disturbed = results.sessions.iter().filter(|session| session.is_disturbed).count();
    if disturbed > 0 {
        let all = results.sessions.len();
        writeln!(text, "* other processes disturbed {disturbed} of {all} sessions: compare CPU times, not wall times")?;
    }
    for session in &results.sessions {
        let Some(failure) = &session.failure else { continue };
        writeln!(text, "* {} {}, run {}: {failure}", session.node, session.session, session.number)?;
    }
    Ok(())
}

#[allow(clippy::cast_precision_loss, reason = "weights of a mempool lie far below 2^52")]
fn millions(value: usize) -> f64 {
    value as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names_in;

    const DOCUMENT: &str = include_str!("../../../docs/formats/lab-mempool.md");

    fn example() -> MempoolResults {
        let (_, rest) = DOCUMENT.split_once("```json\n").unwrap();
        serde_json::from_str(rest.split_once("```").unwrap().0).unwrap()
    }

    /// The example stays the same when it is read and written again, its table is that of the document, and the
    /// document mentions every field.
    #[test]
    fn the_example_of_the_document_round_trips() {
        let (_, rest) = DOCUMENT.split_once("```json\n").unwrap();
        let printed: serde_json::Value = serde_json::from_str(rest.split_once("```").unwrap().0).unwrap();
        let written: serde_json::Value = serde_json::from_str(&example().to_json()).unwrap();
        assert_eq!(written, printed);
        assert_eq!((example().format, example().experiment.as_str()), (FORMAT, EXPERIMENT));
        let text = to_markdown(&example());
        let table: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert!(table.len() > 3 && DOCUMENT.contains(&table.join("\n")), "{text}");
        for own in ["data", "settings", "sessions", "figures", "content"] {
            let mut names = vec![own.to_owned()];
            names_in(&written[own], &mut names);
            names.retain(|name| !DOCUMENT.contains(&format!("`{name}`")));
            assert!(names.is_empty(), "fields without a word about them: {names:?}");
        }
    }

    #[test]
    fn values_of_one_figure_are_kept_together_and_failures_are_named() {
        let mut results = example();
        let lines =
            |results: &MempoolResults| to_markdown(results).lines().filter(|line| line.starts_with('|')).count();
        let before = lines(&results);
        results.add("bitcoind", "forward", "wall", Unit::Milliseconds, 8.0);
        results.add("bitcoind", "forward", "wall", Unit::Milliseconds, 4.0);
        results.add("lydian", "forward", "wall", Unit::Milliseconds, 3.0);
        assert_eq!(lines(&results), before + 1);
        let text = to_markdown(&results);
        let line = "| forward: wall | 6.00 ms (4.00 - 8.00), 1.00 | 3.00 ms (3.00 - 3.00), 0.50 |";
        assert!(text.contains(line), "{text}");
        results.sessions[0].failure = Some("it died".into());
        results.sessions[0].is_disturbed = true;
        let text = to_markdown(&results);
        assert!(text.contains("run 1: it died") && text.contains("disturbed 1 of 2"), "{text}");
    }
}
