//! `lydian-lab peers list`: which systems can be measured on this machine, in which version, by which command, and why
//! the others cannot.
//!
//! Input: the table of systems, the forks of `lab.toml`, the programs on this machine. Output: entries, as text for a
//! terminal of any width, as JSON, or only what is left out. Cost: each installed program is asked for its version. It
//! must never install or start a node.

use super::INSTALLERS;
use crate::electrum::adapters;
use crate::error::LabError;
use crate::lab_toml::LabFile;
use crate::runs::adapters::adapter_with;
use lydian_report::systems::{Bar, Cannot, How, Role, SYSTEMS, System};
use serde::Serialize;

/// One system, on this machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// The name in `--nodes` or `--servers`.
    pub name: String,
    pub title: String,
    /// `node` or `electrum`.
    pub role: &'static str,
    /// The version reported by the program; `null` if it is not installed.
    pub version: Option<String>,
    /// Experiments it can take part in, on this machine or where it is installed.
    pub measured_by: Vec<&'static str>,
    /// How to install it, if it is not installed.
    pub get: Option<String>,
    pub cannot: Vec<Reason>,
    /// Settings with which it validates everything.
    pub validation: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// The experiments it cannot take part in; if empty, it runs, but its figures have another meaning.
    pub from: Vec<&'static str>,
    pub reason: String,
    pub source: String,
}

/// Lists every system of the table and every fork of the file.
pub fn list(file: &LabFile) -> Vec<Entry> {
    let known = SYSTEMS.iter().map(|system| entry(system, system.kind, system.title, file));
    let forks = file.forks().iter().filter_map(|fork| {
        let base = SYSTEMS.iter().find(|system| system.kind == fork.base && system.role == Role::Node)?;
        Some(entry(base, &fork.name, &format!("fork of {}", base.title), file))
    });
    known.chain(forks).collect()
}

