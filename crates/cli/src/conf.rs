//! Parses `lydian.conf`. Input: its text. Output: keys with their values, in order; or the first invalid line.
//!
//! The syntax is Bitcoin Core's (`common/config.cpp`), which the node reads too: `key=value`, `[section]`,
//! `section.key=value`. `#` starts a comment anywhere, there is no quoting, and white space around keys and values is
//! ignored. Nothing is looked up here.

use crate::error::ConfError;

const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

/// Returns keys, prefixed with their section (`regtest.rpcport`), and values.
pub(crate) fn parse(text: &str) -> Result<Vec<(String, String)>, ConfError> {
    let mut entries = Vec::new();
    let mut prefix = String::new();
    for (index, whole) in text.split('\n').enumerate() {
        let line = index + 1;
        let (plain, has_comment) = whole.split_once('#').map_or((whole, false), |(plain, _)| (plain, true));
        let plain = plain.trim_matches(SPACE);
        if plain.is_empty() {
            continue;
        }
        let bad = |hint: String| Err(ConfError::BadLine { line, text: plain.to_owned(), hint });
        if let Some(section) = plain.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            prefix = format!("{section}.");
        } else if plain.starts_with('-') {
            return bad(", options in configuration file must be specified without leading -".to_owned());
        } else if let Some((key, value)) = plain.split_once('=') {
            let key = format!("{prefix}{}", key.trim_matches(SPACE));
            if has_comment && key.contains("rpcpassword") {
                return Err(ConfError::AmbiguousPassword { line });
            }
            entries.push((key, value.trim_matches(SPACE).to_owned()));
        } else if plain.starts_with("no") {
            return bad(format!(", if you intended to specify a negated option, use {plain}=1 instead"));
        } else {
            return bad(String::new());
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_comments_and_white_space() {
        let text =
            "\r\n # none\nrpcuser = a b # rest\r\nregtest.rpcport=1\n[regtest]\nrpcport= 2\nmain.rpcport=3\n[]\nx=";
        let pairs = [("rpcuser", "a b"), ("regtest.rpcport", "1"), ("regtest.rpcport", "2")];
        let more = [("regtest.main.rpcport", "3"), (".x", "")];
        let expected: Vec<_> =
            pairs.iter().chain(&more).map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        assert_eq!(parse(text).unwrap(), expected);
    }

    #[test]
    fn lines_that_are_none() {
        let check = |text: &str, expected: &str| assert_eq!(parse(text).unwrap_err().to_string(), expected);
        check(
            "a=1\n-b=1",
            "parse error on line 2: -b=1, options in configuration file must be specified without leading -",
        );
        check("server", "parse error on line 1: server");
        check(
            "nodebug",
            "parse error on line 1: nodebug, if you intended to specify a negated option, use nodebug=1 instead",
        );
        check(
            "rpcpassword=a#b",
            "parse error on line 1, using # in rpcpassword can be ambiguous and should be avoided",
        );
    }
}
