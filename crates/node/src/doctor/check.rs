//! The form of a check: an entry of the table with its question and what to do, and the answer that it gives.

use super::facts::Facts;
use serde::Serialize;

/// How bad an answer is; the worst decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    Ok,
    /// The question could not be asked here, such as one for a running node.
    Skipped,
    Warning,
    Bad,
}

/// The headings of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Group {
    Disk,
    Memory,
    Machine,
    Network,
    Directory,
    Settings,
    Node,
}

impl Group {
    pub(crate) const ALL: [Group; 7] =
        [Group::Disk, Group::Memory, Group::Machine, Group::Network, Group::Directory, Group::Settings, Group::Node];

    pub(crate) fn heading(self) -> &'static str {
        match self {
            Group::Disk => "Disk",
            Group::Memory => "Memory",
            Group::Machine => "Machine",
            Group::Network => "Network",
            Group::Directory => "Data directory",
            Group::Settings => "Settings",
            Group::Node => "Running node",
        }
    }
}

/// One entry of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Check {
    /// Stable: programs read it in the JSON.
    pub(crate) name: &'static str,
    pub(crate) group: Group,
    pub(crate) question: &'static str,
    /// When the answer is a warning; empty if it never is.
    pub(crate) warning: &'static str,
    /// When the answer is bad; empty if it never is.
    pub(crate) bad: &'static str,
    /// What to do unless the answer is "ok".
    pub(crate) advice: &'static str,
    pub(crate) ask: fn(&Facts<'_>) -> Answer,
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) level: Level,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn ok(text: impl Into<String>) -> Answer {
        Answer { level: Level::Ok, text: text.into() }
    }

    pub(crate) fn skipped(text: impl Into<String>) -> Answer {
        Answer { level: Level::Skipped, text: text.into() }
    }

    pub(crate) fn warning(text: impl Into<String>) -> Answer {
        Answer { level: Level::Warning, text: text.into() }
    }

    pub(crate) fn bad(text: impl Into<String>) -> Answer {
        Answer { level: Level::Bad, text: text.into() }
    }

    /// The worst of several findings, with the texts of all that are as bad; `otherwise` if there is none.
    pub(crate) fn worst(findings: Vec<Answer>, otherwise: impl FnOnce() -> Answer) -> Answer {
        let Some(level) = findings.iter().map(|one| one.level).max() else { return otherwise() };
        let texts: Vec<String> = findings.into_iter().filter(|one| one.level == level).map(|one| one.text).collect();
        Answer { level, text: texts.join("; ") }
    }
}
