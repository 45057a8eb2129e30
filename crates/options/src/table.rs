//! [`Opt`], an entry of a program's table of options. The parser, the help text and the reading of values are derived
//! from the table, so that a new option is one new entry.
//!
//! `S` is the program's settings and `E` its error. [`apply`] stores the values that depend on nothing else; an option
//! whose meaning depends on others has [`Set::Elsewhere`], and the program reads it by name.

use crate::rules::Rules;
use crate::sources::{Setting, Sources};
use crate::value::{atoi, switch};
use std::path::PathBuf;

/// One option.
#[derive(Debug)]
pub struct Opt<S: 'static, E: 'static> {
    pub name: &'static str,
    /// The text after `=`, as shown in help; empty for a switch.
    pub argument: &'static str,
    /// The values that a shell offers; empty if there are too many.
    pub choices: &'static [&'static str],
    pub kind: Kind,
    /// May be given several times, and every value counts.
    pub is_list: bool,
    /// `-noNAME` is permitted.
    pub may_negate: bool,
    /// Its value is never logged: Core's `SENSITIVE`.
    pub is_secret: bool,
    /// Its value is a command, which may contain a password: it is logged as in Core, and shown nowhere else.
    pub is_command: bool,
    /// `-NAME` without `=` is an error: Core's `DISALLOW_ELISION`.
    pub needs_value: bool,
    /// At the top of a file it applies to the main chain only: Core's `NETWORK_ONLY`.
    pub is_of_chain: bool,
    /// Bitcoin Core lacks it.
    pub is_own: bool,
    pub group: Group,
    /// The commands it belongs to; if empty, it belongs to all of them and to the program without a command.
    pub commands: &'static [&'static str],
    /// The default, as shown in help; empty if none is shown.
    pub default: &'static str,
    pub help: &'static str,
    /// What happens with its value.
    pub set: Set<S, E>,
}

/// The form of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 0 or 1; an empty value means 1.
    Switch,
    Integer {
        min: i64,
        max: i64,
    },
    Path,
    Text,
}

/// A heading of the help text; the empty one is not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group(pub &'static str);

impl Group {
    pub const HIDDEN: Group = Group("");
}

/// Stores the value that counts, if the option is given.
#[derive(Debug)]
pub enum Set<S: 'static, E: 'static> {
    /// The program reads the value by the option's name.
    Elsewhere,
    Switch(fn(&mut S, bool)),
    /// The number as Core reads it, clamped to the limits of [`Kind::Integer`].
    Integer(fn(&mut S, i64)),
    /// `None` if the option is negated. An empty value leaves the default.
    Path(fn(&mut S, Option<PathBuf>)),
    /// All values that count and are not empty.
    List(fn(&mut S, Vec<String>)),
    /// A value that may be invalid, or whose negation means something.
    Value(fn(&mut S, &Setting) -> Result<(), E>),
}

impl<S, E> Opt<S, E> {
    pub const SWITCH: Opt<S, E> = Opt {
        name: "",
        argument: "",
        choices: &[],
        kind: Kind::Switch,
        is_list: false,
        may_negate: true,
        is_secret: false,
        is_command: false,
        needs_value: false,
        is_of_chain: false,
        is_own: false,
        group: Group::HIDDEN,
        commands: &[],
        default: "0",
        help: "",
        set: Set::Elsewhere,
    };

    pub const TEXT: Opt<S, E> = Opt { kind: Kind::Text, default: "none", ..Self::SWITCH };

    pub const PATH: Opt<S, E> = Opt { argument: "<file>", kind: Kind::Path, ..Self::SWITCH };

    pub const fn integer(min: i64, max: i64) -> Opt<S, E> {
        Opt { argument: "<n>", kind: Kind::Integer { min, max }, ..Self::SWITCH }
    }

    /// The rules of its syntax.
    pub fn rules(&self) -> Rules {
        Rules {
            name: self.name,
            may_negate: self.may_negate,
            needs_value: self.needs_value,
            is_secret: self.is_secret,
            is_of_chain: self.is_of_chain,
        }
    }
}

