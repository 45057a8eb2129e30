//! The grammar of miniscript: Core's `miniscript::Parse`.
//!
//! Input: a string. Output: a fragment that is not yet checked for sanity, with its keys; `None` if the string is not
//! miniscript; an error if a key is invalid.

use super::super::error::KeyError;
use super::super::key::{Key, Secrets, is_hex};
use super::super::parse::{Parser, Place, expression, function, take};
use super::{Fragment, Kind, LEAF_SIZE_MAX, SCRIPT_SIZE_MAX};
use crate::limits::MINISCRIPT_DEPTH_MAX;
use lydian_primitives::hex;

/// A fragment, and its keys with their multipath alternatives.
pub(in super::super) type Parsed = (Fragment, Vec<Vec<Key>>);

/// Parses a whole string. `place` decides how keys are parsed: as in wsh(), or as in a leaf.
pub(in super::super) fn parse(parser: &mut Parser<'_>, text: &str, place: Place) -> Result<Option<Parsed>, KeyError> {
    let is_leaf = place != Place::Wsh;
    let mut reader = Reader { parser, is_leaf, keys: Vec::new(), error: None };
    let mut rest = text;
    let found = reader.wrapped(&mut rest, 0).filter(|_| rest.is_empty());
    if let Some(error) = reader.error {
        return Err(error);
    }
    let size_max = if is_leaf { LEAF_SIZE_MAX } else { SCRIPT_SIZE_MAX };
    let Some(mut fragment) = found.filter(|fragment| fragment.size <= size_max) else { return Ok(None) };
    let no_secrets = Secrets::default();
    let first = |key: &Vec<Key>| key[0].derive(0, &no_secrets).map(|derived| derived.key);
    let points: Vec<Option<Vec<u8>>> = reader.keys.iter().map(first).collect();
    // The result is also stored in the fragments.
    let _ = fragment.mark_duplicates(&points);
    Ok(Some((fragment, reader.keys)))
}

struct Reader<'a, 'b> {
    parser: &'a mut Parser<'b>,
    is_leaf: bool,
    keys: Vec<Vec<Key>>,
    /// The error of an invalid key.
    error: Option<KeyError>,
}

/// Core's `MAX_PUBKEYS_PER_MULTISIG` and `MAX_PUBKEYS_PER_MULTI_A`.
const KEYS_MAX: usize = 20;
const KEYS_LEAF_MAX: usize = 999;

impl Reader<'_, '_> {
    /// Parses an expression, possibly with wrapper letters and a colon before it.
    fn wrapped(&mut self, rest: &mut &str, depth: usize) -> Option<Fragment> {
        // The letters end at the colon; otherwise there are none.
        let end = rest.bytes().skip(1).position(|byte| !byte.is_ascii_lowercase()).map(|end| end + 1);
        let letters = end.filter(|end| rest.as_bytes()[*end] == b':').map(|end| &rest[..end]).unwrap_or_default();
        let is_known = letters.bytes().all(|letter| b"ascdjnvutl".contains(&letter));
        let depth = depth + 1 + letters.len();
        if !is_known || letters.contains("vv") || depth > MINISCRIPT_DEPTH_MAX {
            return None;
        }
        if !letters.is_empty() {
            *rest = &rest[letters.len() + 1..];
        }
        let inner = self.bare(rest, depth)?;
        Some(letters.bytes().rev().fold(inner, |inner, letter| self.wrap(letter, inner)))
    }

    fn wrap(&self, letter: u8, inner: Fragment) -> Fragment {
        let just = |kind| self.node(kind, Vec::new());
        let (kind, subs) = match letter {
            b'a' => (Kind::WrapA, vec![inner]),
            b's' => (Kind::WrapS, vec![inner]),
            b'c' => (Kind::WrapC, vec![inner]),
            b'd' => (Kind::WrapD, vec![inner]),
            b'j' => (Kind::WrapJ, vec![inner]),
            b'n' => (Kind::WrapN, vec![inner]),
            b'v' => (Kind::WrapV, vec![inner]),
            b'u' => (Kind::OrI, vec![inner, just(Kind::Just0)]),
            b't' => (Kind::AndV, vec![inner, just(Kind::Just1)]),
            _ => (Kind::OrI, vec![just(Kind::Just0), inner]),
        };
        self.node(kind, subs)
    }

    fn node(&self, kind: Kind, subs: Vec<Fragment>) -> Fragment {
        Fragment::wrap(kind, subs, self.is_leaf)
    }

    fn leaf(&self, kind: Kind, k: u32, keys: Vec<usize>, data: Vec<u8>) -> Fragment {
        Fragment::new(kind, k, keys, data, Vec::new(), self.is_leaf)
    }

