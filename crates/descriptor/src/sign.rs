//! Signs transactions: Core's `SignTransaction`, `ProduceSignature` and `DataFromTransaction` (script/sign.cpp).
//!
//! Input: a transaction, the outputs it spends as far as they are known, private keys and scripts. Output: the
//! transaction with all signatures that could be made, those it already had, and an error for each input that does not
//! verify. [`combine`] only joins signatures that exist.
//!
//! Signed are pay-to-pubkey, pay-to-pubkey-hash, multisig and witness key hashes, each also in P2SH; witness scripts of
//! these kinds or of miniscript; and taproot outputs by their key or by a leaf script of miniscript, with MuSig2. PSBTs
//! are signed with the same [`Signer`]. Invariants: signatures are
//! byte for byte Core's (RFC 6979 with low r; BIP-0340 without auxiliary randomness); private keys are wiped when a
//! [`Keystore`] is dropped and are in no text. Cost: [`Batch`], two signature hashes per signature, and the scripts of
//! each input before and after.

mod batch;
mod checker;
mod data;
mod key;
mod material;
mod message;
mod musig;
mod produce;
mod taproot;
mod tree;

pub use batch::Batch;
pub use data::SignatureData;
pub use key::PrivateKey;
pub use material::{
    CompressedKey, ControlBlock, KeyOrigin, LeafScripts, Missing, MusigNonces, MusigPartials, MusigParticipants,
    MusigSession, Preimages, Signatures,
};
pub use message::{sign_message, verify_message};
pub use musig::MusigMemo;
pub use produce::Signer;
pub use tree::{TaprootLeaf, TaprootSpend, TaprootTree};

use crate::expression::Secrets;
use crate::solver::{TxoutType, solve};
use lydian_hash::{hash160, sha256};
use lydian_primitives::build::MutTx;
use lydian_primitives::{Amount, Output, Tx};
use lydian_script::sighash::{SIGHASH_ALL, SIGHASH_ANYONECANPAY, SIGHASH_SINGLE};
use lydian_script::{ScriptError, TxContext, witness_program};
use lydian_stdx::wipe;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;

/// Private keys, and what else is known about the outputs that they spend: Core's `FlatSigningProvider`. Of two values
/// for the same key, the first wins.
#[derive(Default)]
pub struct Keystore {
    /// By the hashes of their public keys.
    keys: BTreeMap<[u8; 20], PrivateKey>,
    public_keys: BTreeMap<[u8; 20], Vec<u8>>,
    origins: BTreeMap<[u8; 20], KeyOrigin>,
    /// By their hashes.
    scripts: BTreeMap<[u8; 20], Vec<u8>>,
    /// By their output keys.
    trees: BTreeMap<[u8; 32], TaprootTree>,
    musig_participants: MusigParticipants,
    /// Private keys that descriptors contain, from which keys are derived.
    roots: Secrets,
    /// Where random numbers for nonces come from.
    entropy: Cell<Option<[u8; 32]>>,
}

impl Keystore {
    pub fn new() -> Keystore {
        Keystore::default()
    }

    pub fn add_key(&mut self, key: PrivateKey) {
        let hash = hash160(key.public_key());
        self.add_public_key(hash, key.public_key().to_vec());
        self.keys.entry(hash).or_insert(key);
    }

    /// Adds a redeem script or a witness script.
    pub fn add_script(&mut self, script: Vec<u8>) {
        self.scripts.entry(hash160(&script)).or_insert(script);
    }

    /// Adds 32 random bytes, fit for keys. Without them, no nonces are made.
    pub fn add_entropy(&mut self, bytes: [u8; 32]) {
        self.entropy.set(Some(bytes));
    }

    /// Forgets where keys come from.
    pub fn forget_origins(&mut self) {
        self.origins.clear();
    }