/// Hands the given values to their entries, in the order of the table; stops at the first invalid value.
pub fn apply<S: 'static, E: 'static>(
    options: impl IntoIterator<Item = &'static Opt<S, E>>,
    sources: &Sources,
    settings: &mut S,
) -> Result<(), E> {
    for option in options {
        let Some(setting) = sources.get(option.name).map(|value| &value.setting) else { continue };
        let text = setting.text();
        match option.set {
            Set::Elsewhere => {}
            Set::Switch(set) => set(settings, switch(text)),
            Set::Integer(set) => set(settings, option.clamped(text)),
            Set::Path(set) if *setting == Setting::Negated => set(settings, None),
            Set::Path(_) if text.is_empty() => {}
            Set::Path(set) => set(settings, Some(PathBuf::from(text))),
            Set::List(set) => set(settings, sources.texts(option.name)),
            Set::Value(set) => set(settings, setting)?,
        }
    }
    Ok(())
}

impl<S, E> Opt<S, E> {
    /// The number as Core reads it, within the limits of the option if it has any.
    pub fn clamped(&self, text: &str) -> i64 {
        match self.kind {
            Kind::Integer { min, max } => atoi(text).clamp(min, max),
            Kind::Switch | Kind::Path | Kind::Text => atoi(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notice::Notice;

    #[derive(Debug, Default, PartialEq, Eq)]
    struct Settings {
        is_on: bool,
        count: i64,
        file: Option<PathBuf>,
        word: String,
        words: Vec<String>,
    }

    const TABLE: &[Opt<Settings, String>] = &[
        Opt { name: "on", set: Set::Switch(|settings, is_on| settings.is_on = is_on), ..Opt::SWITCH },
        Opt { name: "count", set: Set::Integer(|settings, count| settings.count = count), ..Opt::integer(2, 9) },
        Opt { name: "file", set: Set::Path(|settings, path| settings.file = path), ..Opt::PATH },
        Opt {
            name: "word",
            set: Set::Value(|settings, setting| match setting.text() {
                "bad" => Err("a bad word".to_owned()),
                text => {
                    settings.word = text.to_owned();
                    Ok(())
                }
            }),
            ..Opt::TEXT
        },
        Opt { name: "list", set: Set::List(|settings, words| settings.words = words), ..Opt::TEXT },
        Opt { name: "other", ..Opt::TEXT },
    ];

    fn rules(name: &str) -> Option<Rules> {
        TABLE.iter().find(|option| option.name == name).map(Opt::rules)
    }

    fn applied(arguments: &[&str]) -> Result<Settings, String> {
        let mut sources = Sources::new(rules);
        let mut notices: Vec<Notice> = Vec::new();
        for argument in arguments {
            sources.add_argument(argument, &mut notices).unwrap();
        }
        let mut settings = Settings { file: Some("default".into()), ..Settings::default() };
        apply(TABLE, &sources, &mut settings).map(|()| settings)
    }

    #[test]
    fn each_value_reaches_its_setting() {
        let default = || Settings { file: Some("default".into()), ..Settings::default() };
        assert_eq!(applied(&["-other=x"]), Ok(default()));
        assert_eq!(applied(&["-on", "-file=a"]), Ok(Settings { is_on: true, file: Some("a".into()), ..default() }));
        assert_eq!(applied(&["-nofile"]), Ok(Settings { file: None, ..default() }));
        assert_eq!(applied(&["-file"]), Ok(default()), "an empty path leaves the default");
        assert_eq!(applied(&["-count=x"]), Ok(Settings { count: 2, ..default() }));
        assert_eq!(applied(&["-count=10", "-word=w"]), Ok(Settings { count: 9, word: "w".into(), ..default() }));
        let words = ["a", "b"].map(str::to_owned).to_vec();
        assert_eq!(applied(&["-list=a", "-list=", "-list=b"]), Ok(Settings { words, ..default() }));
        assert_eq!(applied(&["-word=bad"]), Err("a bad word".to_owned()));
    }
}
