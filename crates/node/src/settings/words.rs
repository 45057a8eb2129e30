//! The command line, split. Input: its words. Output: [`Words`]: the command, its arguments, and the values of options in [`Sources`].
//!
//! Unlike Core, options may stand behind the command too. `--name` is `-name`. Nothing is given a type here.

use super::core::CORE_OPTIONS;
use super::error::SettingsError;
use super::nearest::nearest;
use super::parse;
use super::sources::{Origin, Setting, Sources, Value};
use super::table::{COMMANDS, Group, OPTIONS, Opt, find};
use std::ffi::OsString;

/// What was written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    pub(crate) command: Option<&'static str>,
    /// Words behind the command that are no options.
    pub(crate) arguments: Vec<String>,
    pub(crate) sources: Sources,
    pub(crate) warnings: Vec<String>,
}

impl Words {
    /// A switch on the command line alone: `-help` is not for files.
    pub(crate) fn has_switch(&self, name: &str) -> bool {
        let value = self.sources.on_command_line(name).last();
        value.is_some_and(|value| parse::switch(value.setting.text()).unwrap_or(true))
    }

    pub(crate) fn wants_help(&self) -> bool {
        ["help", "h", "?", "help-debug"].into_iter().any(|name| self.has_switch(name))
    }
}

/// Splits the words after the program's name.
pub(crate) fn split(arguments: impl IntoIterator<Item = OsString>) -> Result<Words, SettingsError> {
    let mut words = Words::default();
    for argument in arguments {
        let argument = argument
            .into_string()
            .map_err(|argument| SettingsError::NotUtf8 { argument: argument.to_string_lossy().into_owned() })?;
        if argument.starts_with('-') {
            option(&argument, &mut words)?;
        } else if words.command.is_none() {
            words.command = Some(command(&argument)?);
        } else {
            words.arguments.push(argument);
        }
    }
    check_command(&words)?;
    if let [.., last] = words.sources.on_command_line("includeconf")
        && last.setting != Setting::Negated
    {
        return Err(SettingsError::IncludeOnCommandLine { value: last.setting.text().to_owned() });
    }
    Ok(words)
}

fn option(argument: &str, words: &mut Words) -> Result<(), SettingsError> {
    let text = argument.strip_prefix("--").or(argument.strip_prefix('-')).unwrap_or(argument);
    let (key, value) = text.split_once('=').map_or((text, None), |(key, value)| (key, Some(value)));
    let key = Key::new(key);
    if key.section.is_some() && !matches!(lookup(key.name), Known::Nothing) {
        return Err(SettingsError::SectionOnCommandLine { argument: argument.to_owned() });
    }
    match lookup(if key.section.is_some() { "" } else { key.name }) {
        Known::Nothing => Err(SettingsError::UnknownOption {
            argument: argument.to_owned(),
            nearest: nearest(key.name, known_names()),
        }),
        known => {
            let setting = interpret(&key, value, known, &Origin::CommandLine, &mut words.warnings)?;
            words.sources.add("", key.name, Value { setting, origin: Origin::CommandLine });
            Ok(())
        }
    }
}

fn command(word: &str) -> Result<&'static str, SettingsError> {
    let names = || COMMANDS.iter().map(|command| command.name);
    names()
        .find(|name| *name == word)
        .ok_or_else(|| SettingsError::UnknownCommand { word: word.to_owned(), nearest: nearest(word, names()) })
}

/// Whether the command has its arguments, and its options belong to it.
fn check_command(words: &Words) -> Result<(), SettingsError> {
    let info = words.command.and_then(|name| COMMANDS.iter().find(|command| command.name == name));
    let count_max = usize::from(info.is_some_and(|info| !info.argument.is_empty()));
    if let Some(word) = words.arguments.get(count_max) {
        return Err(SettingsError::UnexpectedWord { word: word.clone(), command: words.command });
    }
    if let Some(info) =
        info.filter(|info| !info.argument.is_empty() && words.arguments.is_empty() && !words.wants_help())
    {
        return Err(SettingsError::MissingWord { command: info.name, argument: info.argument });
    }
    let is_foreign = |option: &&Opt| {
        let given = !words.sources.on_command_line(option.name).is_empty();
        given && !option.commands.is_empty() && !words.command.is_some_and(|command| option.commands.contains(&command))
    };
    match OPTIONS.iter().find(is_foreign) {
        Some(option) => {
            Err(SettingsError::WrongCommand { name: option.name, command: words.command, belongs: option.commands })
        }
        None => Ok(()),
    }
}

/// A key, taken apart as Core's `InterpretKey` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key<'a> {
    pub(super) section: Option<&'a str>,
    pub(super) is_negated: bool,
    pub(super) name: &'a str,
}

impl<'a> Key<'a> {
    pub(super) fn new(key: &'a str) -> Key<'a> {
        let (section, name) = key.split_once('.').map_or((None, key), |(section, name)| (Some(section), name));
        match name.strip_prefix("no") {
            Some(name) => Key { section, is_negated: true, name },
            None => Key { section, is_negated: false, name },
        }
    }
}

/// Whose option a name is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Known {
    Ours(&'static Opt),
    Core,
    Nothing,
}

pub(super) fn lookup(name: &str) -> Known {
    match find(name) {
        Some(option) => Known::Ours(option),
        None if CORE_OPTIONS.iter().any(|option| option.name == name) => Known::Core,
        None => Known::Nothing,
    }
}

/// Names worth proposing to somebody who slipped.
pub(super) fn known_names() -> impl Iterator<Item = &'static str> {
    OPTIONS.iter().filter(|option| option.group != Group::Hidden).map(|option| option.name)
}

/// The setting that a key and a text make: Core's `InterpretValue`.
pub(super) fn interpret(
    key: &Key<'_>,
    value: Option<&str>,
    known: Known,
    origin: &Origin,
    warnings: &mut Vec<String>,
) -> Result<Setting, SettingsError> {
    let ours = match known {
        Known::Ours(option) => Some(option),
        Known::Core | Known::Nothing => None,
    };
    if let Some(option) = ours.filter(|option| option.needs_value && !key.is_negated && value.is_none()) {
        return Err(SettingsError::NoValue { origin: origin.clone(), name: option.name });
    }
    if !key.is_negated {
        return Ok(Setting::Text(value.unwrap_or_default().to_owned()));
    }
    if let Some(option) = ours.filter(|option| !option.may_negate) {
        return Err(SettingsError::Negated { origin: origin.clone(), name: option.name });
    }
    match value {
        // Core: what is no number is 0, so that -noNAME=false is a double negation as well.
        Some(text) if !text.is_empty() && !parse::switch(text).unwrap_or(false) => {
            warnings.push(format!("{origin}Parsed potentially confusing double-negative -no{}={text}", key.name));
            Ok(Setting::DoubleNegated)
        }
        _ => Ok(Setting::Negated),
    }
}