    /// Whether a witness spends the output, as far as it is known: Core's `IsSegWitOutput`.
    pub fn is_witness_output(&self, script: &[u8]) -> bool {
        let is_program = |script: &[u8]| witness_program(script).is_some();
        match solve(script) {
            TxoutType::ScriptHash(hash) => self.script(hash).is_some_and(|inner| is_program(inner)),
            _ => is_program(script),
        }
    }

    pub(crate) fn add_public_key(&mut self, hash: [u8; 20], key: Vec<u8>) {
        self.public_keys.entry(hash).or_insert(key);
    }

    pub(crate) fn add_origin(&mut self, hash: [u8; 20], origin: KeyOrigin) {
        self.origins.entry(hash).or_insert(origin);
    }

    /// The last tree with an output key wins.
    pub(crate) fn add_tree(&mut self, tree: TaprootTree) {
        self.trees.insert(tree.output_key(), tree);
    }

    /// Adds an aggregate key and the keys that it is made of, sorted.
    pub(crate) fn add_participants(&mut self, aggregate: CompressedKey, participants: Vec<CompressedKey>) {
        self.musig_participants.entry(aggregate).or_insert(participants);
    }

    pub(crate) fn add_roots(&mut self, roots: &Secrets) {
        self.roots.add(roots);
    }

    /// Lends the private keys of descriptors; they come back with [`Keystore::put_roots`].
    pub(crate) fn take_roots(&mut self) -> Secrets {
        std::mem::take(&mut self.roots)
    }

    pub(crate) fn put_roots(&mut self, roots: Secrets) {
        self.roots = roots;
    }

    fn private_key(&self, hash: &[u8; 20]) -> Option<&PrivateKey> {
        self.keys.get(hash)
    }

    fn public_key(&self, hash: &[u8; 20]) -> Option<&[u8]> {
        self.public_keys.get(hash).map(Vec::as_slice)
    }

    fn origin(&self, hash: &[u8; 20]) -> Option<&KeyOrigin> {
        self.origins.get(hash)
    }

    /// Whether it is known of any key where it comes from.
    fn has_origins(&self) -> bool {
        !self.origins.is_empty()
    }

    /// The origin of the key with an even y, or of the one with an odd y.
    fn x_only_origin(&self, key: &[u8; 32]) -> Option<&KeyOrigin> {
        let of_parity = |parity: u8| self.origin(&hash160(&[&[parity][..], key].concat()));
        if self.origins.is_empty() { None } else { of_parity(2).or_else(|| of_parity(3)) }
    }

    fn script(&self, hash: &[u8; 20]) -> Option<&Vec<u8>> {
        self.scripts.get(hash)
    }

    fn tree(&self, output_key: &[u8; 32]) -> Option<&TaprootTree> {
        self.trees.get(output_key)
    }

    fn musig_participants(&self) -> &MusigParticipants {
        &self.musig_participants
    }

    /// 32 random bytes, each time others.
    fn entropy(&self) -> Option<[u8; 32]> {
        let state = self.entropy.get()?;
        let of = |purpose: u8| sha256(&[&[purpose][..], &state].concat());
        self.entropy.set(Some(of(0)));
        Some(of(1))
    }
}

impl Drop for Keystore {
    fn drop(&mut self) {
        if let Some(bytes) = self.entropy.get_mut() {
            wipe(bytes);
        }
    }
}

impl fmt::Debug for Keystore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keystore").field("keys", &self.keys).field("scripts", &self.scripts).finish_non_exhaustive()
    }
}

/// Why an input is not signed, or not completely. Displayed with Core's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputError {
    /// The output that it spends is unknown.
    NotFound,
    /// Its signature commits to an amount that was not given.
    MissingAmount,
    /// The input does not verify.
    Script(ScriptError),
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            InputError::NotFound => "Input not found or already spent",
            InputError::MissingAmount => "Missing amount",
            InputError::Script(ScriptError::InvalidStackOperation) => {
                "Unable to sign input, invalid stack size (possibly missing key)"
            }
            InputError::Script(ScriptError::SigNullFail) => {
                "CHECK(MULTI)SIG failing with non-zero signature (possibly need more signatures)"
            }
            InputError::Script(error) => error.text(),
        })
    }
}

