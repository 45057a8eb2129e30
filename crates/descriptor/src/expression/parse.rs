//! The grammar of descriptors: Core's `ParseScript` (script/descriptor.cpp).
//!
//! Input: a string without its checksum. Output: one [`Node`] for each multipath alternative.
//!
//! Invariants: no input causes a panic; functions nest at most three deep, braces at most [`DEPTH_MAX`].

use super::error::{DescriptorError, KeyError};
use super::key::{Key, Secrets, is_hex};
use super::miniscript;
use super::node::{Multi, Node};
use crate::address::Address;
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
    /// Inside musig(), which is inside tr() or rawtr().
    Musig,
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
    pub(super) fn script(&mut self, rest: &mut &str, place: Place) -> Result<Vec<Node>, DescriptorError> {
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
                _ => Err(only_at_top("combo()")),
            };
        }
        for (name, is_leaf, is_sorted) in MULTIS {
            let Some(inner) = function(name, text) else { continue };
            return match is_leaf {
                true if place == Place::Tr => self.multi(inner, place, is_leaf, is_sorted),
                false if is_legacy => self.multi(inner, place, is_leaf, is_sorted),
                true => Err(DescriptorError::Place { function: "multi_a/sortedmulti_a", allowed: "inside tr()" }),
                false => Err(DescriptorError::Place {
                    function: "multi/sortedmulti",
                    allowed: "at top level, in sh(), or in wsh()",
                }),
            };
        }
        if let Some(found) = self.wrapped(text, place) {
            return found;
        }
        if let Some(found) = self.top_function(text, place) {
            return found;
        }
        self.other(text, place)
    }

    /// Parses what no function above has accepted: miniscript, or an error.
    fn other(&mut self, text: &str, place: Place) -> Result<Vec<Node>, DescriptorError> {
        let Some((fragment, keys)) = miniscript::parse(self, text, place).map_err(DescriptorError::BareKey)? else {
            return match place {
                Place::Sh => Err(DescriptorError::NoFunction { within: "P2SH" }),
                Place::Wsh => Err(DescriptorError::NoFunction { within: "P2WSH" }),
                _ => Err(DescriptorError::UnknownFunction(text.to_owned())),
            };
        };
        if !matches!(place, Place::Wsh | Place::Tr) {
            return Err(DescriptorError::MiniscriptPlace);
        }
        let texts: Vec<_> = keys.iter().map(|key| key[0].text(self.chain)).collect();
        if let Some((expression, fault)) = fragment.refusal(&texts) {
            return Err(DescriptorError::Miniscript { expression, fault });
        }
        let count = keys.iter().map(Vec::len).max().unwrap_or(1);
        let columns = same_length(keys, count).ok_or(DescriptorError::MultipathLengths { function: "Miniscript" })?;
        let (fragment, is_leaf) = (Arc::new(fragment), place == Place::Tr);
        let node = |keys| Node::Miniscript { fragment: Arc::clone(&fragment), keys, is_leaf };
        Ok(columns.into_iter().map(node).collect())
    }

    fn wrapped(&mut self, text: &str, place: Place) -> Option<Result<Vec<Node>, DescriptorError>> {
        let is_outer = matches!(place, Place::Top | Place::Sh);
        let not_outer = |function| Err(DescriptorError::Place { function, allowed: "at top level or inside sh()" });
        if let Some(inner) = function("wpkh", text) {
            return match is_outer {
                true => {
                    Some(self.keys("wpkh", inner, Place::Wpkh).map(|keys| keys.into_iter().map(Node::Wpkh).collect()))
                }
                false => Some(not_outer("wpkh()")),
            };
        }
        if let Some(inner) = function("sh", text) {
            return match place {
                Place::Top => Some(self.inside(inner, Place::Sh, |node| Node::Sh(Box::new(node)))),
                _ => Some(Err(only_at_top("sh()"))),
            };
        }
        let inner = function("wsh", text)?;
        match is_outer {
            true => Some(self.inside(inner, Place::Wsh, |node| Node::Wsh(Box::new(node)))),
            false => Some(not_outer("wsh()")),
        }
    }

    fn inside(&mut self, inner: &str, place: Place, wrap: fn(Node) -> Node) -> Result<Vec<Node>, DescriptorError> {
        let mut rest = inner;
        let nodes = self.script(&mut rest, place)?;
        if rest.is_empty() { Ok(nodes.into_iter().map(wrap).collect()) } else { Err(DescriptorError::Trailing) }
    }

    fn top_function(&mut self, text: &str, place: Place) -> Option<Result<Vec<Node>, DescriptorError>> {
        /// Each with its name in Core's message.
        const FUNCTIONS: [(&str, &str); 5] =
            [("addr", "addr()"), ("tr", "tr"), ("rawtr", "rawtr"), ("unused", "unused"), ("raw", "raw()")];
        let found = FUNCTIONS.into_iter().find_map(|names| function(names.0, text).map(|inner| (names, inner)));
        let ((name, shown), inner) = found?;
        if place != Place::Top {
            return Some(Err(only_at_top(shown)));
        }
        Some(match name {
            "addr" => match Address::parse(inner, self.chain) {
                Ok(address) => Ok(vec![Node::Addr(address)]),
                Err(_) => Err(DescriptorError::Address),
            },
            "tr" => self.taproot(inner),
            "rawtr" => {
                let mut rest = inner;
                let key = expression(&mut rest);
                match rest {
                    "" => self.of_key("rawtr", key, Place::Tr, Node::RawTr),
                    _ => Err(DescriptorError::RawtrKeys),
                }
            }
            "unused" => self.unused(inner),
            _ => match hex(inner).ok().filter(|_| is_hex(inner)) {
                Some(script) => Ok(vec![Node::Raw(script)]),
                None => Err(DescriptorError::RawNotHex),
            },
        })
    }

    fn unused(&mut self, inner: &str) -> Result<Vec<Node>, DescriptorError> {
        let mut rest = inner;
        let key = expression(&mut rest);
        if !rest.is_empty() {
            return Err(DescriptorError::UnusedKeys);
        }
        let keys = Key::parse(key, Place::Top, self.chain, self.secrets).map_err(DescriptorError::BareKey)?;
        match keys.iter().any(Key::is_range) {
            true => Err(DescriptorError::UnusedRange),
            false => Ok(keys.into_iter().map(Node::Unused).collect()),
        }
    }

    fn keys(&mut self, function: &'static str, text: &str, place: Place) -> Result<Vec<Key>, DescriptorError> {
        let named = |error: KeyError| DescriptorError::Key { function, error };
        Key::parse(text, place, self.chain, self.secrets).map_err(named)
    }

    fn of_key(
        &mut self,
        function: &'static str,
        text: &str,
        place: Place,
        node: impl Fn(Key) -> Node,
    ) -> Result<Vec<Node>, DescriptorError> {
        Ok(self.keys(function, text, place)?.into_iter().map(node).collect())
    }

    fn multi(
        &mut self,
        inner: &str,
        place: Place,
        is_leaf: bool,
        is_sorted: bool,
    ) -> Result<Vec<Node>, DescriptorError> {
        let mut rest = inner;
        let threshold = expression(&mut rest);
        let required = number(threshold).ok_or_else(|| DescriptorError::MultiThreshold(threshold.to_owned()))?;
        let mut keys = Vec::new();
        let mut script_size = 0;
        while let Some(found) = rest.chars().next() {
            if !take(&mut rest, ',') {
                return Err(DescriptorError::Comma { function: "Multi", found });
            }
            let text = expression(&mut rest);
            let parsed = Key::parse(text, place, self.chain, self.secrets).map_err(DescriptorError::MultiKey)?;
            script_size += parsed[0].size() + 1;
            keys.push(parsed);
        }
        check_multi(keys.len(), required, script_size, place, is_leaf)?;
        let count = keys.iter().map(Vec::len).max().unwrap_or(0);
        let columns = same_length(keys, count).ok_or(DescriptorError::MultipathLengths { function: "multi()" })?;
        let node = |keys| Node::Multi(Multi { required, keys, is_sorted, is_leaf });
        Ok(columns.into_iter().map(node).collect())
    }

    fn taproot(&mut self, inner: &str) -> Result<Vec<Node>, DescriptorError> {
        let mut rest = inner;
        let key = expression(&mut rest);
        let keys = self.keys("tr", key, Place::Tr)?;
        let (mut leaves, mut depths) = (Vec::new(), Vec::new());
        if let Some(found) = rest.chars().next() {
            if !take(&mut rest, ',') {
                return Err(DescriptorError::Comma { function: "tr", found });
            }
            self.tree(&mut rest, &mut leaves, &mut depths)?;
            if !rest.is_empty() {
                return Err(DescriptorError::Tree { expected: ')' });
            }
        }
        let count = leaves.iter().map(Vec::len).chain([keys.len()]).max().unwrap_or(1);
        let leaves = match leaves.is_empty() {
            true => vec![Vec::new(); count],
            false => same_length(leaves, count).ok_or(DescriptorError::MultipathLeaves)?,
        };
        let keys = same_length(vec![keys], count).ok_or(DescriptorError::MultipathInternalKey)?;
        let nodes = keys.into_iter().flatten().zip(leaves);
        let node =
            |(key, leaves): (Key, Vec<Node>)| Node::Tr { key, leaves: depths.iter().copied().zip(leaves).collect() };
        Ok(nodes.map(node).collect())
    }

    /// Parses leaves from left to right, with their depths.
    fn tree(
        &mut self,
        rest: &mut &str,
        leaves: &mut Vec<Vec<Node>>,
        depths: &mut Vec<usize>,
    ) -> Result<(), DescriptorError> {
        // The path to the current leaf; true: right.
        let mut branches = Vec::new();
        loop {
            while take(rest, '{') {
                branches.push(false);
                if branches.len() > DEPTH_MAX {
                    return Err(DescriptorError::TreeDepth { max: DEPTH_MAX });
                }
            }
            let mut leaf = expression(rest);
            leaves.push(self.script(&mut leaf, Place::Tr)?);
            depths.push(branches.len());
            while branches.last() == Some(&true) {
                if !take(rest, '}') {
                    return Err(DescriptorError::Tree { expected: '}' });
                }
                branches.pop();
            }
            let Some(branch) = branches.last_mut() else { return Ok(()) };
            if !take(rest, ',') {
                return Err(DescriptorError::Tree { expected: ',' });
            }
            *branch = true;
        }
    }
}

