//! The grammar of descriptors: Core's `ParseScript` (script/descriptor.cpp).
//!
//! Input: a string without its checksum. Output: one [`Node`] for each multipath alternative; or Core's error message,
//! which is empty for text after a complete descriptor.
//!
//! Invariants: no input causes a panic; functions nest at most three deep, braces at most [`DEPTH_MAX`].

use super::key::{Key, Secrets, is_hex};
use super::miniscript;
use super::node::{Multi, Node};
use crate::address;
use lydian_consensus::Chain;
use lydian_primitives::hex;
use std::sync::Arc;

/// The context of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Top,
    Sh,
    Wpkh,
    Wsh,
    Tr,
}

/// Core's `MAX_PUBKEYS_PER_MULTISIG`, `MAX_PUBKEYS_PER_MULTI_A`, `TAPROOT_CONTROL_MAX_NODE_COUNT` and
/// `MAX_SCRIPT_ELEMENT_SIZE`.
const KEYS_MAX: usize = 20;
const KEYS_TAPROOT_MAX: usize = 999;
const DEPTH_MAX: usize = 128;
const REDEEM_SCRIPT_MAX: usize = 520;

/// The chain, and the private keys found so far.
pub(super) struct Parser<'a> {
    pub(super) chain: Chain,
    pub(super) secrets: &'a mut Secrets,
}

/// Parses digits only, like Core's `ToIntegral` for 32 bits.
pub(super) fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Takes the text up to the comma or bracket that ends it: Core's `Expr`.
pub(super) fn expression<'t>(rest: &mut &'t str) -> &'t str {
    let mut level = 0_usize;
    let mut end = rest.len();
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            b'(' | b'{' => level += 1,
            b')' | b'}' if level > 0 => level -= 1,
            b')' | b'}' | b',' if level == 0 => {
                end = at;
                break;
            }
            _ => {}
        }
    }
    let (found, behind) = rest.split_at(end);
    *rest = behind;
    found
}

/// The text in the brackets of a function.
pub(super) fn function<'t>(name: &str, text: &'t str) -> Option<&'t str> {
    text.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')')
}

/// Removes a letter from the start. Returns false if the text does not start with it.
pub(super) fn take(rest: &mut &str, letter: char) -> bool {
    rest.strip_prefix(letter).map(|behind| *rest = behind).is_some()
}

