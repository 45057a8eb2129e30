//! Options as words: `-name=value`, `-name`, `-noname`, `--name=value` on a command line, `name=value` in a file.
//!
//! Input: a word. Output: a value in [`Sources`], or an error. Values get no type here.

use crate::error::ArgumentProblem;
use crate::notice::Notice;
use crate::rules::Rules;
use crate::sources::{Origin, Setting, Sources, Value, after_negation};
use crate::value::switch;

impl Sources {
    /// Adds an option of the command line, which begins with a dash: the loop of Core's `ParseParameters`.
    pub fn add_argument(&mut self, argument: &str, notices: &mut Vec<Notice>) -> Result<(), ArgumentProblem> {
        let text = argument.strip_prefix("--").or(argument.strip_prefix('-')).unwrap_or(argument);
        let (key, value) = text.split_once('=').map_or((text, None), |(key, value)| (key, Some(value)));
        let key = Key::new(key);
        let has_section = key.section.is_some_and(|section| !section.is_empty());
        let Some(rules) = self.rules(key.name).filter(|_| !has_section) else {
            return Err(ArgumentProblem::Invalid { argument: argument.to_owned() });
        };
        let setting = interpret(&key, value, &rules, notices)?;
        self.add("", key.name, Value { setting, origin: Origin::CommandLine });
        Ok(())
    }

    /// Checks the command line as a whole: the end of Core's `ParseParameters`. `-includeconf` must not be on it, but
    /// `-noincludeconf` may.
    pub fn check_command_line(&self) -> Result<(), ArgumentProblem> {
        match after_negation(self.on_command_line("includeconf")).first() {
            Some(first) => Err(ArgumentProblem::Include { value: first.setting.text().to_owned() }),
            None => Ok(()),
        }
    }
}

/// A key, split as Core's `InterpretKey` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key<'a> {
    pub(crate) section: Option<&'a str>,
    is_negated: bool,
    pub(crate) name: &'a str,
}

impl<'a> Key<'a> {
    pub(crate) fn new(key: &'a str) -> Key<'a> {
        let (section, name) = key.split_once('.').map_or((None, key), |(section, name)| (Some(section), name));
        match name.strip_prefix("no") {
            Some(name) => Key { section, is_negated: true, name },
            None => Key { section, is_negated: false, name },
        }
    }
}

/// The setting for a key and a text: Core's `InterpretValue`.
pub(crate) fn interpret(
    key: &Key<'_>,
    value: Option<&str>,
    rules: &Rules,
    notices: &mut Vec<Notice>,
) -> Result<Setting, ArgumentProblem> {
    if !key.is_negated {
        return match rules.needs_value && value.is_none() {
            true => Err(ArgumentProblem::NoValue { name: rules.name }),
            false => Ok(Setting::Text(value.unwrap_or_default().to_owned())),
        };
    }
    if !rules.may_negate {
        return Err(ArgumentProblem::Negated { name: rules.name });
    }
    match value {
        // As in Core, a text that is not a number is 0, so -noNAME=false is a double negation as well.
        Some(text) if !switch(text) => {
            let words = format!("Parsed potentially confusing double-negative -{}={text}", key.name);
            notices.push(Notice::LogWarning(words));
            Ok(Setting::DoubleNegated)
        }
        _ => Ok(Setting::Negated),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(name: &str) -> Option<Rules> {
        match name {
            "pid" | "par" | "includeconf" => Some(Rules::plain("pid")),
            "datadir" => Some(Rules { may_negate: false, ..Rules::plain("datadir") }),
            "proxy" => Some(Rules { needs_value: true, ..Rules::plain("proxy") }),
            _ => None,
        }
    }

    fn split(arguments: &[&str]) -> Result<Sources, ArgumentProblem> {
        let (mut sources, mut notices) = (Sources::new(rules), Vec::new());
        arguments.iter().try_for_each(|argument| sources.add_argument(argument, &mut notices))?;
        sources.check_command_line()?;
        Ok(sources)
    }

    /// Core's `util_CheckValue`, `util_ParseParameters` and `util_ParseInvalidParameters`.
    #[test]
    fn words_are_split_as_cores() {
        let last = |argument: &str| split(&[argument]).unwrap().get("pid").map(|value| value.setting.clone());
        let text = |text: &str| Some(Setting::Text(text.to_owned()));
        assert_eq!(["-nopid", "-nopid=", "-nopid=1", "-nopid=2"].map(last), [const { Some(Setting::Negated) }; 4]);
        assert_eq!(["-nopid=0", "-nopid=abc"].map(last), [const { Some(Setting::DoubleNegated) }; 2]);
        assert_eq!((last("-pid"), last("-pid=")), (text(""), text("")));
        assert_eq!((last("--pid=0"), last("-pid=a=b")), (text("0"), text("a=b")));
        assert_eq!(last("-.pid=1"), text("1"), "as in Core, an empty section counts as none");
        for (arguments, expected) in [
            (&["-qqq"][..], "Invalid parameter -qqq"),
            (&["--"], "Invalid parameter --"),
            (&["-regtest.par=1"], "Invalid parameter -regtest.par=1"),
            (&["-nodatadir"], "Negating of -datadir is meaningless and therefore forbidden"),
            (&["-proxy"], "Can not set -proxy with no value. Please specify value with -proxy=value."),
            (&["-includeconf"], "-includeconf cannot be used from commandline; -includeconf=\"\""),
            (&["-includeconf=f"], "-includeconf cannot be used from commandline; -includeconf=\"f\""),
        ] {
            assert_eq!(split(arguments).unwrap_err().to_string(), expected);
        }
        assert!(split(&["-noincludeconf"]).is_ok() && split(&["-includeconf=f", "-noincludeconf"]).is_ok());
    }

    #[test]
    fn a_double_negation_is_noted() {
        let (mut sources, mut notices) = (Sources::new(rules), Vec::new());
        sources.add_argument("-nopid=0", &mut notices).unwrap();
        let words = "Parsed potentially confusing double-negative -pid=0";
        assert_eq!(notices, [Notice::LogWarning(words.to_owned())]);
    }
}