fn entry(system: &System, name: &str, title: &str, file: &LabFile) -> Entry {
    let bars: &[(Bar, &'static str)] = match system.role {
        Role::Node => &[(Bar::Reindex, "reindex"), (Bar::Sync, "sync")],
        Role::Electrum => &[(Bar::Electrum, "electrum")],
    };
    let found = match system.role {
        Role::Node => adapter_with(name, None, file).and_then(|node| match node.absent() {
            Some(reason) => Err(LabError::NotInstalled(reason.to_owned())),
            None => match node.version() {
                // A system that takes part in nothing needs no program.
                Err(LabError::NotInstalled(reason)) => Err(LabError::NotInstalled(reason)),
                version => Ok(version.unwrap_or_else(|error| format!("of a version that it does not tell: {error}"))),
            },
        }),
        Role::Electrum => server_version(system, file),
    };
    Entry {
        name: name.to_owned(),
        title: title.to_owned(),
        role: if system.role == Role::Node { "node" } else { "electrum" },
        measured_by: bars.iter().filter(|(bar, _)| system.bar(*bar).is_none()).map(|(_, word)| *word).collect(),
        get: found.is_err().then(|| file.missing(name).unwrap_or_else(|| system.how.text(system.kind))),
        version: found.ok().map(|version| version.lines().next().unwrap_or_default().to_owned()),
        cannot: reasons(system.cannot, bars),
        validation: system.validation.to_owned(),
    }
}

/// A program given by path is not started: servers have no common option for the version.
fn server_version(system: &System, file: &LabFile) -> Result<String, LabError> {
    if let Some(path) = file.path_of(system.kind)? {
        return Ok(path.display().to_string());
    }
    if system.how == How::Beside {
        let ours = adapters::server(system.kind, None)?;
        return ours.absent().map_or_else(|| ours.version(), |reason| Err(LabError::NotInstalled(reason.to_owned())));
    }
    let installer = INSTALLERS.iter().find(|installer| installer.kind == system.kind);
    installer.map_or_else(|| Err(LabError::NotInstalled(system.how.text(system.kind))), |found| (found.version)())
}

/// One reason for several experiments becomes one entry.
fn reasons(cannot: &[Cannot], bars: &[(Bar, &'static str)]) -> Vec<Reason> {
    let mut found: Vec<Reason> = Vec::new();
    for one in cannot {
        let from = bars.iter().filter(|(bar, _)| *bar == one.bar).map(|(_, word)| *word);
        match found.iter_mut().find(|reason| reason.reason == one.reason) {
            Some(reason) => reason.from.extend(from),
            None => found.push(Reason { from: from.collect(), reason: one.reason.into(), source: one.source.into() }),
        }
    }
    found
}

pub fn to_json(entries: &[Entry]) -> String {
    // Strings and lists: serialization cannot fail.
    serde_json::to_string_pretty(entries).unwrap_or_default() + "\n"
}

/// One line for each reason why a system is not measured here, or not by every command.
pub fn left_out(entries: &[Entry]) -> String {
    let mut text = String::new();
    for entry in entries {
        let name = if entry.role == "electrum" { format!("{} (Electrum)", entry.title) } else { entry.title.clone() };
        for reason in entry.cannot.iter().filter(|reason| !reason.from.is_empty()) {
            text.push_str(&format!("{name}: {}\n", reason.sentence()));
        }
        if let (Some(get), false) = (&entry.get, entry.measured_by.is_empty()) {
            text.push_str(&format!("{name}: not here: {get}\n"));
        }
    }
    text
}

impl Reason {
    fn sentence(&self) -> String {
        let from: Vec<String> = self.from.iter().map(|word| format!("no {word}")).collect();
        let head = if from.is_empty() { String::new() } else { format!("{}: ", from.join(", ")) };
        format!("{head}{} [{}]", self.reason, self.source)
    }
}

const NAME_WIDTH: usize = 11;
const TITLE_WIDTH: usize = 21;
const MEASURED_WIDTH: usize = 14;
const WIDTH_MIN: usize = 60;

/// Text for a terminal of this many columns; with `None` lines are not wrapped.
pub fn to_text(entries: &[Entry], columns: Option<usize>) -> String {
    let width = columns.map_or(usize::MAX, |columns| columns.max(WIDTH_MIN));
    let mut text = String::new();
    for (role, head) in [("node", "NODES"), ("electrum", "ELECTRUM SERVERS")] {
        if !text.is_empty() {
            text.push('\n');
        }
        let heading = format!("{head:<width$}{:<MEASURED_WIDTH$}here", "measured by", width = NAME_WIDTH + TITLE_WIDTH);
        text.push_str(&wrapped(&heading, "", width, NAME_WIDTH + TITLE_WIDTH + MEASURED_WIDTH));
        for entry in entries.iter().filter(|entry| entry.role == role) {
            text.push_str(&block(entry, width));
        }
    }
    let foot = "`lydian-lab peers install NAME...` installs; a program that you built has its path in lab.toml.";
    text + "\n" + &wrapped(foot, "", width, 0)
}

fn row(name: &str, title: &str, measured: &str, rest: &str) -> String {
    let pad = |text: &str, width: usize| format!("{text:<width$}", width = width.max(text.len() + 1));
    format!("{}{}{}{rest}", pad(name, NAME_WIDTH), pad(title, TITLE_WIDTH), pad(measured, MEASURED_WIDTH))
}

fn block(entry: &Entry, width: usize) -> String {
    let measured = if entry.measured_by.is_empty() { "nothing".to_owned() } else { entry.measured_by.join(", ") };
    let first = row(&entry.name, &entry.title, &measured, entry.version.as_deref().unwrap_or("not here"));
    let mut text = wrapped(&first, "", width, NAME_WIDTH + TITLE_WIDTH + MEASURED_WIDTH);
    // There is nothing to install if the reason below says that there is nothing to measure.
    let get = entry.get.as_ref().filter(|get| !entry.cannot.iter().any(|reason| reason.reason == **get));
    let sentences = get.into_iter().cloned().chain(entry.cannot.iter().map(Reason::sentence));
    for sentence in sentences {
        text.push_str(&wrapped(&sentence, &" ".repeat(NAME_WIDTH), width, NAME_WIDTH + 2));
    }
    text
}

/// Wraps between words; further lines are indented by `hanging` columns.
fn wrapped(text: &str, indent: &str, width: usize, hanging: usize) -> String {
    let (mut lines, mut line) = (String::new(), indent.to_owned());
    // The columns of the first line keep their spaces: a piece is a word and the spaces before it.
    let mut rest = text;
    while !rest.is_empty() {
        let spaces = rest.len() - rest.trim_start_matches(' ').len();
        let end = rest[spaces..].find(' ').map_or(rest.len(), |word| spaces + word);
        let (piece, after) = rest.split_at(end);
        if line.chars().count() + piece.chars().count() > width && !line.trim().is_empty() {
            lines.push_str(line.trim_end());
            lines.push('\n');
            line = " ".repeat(hanging) + piece.trim_start_matches(' ');
        } else {
            line.push_str(piece);
        }
        rest = after;
    }
    lines + line.trim_end() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn file() -> LabFile {
        let ours = std::env::current_exe().unwrap().display().to_string();
        let text = format!(
            "[paths]\nfulcrum = {ours:?}\n[[fork]]\nname = \"b3chaind\"\nbase = \"core\"\npath = \"/bin/false\"\n"
        );
        LabFile::parse(&text, Path::new("lab.toml")).unwrap()
    }

    #[test]
    fn every_system_and_every_fork_has_its_entry() {
        let entries = list(&file());
        assert_eq!(entries.len(), SYSTEMS.len() + 1);
        let of = |name: &str| entries.iter().find(|entry| entry.name == name).unwrap();
        assert_eq!((of("b3chaind").title.as_str(), &of("b3chaind").get), ("fork of Bitcoin Core", &None));
        assert!(of("fulcrum").version.is_some() && of("esplora").version.is_none());
        let floresta = of("floresta");
        assert!(floresta.measured_by.is_empty() && floresta.get.is_some());
        assert_eq!((of("gocoin").measured_by.as_slice(), of("gocoin").get.is_some()), (["sync"].as_slice(), true));
        for entry in &entries {
            let is_described = !entry.measured_by.is_empty() || !entry.cannot.is_empty();
            assert!(is_described && (entry.version.is_some() || entry.get.is_some()), "{entry:?}");
        }
        let json: serde_json::Value = serde_json::from_str(&to_json(&entries)).unwrap();
        assert_eq!(json.as_array().unwrap().len(), entries.len());
    }

    #[test]
    fn lines_keep_to_the_terminal() {
        let entries = list(&file());
        for columns in [60, 80, 120] {
            let text = to_text(&entries, Some(columns));
            // A word longer than a line is not broken: addresses and paths stay whole.
            let is_long = |line: &&str| line.chars().count() > columns && line.trim().contains(' ');
            let long: Vec<&str> = text.lines().filter(is_long).collect();
            assert_eq!(long, Vec::<&str>::new(), "{columns}");
            for system in SYSTEMS {
                assert!(text.contains(system.title), "{}", system.title);
            }
        }
        assert!(to_text(&entries, None).lines().any(|line| line.len() > 120));
    }

    #[test]
    fn one_reason_for_two_experiments_is_given_once() {
        let text = left_out(&list(&LabFile::default()));
        assert!(text.contains("Zebra BTC: no reindex, no sync: it was left before it checked scripts"), "{text}");
        assert_eq!(text.matches("it was left before it checked scripts").count(), 1);
    }
}
