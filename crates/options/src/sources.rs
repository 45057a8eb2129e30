//! Decides which value of an option counts. Input: values from the command line and from sections of files. Output: one
//! value, or the list of all that count. The order is Bitcoin Core's (`common/settings.cpp`), with its peculiarities:
//!
//! * the command line takes precedence over `settings.json`, that over the section of the chain, and that over the top
//!   of the file;
//! * of several values on the command line the last counts, in a file the first (for options that select the chain, the
//!   last);
//! * a negation clears the values before it in the same place, and for a list also the places after it, unless values
//!   follow it.

use crate::rules::Rules;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

/// One value of one option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    pub setting: Setting,
    pub origin: Origin,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting {
    /// The text after `=`; empty if there is none.
    Text(String),
    /// `-noNAME`.
    Negated,
    /// `-noNAME=0`.
    DoubleNegated,
}

impl Setting {
    /// The text, as Core's `SettingToString` writes it.
    pub fn text(&self) -> &str {
        match self {
            Setting::Text(text) => text,
            Setting::Negated => "0",
            Setting::DoubleNegated => "1",
        }
    }
}

/// Where a value was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
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
#[derive(Clone, Debug)]
pub struct Sources {
    /// The rules of an option; `None` if there is no such option.
    find: fn(&str) -> Option<Rules>,
    command_line: BTreeMap<String, Vec<Value>>,
    /// Of `settings.json`.
    settings: BTreeMap<String, Vec<Value>>,
    /// By section (`""` is the top) and option.
    files: BTreeMap<(String, String), Vec<Value>>,
    /// The chain's name once it is known; its section then counts.
    network: Option<String>,
    unknown_sections: Vec<String>,
    /// The values of `settings.json`, as Core logs them.
    settings_lines: Vec<String>,
}

impl Sources {
    /// No values; `find` looks an option up in the program's table.
    pub fn new(find: fn(&str) -> Option<Rules>) -> Sources {
        Sources {
            find,
            command_line: BTreeMap::new(),
            settings: BTreeMap::new(),
            files: BTreeMap::new(),
            network: None,
            unknown_sections: Vec::new(),
            settings_lines: Vec::new(),
        }
    }

    pub(crate) fn rules(&self, name: &str) -> Option<Rules> {
        (self.find)(name)
    }

    pub(crate) fn add_unknown_section(&mut self, line: String) {
        self.unknown_sections.push(line);
    }

    pub(crate) fn add_line(&mut self, line: String) {
        self.settings_lines.push(line);
    }

    /// Sections of files that belong to no chain, as the warning names them.
    pub fn unknown_sections(&self) -> &[String] {
        &self.unknown_sections
    }

    /// Adds a value; `section` is that of a file.
    pub(crate) fn add(&mut self, section: &str, name: &str, value: Value) {
        let values = match value.origin {
            Origin::CommandLine => self.command_line.entry(name.to_owned()).or_default(),
            Origin::Settings => self.settings.entry(name.to_owned()).or_default(),
            Origin::File { .. } => self.files.entry((section.to_owned(), name.to_owned())).or_default(),
        };
        values.push(value);
    }

    pub fn select_network(&mut self, network: &str) {
        self.network = Some(network.to_owned());
    }

    /// The values of one option in one section of the files, in their order.
    pub(crate) fn in_section(&self, section: &str, name: &str) -> &[Value] {
        self.files.get(&(section.to_owned(), name.to_owned())).map(Vec::as_slice).unwrap_or_default()
    }