/// A transaction after signing.
#[derive(Clone, Debug)]
pub struct Signed {
    pub tx: MutTx,
    /// Indexes of inputs, ascending, with the reason. Without any, the transaction is complete.
    pub errors: Vec<(usize, InputError)>,
}

/// The largest amount: Core's `MAX_MONEY`, which stands for an amount that was not given.
pub const AMOUNT_NOT_GIVEN: Amount = Amount(21_000_000 * 100_000_000);

/// Stands for an output that is unknown.
const UNKNOWN: Output<'_> = Output { value: Amount(-1), script_pubkey: &[] };

/// Signs what can be signed: Core's `SignTransaction`. `spent` has the output of each input, if it is known; one of
/// [`AMOUNT_NOT_GIVEN`] has no known amount. `hash_type` 0 is DEFAULT for taproot and ALL otherwise. `batch` is a new
/// one.
pub fn sign_transaction(
    tx: Tx<'_>,
    spent: &[Option<Output<'_>>],
    keys: &Keystore,
    hash_type: u8,
    batch: &Batch<'_>,
) -> Signed {
    let mut signed = Signed { tx: MutTx::from(tx), errors: Vec::new() };
    let outputs: Vec<Output<'_>> = spent.iter().map(|output| output.unwrap_or(UNKNOWN)).collect();
    let Some(context) = TxContext::new(tx, &outputs) else { return signed };
    let has_all = spent.iter().all(Option::is_some);
    let is_single = u32::from(hash_type) & !SIGHASH_ANYONECANPAY == SIGHASH_SINGLE;
    let signer_of = |index| Signer::new(&context, index, keys, batch, (i32::from(hash_type), has_all));
    let produce = |index: usize, output: &Output<'_>| {
        let mut data = SignatureData::of_input(&context, index, tx, batch);
        // SINGLE signs the output with the index of the input.
        if !is_single || index < tx.output_count() {
            signer_of(index).produce(output.script_pubkey, &mut data);
        }
        data
    };
    batch.plan(|| {
        for (index, output) in spent.iter().enumerate() {
            // Only what it asks for counts.
            let _ = output.as_ref().map(|output| produce(index, output));
        }
    });
    for (index, output) in spent.iter().enumerate() {
        let Some(output) = output else {
            signed.errors.push((index, InputError::NotFound));
            continue;
        };
        let data = produce(index, output);
        let error = match () {
            () if output.value == AMOUNT_NOT_GIVEN && !data.witness.is_empty() => Some(InputError::MissingAmount),
            () if data.is_complete => None,
            () => signer_of(index).verify(output.script_pubkey, &data).err().map(InputError::Script),
        };
        signed.errors.extend(error.map(|error| (index, error)));
        data.move_to(&mut signed.tx.inputs[index]);
    }
    signed
}

/// Joins the signatures of copies of one transaction that differ only in their signatures: the part of Core's
/// `combinerawtransaction` after its checks. `spent` has the output of each input.
pub fn combine(variants: &[Tx<'_>], spent: &[Output<'_>]) -> Option<MutTx> {
    let first = *variants.first()?;
    let mut combined = MutTx::from(first);
    let context = TxContext::new(first, spent)?;
    if variants.iter().any(|variant| variant.input_count() != first.input_count()) {
        return None;
    }
    let (no_keys, batch) = (Keystore::new(), Batch::default());
    for (index, input) in combined.inputs.iter_mut().enumerate() {
        let mut data = SignatureData::default();
        for variant in variants {
            data.merge(SignatureData::of_input(&context, index, *variant, &batch));
        }
        let hash_type = i32::try_from(SIGHASH_ALL).unwrap_or(1);
        let signer = Signer::new(&context, index, &no_keys, &batch, (hash_type, false));
        signer.produce(context.spent(index).script_pubkey, &mut data);
        data.move_to(input);
    }
    Some(combined)
}

#[cfg(test)]
mod tests;
