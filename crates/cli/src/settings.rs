//! The user's settings.
//!
//! Input: the command line and `lydian.conf`, or `bitcoin.conf` if only that exists. Output: [`Settings`], which return
//! the value of each option, and the words after the options; or a [`SettingsError`]. The rules are Bitcoin Core's,
//! quirks included: the command line takes precedence over the section of the chain, and that over the top of the file;
//! if an option has several values, the last one counts on the command line and the first one in a file; `-noNAME`
//! discards the values before it. The node's options in the file are ignored. Invariants: nothing is written. Cost: one
//! small file is read.

use crate::conf;
use crate::error::{ConfError, SettingsError};
use crate::limits::{CONF_BYTES_MAX, COOKIE_BYTES_MAX};
use crate::options::{self, Opt};
use lydian_disk::{Disk, PathKind, RealDisk, read_whole};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The parameters of a chain that a client needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    pub(crate) name: &'static str,
    /// Its folder in the data directory.
    pub(crate) folder: &'static str,
    pub(crate) port: u16,
}

/// Names of the configuration file, in the node's order.
const CONF_FILENAMES: [&str; 2] = ["lydian.conf", "bitcoin.conf"];

const CHAINS: [Chain; 5] = [
    Chain { name: "main", folder: "", port: 8332 },
    Chain { name: "test", folder: "testnet3", port: 18332 },
    Chain { name: "testnet4", folder: "testnet4", port: 48332 },
    Chain { name: "signet", folder: "signet", port: 38332 },
    Chain { name: "regtest", folder: "regtest", port: 18443 },
];

#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Text(String),
    /// `-noNAME`.
    Negated,
    /// `-noNAME=0`.
    DoubleNegated,
}

impl Value {
    fn text(&self) -> &str {
        match self {
            Value::Text(text) => text,
            Value::Negated => "0",
            Value::DoubleNegated => "1",
        }
    }
}

/// All settings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    command_line: BTreeMap<&'static str, Vec<Value>>,
    /// By section (`""` is the top) and option.
    file: BTreeMap<(String, &'static str), Vec<Value>>,
    forced: BTreeMap<&'static str, String>,
    chain: Option<Chain>,
    conf: Option<PathBuf>,
    directory: PathBuf,
    home: PathBuf,
}

/// Splits a command line into options and words.
pub(crate) fn split(arguments: Vec<OsString>) -> Result<(Settings, Vec<String>), SettingsError> {
    let mut settings = Settings {
        directory: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
        home: std::env::var_os("HOME")
            .filter(|home| !home.is_empty())
            .map_or_else(|| PathBuf::from("/"), PathBuf::from),
        ..Settings::default()
    };
    let mut words = Vec::new();
    for argument in arguments {
        let not_utf8 =
            |argument: OsString| SettingsError::NotUtf8 { argument: argument.to_string_lossy().into_owned() };
        words.push(argument.into_string().map_err(not_utf8)?);
    }
    let options = words.iter().position(|word| !word.starts_with('-')).unwrap_or(words.len());
    let rest = words.split_off(options);
    // A single dash ends the options; Core skips the options after it.
    for word in words.iter().take_while(|word| *word != "-") {
        let (key, value) = word.split_once('=').map_or((word.as_str(), None), |(key, value)| (key, Some(value)));
        let key = key.strip_prefix("--").or_else(|| key.strip_prefix('-')).unwrap_or(key);
        let (section, name, is_negated) = interpret(key);
        let option = options::find(name).filter(|_| section.is_none());
        let option = option.ok_or_else(|| SettingsError::UnknownOption { argument: word.clone() })?;
        let value = match read(option, is_negated, value) {
            Ok(value) => value,
            Err(Refused::Negated) => return Err(SettingsError::Negated { name: name.to_owned() }),
            Err(Refused::NoValue) => return Err(SettingsError::NoValue { name: name.to_owned() }),
        };
        settings.command_line.entry(option.name).or_default().push(value);
    }
    Ok((settings, rest))
}

impl Settings {
    /// Reads the file and determines the chain.
    pub(crate) fn load(&mut self) -> Result<(), SettingsError> {
        if !self.has_datadir() {
            return Err(SettingsError::NoSuchDataDir { path: self.text("datadir").unwrap_or_default() });
        }
        self.conf = self.path("conf", self.default_conf()).map(|path| self.datadir().join(path));
        self.read_file().map_err(SettingsError::Conf)?;
        self.chain = Some(self.find_chain()?);
        Ok(())
    }