    pub fn on_command_line(&self, name: &str) -> &[Value] {
        self.command_line.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    fn in_settings(&self, name: &str) -> &[Value] {
        self.settings.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// The value that counts.
    pub fn get(&self, name: &str) -> Option<&Value> {
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

    /// The largest number of different values in one place that counts: the command line, `settings.json`, the section
    /// of the chain, the top of the file.
    pub fn different_values(&self, name: &str) -> usize {
        let texts = |values: &[Value]| values.iter().map(|value| value.setting.text()).collect::<BTreeSet<_>>().len();
        self.merge(name, false).iter().map(|(values, _)| texts(values)).max().unwrap_or(0)
    }

    /// All values that count.
    pub fn list(&self, name: &str) -> Vec<&Value> {
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

    /// The texts of all values that count and are not empty.
    pub fn texts(&self, name: &str) -> Vec<String> {
        let texts = self.list(name).into_iter().map(|value| value.setting.text());
        texts.filter(|text| !text.is_empty()).map(str::to_owned).collect()
    }

    /// The places of an option's values in order of precedence, and whether each is a configuration file.
    ///
    /// On chains other than main, the top of a file does not count for an option of one chain. With `keeps_negations`
    /// it still does if it ends in a negation, as in Core.
    fn merge(&self, name: &str, keeps_negations: bool) -> [(&[Value], bool); 4] {
        let section = self.network.as_deref().map(|network| self.in_section(network, name)).unwrap_or_default();
        let is_foreign = self.is_other_chain() && self.rules(name).is_some_and(|rules| rules.is_of_chain);
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
    pub fn at_top_only(&self) -> Vec<&'static str> {
        let has = |values: &[Value]| !after_negation(values).is_empty();
        let is_lost = |name: &str| {
            has(self.in_section("", name)) && !self.merge(name, false).iter().any(|(values, _)| has(values))
        };
        if !self.is_other_chain() {
            return Vec::new();
        }
        let top = self.files.keys().filter(|(section, _)| section.is_empty());
        let of_chain = top.filter_map(|(_, name)| self.rules(name)).filter(|rules| rules.is_of_chain);
        let mut names: Vec<_> = of_chain.map(|rules| rules.name).filter(|name| is_lost(name)).collect();
        names.sort_unstable();
        names
    }

    /// Every given value, as Core logs it.
    pub fn log_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for ((section, name), values) in &self.files {
            let section = if section.is_empty() { String::new() } else { format!("[{section}] ") };
            let values = values.iter().map(|value| self.written(name, &value.setting));
            lines.extend(values.map(|value| format!("Config file arg: {section}{name}={value}")));
        }
        lines.extend_from_slice(&self.settings_lines);
        for (name, values) in &self.command_line {
            let values = values.iter().map(|value| self.written(name, &value.setting));
            lines.extend(values.map(|value| format!("Command-line arg: {name}={value}")));
        }
        lines
    }

    /// The value as JSON, as Core logs settings; a secret as stars.
    fn written(&self, name: &str, setting: &Setting) -> String {
        match setting {
            _ if self.rules(name).is_some_and(|rules| rules.is_secret) => "****".to_owned(),
            Setting::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
            Setting::Negated => "false".to_owned(),
            Setting::DoubleNegated => "true".to_owned(),
        }
    }
}

/// The values after the last negation.
pub(crate) fn after_negation(values: &[Value]) -> &[Value] {
    let start = values.iter().rposition(|value| value.setting == Setting::Negated).map_or(0, |index| index + 1);
    values.get(start..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(line: &[&str], files: &[(&str, &str)]) -> Sources {
        let mut sources = Sources::new(|name| Some(Rules::plain(if name == "a" { "a" } else { "b" })));
        let setting = |text: &str| match text {
            "false" => Setting::Negated,
            "true" => Setting::DoubleNegated,
            text => Setting::Text(text.to_owned()),
        };
        for text in line {
            sources.add("", "a", Value { setting: setting(text), origin: Origin::CommandLine });
        }
        for (index, (section, text)) in files.iter().enumerate() {
            let origin = Origin::File { path: "f".into(), line: index + 1 };
            sources.add(section, "a", Value { setting: setting(text), origin });
        }
        sources
    }

    /// Values of Core's argsman_tests: `util_GetArg` (priorities), `util_GetBoolArgEdgeCases`, `util_ReadConfigStream`.
    #[test]
    fn precedence_is_cores() {
        let one = |line: &[&str], files: &[(&str, &str)], network: &str| {
            let mut sources = given(line, files);
            sources.select_network(network);
            let list: Vec<_> = sources.list("a").iter().map(|value| value.setting.text().to_owned()).collect();
            (sources.get("a").map(|value| value.setting.text().to_owned()).unwrap_or_default(), list.join(","))
        };
        let is = |value: &str, list: &str| (value.to_owned(), list.to_owned());
        assert_eq!(one(&["x", "y"], &[], "main"), is("y", "x,y"));
        assert_eq!(one(&[], &[("", "x"), ("", "y")], "main"), is("x", "x,y"));
        assert_eq!(one(&["x", "y"], &[("", "u"), ("", "v")], "main"), is("y", "x,y,u,v"));
        assert_eq!(one(&["false", ""], &[], "main"), is("", ""), "a later value overrides a negation");
        assert_eq!(one(&[], &[("", "false"), ("", "1")], "main"), is("1", "1"));
        assert_eq!(one(&[], &[("", "1"), ("", "false")], "main"), is("0", ""), "a negation is the last word");
        assert_eq!(one(&["false"], &[("", "1")], "main"), is("0", ""));
        assert_eq!(one(&["false", "x"], &[("", "u")], "main"), is("x", "x,u"), "Core's zombies");
        let sections =
            [("", "argument"), ("", "multiple"), ("sec1", "extend1"), ("sec1", "extend2"), ("sec2", "extend3")];
        assert_eq!(one(&[], &sections, "main"), is("argument", "argument,multiple"));
        assert_eq!(one(&[], &sections, "sec1"), is("extend1", "extend1,extend2,argument,multiple"));
        assert_eq!(one(&[], &sections, "sec2"), is("extend3", "extend3,argument,multiple"));
        assert_eq!(one(&[], &[("sec1", "false"), ("", "u")], "sec1"), is("0", ""));
        let chain = |line: &[&str], files: &[(&str, &str)]| {
            given(line, files).get_for_chain("a").map(|value| value.setting.text().to_owned()).unwrap_or_default()
        };
        assert_eq!(chain(&[], &[("", "0"), ("", "1")]), "1", "for chains in a file, the last counts");
        assert_eq!(chain(&["false"], &[("", "1")]), "1", "a negated chain on the command line is ignored");
        assert_eq!(chain(&[], &[("regtest", "1")]), "", "a section does not choose itself");
    }

    /// At the top of a file, an option of one chain applies to the main chain only.
    #[test]
    fn options_of_one_chain() {
        let rules = |name: &str| {
            let rules = Rules::plain(if name == "port" { "port" } else { "par" });
            Some(Rules { is_of_chain: rules.name == "port", ..rules })
        };
        let mut sources = Sources::new(rules);
        let value = |setting| Value { setting, origin: Origin::File { path: "f".into(), line: 1 } };
        sources.add("", "port", value(Setting::Text("1".to_owned())));
        sources.add("", "par", value(Setting::Text("2".to_owned())));
        let text = |sources: &Sources, name| sources.get(name).map(|value| value.setting.text().to_owned());
        sources.select_network("main");
        assert_eq!((text(&sources, "port").as_deref(), sources.at_top_only()), (Some("1"), vec![]));
        sources.select_network("regtest");
        assert_eq!((text(&sources, "port"), text(&sources, "par").as_deref()), (None, Some("2")));
        assert_eq!(sources.at_top_only(), ["port"]);
        sources.add("regtest", "port", value(Setting::Text("3".to_owned())));
        assert_eq!((text(&sources, "port").as_deref(), sources.at_top_only()), (Some("3"), vec![]));
    }
}
