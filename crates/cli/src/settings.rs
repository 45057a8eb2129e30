//! The user's settings.
//!
//! Input: the command line and `lydian.conf`, or `bitcoin.conf` if only that exists. Output: [`Settings`], which return
//! the value of each option, and the words after the options; or a [`SettingsError`]. Syntax and precedence are those
//! of the library `options`. The node's options in the file are ignored, as by Bitcoin Core's client, and so are
//! `includeconf` lines. Invariants: nothing is written. Cost: one small file is read.

use crate::error::SettingsError;
use crate::limits::COOKIE_BYTES_MAX;
use crate::options::rules;
use lydian_disk::{RealDisk, read_whole};
use lydian_options::{
    BaseChain, ConfProblem, ConfigFiles, DatadirProblem, Notice, Setting, Sources, atoi, base_chain, chain_name, switch,
};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// All settings.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    sources: Sources,
    forced: BTreeMap<&'static str, String>,
    chain: BaseChain,
    conf: Option<PathBuf>,
    /// The directory of all chains; empty until the settings are loaded.
    datadir: PathBuf,
}

/// Splits a command line into options and words.
pub(crate) fn split(arguments: Vec<OsString>) -> Result<(Settings, Vec<String>), SettingsError> {
    let mut sources = Sources::new(rules);
    let mut words = Vec::new();
    for argument in arguments {
        let not_utf8 =
            |argument: OsString| SettingsError::NotUtf8 { argument: argument.to_string_lossy().into_owned() };
        words.push(argument.into_string().map_err(not_utf8)?);
    }
    let options = words.iter().position(|word| !word.starts_with('-')).unwrap_or(words.len());
    let rest = words.split_off(options);
    // Messages for a log, which the client does not have.
    let mut ignored = Vec::new();
    // A single dash ends the options; Core skips the options after it.
    for word in words.iter().take_while(|word| *word != "-") {
        sources.add_argument(word, &mut ignored).map_err(SettingsError::Argument)?;
    }
    sources.check_command_line().map_err(SettingsError::Argument)?;
    let settings =
        Settings { sources, forced: BTreeMap::new(), chain: BaseChain::MAIN, conf: None, datadir: PathBuf::new() };
    Ok((settings, rest))
}

impl Settings {
    /// Reads the file of the real disk and determines the chain.
    pub(crate) fn load(&mut self) -> Result<(), SettingsError> {
        let directory = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
        let default_datadir = home.map_or_else(|| PathBuf::from("/"), PathBuf::from).join(".lydian");
        let files = ConfigFiles {
            disk: &RealDisk,
            directory: &directory,
            default_datadir: Some(&default_datadir),
            is_lenient: true,
        };
        self.read(&files)
    }

    fn read(&mut self, files: &ConfigFiles<'_>) -> Result<(), SettingsError> {
        let missing = |problem| match problem {
            DatadirProblem::Missing { text } => text,
            DatadirProblem::NoHome => String::new(),
        };
        let base = files.datadir(&self.sources);
        let base = base.map_err(|problem| SettingsError::NoSuchDataDir { text: missing(problem) })?;
        self.conf = files.conf(&self.sources, &base);
        let mut ignored: Vec<Notice> = Vec::new();
        if let Some(conf) = &self.conf {
            files.read(conf, &base, &mut self.sources, &mut ignored)?;
        }
        // The file may name another directory.
        let base = files.datadir(&self.sources);
        self.datadir =
            base.map_err(|problem| SettingsError::Conf(ConfProblem::NoSuchDataDir { text: missing(problem) }))?;
        self.chain = find_chain(&self.sources)?;
        self.sources.select_network(self.chain.name);
        Ok(())
    }

    /// Returns the value in effect; `0` if the option is negated.
    pub(crate) fn text(&self, name: &'static str) -> Option<String> {
        assert!(rules(name).is_some(), "-{name} is not in the table");
        let given = || self.sources.get(name).map(|value| value.setting.text().to_owned());
        self.forced.get(name).cloned().or_else(given)
    }

    pub(crate) fn is_set(&self, name: &'static str) -> bool {
        self.text(name).is_some()
    }

    pub(crate) fn is_negated(&self, name: &'static str) -> bool {
        let is_negated = || self.sources.get(name).is_some_and(|value| value.setting == Setting::Negated);
        !self.forced.contains_key(name) && is_negated()
    }

    pub(crate) fn switch(&self, name: &'static str) -> bool {
        self.text(name).is_some_and(|text| switch(&text))
    }

    pub(crate) fn integer(&self, name: &'static str, default: i64) -> i64 {
        self.text(name).map_or(default, |text| atoi(&text))
    }

    /// Sets a value that was read from elsewhere. It overrides all other values.
    pub(crate) fn force(&mut self, name: &'static str, value: String) {
        self.forced.insert(name, value);
    }

    pub(crate) fn chain(&self) -> BaseChain {
        self.chain
    }

    /// The path of the file that was read, or would have been read if it existed.
    pub(crate) fn conf(&self) -> Option<&Path> {
        self.conf.as_deref()
    }

    /// Returns the content of the cookie file, or `Ok(None)` if it is disabled.
    pub(crate) fn cookie(&self) -> Result<Option<String>, ()> {
        let name = match self.text("rpccookiefile") {
            _ if self.is_negated("rpccookiefile") => return Ok(None),
            Some(name) if !name.is_empty() => name,
            _ => ".cookie".to_owned(),
        };
        let path = self.datadir.join(self.chain.folder).join(name);
        let bytes = read_whole(&RealDisk, &path, COOKIE_BYTES_MAX).map_err(|_| ())?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(Some(text.split('\n').next().unwrap_or_default().to_owned()))
    }
}

fn find_chain(sources: &Sources) -> Result<BaseChain, SettingsError> {
    let name = chain_name(sources)?;
    base_chain(&name).ok_or(SettingsError::UnknownChain { name })
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
