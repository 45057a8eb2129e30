//! Splits the command line. Input: its words. Output: [`Words`]: the command, its arguments, and the values of options
//! in [`Sources`].
//!
//! Unlike in Core, options may also follow the command. `--name` means `-name`. Values get no type here.

use super::error::SettingsError;
use super::table::{COMMANDS, Opt, options, rules};
use lydian_options::{Notice, Sources, switch};
use std::ffi::OsString;

/// The words of the command line, split.
#[derive(Clone, Debug)]
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
        value.is_some_and(|value| switch(value.setting.text()))
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.sources.on_command_line(name).last().map(|value| value.setting.text().to_owned())
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
    let mut words = Words { command: None, arguments: Vec::new(), sources: Sources::new(rules), notices: Vec::new() };
    for argument in arguments {
        let argument = argument
            .into_string()
            .map_err(|argument| SettingsError::NotUtf8 { argument: argument.to_string_lossy().into_owned() })?;
        if argument == "-" {
            // Core stops reading here.
            break;
        } else if argument.starts_with('-') {
            words.sources.add_argument(&argument, &mut words.notices).map_err(SettingsError::CommandLine)?;
        } else if words.command.is_some() {
            words.arguments.push(argument);
        } else {
            let known = COMMANDS.iter().map(|command| command.name).find(|name| *name == argument);
            words.command = Some(known.ok_or(SettingsError::UnexpectedToken { token: argument })?);
        }
    }
    check_command(&words)?;
    words.sources.check_command_line().map_err(SettingsError::CommandLine)?;
    Ok(words)
}

/// Checks that the command has its arguments and that the options belong to it.
fn check_command(words: &Words) -> Result<(), SettingsError> {
    let info = words.command.and_then(|name| COMMANDS.iter().find(|command| command.name == name));
    let count_max = info.map_or(0, |info| info.words_max);
    if let Some(word) = words.arguments.get(count_max) {
        return Err(SettingsError::UnexpectedWord { word: word.clone(), command: words.command });
    }
    if let Some(info) =
        info.filter(|info| !info.argument.is_empty() && words.arguments.is_empty() && !words.wants_help())
    {
        return Err(SettingsError::MissingWord { command: info.name, argument: info.argument });
    }
    let is_foreign = |option: &&'static Opt| {
        let given = !words.sources.on_command_line(option.name).is_empty();
        given && !option.commands.is_empty() && !words.command.is_some_and(|command| option.commands.contains(&command))
    };
    match options().find(is_foreign) {
        Some(option) => {
            Err(SettingsError::WrongCommand { name: option.name, command: words.command, belongs: option.commands })
        }
        None => Ok(()),
    }
}
