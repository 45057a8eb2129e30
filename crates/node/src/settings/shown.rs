//! Every option as the page shows it: the value in effect, where it was given, default and help. Input: the given
//! values and the tables. Output: rows, in the order of help.
//!
//! Invariant: a secret, and a command, which may contain one, is only ever the word [`SET`]: its text does not reach a
//! row.

use super::core::{CORE_OPTIONS, rules};
use super::table::{Opt, options};
use lydian_options::{Kind, Origin, Setting, Sources, Value, switch};

/// What stands for a value that is not shown.
const SET: &str = "set";

/// The heading of Core's options that have no effect here.
const WITHOUT_EFFECT: &str = "Options without effect";

/// One option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) name: &'static str,
    pub(crate) group: &'static str,
    /// The text after `=` in help; empty for a switch.
    pub(crate) argument: &'static str,
    pub(crate) default: &'static str,
    pub(crate) help: &'static str,
    /// Several if the option may be repeated; `0` for `-noNAME`; empty if the default counts.
    pub(crate) values: Vec<String>,
    /// Where the value was given; `None` if the default counts.
    pub(crate) source: Option<String>,
    pub(crate) is_secret: bool,
}

/// All options of the node, and the given ones of Core that have no effect here.
pub(super) fn shown(sources: &Sources) -> Vec<Shown> {
    let ours = options().filter(|option| option.commands.is_empty());
    let mut rows: Vec<Shown> = ours.map(|option| row(option, sources)).collect();
    let others = CORE_OPTIONS.iter().filter(|option| sources.get(option.name).is_some());
    rows.extend(others.map(|option| {
        let is_secret = rules(option.name).is_some_and(|rules| rules.is_secret);
        Shown {
            name: option.name,
            group: WITHOUT_EFFECT,
            argument: "",
            default: "",
            help: option.reason,
            values: texts(option.name, is_secret, false, sources, str::to_owned),
            source: source(option.name, false, sources),
            is_secret,
        }
    }));
    rows
}

fn row(option: &'static Opt, sources: &Sources) -> Shown {
    let is_secret = option.is_secret || option.is_command;
    let read = |text: &str| match option.kind {
        Kind::Switch => u8::from(switch(text)).to_string(),
        Kind::Integer { .. } if !text.is_empty() => option.clamped(text).to_string(),
        Kind::Integer { .. } | Kind::Path | Kind::Text => text.to_owned(),
    };
    Shown {
        name: option.name,
        group: option.group.0,
        argument: option.argument,
        default: option.default,
        help: option.help,
        values: texts(option.name, is_secret, option.is_list, sources, read),
        source: source(option.name, option.is_list, sources),
        is_secret,
    }
}

/// A sentence for each option that is given with different values in one place, of which only one counts.
pub(super) fn repeated(sources: &Sources) -> Vec<String> {
    let single = options().filter(|option| !option.is_list);
    let sentence = |option: &Opt| {
        let count = sources.different_values(option.name);
        (count > 1).then(|| format!("-{} is given with {count} values in one place; only one counts", option.name))
    };
    single.filter_map(sentence).collect()
}

fn texts(name: &str, is_secret: bool, is_list: bool, sources: &Sources, read: impl Fn(&str) -> String) -> Vec<String> {
    let shown = |value: &Value| match &value.setting {
        // What `-noNAME` says is no secret.
        Setting::Negated | Setting::DoubleNegated => read(value.setting.text()),
        Setting::Text(_) if is_secret => SET.to_owned(),
        Setting::Text(text) => read(text),
    };
    counted(name, is_list, sources).into_iter().map(shown).collect()
}

/// The values that count; for `-noNAME`, the negation.
fn counted<'a>(name: &str, is_list: bool, sources: &'a Sources) -> Vec<&'a Value> {
    let list = if is_list { sources.list(name) } else { Vec::new() };
    match list.is_empty() {
        true => sources.get(name).into_iter().collect(),
        false => list,
    }
}

/// `command line`, `settings.json`, or the file and the line; of several places the first.
fn source(name: &str, is_list: bool, sources: &Sources) -> Option<String> {
    let value = counted(name, is_list, sources).into_iter().next()?;
    Some(match &value.origin {
        Origin::CommandLine => "command line".to_owned(),
        Origin::Settings => "settings.json".to_owned(),
        Origin::File { path, line } => format!("{}:{line}", path.display()),
    })
}
