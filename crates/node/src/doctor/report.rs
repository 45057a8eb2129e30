//! [`Report`]: the answers to all checks, as JSON and as a text for people.

use super::check::{Answer, Check, Level};
use super::facts::Facts;
use super::table::CHECKS;
use crate::clock::{Stopwatch, now};
use crate::exit;
use crate::screen::{Screen, Tone};
use lydian_stdx::wrap;
use serde::Serialize;

/// Version of the JSON: changes when a field changes its meaning or is removed.
const FORMAT: u32 = 1;

/// The document of `--json`.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    format: u32,
    lydian: &'static str,
    /// Seconds since 1970.
    time: u32,
    datadir: Option<String>,
    chain: Option<&'static str>,
    is_running: bool,
    /// The process of the node, if it is known.
    process: Option<u32>,
    /// The worst of all.
    level: Level,
    counts: Counts,
    seconds: f64,
    checks: Vec<Row>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Counts {
    ok: usize,
    skipped: usize,
    warning: usize,
    bad: usize,
}

#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    group: super::check::Group,
    question: &'static str,
    level: Level,
    text: String,
    /// What to do; `null` unless the answer is a warning or bad.
    advice: Option<&'static str>,
}

impl Row {
    fn new(check: &Check, answer: Answer) -> Row {
        let Check { name, group, question, .. } = *check;
        let advice = (answer.level >= Level::Warning).then_some(check.advice);
        Row { name, group, question, level: answer.level, text: answer.text, advice }
    }
}

impl Report {
    /// Asks every question of the table.
    pub(crate) fn make(facts: &Facts<'_>, watch: &Stopwatch) -> Report {
        let checks: Vec<Row> = CHECKS.iter().map(|check| Row::new(check, (check.ask)(facts))).collect();
        let count = |level| checks.iter().filter(|row| row.level == level).count();
        let counts = Counts {
            ok: count(Level::Ok),
            skipped: count(Level::Skipped),
            warning: count(Level::Warning),
            bad: count(Level::Bad),
        };
        // A question that was not asked is not a fault.
        let level = checks.iter().map(|row| row.level).filter(|level| *level != Level::Skipped).max();
        Report {
            format: FORMAT,
            lydian: env!("CARGO_PKG_VERSION"),
            time: now(),
            datadir: facts.settings.as_ref().map(|settings| settings.datadir.display().to_string()),
            chain: facts.settings.as_ref().map(|settings| settings.params.chain.name()),
            is_running: facts.is_running(),
            process: facts.node_process(),
            level: level.unwrap_or(Level::Ok),
            counts,
            seconds: watch.seconds().wall_seconds,
            checks,
        }
    }

    pub(crate) fn json(&self) -> String {
        match serde_json::to_string_pretty(self) {
            Ok(json) => json,
            Err(error) => unreachable!("structures of numbers and texts are JSON: {error}"),
        }
    }

    pub(crate) fn code(&self) -> u8 {
        match self.level {
            Level::Ok | Level::Skipped => exit::DONE,
            Level::Warning => exit::DOCTOR_WARNING,
            Level::Bad => exit::DOCTOR_BAD,
        }
    }

    /// The text, in lines of at most `width` columns where words allow it.
    pub(crate) fn text(&self, screen: &Screen, width: usize) -> String {
        let mut text = format!("{}\n\n", wrap(&self.heading(), width, ""));
        for level in [Level::Bad, Level::Warning, Level::Ok, Level::Skipped] {
            for row in self.checks.iter().filter(|row| row.level == level) {
                text += &row.text(screen, width);
            }
        }
        text + "\n" + &wrap(&self.sum(), width, "") + "\n"
    }

    fn heading(&self) -> String {
        let state = match (self.is_running, self.process) {
            (true, Some(process)) => format!("a node runs, process {process}"),
            (true, None) => "a node runs".to_owned(),
            (false, _) => "no node runs".to_owned(),
        };
        match (&self.datadir, self.chain) {
            (Some(datadir), Some(chain)) => format!("Lydian {} in {datadir} (chain {chain}; {state})", self.lydian),
            _ => format!("Lydian {}, without a data directory", self.lydian),
        }
    }

    fn sum(&self) -> String {
        let Counts { ok, skipped, warning, bad } = self.counts;
        let warnings = if warning == 1 { "warning" } else { "warnings" };
        let verdict = match self.level {
            Level::Ok | Level::Skipped => "All is well",
            Level::Warning => "The node works, but look at the warnings",
            Level::Bad => "Something needs your help",
        };
        format!("{verdict}: {bad} bad, {warning} {warnings}, {ok} ok, {skipped} not asked, in {:.1} s.", self.seconds)
    }
}

/// Columns of the level, and of the names.
const LEVEL_WIDTH: usize = 9;
const NAME_WIDTH: usize = 16;

/// What begins an advice.
const ARROW: &str = "-> ";

impl Row {
    fn text(&self, screen: &Screen, width: usize) -> String {
        let (word, tone) = match self.level {
            Level::Bad => ("BAD", Tone::Bad),
            Level::Warning => ("WARNING", Tone::Warn),
            Level::Ok => ("ok", Tone::Good),
            Level::Skipped => ("-", Tone::Quiet),
        };
        let indent = " ".repeat(LEVEL_WIDTH + NAME_WIDTH);
        let room = width.saturating_sub(indent.len());
        let level = screen.tone(tone, &format!("{word:LEVEL_WIDTH$}"));
        let name = screen.tone(Tone::Strong, &format!("{:NAME_WIDTH$}", self.name));
        let mut text = format!("{level}{name}{}\n", wrap(&self.text, room, &indent));
        if let Some(advice) = self.advice {
            let advice = wrap(advice, room.saturating_sub(ARROW.len()), &format!("{indent}   "));
            text += &format!("{indent}{ARROW}{advice}\n");
        }
        text
    }
}

/// The number of checks and the widths hold for every entry.
#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn entries_are_whole() {
        let names: BTreeSet<&str> = CHECKS.iter().map(|check| check.name).collect();
        assert_eq!(names.len(), CHECKS.len(), "names are unique");
        for check in CHECKS {
            assert!(check.name.len() < NAME_WIDTH && check.question.ends_with('?'), "{}", check.name);
            assert!(!check.warning.is_empty() || !check.bad.is_empty(), "{} can fail", check.name);
            assert!(check.advice.ends_with('.'), "{}", check.name);
        }
    }

    #[test]
    fn a_row_fits_into_a_terminal() {
        let screen = Screen::new();
        for check in CHECKS {
            let row = Row::new(check, Answer::bad("word ".repeat(40).trim_end()));
            let text = row.text(&screen, 80);
            assert!(text.lines().all(|line| line.len() <= 80), "{text}");
            assert!(text.contains("-> "), "{text}");
        }
        let row = Row::new(&CHECKS[0], Answer::ok("fine"));
        assert_eq!(row.text(&screen, 80), "ok       free-space      fine\n");
    }
}
