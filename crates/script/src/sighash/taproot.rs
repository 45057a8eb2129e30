//! The signature hash of taproot and tapscript (BIP-0341, BIP-0342), and the hashes of the script tree.
//!
//! Input: index, hash type, annex, leaf. Output: 32 bytes, or `None` if BIP-0341 defines no hash. The hash commits to
//! the amounts and scripts of *all* spent outputs. Cost: about 200 bytes; five hashes over all inputs and outputs once
//! per transaction.

use super::{SIGHASH_DEFAULT, TxContext, Writer};
use lydian_hash::{TAP_BRANCH, TAP_LEAF, TAP_SIGHASH};

const EPOCH: u8 = 0;
/// The version of 32-byte keys in tapscript.
const KEY_VERSION: u8 = 0;
/// Size of a control block before its path: leaf version with parity, and the internal key.
const CONTROL_BASE_SIZE: usize = 33;
const CONTROL_NODE_SIZE: usize = 32;

/// The data that the hash commits to besides the transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaprootExt {
    /// SHA-256 of the annex with its length ([`compute_annex_hash`]), if there is an annex.
    pub annex_hash: Option<[u8; 32]>,
    /// In a script path: the tapleaf hash, and the index of the last executed OP_CODESEPARATOR among the leaf's
    /// operations (0xffffffff if none was executed).
    pub leaf: Option<([u8; 32], u32)>,
}

/// The hashes that all inputs of a transaction commit to, besides `SingleHashes`.
#[derive(Debug)]
pub(super) struct TaprootParts {
    amounts: [u8; 32],
    script_pubkeys: [u8; 32],
}

impl TxContext<'_> {
    /// Core's `SignatureHashSchnorr`. `None` for a hash type that BIP-0341 does not define, and for SINGLE without an
    /// output at the input's index. Panics if there is no such input.
    pub fn taproot(&self, input: usize, hash_type: u8, ext: &TaprootExt) -> Option<[u8; 32]> {
        if !matches!(hash_type, 0..=3 | 0x81..=0x83) {
            return None;
        }
        let is_anyone = hash_type & 0x80 != 0;
        let mut writer = Writer::resume(TAP_SIGHASH.engine());
        writer.bytes(&[EPOCH, hash_type]).u32(self.tx.version()).u32(self.tx.lock_time());
        if !is_anyone {
            let (single, parts) = (self.single(), self.taproot_parts());
            writer.bytes(&single.prevouts).bytes(&parts.amounts).bytes(&parts.script_pubkeys).bytes(&single.sequences);
        }
        if hash_type == SIGHASH_DEFAULT || hash_type & 3 == 1 {
            writer.bytes(&self.single().outputs);
        }
        let spend_type = u8::from(ext.leaf.is_some()) << 1 | u8::from(ext.annex_hash.is_some());
        writer.bytes(&[spend_type]);
        if is_anyone {
            let spent = &self.spent[input];
            writer
                .bytes(self.tx.prevout_bytes(input))
                .bytes(&spent.value.0.to_le_bytes())
                .var_bytes(spent.script_pubkey)
                .bytes(self.tx.sequence_bytes(input));
        } else {
            writer.u32(u32::try_from(input).ok()?);
        }
        if let Some(annex_hash) = &ext.annex_hash {
            writer.bytes(annex_hash);
        }
        if hash_type & 3 == 3 {
            if input >= self.tx.output_count() {
                return None;
            }
            writer.bytes(&self.single_output(input));
        }
        if let Some((leaf_hash, code_separator)) = &ext.leaf {
            writer.bytes(leaf_hash).bytes(&[KEY_VERSION]).u32(*code_separator);
        }
        Some(self.finish(&writer))
    }

    fn taproot_parts(&self) -> &TaprootParts {
        self.taproot.get_or_init(|| {
            let (mut amounts, mut script_pubkeys) = (Writer::new(), Writer::new());
            for spent in self.spent {
                amounts.bytes(&spent.value.0.to_le_bytes());
                script_pubkeys.var_bytes(spent.script_pubkey);
            }
            TaprootParts { amounts: self.finish(&amounts), script_pubkeys: self.finish(&script_pubkeys) }
        })
    }
}

/// SHA-256 of the annex as serialised in the witness: its length, then its bytes (0x50 first).
pub fn compute_annex_hash(annex: &[u8]) -> [u8; 32] {
    Writer::new().var_bytes(annex).sha.finalize()
}

/// Core's `ComputeTapleafHash`. `leaf_version` is without the parity bit.
pub fn compute_tapleaf_hash(leaf_version: u8, script: &[u8]) -> [u8; 32] {
    Writer::resume(TAP_LEAF.engine()).bytes(&[leaf_version]).var_bytes(script).sha.finalize()
}

/// Core's `ComputeTapbranchHash`: the smaller of the two comes first.
pub fn compute_tapbranch_hash(a: &[u8; 32], b: &[u8; 32]) -> [u8; 32] {
    TAP_BRANCH.hash(&[a.min(b), a.max(b)])
}

/// Core's `ComputeTaprootMerkleRoot`: follows the path in a control block from a leaf to the root. The caller has
/// checked the size of the control block (33 bytes plus a multiple of 32); bytes after the last whole node are ignored.
pub fn compute_taproot_merkle_root(control: &[u8], tapleaf_hash: &[u8; 32]) -> [u8; 32] {
    let path = control.get(CONTROL_BASE_SIZE..).unwrap_or(&[]);
    let (nodes, _) = path.as_chunks::<CONTROL_NODE_SIZE>();
    nodes.iter().fold(*tapleaf_hash, |hash, node| compute_tapbranch_hash(&hash, node))
}
