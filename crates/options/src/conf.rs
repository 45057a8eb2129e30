//! Parses `lydian.conf`, or `bitcoin.conf` if that is missing. Input: its text. Output: entries with section, key,
//! value and line, or the first malformed line.
//!
//! Bitcoin Core's syntax (`common/config.cpp`): `key=value`, `[section]`, `section.key=value`, `#` begins a comment
//! anywhere, no quoting, white space around keys and values does not count. Opens no file.

use crate::error::ConfProblem;

/// One `key=value` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// With its section: `regtest.par`.
    pub(crate) key: String,
    pub(crate) value: String,
    pub(crate) line: usize,
}

/// The contents of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Conf {
    pub(crate) entries: Vec<Entry>,
    /// Sections that the file names, each with its line.
    pub(crate) sections: Vec<(String, usize)>,
}

const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

pub(crate) fn parse(text: &str) -> Result<Conf, ConfProblem> {
    let mut conf = Conf::default();
    let mut prefix = String::new();
    for (index, whole) in text.split('\n').enumerate() {
        let line = index + 1;
        let (plain, has_comment) = whole.split_once('#').map_or((whole, false), |(plain, _)| (plain, true));
        let plain = plain.trim_matches(SPACE);
        if plain.is_empty() {
            continue;
        }
        if let Some(section) = plain.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            conf.sections.push((section.to_owned(), line));
            prefix = format!("{section}.");
        } else if plain.starts_with('-') {
            return Err(ConfProblem::LeadingDash { line, text: plain.to_owned() });
        } else if let Some((key, value)) = plain.split_once('=') {
            let key = format!("{prefix}{}", key.trim_matches(SPACE));
            if has_comment && key.contains("rpcpassword") {
                return Err(ConfProblem::HashInPassword { line });
            }
            if let Some(at) = key.rfind('.').filter(|at| prefix.len() <= *at) {
                conf.sections.push((key[..at].to_owned(), line));
            }
            conf.entries.push(Entry { key, value: value.trim_matches(SPACE).to_owned(), line });
        } else {
            return Err(ConfProblem::NoValue { line, text: plain.to_owned() });
        }
    }
    Ok(conf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_cores_syntax() {
        let parsed = parse("a=1 # x\n  b = \"two\" \r\n\n[s]\nc==3\nt.d=4\n#e=5\n").unwrap();
        let entries: Vec<_> =
            parsed.entries.iter().map(|entry| (&entry.key[..], &entry.value[..], entry.line)).collect();
        assert_eq!(entries, [("a", "1", 1), ("b", "\"two\"", 2), ("s.c", "=3", 5), ("s.t.d", "4", 6)]);
        assert_eq!(parsed.sections, [("s".to_owned(), 4), ("s.t".to_owned(), 6)]);
        for (text, expected) in [
            (
                "a=1\n-b=1",
                "parse error on line 2: -b=1, options in configuration file must be specified without leading -",
            ),
            ("listen", "parse error on line 1: listen"),
            (
                "nolisten",
                "parse error on line 1: nolisten, if you intended to specify a negated option, use nolisten=1 instead",
            ),
            ("rpcpassword=a#b", "parse error on line 1, using # in rpcpassword can be ambiguous and should be avoided"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), expected);
        }
    }
}
