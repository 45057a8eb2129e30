//! Miniscript (BIP-0379): expressions that show the spending conditions of a script, in wsh() and in the leaves of
//! tr().
//!
//! Input: a string, or a script. Output: a [`Fragment`] with its type, limits, text and script; or the reason why Core
//! refuses it. Core's `miniscript::Node`.
//!
//! Invariants: an accepted expression is sane: it needs a signature, is not malleable, contains no duplicate keys and
//! no mix of time and height locks, and respects the resource limits of scripts. Nesting is at most
//! [`crate::limits::MINISCRIPT_DEPTH_MAX`].

mod bounds;
mod decode;
mod parse;
mod satisfy;
mod script;
mod types;

pub(crate) use decode::decode;
pub(super) use parse::parse;
pub(crate) use satisfy::{Means, Preimage};

use super::error::MiniscriptFault;
use bounds::{Ops, Stack};
use std::collections::BTreeSet;
use types::{Type, compute, has};

/// One expression.
#[derive(Clone, Debug)]
pub(crate) struct Fragment {
    kind: Kind,
    /// A threshold or a locktime.
    k: u32,
    /// Indexes in the list of keys.
    keys: Vec<usize>,
    data: Vec<u8>,
    subs: Vec<Fragment>,
    is_leaf: bool,
    kind_type: Type,
    size: usize,
    ops: Ops,
    stack: Stack,
    has_duplicates: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Just0,
    Just1,
    PkK,
    PkH,
    Older,
    After,
    Sha256,
    Hash256,
    Ripemd160,
    Hash160,
    WrapA,
    WrapS,
    WrapC,
    WrapD,
    WrapV,
    WrapJ,
    WrapN,
    AndV,
    AndB,
    OrB,
    OrC,
    OrD,
    OrI,
    AndOr,
    Thresh,
    Multi,
    MultiA,
}

/// Core's `MAX_STANDARD_P2WSH_SCRIPT_SIZE`, and the size that the largest standard transaction leaves for a leaf
/// script.
const SCRIPT_SIZE_MAX: usize = 3600;
const LEAF_SIZE_MAX: usize = 329_482;

/// Core's `MAX_OPS_PER_SCRIPT`, `MAX_STANDARD_P2WSH_STACK_ITEMS` and `MAX_STACK_SIZE`.
const OPS_MAX: u32 = 201;
const STACK_ITEMS_MAX: i32 = 100;
const STACK_SIZE_MAX: i32 = 1000;

impl Fragment {
    fn new(kind: Kind, k: u32, keys: Vec<usize>, data: Vec<u8>, subs: Vec<Fragment>, is_leaf: bool) -> Fragment {
        let kind_type = compute(kind, k, &subs, is_leaf);
        let size = script::size(kind, k, keys.len(), &subs, is_leaf);
        let ops = Ops::of(kind, k, keys.len(), &subs);
        let stack = Stack::of(kind, k, keys.len(), &subs);
        Fragment { kind, k, keys, data, subs, is_leaf, kind_type, size, ops, stack, has_duplicates: false }
    }

    fn wrap(kind: Kind, subs: Vec<Fragment>, is_leaf: bool) -> Fragment {
        Fragment::new(kind, 0, Vec::new(), Vec::new(), subs, is_leaf)
    }

    /// The part that is refused, as text, and why. `keys` are the texts of its keys.
    pub(super) fn refusal(&self, keys: &[String]) -> Option<(String, MiniscriptFault)> {
        if self.is_sane() && self.is_satisfiable() {
            return None;
        }
        let insane = self.find_insane().unwrap_or(self);
        let fault = match () {
            () if !insane.is_valid() => MiniscriptFault::Invalid,
            () if self.is_sane() => MiniscriptFault::NotSatisfiable,
            () if !has(insane.kind_type, "m") => MiniscriptFault::Malleable,
            () if std::ptr::eq(insane, self) && !has(insane.kind_type, "s") => MiniscriptFault::NoSignature,
            () if !has(insane.kind_type, "k") => MiniscriptFault::MixedTimelocks,
            () if insane.has_duplicates => MiniscriptFault::DuplicateKeys,
            () if !insane.has_valid_satisfactions() => MiniscriptFault::ResourceLimits,
            () => MiniscriptFault::NotSane,
        };
        Some((insane.text(&|index, _| keys[index].clone()), fault))
    }

    /// Marks fragments with duplicate keys. Returns the keys of the fragment if there are no duplicates.
    fn mark_duplicates<'a>(&mut self, keys: &'a [Option<Vec<u8>>]) -> Option<BTreeSet<&'a Option<Vec<u8>>>> {
        let mut all = BTreeSet::new();
        let mut is_unique = self.keys.iter().all(|index| all.insert(&keys[*index]));
        for sub in &mut self.subs {
            match sub.mark_duplicates(keys) {
                Some(mut more) => {
                    // Merges the smaller set into the larger one.
                    if all.len() < more.len() {
                        std::mem::swap(&mut all, &mut more);
                    }
                    is_unique &= more.into_iter().all(|key| all.insert(key));
                }
                None => is_unique = false,
            }
        }
        self.has_duplicates = !is_unique;
        is_unique.then_some(all)
    }

    fn is_valid(&self) -> bool {
        self.kind_type != 0 && self.size <= if self.is_leaf { LEAF_SIZE_MAX } else { SCRIPT_SIZE_MAX }
    }

    /// Whether it leaves a value on the stack, as a number.
    fn leaves_value(&self) -> i32 {
        i32::from(["B", "K", "W"].iter().any(|letter| has(self.kind_type, letter)))
    }

    fn is_satisfiable(&self) -> bool {
        self.stack.sat.is_some()
    }

    fn has_valid_satisfactions(&self) -> bool {
        let fits_stack = self.stack.sat.is_none_or(|sat| match self.is_leaf {
            true => sat.exec + self.leaves_value() <= STACK_SIZE_MAX,
            false => sat.difference + self.leaves_value() <= STACK_ITEMS_MAX,
        });
        let fits_ops = self.is_leaf || self.ops.sat.is_none_or(|sat| self.ops.count + sat <= OPS_MAX);
        self.is_valid() && fits_ops && fits_stack
    }

    fn is_sane_inside(&self) -> bool {
        self.has_valid_satisfactions() && has(self.kind_type, "mk") && !self.has_duplicates
    }

    pub(crate) fn is_sane(&self) -> bool {
        self.is_valid() && has(self.kind_type, "Bs") && self.is_sane_inside()
    }

    /// The first fragment that is not sane although all its parts are.
    fn find_insane(&self) -> Option<&Fragment> {
        let inside = self.subs.iter().find_map(Fragment::find_insane);
        inside.or_else(|| (!self.is_sane_inside()).then_some(self))
    }
}