impl Parser<'_> {
    /// Parses a script expression. The text after it is left in `rest`.
    pub(super) fn script(&mut self, rest: &mut &str, place: Place) -> Result<Vec<Node>, String> {
        let text = expression(rest);
        let is_legacy = matches!(place, Place::Top | Place::Sh | Place::Wsh);
        if let Some(inner) = function("pk", text) {
            return self.of_key("pk", inner, place, |key| Node::Pk { key, is_leaf: place == Place::Tr });
        }
        if let Some(inner) = function("pkh", text).filter(|_| is_legacy) {
            return self.of_key("pkh", inner, place, Node::Pkh);
        }
        if let Some(inner) = function("combo", text) {
            return match place {
                Place::Top => self.of_key("combo", inner, place, Node::Combo),
                _ => Err("Can only have combo() at top level".to_owned()),
            };
        }
        for (name, is_leaf, is_sorted) in MULTIS {
            let Some(inner) = function(name, text) else { continue };
            return match is_leaf {
                true if place == Place::Tr => self.multi(inner, place, is_leaf, is_sorted),
                false if is_legacy => self.multi(inner, place, is_leaf, is_sorted),
                true => Err("Can only have multi_a/sortedmulti_a inside tr()".to_owned()),
                false => Err("Can only have multi/sortedmulti at top level, in sh(), or in wsh()".to_owned()),
            };
        }
        if let Some(found) = self.wrapped(text, place) {
            return found;
        }
        if let Some(found) = self.only_at_top(text, place) {
            return found;
        }
        self.other(text, place)
    }

    /// Parses what no function above has accepted: miniscript, or an error.
    fn other(&mut self, text: &str, place: Place) -> Result<Vec<Node>, String> {
        let Some((fragment, keys)) = miniscript::parse(self, text, place)? else {
            return match place {
                Place::Sh => Err("A function is needed within P2SH".to_owned()),
                Place::Wsh => Err("A function is needed within P2WSH".to_owned()),
                _ => Err(format!("'{text}' is not a valid descriptor function")),
            };
        };
        if !matches!(place, Place::Wsh | Place::Tr) {
            return Err("Miniscript expressions can only be used in wsh or tr.".to_owned());
        }
        let texts: Vec<_> = keys.iter().map(|key| key[0].text(self.chain)).collect();
        if let Some(words) = fragment.refusal(&texts) {
            return Err(words);
        }
        let count = keys.iter().map(Vec::len).max().unwrap_or(1);
        let columns =
            same_length(keys, count).ok_or("Miniscript: Multipath derivation paths have mismatched lengths")?;
        let (fragment, is_leaf) = (Arc::new(fragment), place == Place::Tr);
        let node = |keys| Node::Miniscript { fragment: Arc::clone(&fragment), keys, is_leaf };
        Ok(columns.into_iter().map(node).collect())
    }

    fn wrapped(&mut self, text: &str, place: Place) -> Option<Result<Vec<Node>, String>> {
        let is_outer = matches!(place, Place::Top | Place::Sh);
        let refuse = |words: &str| Some(Err(words.to_owned()));
        if let Some(inner) = function("wpkh", text) {
            return match is_outer {
                true => {
                    Some(self.keys("wpkh", inner, Place::Wpkh).map(|keys| keys.into_iter().map(Node::Wpkh).collect()))
                }
                false => refuse("Can only have wpkh() at top level or inside sh()"),
            };
        }
        if let Some(inner) = function("sh", text) {
            return match place {
                Place::Top => Some(self.inside(inner, Place::Sh, |node| Node::Sh(Box::new(node)))),
                _ => refuse("Can only have sh() at top level"),
            };
        }
        let inner = function("wsh", text)?;
        match is_outer {
            true => Some(self.inside(inner, Place::Wsh, |node| Node::Wsh(Box::new(node)))),
            false => refuse("Can only have wsh() at top level or inside sh()"),
        }
    }

    fn inside(&mut self, inner: &str, place: Place, wrap: fn(Node) -> Node) -> Result<Vec<Node>, String> {
        let mut rest = inner;
        let nodes = self.script(&mut rest, place)?;
        // Core has no message for this.
        if rest.is_empty() { Ok(nodes.into_iter().map(wrap).collect()) } else { Err(String::new()) }
    }

    fn only_at_top(&mut self, text: &str, place: Place) -> Option<Result<Vec<Node>, String>> {
        let (name, inner) = ["addr", "tr", "rawtr", "unused", "raw"]
            .into_iter()
            .find_map(|name| function(name, text).map(|inner| (name, inner)))?;
        if place != Place::Top {
            let brackets = if matches!(name, "addr" | "raw") { "()" } else { "" };
            return Some(Err(format!("Can only have {name}{brackets} at top level")));
        }
        Some(match name {
            "addr" => match address::decode(inner, self.chain) {
                Ok(script) => Ok(vec![Node::Addr(script)]),
                Err(_) => Err("Address is not valid".to_owned()),
            },
            "tr" => self.taproot(inner),
            "rawtr" => {
                let mut rest = inner;
                let key = expression(&mut rest);
                match rest {
                    "" => self.of_key("rawtr", key, Place::Tr, Node::RawTr),
                    _ => Err("rawtr(): only one key expected.".to_owned()),
                }
            }
            "unused" => self.unused(inner),
            _ => match hex(inner).ok().filter(|_| is_hex(inner)) {
                Some(script) => Ok(vec![Node::Raw(script)]),
                None => Err("Raw script is not hex".to_owned()),
            },
        })
    }

    fn unused(&mut self, inner: &str) -> Result<Vec<Node>, String> {
        let mut rest = inner;
        let key = expression(&mut rest);
        if !rest.is_empty() {
            return Err("unused(): only one key expected".to_owned());
        }
        let keys = Key::parse(key, Place::Top, self.chain, self.secrets)?;
        match keys.iter().any(Key::is_range) {
            true => Err("unused(): key cannot be ranged".to_owned()),
            false => Ok(keys.into_iter().map(Node::Unused).collect()),
        }
    }

    fn keys(&mut self, name: &str, text: &str, place: Place) -> Result<Vec<Key>, String> {
        Key::parse(text, place, self.chain, self.secrets).map_err(|words| format!("{name}(): {words}"))
    }

    fn of_key(
        &mut self,
        name: &str,
        text: &str,
        place: Place,
        node: impl Fn(Key) -> Node,
    ) -> Result<Vec<Node>, String> {
        Ok(self.keys(name, text, place)?.into_iter().map(node).collect())
    }

    fn multi(&mut self, inner: &str, place: Place, is_leaf: bool, is_sorted: bool) -> Result<Vec<Node>, String> {
        let mut rest = inner;
        let threshold = expression(&mut rest);
        let required = number(threshold).ok_or_else(|| format!("Multi threshold '{threshold}' is not valid"))?;
        let mut keys = Vec::new();
        let mut script_size = 0;
        while let Some(found) = rest.chars().next() {
            if !take(&mut rest, ',') {
                return Err(format!("Multi: expected ',', got '{found}'"));
            }
            let text = expression(&mut rest);
            let parsed =
                Key::parse(text, place, self.chain, self.secrets).map_err(|words| format!("Multi: {words}"))?;
            script_size += parsed[0].size() + 1;
            keys.push(parsed);
        }
        check_multi(keys.len(), required, script_size, place, is_leaf)?;
        let count = keys.iter().map(Vec::len).max().unwrap_or(0);
        let columns = same_length(keys, count).ok_or("multi(): Multipath derivation paths have mismatched lengths")?;
        let node = |keys| Node::Multi(Multi { required, keys, is_sorted, is_leaf });
        Ok(columns.into_iter().map(node).collect())
    }

    fn taproot(&mut self, inner: &str) -> Result<Vec<Node>, String> {
        let mut rest = inner;
        let key = expression(&mut rest);
        let keys = self.keys("tr", key, Place::Tr)?;
        let (mut leaves, mut depths) = (Vec::new(), Vec::new());
        if let Some(found) = rest.chars().next() {
            if !take(&mut rest, ',') {
                return Err(format!("tr: expected ',', got '{found}'"));
            }
            self.tree(&mut rest, &mut leaves, &mut depths)?;
            if !rest.is_empty() {
                return Err("tr(): expected ')' after script expression".to_owned());
            }
        }
        let count = leaves.iter().map(Vec::len).chain([keys.len()]).max().unwrap_or(1);
        let leaves = match leaves.is_empty() {
            true => vec![Vec::new(); count],
            false => same_length(leaves, count).ok_or("tr(): Multipath subscripts have mismatched lengths")?,
        };
        let keys = same_length(vec![keys], count)
            .ok_or("tr(): Multipath internal key mismatches multipath subscripts lengths")?;
        let nodes = keys.into_iter().flatten().zip(leaves);
        let node =
            |(key, leaves): (Key, Vec<Node>)| Node::Tr { key, leaves: depths.iter().copied().zip(leaves).collect() };
        Ok(nodes.map(node).collect())
    }

    /// Parses leaves from left to right, with their depths.
    fn tree(&mut self, rest: &mut &str, leaves: &mut Vec<Vec<Node>>, depths: &mut Vec<usize>) -> Result<(), String> {
        // The path to the current leaf; true: right.
        let mut branches = Vec::new();
        loop {
            while take(rest, '{') {
                branches.push(false);
                if branches.len() > DEPTH_MAX {
                    return Err(format!("tr() supports at most {DEPTH_MAX} nesting levels"));
                }
            }
            let mut leaf = expression(rest);
            leaves.push(self.script(&mut leaf, Place::Tr)?);
            depths.push(branches.len());
            while branches.last() == Some(&true) {
                if !take(rest, '}') {
                    return Err("tr(): expected '}' after script expression".to_owned());
                }
                branches.pop();
            }
            let Some(branch) = branches.last_mut() else { return Ok(()) };
            if !take(rest, ',') {
                return Err("tr(): expected ',' after script expression".to_owned());
            }
            *branch = true;
        }
    }
}