    /// The file that the node reads: its own, or Bitcoin Core's if only that one exists.
    fn default_conf(&self) -> &'static str {
        let exists = |name: &&str| RealDisk.kind(&self.datadir().join(name)).is_ok();
        CONF_FILENAMES.into_iter().find(exists).unwrap_or(CONF_FILENAMES[0])
    }

    /// Returns the value in effect; `0` if the option is negated.
    pub(crate) fn text(&self, name: &'static str) -> Option<String> {
        let option = options::find(name);
        assert!(option.is_some(), "-{name} is not in the table");
        if let Some(forced) = self.forced.get(name) {
            return Some(forced.clone());
        }
        let is_top_off =
            option.is_some_and(|option| option.is_per_chain) && self.chain.is_some_and(|chain| chain.name != "main");
        self.get(name, is_top_off).map(|value| value.text().to_owned())
    }

    pub(crate) fn is_set(&self, name: &'static str) -> bool {
        self.text(name).is_some()
    }

    pub(crate) fn is_negated(&self, name: &'static str) -> bool {
        !self.forced.contains_key(name) && self.get(name, false) == Some(&Value::Negated)
    }

    /// Core's interpretation as a boolean: an empty value or a number other than zero is true.
    pub(crate) fn switch(&self, name: &'static str) -> bool {
        self.text(name).is_some_and(|text| text.is_empty() || integer(&text) != 0)
    }

    pub(crate) fn integer(&self, name: &'static str, default: i64) -> i64 {
        self.text(name).map_or(default, |text| integer(&text))
    }

    /// Sets a value that was read from elsewhere. It overrides all other values.
    pub(crate) fn force(&mut self, name: &'static str, value: String) {
        self.forced.insert(name, value);
    }

    pub(crate) fn chain(&self) -> Chain {
        self.chain.unwrap_or(CHAINS[0])
    }

    /// The path of the file that was read, or would have been read if it existed.
    pub(crate) fn conf(&self) -> Option<&Path> {
        self.conf.as_deref()
    }

    /// Returns the content of the cookie file, or `Ok(None)` if it is disabled.
    pub(crate) fn cookie(&self) -> Result<Option<String>, ()> {
        let Some(path) = self.path("rpccookiefile", ".cookie") else { return Ok(None) };
        let path = self.datadir().join(self.chain().folder).join(path);
        let bytes = read_whole(&RealDisk, &path, COOKIE_BYTES_MAX).map_err(|_| ())?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(Some(text.split('\n').next().unwrap_or_default().to_owned()))
    }

    fn read_file(&mut self) -> Result<(), ConfError> {
        let Some(path) = self.conf.clone() else { return Ok(()) };
        if RealDisk.kind(&path) == Ok(PathKind::Directory) {
            return Err(ConfError::IsDirectory { path });
        }
        let bytes = match read_whole(&RealDisk, &path, CONF_BYTES_MAX) {
            Ok(bytes) => bytes,
            // The file may be missing, unless it was named.
            Err(_) if self.is_set("conf") => return Err(ConfError::Unreadable { path }),
            Err(_) => return Ok(()),
        };
        for (key, value) in conf::parse(&String::from_utf8_lossy(&bytes))? {
            let (section, name, is_negated) = interpret(&key);
            if name == "conf" {
                return Err(ConfError::ConfInConf);
            }
            // The node's options are ignored.
            let Some(option) = options::find(name) else { continue };
            let value = match read(option, is_negated, Some(&value)) {
                Ok(value) => value,
                Err(Refused::Negated) => return Err(ConfError::Negated { name: name.to_owned() }),
                Err(Refused::NoValue) => return Err(ConfError::NoValue { name: name.to_owned() }),
            };
            self.file.entry((section.unwrap_or_default().to_owned(), option.name)).or_default().push(value);
        }
        match self.has_datadir() {
            true => Ok(()),
            false => Err(ConfError::NoSuchDataDir { path: self.text("datadir").unwrap_or_default() }),
        }
    }

    fn find_chain(&self) -> Result<Chain, SettingsError> {
        let named = self.text("chain");
        let flags = ["regtest", "signet", "testnet", "testnet4"];
        let on: Vec<_> = flags.into_iter().filter(|flag| self.is_chain_flag_on(flag)).collect();
        let name = match (named, on.as_slice()) {
            (Some(name), []) => name,
            (None, []) => "main".to_owned(),
            (None, ["testnet"]) => "test".to_owned(),
            (None, [flag]) => (*flag).to_owned(),
            _ => return Err(SettingsError::ChainCombination),
        };
        let found = CHAINS.into_iter().find(|chain| chain.name == name);
        found.ok_or(SettingsError::UnknownChain { name })
    }

    /// For these flags the last value counts in a file too, and a negation on the command line is ignored.
    fn is_chain_flag_on(&self, flag: &str) -> bool {
        let values = self.command_line.iter().find(|(name, _)| **name == flag).map(|(_, values)| values.as_slice());
        let on_command_line = values.map(after_negation).and_then(<[Value]>::last);
        let in_file = || self.file.iter().find(|((section, name), _)| section.is_empty() && *name == flag);
        let value = on_command_line.or_else(|| in_file().and_then(|(_, values)| values.last()));
        match value {
            Some(Value::Text(text)) => text.is_empty() || integer(text) != 0,
            Some(value) => *value == Value::DoubleNegated,
            None => false,
        }
    }

    fn get(&self, name: &'static str, is_top_off: bool) -> Option<&Value> {
        let section = |section: &str| self.file.get(&(section.to_owned(), name)).map(Vec::as_slice).unwrap_or_default();
        let command_line = self.command_line.get(name).map(Vec::as_slice).unwrap_or_default();
        let of_chain = self.chain.map(|chain| section(chain.name)).unwrap_or_default();
        let top = section("");
        counted(command_line, false)
            .or_else(|| counted(of_chain, true))
            .or_else(|| counted(top, true).filter(|_| !is_top_off || after_negation(top).is_empty()))
    }

    /// Returns the path of an option: `None` if it is negated, the default if it is empty.
    fn path(&self, name: &'static str, default: &str) -> Option<PathBuf> {
        match self.text(name) {
            _ if self.is_negated(name) => None,
            Some(text) if !text.is_empty() => Some(PathBuf::from(text).components().collect()),
            _ => Some(PathBuf::from(default)),
        }
    }

    fn datadir(&self) -> PathBuf {
        match self.text("datadir").filter(|text| !text.is_empty()) {
            Some(path) => self.directory.join(path).components().collect(),
            None => self.home.join(".lydian"),
        }
    }

    /// A data directory that was named must exist; the default need not.
    fn has_datadir(&self) -> bool {
        let is_named = self.text("datadir").is_some_and(|text| !text.is_empty());
        !is_named || RealDisk.kind(&self.datadir()) == Ok(PathKind::Directory)
    }
}

