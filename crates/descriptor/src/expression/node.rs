//! The syntax tree of a descriptor.
//!
//! Input: nodes from the parser. Output: text without private keys (Core's `ToString`), and for a position the scripts
//! with the descriptor of each (Core's `Expand`, then `InferDescriptor`).

use super::key::{Derived, Key, Secrets};
use super::miniscript::Fragment;
use crate::address::Address;
use crate::checksum::with_checksum;
use crate::infer::write_inferred;
use crate::solver::solve;
use lydian_consensus::Chain;
use lydian_hash::{TAP_BRANCH, TAP_LEAF, TAP_TWEAK, hash160, sha256};
use lydian_primitives::{to_hex, write_compact_size};
use lydian_script::builder::{ScriptBuilder, scripts};
use lydian_script::opcodes::{OP_CHECKSIG, OP_CHECKSIGADD, OP_NUMEQUAL};
use secp256k1::{Scalar, XOnlyPublicKey};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) enum Node {
    Pk { key: Key, is_leaf: bool },
    Pkh(Key),
    Wpkh(Key),
    Combo(Key),
    Multi(Multi),
    Sh(Box<Node>),
    Wsh(Box<Node>),
    Tr { key: Key, leaves: Vec<(usize, Node)> },
    RawTr(Key),
    Addr(Address),
    Raw(Vec<u8>),
    Unused(Key),
    Miniscript { fragment: Arc<Fragment>, keys: Vec<Key>, is_leaf: bool },
}

/// `required` of several keys. `is_leaf`: with OP_CHECKSIGADD.
#[derive(Clone, Debug)]
pub(crate) struct Multi {
    pub(crate) required: u32,
    pub(crate) keys: Vec<Key>,
    pub(crate) is_sorted: bool,
    pub(crate) is_leaf: bool,
}

/// A script, and its descriptor with checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    pub script: Vec<u8>,
    pub descriptor: String,
}

/// Leaf version of tapscript (BIP-0342).
pub(crate) const TAPSCRIPT: u8 = 0xc0;

impl Node {
    pub(super) fn is_range(&self) -> bool {
        match self {
            Node::Pk { key, .. } | Node::Pkh(key) | Node::Wpkh(key) | Node::Combo(key) => key.is_range(),
            Node::RawTr(key) | Node::Unused(key) => key.is_range(),
            Node::Multi(multi) => multi.keys.iter().any(Key::is_range),
            Node::Sh(inner) | Node::Wsh(inner) => inner.is_range(),
            Node::Tr { key, leaves } => key.is_range() || leaves.iter().any(|(_, leaf)| leaf.is_range()),
            Node::Miniscript { keys, .. } => keys.iter().any(Key::is_range),
            Node::Addr(_) | Node::Raw(_) => false,
        }
    }

    pub(super) fn is_solvable(&self) -> bool {
        !matches!(self, Node::Addr(_) | Node::Raw(_))
    }

    pub(super) fn text(&self, chain: Chain) -> String {
        let of = |name: &str, key: &Key| format!("{name}({})", key.text(chain));
        match self {
            Node::Pk { key, .. } => of("pk", key),
            Node::Pkh(key) => of("pkh", key),
            Node::Wpkh(key) => of("wpkh", key),
            Node::Combo(key) => of("combo", key),
            Node::RawTr(key) => of("rawtr", key),
            Node::Unused(key) => of("unused", key),
            Node::Multi(multi) => {
                let keys: Vec<_> = multi.keys.iter().map(|key| key.text(chain)).collect();
                let sorted = if multi.is_sorted { "sorted" } else { "" };
                let name = if multi.is_leaf { "multi_a" } else { "multi" };
                format!("{sorted}{name}({},{})", multi.required, keys.join(","))
            }
            Node::Sh(inner) => format!("sh({})", inner.text(chain)),
            Node::Wsh(inner) => format!("wsh({})", inner.text(chain)),
            Node::Tr { key, leaves } => {
                let leaves: Vec<_> = leaves.iter().map(|(depth, leaf)| (*depth, leaf.text(chain))).collect();
                taproot_text(&key.text(chain), &leaves)
            }
            Node::Addr(address) => format!("addr({})", address.text(chain)),
            Node::Raw(script) => format!("raw({})", to_hex(script)),
            Node::Miniscript { fragment, keys, .. } => fragment.text(&|index, _| keys[index].text(chain)),
        }
    }

