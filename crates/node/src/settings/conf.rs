//! `lydian.conf`. Input: its text. Output: entries with section, key, value and line; or the line that is none.
//!
//! Bitcoin Core's syntax (`common/config.cpp`): `key=value`, `[section]`, `section.key=value`, `#` begins a comment anywhere, no quoting,
//! white space around keys and values does not count. Nothing is looked up here.

use super::error::SettingsError;
use std::path::Path;

/// One `key=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// With the section before it: `regtest.par`.
    pub(crate) key: String,
    pub(crate) value: String,
    pub(crate) line: usize,
}

/// What a file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Conf {
    pub(crate) entries: Vec<Entry>,
    /// Sections that are named, with the line.
    pub(crate) sections: Vec<(String, usize)>,
}

const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

pub(crate) fn parse(text: &str, path: &Path) -> Result<Conf, SettingsError> {
    let mut conf = Conf::default();
    let mut prefix = String::new();
    for (index, whole) in text.split('\n').enumerate() {
        let line = index + 1;
        let (plain, has_comment) = whole.split_once('#').map_or((whole, false), |(plain, _)| (plain, true));
        let plain = plain.trim_matches(SPACE);
        let fail = |hint: &str| {
            Err(SettingsError::BadLine { path: path.to_owned(), line, text: plain.to_owned(), hint: hint.to_owned() })
        };
        if plain.is_empty() {
            continue;
        }
        if let Some(section) = plain.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            conf.sections.push((section.to_owned(), line));
            prefix = format!("{section}.");
        } else if plain.starts_with('-') {
            return fail(", options in configuration file must be specified without leading -");
        } else if let Some((key, value)) = plain.split_once('=') {
            let key = format!("{prefix}{}", key.trim_matches(SPACE));
            if has_comment && key.contains("rpcpassword") {
                return fail(", using # in rpcpassword can be ambiguous and should be avoided");
            }
            if let Some(at) = key.rfind('.').filter(|at| prefix.len() <= *at) {
                conf.sections.push((key[..at].to_owned(), line));
            }
            conf.entries.push(Entry { key, value: value.trim_matches(SPACE).to_owned(), line });
        } else if plain.starts_with("no") {
            return fail(&format!(", if you intended to specify a negated option, use {plain}=1 instead"));
        } else {
            return fail("");
        }
    }
    Ok(conf)
}
