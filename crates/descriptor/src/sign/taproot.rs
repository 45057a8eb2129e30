//! Signs taproot outputs: Core's `SignTaproot`.
//!
//! Input: an output key, and what is known about the output. Output: a signature for the key path; if there is none,
//! the smallest witness that satisfies a leaf script.

use super::tree::tweak_hash;
use super::{SignatureData, Signer};
use lydian_hash::hash160;
use lydian_primitives::compact_size_len;
use lydian_script::sighash::compute_tapleaf_hash;
use std::collections::BTreeSet;

/// Leaf version of tapscript (BIP-0342).
const TAPSCRIPT: u8 = 0xc0;

/// A signature that exists, without one.
const ESTIMATED: [u8; 64] = [0; 64];

/// How the private key of a key path is tweaked: Core's argument `merkle_root`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tweak {
    /// The key is used as it is.
    None,
    /// By the root, if there is one.
    Root(Option<[u8; 32]>),
}

impl Signer<'_, '_> {
    pub(super) fn spend_taproot(&self, output_key: &[u8; 32], data: &mut SignatureData) -> Option<Vec<Vec<u8>>> {
        if let Some(tree) = self.keys.tree(output_key) {
            data.taproot.merge(tree.spend());
            data.tree = Some(tree.clone());
        }
        for (aggregate, participants) in self.keys.musig_participants() {
            data.musig_participants.entry(*aggregate).or_insert_with(|| participants.clone());
        }
        data.musig_memo = super::MusigMemo::default();
        let internal_key = data.taproot.internal_key.unwrap_or_default();
        for key in [&internal_key, output_key] {
            if let Some(origin) = self.keys.x_only_origin(key) {
                data.taproot_origins.entry(*key).or_insert_with(|| (BTreeSet::new(), origin.clone()));
            }
        }
        // The internal key, then the output key itself.
        for (key, tweak) in [(internal_key, Tweak::Root(data.taproot.merkle_root)), (*output_key, Tweak::None)] {
            if data.taproot_key_signature.is_empty() {
                match self.sign_schnorr(&key, tweak, None, output_key) {
                    Some(signature) => data.taproot_key_signature = signature,
                    None => {
                        self.sign_musig(&key, tweak, None, data);
                    }
                }
            }
        }
        if !data.taproot_key_signature.is_empty() {
            return Some(vec![data.taproot_key_signature.clone()]);
        }
        self.spend_by_script(data)
    }

    /// The smallest satisfaction of a leaf script; of equal ones the first.
    fn spend_by_script(&self, data: &mut SignatureData) -> Option<Vec<Vec<u8>>> {
        let size = |elements: &[Vec<u8>]| -> usize {
            let of = |element: &Vec<u8>| compact_size_len(element.len()) + element.len();
            compact_size_len(elements.len()) + elements.iter().map(of).sum::<usize>()
        };
        // There may be millions.
        let scripts = std::mem::take(&mut data.taproot.scripts);
        let mut smallest: Option<Vec<Vec<u8>>> = None;
        for ((script, version), control_blocks) in &scripts {
            if *version != TAPSCRIPT {
                continue;
            }
            let leaf = compute_tapleaf_hash(*version, script);
            let Some(mut elements) = self.satisfy_miniscript(script, Some(leaf), data) else { continue };
            elements.push(script.clone());
            elements.extend(control_blocks.first().map(|control_block| control_block.0.clone()));
            if smallest.as_ref().is_none_or(|smallest| size(&elements) < size(smallest)) {
                smallest = Some(elements);
            }
        }
        data.taproot.scripts = scripts;
        smallest
    }

    /// Signs a leaf script: Core's `CreateTaprootScriptSig`.
    pub(super) fn sign_leaf(&self, key: [u8; 32], leaf: [u8; 32], data: &mut SignatureData) -> Option<Vec<u8>> {
        if let Some(origin) = self.keys.x_only_origin(&key) {
            let entry = data.taproot_origins.entry(key).or_insert_with(|| (BTreeSet::new(), origin.clone()));
            entry.0.insert(leaf);
        }
        let place = (key, leaf);
        if let Some(signature) = data.taproot_script_signatures.get(&place) {
            return Some(signature.clone());
        }
        match self.sign_schnorr(&key, Tweak::None, Some(leaf), &key) {
            Some(signature) => {
                data.taproot_script_signatures.insert(place, signature.clone());
                Some(signature)
            }
            None => {
                self.sign_musig(&key, Tweak::None, Some(leaf), data)?;
                data.taproot_script_signatures.get(&place).cloned()
            }
        }
    }

    /// Core's `CreateSchnorrSig`.
    fn sign_schnorr(
        &self,
        key: &[u8; 32],
        tweak: Tweak,
        leaf: Option<[u8; 32]>,
        output_key: &[u8; 32],
    ) -> Option<Vec<u8>> {
        if self.is_estimating() {
            return Some(ESTIMATED.to_vec());
        }
        let of_parity = |parity: u8| Some(hash160(&[&[parity][..], key].concat()));
        let is_known = |hash: &[u8; 20]| self.keys.private_key(hash).is_some();
        let hash = of_parity(2).filter(is_known).or_else(|| of_parity(3).filter(is_known))?;
        let (digest, hash_type) = self.taproot_digest(leaf)?;
        let tweak = match tweak {
            Tweak::None => None,
            Tweak::Root(root) => Some(tweak_hash(key, root.as_ref())),
        };
        Some(with_hash_type(self.make_schnorr(hash, digest, tweak, *output_key)?, hash_type))
    }
}

/// The default hash type is not written.
pub(super) fn with_hash_type(signature: [u8; 64], hash_type: i32) -> Vec<u8> {
    let mut signature = signature.to_vec();
    signature.extend((hash_type != 0).then_some(super::produce::low_byte(hash_type)));
    signature
}
