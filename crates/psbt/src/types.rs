//! The parts of a PSBT: Core's `PartiallySignedTransaction`, `PSBTInput` and `PSBTOutput`.
//!
//! Maps are sorted as Core's, because that is the order in which fields are written and shown.

use lydian_descriptor::{
    KeyOrigin, LeafScripts, MusigNonces, MusigPartials, MusigParticipants, Preimages, Signatures, TaprootLeaf,
};
use lydian_primitives::build::MutOutput;
use lydian_primitives::{Amount, OutPoint, Transaction};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Fields with an unknown type: keys with their type in front, and values.
pub type Unknown = BTreeMap<Vec<u8>, Vec<u8>>;

/// For an x-only key the hashes of the leaves that contain it, and its origin.
pub type TaprootOrigins = BTreeMap<[u8; 32], (BTreeSet<[u8; 32]>, KeyOrigin)>;

/// A partially signed transaction.
#[derive(Clone, Debug, Default)]
pub struct Psbt {
    /// 0 or 2.
    pub version: u32,
    pub xpubs: BTreeMap<KeyOrigin, BTreeSet<Xpub>>,
    /// Which parts may be changed; only in version 2.
    pub modifiable: Option<u8>,
    pub tx_version: u32,
    /// In version 0, the lock time of the transaction.
    pub fallback_lock_time: Option<u32>,
    pub inputs: Vec<Input>,
    pub outputs: Vec<Output>,
    pub proprietary: BTreeMap<Vec<u8>, Proprietary>,
    pub unknown: Unknown,
}

/// Bits of [`Psbt::modifiable`].
pub(crate) const INPUTS_MODIFIABLE: u8 = 1;
pub(crate) const OUTPUTS_MODIFIABLE: u8 = 2;
pub(crate) const HAS_SIGHASH_SINGLE: u8 = 4;

impl Psbt {
    pub fn are_inputs_modifiable(&self) -> Option<bool> {
        self.modifiable.map(|bits| bits & INPUTS_MODIFIABLE != 0)
    }

    pub fn are_outputs_modifiable(&self) -> Option<bool> {
        self.modifiable.map(|bits| bits & OUTPUTS_MODIFIABLE != 0)
    }

    pub fn has_sighash_single(&self) -> Option<bool> {
        self.modifiable.map(|bits| bits & HAS_SIGHASH_SINGLE != 0)
    }
}

/// An extended public key with its version bytes. Core compares and orders by the key and the chain code only.
#[derive(Clone, Copy, Debug)]
pub struct Xpub(pub [u8; 78]);

impl Xpub {
    fn compared(&self) -> (&[u8], &[u8]) {
        (&self.0[45..], &self.0[13..45])
    }
}

impl PartialEq for Xpub {
    fn eq(&self, other: &Xpub) -> bool {
        self.compared() == other.compared()
    }
}

impl Eq for Xpub {}

impl PartialOrd for Xpub {
    fn partial_cmp(&self, other: &Xpub) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Xpub {
    fn cmp(&self, other: &Xpub) -> Ordering {
        self.compared().cmp(&other.compared())
    }
}

/// A proprietary field; the map that contains it has the whole key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proprietary {
    pub identifier: Vec<u8>,
    pub subtype: u64,
    pub value: Vec<u8>,
}

/// What is known about one input.
#[derive(Clone, Debug)]
pub struct Input {
    pub prevout: OutPoint,
    pub sequence: Option<u32>,
    pub time_lock: Option<u32>,
    pub height_lock: Option<u32>,
    pub non_witness_utxo: Option<Arc<Transaction>>,
    pub witness_utxo: Option<MutOutput>,
    pub signatures: Signatures,
    pub sighash_type: Option<i32>,
    pub redeem_script: Vec<u8>,
    pub witness_script: Vec<u8>,
    /// By public keys.
    pub origins: BTreeMap<Vec<u8>, KeyOrigin>,
    pub final_script_sig: Vec<u8>,
    pub final_witness: Vec<Vec<u8>>,
    pub preimages: Preimages,
    pub taproot_key_signature: Vec<u8>,
    /// By x-only key and leaf hash.
    pub taproot_script_signatures: BTreeMap<([u8; 32], [u8; 32]), Vec<u8>>,
    pub leaf_scripts: LeafScripts,
    pub taproot_origins: TaprootOrigins,
    pub internal_key: Option<[u8; 32]>,
    pub merkle_root: Option<[u8; 32]>,
    pub musig_participants: MusigParticipants,
    pub musig_nonces: MusigNonces,
    pub musig_partials: MusigPartials,
    pub proprietary: BTreeMap<Vec<u8>, Proprietary>,
    pub unknown: Unknown,
}

impl Input {
    /// An input about which nothing else is known.
    pub(crate) fn new(prevout: OutPoint, sequence: Option<u32>) -> Input {
        Input {
            prevout,
            sequence,
            time_lock: None,
            height_lock: None,
            non_witness_utxo: None,
            witness_utxo: None,
            signatures: Signatures::new(),
            sighash_type: None,
            redeem_script: Vec::new(),
            witness_script: Vec::new(),
            origins: BTreeMap::new(),
            final_script_sig: Vec::new(),
            final_witness: Vec::new(),
            preimages: Preimages::default(),
            taproot_key_signature: Vec::new(),
            taproot_script_signatures: BTreeMap::new(),
            leaf_scripts: LeafScripts::new(),
            taproot_origins: TaprootOrigins::new(),
            internal_key: None,
            merkle_root: None,
            musig_participants: MusigParticipants::new(),
            musig_nonces: MusigNonces::new(),
            musig_partials: MusigPartials::new(),
            proprietary: BTreeMap::new(),
            unknown: Unknown::new(),
        }
    }

    /// Whether it has final scripts: Core's `PSBTInputSigned`.
    pub fn is_signed(&self) -> bool {
        !self.final_script_sig.is_empty() || !self.final_witness.is_empty()
    }

    /// The output that it spends, if it is known: Core's `GetUTXO`.
    pub fn utxo(&self) -> Option<MutOutput> {
        match &self.non_witness_utxo {
            Some(tx) => {
                let tx = tx.view();
                let index = usize::try_from(self.prevout.vout).ok().filter(|index| *index < tx.output_count())?;
                let output = tx.output(index);
                (tx.txid() == self.prevout.txid)
                    .then(|| MutOutput { value: output.value, script_pubkey: output.script_pubkey.to_vec() })
            }
            None => self.witness_utxo.clone(),
        }
    }
}

/// What is known about one output.
#[derive(Clone, Debug, Default)]
pub struct Output {
    pub amount: Amount,
    pub script: Vec<u8>,
    pub redeem_script: Vec<u8>,
    pub witness_script: Vec<u8>,
    /// By public keys.
    pub origins: BTreeMap<Vec<u8>, KeyOrigin>,
    pub internal_key: Option<[u8; 32]>,
    /// From left to right, or as Core orders them.
    pub taproot_tree: Vec<TaprootLeaf>,
    pub taproot_origins: TaprootOrigins,
    pub musig_participants: MusigParticipants,
    pub proprietary: BTreeMap<Vec<u8>, Proprietary>,
    pub unknown: Unknown,
}