    /// The scripts at a position; `None` if a private key is missing.
    pub(super) fn expand(&self, position: u32, secrets: &Secrets, chain: Chain) -> Option<Vec<Output>> {
        let output = |(script, text)| Output { script, descriptor: with_checksum(text) };
        Some(match self {
            Node::Combo(key) => combo(&key.derive(position, secrets)?).into_iter().map(output).collect(),
            Node::Unused(key) => key.derive(position, secrets).map(|_| Vec::new())?,
            Node::Addr(address) => vec![inferred(address.script(), chain)],
            Node::Raw(script) => vec![inferred(script.clone(), chain)],
            _ => vec![output(self.single(position, secrets)?)],
        })
    }

    /// The script of a node with exactly one script, and its text with the derived keys.
    pub(crate) fn single(&self, position: u32, secrets: &Secrets) -> Option<(Vec<u8>, String)> {
        let derive = |key: &Key| key.derive(position, secrets);
        Some(match self {
            Node::Pk { key, is_leaf: true } => {
                let key = derive(key)?;
                (scripts::p2pk(key.x_only()), format!("pk({})", key.x_only_text()))
            }
            Node::Pk { key, .. } => pk(&derive(key)?),
            Node::Pkh(key) => pkh(&derive(key)?),
            Node::Wpkh(key) => wpkh(&derive(key)?),
            Node::Multi(multi) => multi.expand(position, secrets)?,
            Node::Sh(inner) => sh(inner.single(position, secrets)?),
            Node::Wsh(inner) => {
                let (script, text) = inner.single(position, secrets)?;
                (scripts::witness_program(0, &sha256(&script)), format!("wsh({text})"))
            }
            Node::Tr { key, leaves } => {
                let key = derive(key)?;
                let mut tree = Vec::with_capacity(leaves.len());
                for (depth, leaf) in leaves {
                    let (script, text) = leaf.single(position, secrets)?;
                    tree.push(Branch { depth: *depth, hash: leaf_hash(&script), script, leaves: vec![(*depth, text)] });
                }
                let root = join(tree);
                let output = tweaked(key.x_only(), root.as_ref().map(|root| root.hash))?;
                let texts = root.map(|root| root.leaves).unwrap_or_default();
                (scripts::witness_program(1, &output), taproot_text(&key.x_only_text(), &texts))
            }
            Node::RawTr(key) => {
                let key = derive(key)?;
                (scripts::witness_program(1, key.x_only()), format!("rawtr({})", key.x_only_text()))
            }
            Node::Miniscript { fragment, keys, is_leaf } => {
                let keys: Vec<_> = keys.iter().map(derive).collect::<Option<_>>()?;
                // In a leaf the script only reveals x of a key, but for a hash the whole key is known.
                let text = |index: usize, is_hash: bool| match *is_leaf && !is_hash {
                    true => keys[index].x_only_text(),
                    false => keys[index].text(),
                };
                (fragment.script(&keys), fragment.text(&text))
            }
            // These have no script or several, and are only allowed at the top level.
            Node::Combo(_) | Node::Unused(_) | Node::Addr(_) | Node::Raw(_) => return None,
        })
    }
}

impl Multi {
    fn expand(&self, position: u32, secrets: &Secrets) -> Option<(Vec<u8>, String)> {
        let keys: Option<Vec<_>> = self.keys.iter().map(|key| key.derive(position, secrets)).collect();
        let mut keys = keys?;
        if self.is_sorted {
            keys.sort_by(|a, b| if self.is_leaf { a.x_only().cmp(b.x_only()) } else { a.key.cmp(&b.key) });
        }
        let texts: Vec<_> = keys.iter().map(|key| if self.is_leaf { key.x_only_text() } else { key.text() }).collect();
        let name = if self.is_leaf { "multi_a" } else { "multi" };
        let text = format!("{name}({},{})", self.required, texts.join(","));
        if !self.is_leaf {
            let keys: Vec<&[u8]> = keys.iter().map(|key| key.key.as_slice()).collect();
            return Some((scripts::multisig(u8::try_from(self.required).ok()?, &keys), text));
        }
        let mut script = ScriptBuilder::new();
        for (index, key) in keys.iter().enumerate() {
            script = script.push_slice(key.x_only()).op(if index == 0 { OP_CHECKSIG } else { OP_CHECKSIGADD });
        }
        Some((script.push_int(i64::from(self.required)).op(OP_NUMEQUAL).into_bytes(), text))
    }
}

