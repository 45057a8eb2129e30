//! Decides which value of an option counts. Input: values from the command line and from sections of files. Output: one
//! value, or the list of all that count. The order is Bitcoin Core's (`common/settings.cpp`), with its peculiarities:
//!
//! * the command line takes precedence over `settings.json`, that over the section of the chain, and that over the top
//!   of the file;
//! * of several values on the command line the last counts, in a file the first (for options that select the chain, the
//!   last);
//! * a negation clears the values before it in the same place, and for a list also the places after it, unless values
//!   follow it.

use super::table::{OPTIONS, find};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// One value of one option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) setting: Setting,
    pub(crate) origin: Origin,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    /// The text after `=`; empty if there is none.
    Text(String),
    /// `-noNAME`.
    Negated,
    /// `-noNAME=0`.
    DoubleNegated,
}

impl Setting {
    /// The text, as Core's `SettingToString` writes it.
    pub(crate) fn text(&self) -> &str {
        match self {
            Setting::Text(text) => text,
            Setting::Negated => "0",
            Setting::DoubleNegated => "1",
        }
    }
}

/// Where a value was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    CommandLine,
    /// `settings.json`.
    Settings,
    File {
        path: PathBuf,
        line: usize,
    },
}

/// The beginning of a message about the value.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::CommandLine | Origin::Settings => Ok(()),
            Origin::File { path, line } => write!(f, "{}:{line}: ", path.display()),
        }
    }
}

/// All given values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    command_line: BTreeMap<String, Vec<Value>>,
    /// Of `settings.json`.
    settings: BTreeMap<String, Vec<Value>>,
    /// By section (`""` is the top) and option.
    files: BTreeMap<(String, String), Vec<Value>>,
    /// The chain's name once it is known; its section then counts.
    network: Option<String>,
    /// Sections of files that belong to no chain, as the warning names them.
    pub(crate) unknown_sections: Vec<String>,
    /// The values of `settings.json`, as Core logs them.
    pub(crate) settings_lines: Vec<String>,
}

impl Sources {
    /// Adds a value; `section` is that of a file.
    pub(crate) fn add(&mut self, section: &str, name: &str, value: Value) {
        let values = match value.origin {
            Origin::CommandLine => self.command_line.entry(name.to_owned()).or_default(),
            Origin::Settings => self.settings.entry(name.to_owned()).or_default(),
            Origin::File { .. } => self.files.entry((section.to_owned(), name.to_owned())).or_default(),
        };
        values.push(value);
    }

    pub(crate) fn select_network(&mut self, network: &str) {
        self.network = Some(network.to_owned());
    }

    /// The values of one option in one section of the files, in their order.
    pub(crate) fn in_section(&self, section: &str, name: &str) -> &[Value] {
        self.files.get(&(section.to_owned(), name.to_owned())).map(Vec::as_slice).unwrap_or_default()
    }

    pub(crate) fn on_command_line(&self, name: &str) -> &[Value] {
        self.command_line.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    pub(crate) fn in_settings(&self, name: &str) -> &[Value] {
        self.settings.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// The value that counts.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.merge(name, true).into_iter().find_map(|(values, is_file)| {
            let counted = after_negation(values);
            match (counted, is_file) {
                ([], _) => values.last(),
                ([first, ..], true) => Some(first),
                ([.., last], false) => Some(last),
            }
        })
    }

    /// The value that counts for an option that selects the chain: the last one, in files too; from the top of files
    /// only; and without regard to negations on the command line.
    pub(crate) fn get_for_chain(&self, name: &str) -> Option<&Value> {
        [self.on_command_line(name), self.in_settings(name), self.in_section("", name)]
            .into_iter()
            .find_map(|values| after_negation(values).last())
    }

    /// All values that count.
    pub(crate) fn list(&self, name: &str) -> Vec<&Value> {
        let mut found = Vec::new();
        let mut is_done = false;
        let mut is_wiped = false;
        for (values, is_file) in self.merge(name, false) {
            let counted = after_negation(values);
            // Core's "zombies": values of a file count despite a negation on the command line if a value follows the
            // negation.
            if !is_done || (is_file && !is_wiped) {
                found.extend(counted);
            }
            is_done |= counted.len() < values.len();
            is_wiped |= counted.is_empty() && !values.is_empty() && found.is_empty();
        }
        found
    }

    /// The places of an option's values in order of precedence, and whether each is a configuration file.
    ///
    /// On chains other than main, the top of a file does not count for an option of one chain. With `keeps_negations`
    /// it still does if it ends in a negation, as in Core.
    fn merge(&self, name: &str, keeps_negations: bool) -> [(&[Value], bool); 4] {
        let section = self.network.as_deref().map(|network| self.in_section(network, name)).unwrap_or_default();
        let is_foreign = self.is_other_chain() && find(name).is_some_and(|option| option.is_of_chain);
        let top = self.in_section("", name);
        let is_negation = top.last().is_some_and(|value| value.setting == Setting::Negated);
        let top = if is_foreign && !(keeps_negations && is_negation) { &[] } else { top };
        [(self.on_command_line(name), false), (self.in_settings(name), false), (section, true), (top, true)]
    }

    fn is_other_chain(&self) -> bool {
        self.network.as_deref().is_some_and(|network| network != "main")
    }

    /// Options of one chain that are given only at the top of a file, which applies to the main chain: Core's
    /// `GetUnsuitableSectionOnlyArgs`.
    pub(crate) fn at_top_only(&self) -> Vec<&'static str> {
        let has = |values: &[Value]| !after_negation(values).is_empty();
        let is_lost = |name: &str| {
            has(self.in_section("", name)) && !self.merge(name, false).iter().any(|(values, _)| has(values))
        };
        let of_chain = OPTIONS.iter().filter(|option| option.is_of_chain && self.is_other_chain());
        let mut names: Vec<_> = of_chain.map(|option| option.name).filter(|name| is_lost(name)).collect();
        names.sort_unstable();
        names
    }

    /// Every given value, as Core logs it.
    pub(crate) fn log_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for ((section, name), values) in &self.files {
            let section = if section.is_empty() { String::new() } else { format!("[{section}] ") };
            let values = values.iter().map(|value| written(name, &value.setting));
            lines.extend(values.map(|value| format!("Config file arg: {section}{name}={value}")));
        }
        lines.extend_from_slice(&self.settings_lines);
        for (name, values) in &self.command_line {
            let values = values.iter().map(|value| written(name, &value.setting));
            lines.extend(values.map(|value| format!("Command-line arg: {name}={value}")));
        }
        lines
    }
}

/// The values after the last negation.
fn after_negation(values: &[Value]) -> &[Value] {
    let start = values.iter().rposition(|value| value.setting == Setting::Negated).map_or(0, |index| index + 1);
    values.get(start..).unwrap_or_default()
}

/// The value as JSON, as Core logs settings; a secret as stars.
fn written(name: &str, setting: &Setting) -> String {
    match setting {
        _ if is_secret(name) => "****".to_owned(),
        Setting::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
        Setting::Negated => "false".to_owned(),
        Setting::DoubleNegated => "true".to_owned(),
    }
}

/// Core's `SENSITIVE`.
fn is_secret(name: &str) -> bool {
    find(name).is_some_and(|option| option.is_secret) || name == "torpassword"
}