/// Name, whether it is for leaves, whether the keys are sorted.
const MULTIS: [(&str, bool, bool); 4] =
    [("multi", false, false), ("sortedmulti", false, true), ("multi_a", true, false), ("sortedmulti_a", true, true)];

fn check_multi(count: usize, required: u32, script_size: usize, place: Place, is_leaf: bool) -> Result<(), String> {
    let (what, keys_max) = if is_leaf { ("multi_a", KEYS_TAPROOT_MAX) } else { ("multisig", KEYS_MAX) };
    if !(1..=keys_max).contains(&count) {
        return Err(format!("Cannot have {count} keys in {what}; must have between 1 and {keys_max} keys, inclusive"));
    }
    if required == 0 {
        return Err("Multisig threshold cannot be 0, must be at least 1".to_owned());
    }
    if usize::try_from(required).is_ok_and(|required| required > count) {
        return Err(format!(
            "Multisig threshold cannot be larger than the number of keys; threshold is {required} but only {count} keys specified"
        ));
    }
    if place == Place::Top && count > 3 {
        return Err(format!("Cannot have {count} pubkeys in bare multisig; only at most 3 pubkeys"));
    }
    if place == Place::Sh && script_size + 3 > REDEEM_SCRIPT_MAX {
        return Err(format!(
            "P2SH script is too large, {} bytes is larger than {REDEEM_SCRIPT_MAX} bytes",
            script_size + 3
        ));
    }
    Ok(())
}

/// Transposes rows of alternatives to `count` columns; a row with one entry is used for all columns. `None` if the
/// lengths do not match.
pub(super) fn same_length<T: Clone>(rows: Vec<Vec<T>>, count: usize) -> Option<Vec<Vec<T>>> {
    let mut columns = vec![Vec::with_capacity(rows.len()); count];
    for row in rows {
        let row = if row.len() == 1 { vec![row[0].clone(); count] } else { row };
        if row.len() != count {
            return None;
        }
        columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
    }
    Some(columns)
}