fn only_at_top(function: &'static str) -> DescriptorError {
    DescriptorError::Place { function, allowed: "at top level" }
}

/// Name, whether it is for leaves, whether the keys are sorted.
const MULTIS: [(&str, bool, bool); 4] =
    [("multi", false, false), ("sortedmulti", false, true), ("multi_a", true, false), ("sortedmulti_a", true, true)];

fn check_multi(
    count: usize,
    required: u32,
    script_size: usize,
    place: Place,
    is_leaf: bool,
) -> Result<(), DescriptorError> {
    let (function, max) = if is_leaf { ("multi_a", KEYS_TAPROOT_MAX) } else { ("multisig", KEYS_MAX) };
    if !(1..=max).contains(&count) {
        return Err(DescriptorError::KeyCount { function, count, max });
    }
    if required == 0 {
        return Err(DescriptorError::ThresholdZero);
    }
    if usize::try_from(required).is_ok_and(|required| required > count) {
        return Err(DescriptorError::ThresholdAboveKeys { threshold: required, count });
    }
    if place == Place::Top && count > 3 {
        return Err(DescriptorError::BareKeyCount(count));
    }
    if place == Place::Sh && script_size + 3 > REDEEM_SCRIPT_MAX {
        return Err(DescriptorError::RedeemScriptSize { size: script_size + 3, max: REDEEM_SCRIPT_MAX });
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