fn pk(key: &Derived) -> (Vec<u8>, String) {
    (scripts::p2pk(&key.key), format!("pk({})", key.text()))
}

fn pkh(key: &Derived) -> (Vec<u8>, String) {
    (scripts::p2pkh(&hash160(&key.key)), format!("pkh({})", key.text()))
}

fn wpkh(key: &Derived) -> (Vec<u8>, String) {
    (scripts::witness_program(0, &hash160(&key.key)), format!("wpkh({})", key.text()))
}

fn sh((script, text): (Vec<u8>, String)) -> (Vec<u8>, String) {
    (scripts::p2sh(&hash160(&script)), format!("sh({text})"))
}

/// P2PK and P2PKH, and for a compressed key also P2WPKH and P2SH-P2WPKH.
fn combo(key: &Derived) -> Vec<(Vec<u8>, String)> {
    let mut all = vec![pk(key), pkh(key)];
    if key.key.len() == 33 {
        all.extend([wpkh(key), sh(wpkh(key))]);
    }
    all
}

/// A script with the descriptor that describes it alone.
pub(super) fn inferred(script: Vec<u8>, chain: Chain) -> Output {
    let (script_type, mut text) = (solve(&script), Vec::new());
    let address = Address::of_type(&script_type).map(|address| address.text(chain));
    write_inferred(&script, &script_type, address.as_deref(), None, &mut text);
    Output { descriptor: String::from_utf8_lossy(&text).into_owned(), script }
}

fn taproot_text(key: &str, leaves: &[(usize, String)]) -> String {
    let mut text = format!("tr({key}");
    // The path to the current leaf; true: right.
    let mut path: Vec<bool> = Vec::new();
    for (depth, leaf) in leaves {
        text.push(',');
        while path.len() <= *depth {
            if !path.is_empty() {
                text.push('{');
            }
            path.push(false);
        }
        text += leaf;
        while path.last() == Some(&true) {
            if path.len() > 1 {
                text.push('}');
            }
            path.pop();
        }
        if let Some(last) = path.last_mut() {
            *last = true;
        }
    }
    text + ")"
}

fn leaf_hash(script: &[u8]) -> [u8; 32] {
    let mut size = Vec::new();
    write_compact_size(&mut size, script.len());
    TAP_LEAF.hash(&[&[TAPSCRIPT], &size, script])
}

/// A subtree.
struct Branch {
    depth: usize,
    hash: [u8; 32],
    /// The smallest of its scripts in byte order.
    script: Vec<u8>,
    leaves: Vec<(usize, String)>,
}

/// Joins subtrees, given from left to right, to the whole tree.
///
/// An output does not determine left and right: Core, which rebuilds a tree from its control blocks in the order of the
/// scripts, puts the subtree with the smallest script on the left.
fn join(parts: Vec<Branch>) -> Option<Branch> {
    let mut open: Vec<Branch> = Vec::new();
    for mut right in parts {
        // A right subtree completes the left one at the same depth.
        while let Some(left) = open.pop_if(|left| left.depth == right.depth && right.depth > 0) {
            let hash = TAP_BRANCH.hash(&[&left.hash.min(right.hash), &left.hash.max(right.hash)]);
            let (first, second) = if left.script <= right.script { (left, right) } else { (right, left) };
            let leaves = first.leaves.into_iter().chain(second.leaves).collect();
            right = Branch { depth: first.depth - 1, hash, script: first.script, leaves };
        }
        open.push(right);
    }
    open.pop()
}

/// The output key of BIP-0341.
fn tweaked(internal: &[u8], root: Option<[u8; 32]>) -> Option<[u8; 32]> {
    let tweak = match &root {
        Some(root) => TAP_TWEAK.hash(&[internal, root]),
        None => TAP_TWEAK.hash(&[internal]),
    };
    let key = XOnlyPublicKey::from_byte_array(internal.try_into().ok()?).ok()?;
    let (output, _) = key.add_tweak(&Scalar::from_be_bytes(tweak).ok()?).ok()?;
    Some(output.to_byte_array())
}