/// Returns the value that counts among those of one source.
fn counted(values: &[Value], is_file: bool) -> Option<&Value> {
    match after_negation(values) {
        [] => values.last(),
        [first, ..] if is_file => Some(first),
        [.., last] => Some(last),
    }
}

/// Returns the values after the last negation.
fn after_negation(values: &[Value]) -> &[Value] {
    let start = values.iter().rposition(|value| *value == Value::Negated).map_or(0, |index| index + 1);
    values.get(start..).unwrap_or_default()
}

/// Returns section, name and whether it is negated: Core's `InterpretKey`.
fn interpret(key: &str) -> (Option<&str>, &str, bool) {
    let (section, name) = key.split_once('.').map_or((None, key), |(section, name)| (Some(section), name));
    match name.strip_prefix("no") {
        Some(name) => (section, name, true),
        None => (section, name, false),
    }
}

enum Refused {
    Negated,
    NoValue,
}

fn read(option: &Opt, is_negated: bool, value: Option<&str>) -> Result<Value, Refused> {
    match (is_negated, value) {
        (true, _) if !option.may_negate => Err(Refused::Negated),
        (true, Some(text)) if !text.is_empty() && integer(text) == 0 => Ok(Value::DoubleNegated),
        (true, _) => Ok(Value::Negated),
        (false, None) if option.needs_value => Err(Refused::NoValue),
        (false, value) => Ok(Value::Text(value.unwrap_or_default().to_owned())),
    }
}

/// Parses the number at the start of a text, saturating at the bounds, or zero if there is none: Core's
/// `LocaleIndependentAtoi`.
fn integer(text: &str) -> i64 {
    let text = text.trim_matches([' ', '\u{c}', '\n', '\r', '\t', '\u{b}']);
    let text = text.strip_prefix('+').filter(|rest| !rest.starts_with('-')).unwrap_or(text);
    let is_negative = text.starts_with('-');
    let digits = text.strip_prefix('-').unwrap_or(text);
    let end = digits.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(digits.len());
    let mut number = 0_i64;
    for digit in digits[..end].bytes().map(|digit| i64::from(digit - b'0')) {
        number = number.saturating_mul(10);
        number = if is_negative { number.saturating_sub(digit) } else { number.saturating_add(digit) };
    }
    number
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