    fn bare(&mut self, rest: &mut &str, depth: usize) -> Option<Fragment> {
        if take(rest, '0') {
            return Some(self.node(Kind::Just0, Vec::new()));
        }
        if take(rest, '1') {
            return Some(self.node(Kind::Just1, Vec::new()));
        }
        let name = &rest[..rest.find('(')?];
        match name {
            "pk" | "pkh" | "pk_k" | "pk_h" => {
                let key = self.key(function(name, expression(rest))?)?;
                let kind = if name.ends_with('h') { Kind::PkH } else { Kind::PkK };
                let found = self.leaf(kind, 0, vec![key], Vec::new());
                Some(if name.contains('_') { found } else { self.node(Kind::WrapC, vec![found]) })
            }
            "sha256" | "hash256" | "ripemd160" | "hash160" => {
                let (kind, size) = match name {
                    "sha256" => (Kind::Sha256, 32),
                    "hash256" => (Kind::Hash256, 32),
                    "ripemd160" => (Kind::Ripemd160, 20),
                    _ => (Kind::Hash160, 20),
                };
                let digits = function(name, expression(rest)).filter(|digits| is_hex(digits))?;
                let data = hex(digits).ok().filter(|data| data.len() == size)?;
                Some(self.leaf(kind, 0, Vec::new(), data))
            }
            "after" | "older" => {
                let kind = if name == "after" { Kind::After } else { Kind::Older };
                let k = integer(function(name, expression(rest))?).filter(|k| (1..1 << 31).contains(k))?;
                Some(self.leaf(kind, u32::try_from(k).ok()?, Vec::new(), Vec::new()))
            }
            "multi" | "multi_a" => self.multi(rest, name == "multi_a"),
            "thresh" => self.thresh(rest, depth),
            _ => {
                let (kind, count) = match name {
                    "andor" => (Kind::AndOr, 3),
                    "and_n" => (Kind::AndOr, 2),
                    "and_v" => (Kind::AndV, 2),
                    "and_b" => (Kind::AndB, 2),
                    "or_b" => (Kind::OrB, 2),
                    "or_c" => (Kind::OrC, 2),
                    "or_d" => (Kind::OrD, 2),
                    "or_i" => (Kind::OrI, 2),
                    _ => return None,
                };
                *rest = &rest[name.len() + 1..];
                let mut subs = Vec::new();
                for index in 0..count {
                    if index > 0 && !take(rest, ',') {
                        return None;
                    }
                    subs.push(self.wrapped(rest, depth)?);
                }
                if kind == Kind::AndOr && count == 2 {
                    subs.push(self.node(Kind::Just0, Vec::new()));
                }
                take(rest, ')').then(|| self.node(kind, subs))
            }
        }
    }

    /// Parses a key and returns its index in the list.
    fn key(&mut self, text: &str) -> Option<usize> {
        let place = if self.is_leaf { Place::Tr } else { Place::Wsh };
        match Key::parse(text, place, self.parser.chain, self.parser.secrets) {
            Ok(keys) => {
                self.keys.push(keys);
                Some(self.keys.len() - 1)
            }
            Err(error) => {
                self.error = Some(error);
                None
            }
        }
    }

    fn multi(&mut self, rest: &mut &str, is_for_leaf: bool) -> Option<Fragment> {
        if is_for_leaf != self.is_leaf {
            return None;
        }
        *rest = rest.split_once('(')?.1;
        let k = integer(until(rest, ',')?)?;
        let mut keys = Vec::new();
        loop {
            let next = until(rest, ',');
            let is_last = next.is_none();
            let text = next.or_else(|| until(rest, ')'))?;
            keys.push(self.key(text)?);
            if is_last {
                break;
            }
        }
        let keys_max = if self.is_leaf { KEYS_LEAF_MAX } else { KEYS_MAX };
        let k = u32::try_from(k).ok().filter(|k| *k >= 1)?;
        let kind = if self.is_leaf { Kind::MultiA } else { Kind::Multi };
        let fits = keys.len() <= keys_max && usize::try_from(k).is_ok_and(|k| k <= keys.len());
        fits.then(|| self.leaf(kind, k, keys, Vec::new()))
    }

    fn thresh(&mut self, rest: &mut &str, depth: usize) -> Option<Fragment> {
        *rest = rest.split_once('(')?.1;
        let k = integer(until(rest, ',')?).filter(|k| *k >= 1)?;
        let mut subs = vec![self.wrapped(rest, depth)?];
        while take(rest, ',') {
            subs.push(self.wrapped(rest, depth)?);
        }
        let k = u32::try_from(k).ok().filter(|k| usize::try_from(*k).is_ok_and(|k| k <= subs.len()))?;
        take(rest, ')').then(|| Fragment::new(Kind::Thresh, k, Vec::new(), Vec::new(), subs, self.is_leaf))
    }
}

/// Takes the text before a letter, and the letter. `None` if the text is empty or a bracket closes before the letter.
fn until<'t>(rest: &mut &'t str, letter: char) -> Option<&'t str> {
    let at = rest.find([letter, ')']).filter(|at| *at > 0 && rest[*at..].starts_with(letter))?;
    let (found, behind) = rest.split_at(at);
    *rest = &behind[1..];
    Some(found)
}

fn integer(text: &str) -> Option<i64> {
    text.parse().ok().filter(|_| !text.starts_with('+'))
}
