//! Splits the command line. Input: its words. Output: [`Words`]: the command, its arguments, and the values of options
//! in [`Sources`].
//!
//! Unlike in Core, options may also follow the command. `--name` means `-name`. Values get no type here.

use super::core::CORE_OPTIONS;
use super::error::{ArgumentProblem, SettingsError};
use super::notice::Notice;
use super::parse;
use super::sources::{Origin, Setting, Sources, Value};
use super::table::{COMMANDS, OPTIONS, Opt, find};
use std::ffi::OsString;

/// The words of the command line, split.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    pub(crate) command: Option<&'static str>,
    /// Words after the command that are not options.
    pub(crate) arguments: Vec<String>,
    pub(crate) sources: Sources,
    pub(crate) notices: Vec<Notice>,
}

impl Words {
    /// Whether a switch is on, on the command line only: `-help` is not for files.
    pub(crate) fn has_switch(&self, name: &str) -> bool {
        let value = self.sources.on_command_line(name).last();
        value.is_some_and(|value| parse::switch(value.setting.text()))
    }

    pub(crate) fn wants_help(&self) -> bool {
        ["help", "h", "?", "help-debug"].into_iter().any(|name| self.has_switch(name))
    }
}

/// The command that the words name, whether or not the other words can be parsed; it decides the exit code for an error
/// in them.
pub(crate) fn command(arguments: &[OsString]) -> Option<&'static str> {
    let first = arguments.iter().find(|argument| !argument.to_string_lossy().starts_with('-'))?;
    COMMANDS.iter().map(|command| command.name).find(|name| first == *name)
}

/// Splits the words after the program's name.
pub(crate) fn split(arguments: impl IntoIterator<Item = OsString>) -> Result<Words, SettingsError> {
    let mut words = Words::default();
    for argument in arguments {
        let argument = argument
            .into_string()
            .map_err(|argument| SettingsError::NotUtf8 { argument: argument.to_string_lossy().into_owned() })?;
        if argument == "-" {
            // Core stops reading here.
            break;
        } else if argument.starts_with('-') {
            option(&argument, &mut words)?;
        } else if words.command.is_some() {
            words.arguments.push(argument);
        } else {
            let known = COMMANDS.iter().map(|command| command.name).find(|name| *name == argument);
            words.command = Some(known.ok_or(SettingsError::UnexpectedToken { token: argument })?);
        }
    }
    check_command(&words)?;
    let included = words.sources.on_command_line("includeconf");
    let start = included.iter().rposition(|value| value.setting == Setting::Negated).map_or(0, |index| index + 1);
    if let Some(first) = included.get(start) {
        let value = first.setting.text().to_owned();
        return Err(SettingsError::CommandLine(ArgumentProblem::Include { value }));
    }
    Ok(words)
}

fn option(argument: &str, words: &mut Words) -> Result<(), SettingsError> {
    let text = argument.strip_prefix("--").or(argument.strip_prefix('-')).unwrap_or(argument);
    let (key, value) = text.split_once('=').map_or((text, None), |(key, value)| (key, Some(value)));
    let key = Key::new(key);
    let known = lookup(key.name);
    if key.section.is_some_and(|section| !section.is_empty()) || matches!(known, Known::Nothing) {
        let argument = argument.to_owned();
        return Err(SettingsError::CommandLine(ArgumentProblem::Invalid { argument }));
    }
    let setting = interpret(&key, value, known, &mut words.notices).map_err(SettingsError::CommandLine)?;
    words.sources.add("", key.name, Value { setting, origin: Origin::CommandLine });
    Ok(())
}

/// Checks that the command has its arguments and that the options belong to it.
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

/// A key, split as Core's `InterpretKey` does.
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

/// Whether a name is an option of ours, one of Core's, or unknown.
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

/// The setting for a key and a text: Core's `InterpretValue`.
pub(super) fn interpret(
    key: &Key<'_>,
    value: Option<&str>,
    known: Known,
    notices: &mut Vec<Notice>,
) -> Result<Setting, ArgumentProblem> {
    let ours = match known {
        Known::Ours(option) => Some(option),
        Known::Core | Known::Nothing => None,
    };
    if !key.is_negated {
        return match ours.filter(|option| option.needs_value && value.is_none()) {
            Some(option) => Err(ArgumentProblem::NoValue { name: option.name }),
            None => Ok(Setting::Text(value.unwrap_or_default().to_owned())),
        };
    }
    if let Some(option) = ours.filter(|option| !option.may_negate) {
        return Err(ArgumentProblem::Negated { name: option.name });
    }
    match value {
        // As in Core, a text that is not a number is 0, so -noNAME=false is a double negation as well.
        Some(text) if !parse::switch(text) => {
            let words = format!("Parsed potentially confusing double-negative -{}={text}", key.name);
            notices.push(Notice::LogWarning(words));
            Ok(Setting::DoubleNegated)
        }
        _ => Ok(Setting::Negated),
    }
}
