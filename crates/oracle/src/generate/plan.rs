//! A planned spend: its script, the kind of output, and the arguments. Building it makes the keys, the commitments and
//! the signatures, so that a changed plan is a valid spend again if that is possible.
//!
//! Input: a [`Plan`]. Output: a [`Case`]: transaction, spent outputs, input, flags. Invariant: signatures commit to the
//! transaction as built. The digests come from the crate under test: a wrong one shows up as a spend that we accept and
//! Core refuses. Cost: about 30 us per signature.

use super::keys::{KeyPlan, keypair};
use super::signature::{SigPlan, ecdsa_signature, schnorr_signature};
use super::token::{PushBy, Token, encode};
use lydian_hash::{TAP_TWEAK, hash160, sha256};
use lydian_primitives::build::{MutOutput, MutTx};
use lydian_primitives::{Amount, Output, Transaction};
use lydian_script::builder::scripts::{p2sh, witness_program};
use lydian_script::opcodes::OP_CODESEPARATOR;
use lydian_script::sighash::{compute_annex_hash, compute_tapleaf_hash, compute_taproot_merkle_root};
use lydian_script::{Flags, LegacyCache, TaprootExt, TxContext, ops};
use secp256k1::{Keypair, Parity, Scalar, XOnlyPublicKey};

/// One input to be verified, as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The origin of the case, for the counts.
    pub name: &'static str,
    pub tx: MutTx,
    pub spent: Vec<MutOutput>,
    pub index: usize,
    pub flags: Flags,
}

/// A spend before its signatures are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub name: &'static str,
    /// The script that decides: that of the output, or the one that the output commits to.
    pub script: Vec<Token>,
    /// The arguments of the script, deepest first.
    pub args: Vec<Token>,
    pub wrap: Wrap,
    pub annex: Option<Vec<u8>>,
    /// Everything but the script, scriptSig and witness of input `index`.
    pub tx: MutTx,
    pub spent: Vec<MutOutput>,
    pub index: usize,
    pub flags: Flags,
}

/// How an output commits to its script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrap {
    Bare,
    P2sh,
    P2wsh,
    P2shP2wsh,
    /// The script is that of P2PKH.
    P2wpkh,
    P2shP2wpkh,
    /// Key path: the number of the internal key, and the merkle root of the script tree if there is one.
    TaprootKey {
        internal: u8,
        root: Option<[u8; 32]>,
    },
    TaprootLeaf(Leaf),
    /// Any witness program, with the arguments as its witness; nested in P2SH if `is_p2sh` is set.
    Program {
        version: u8,
        program: Vec<u8>,
        is_p2sh: bool,
    },
}

/// A leaf of a script tree and its path to the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    pub internal: u8,
    pub version: u8,
    pub path: Vec<[u8; 32]>,
}

/// The rules for making signatures.
enum Signing<'p> {
    Base,
    WitnessV0,
    KeyPath(&'p Keypair),
    Tapscript([u8; 32]),
}

impl Plan {
    /// Returns the spend as bytes.
    pub fn build(&self) -> Case {
        self.build_signed().0
    }

    /// Returns the same plan with its current signatures as bytes, so that later changes are not signed.
    pub fn frozen(&self) -> Plan {
        let (_, script, args) = self.build_signed();
        Plan { script, args, ..self.clone() }
    }

    /// Returns the spend, and its tokens with the signatures made.
    fn build_signed(&self) -> (Case, Vec<Token>, Vec<Token>) {
        let (mut tx, mut spent) = (self.tx.clone(), self.spent.clone());
        tx.inputs.iter_mut().for_each(|input| input.script_sig.truncate(10_000));
        let base_signer = self.signer(&tx, &spent);
        // A signature inside the script itself signs the script without that signature (FindAndDelete).
        let script = base_signer.resolve(&self.script, &self.script, &Signing::Base);
        let script_bytes = encode(&script);
        let tweaked;
        let (script_pubkey, redeem, control, signing) = match &self.wrap {
            Wrap::Bare => (script_bytes.clone(), None, None, Signing::Base),
            Wrap::P2sh => (p2sh(&hash160(&script_bytes)), Some(script_bytes.clone()), None, Signing::Base),
            Wrap::P2wsh => (witness_program(0, &sha256(&script_bytes)), None, None, Signing::WitnessV0),
            Wrap::P2shP2wsh => {
                let redeem = witness_program(0, &sha256(&script_bytes));
                (p2sh(&hash160(&redeem)), Some(redeem), None, Signing::WitnessV0)
            }
            Wrap::P2wpkh => (witness_program(0, &self.key_hash()), None, None, Signing::WitnessV0),
            Wrap::P2shP2wpkh => {
                let redeem = witness_program(0, &self.key_hash());
                (p2sh(&hash160(&redeem)), Some(redeem), None, Signing::WitnessV0)
            }
            Wrap::TaprootKey { internal, root } => {
                let (output, _, tweak) = tweak(*internal, root.as_ref().map_or(&[][..], |root| root));
                let key = keypair(*internal);
                tweaked = key.add_xonly_tweak(&tweak).unwrap_or(*key);
                (witness_program(1, &output), None, None, Signing::KeyPath(&tweaked))
            }
            Wrap::TaprootLeaf(leaf) => {
                let leaf_hash = compute_tapleaf_hash(leaf.version & 0xfe, &script_bytes);
                let (output, control) = leaf.control(&leaf_hash);
                (witness_program(1, &output), None, Some(control), Signing::Tapscript(leaf_hash))
            }
            Wrap::Program { version, program, is_p2sh } => {
                let output = witness_program(*version, program);
                let redeem = is_p2sh.then(|| output.clone());
                (if *is_p2sh { p2sh(&hash160(&output)) } else { output }, redeem, None, Signing::WitnessV0)
            }
        };
        if let Some(output) = spent.get_mut(self.index) {
            output.script_pubkey = script_pubkey;
        }
        let args = self.signer(&tx, &spent).resolve(&self.args, &self.script, &signing);
        if let Some(input) = tx.inputs.get_mut(self.index) {
            let is_witness = !matches!(signing, Signing::Base);
            let elements =
                args.iter().map(|token| token.element().unwrap_or_else(|| encode(std::slice::from_ref(token))));
            input.witness = if is_witness { elements.collect() } else { Vec::new() };
            input.script_sig = if is_witness { Vec::new() } else { encode(&args) };
            if matches!(self.wrap, Wrap::P2wsh | Wrap::P2shP2wsh | Wrap::TaprootLeaf(_)) {
                input.witness.push(script_bytes);
            }
            input.witness.extend(control);
            input.witness.extend(self.annex.clone());
            if let Some(redeem) = redeem {
                Token::push(&redeem).encode(&mut input.script_sig);
            }
        }
        let case = Case { name: self.name, tx, spent, index: self.index, flags: self.flags };
        (case, script, args)
    }

    /// Returns the hash in a P2WPKH program: the first key hash of the script.
    fn key_hash(&self) -> [u8; 20] {
        let of_token = |token: &Token| match token {
            Token::KeyHash(key) => Some(key.hash()),
            Token::Push(bytes, _) => bytes.as_slice().try_into().ok(),
            _ => None,
        };
        self.script.iter().find_map(of_token).unwrap_or_else(|| KeyPlan::compressed(0).hash())
    }

    fn signer(&self, tx: &MutTx, spent: &[MutOutput]) -> Signer {
        // The witness is not signed, and without it the transaction always parses.
        let parsed = Transaction::parse(tx.encode_stripped()).ok();
        let annex_hash = self.annex.as_deref().map(compute_annex_hash);
        Signer { tx: parsed, spent: spent.to_vec(), index: self.index, annex_hash }
    }
}

impl Leaf {
    /// Returns the output key and the control block of the leaf.
    fn control(&self, leaf_hash: &[u8; 32]) -> ([u8; 32], Vec<u8>) {
        let mut control = vec![self.version & 0xfe];
        control.extend(KeyPlan::x_only(self.internal).bytes());
        self.path.iter().for_each(|node| control.extend_from_slice(node));
        let root = compute_taproot_merkle_root(&control, leaf_hash);
        let (output, is_odd, _) = tweak(self.internal, &root);
        control[0] |= u8::from(is_odd);
        (output, control)
    }
}

/// Returns the output key, whether its y is odd, and the tweak.
fn tweak(internal: u8, root: &[u8]) -> ([u8; 32], bool, Scalar) {
    let (key, _) = XOnlyPublicKey::from_keypair(keypair(internal));
    let tweak = Scalar::from_be_bytes(TAP_TWEAK.hash(&[&key.to_byte_array(), root])).unwrap_or(Scalar::ONE);
    match key.add_tweak(&tweak) {
        Ok((output, parity)) => (output.to_byte_array(), parity == Parity::Odd, tweak),
        Err(_) => (key.to_byte_array(), false, tweak),
    }
}

/// Makes the signatures of one input.
struct Signer {
    /// `None` if it does not parse: then there is nothing to sign.
    tx: Option<Transaction>,
    spent: Vec<MutOutput>,
    index: usize,
    annex_hash: Option<[u8; 32]>,
}

impl Signer {
    /// Returns `tokens` with each signature made over `script`.
    fn resolve(&self, tokens: &[Token], script: &[Token], signing: &Signing<'_>) -> Vec<Token> {
        if !tokens.iter().any(|token| matches!(token, Token::Signature(_))) {
            return tokens.to_vec();
        }
        let view = |output: &MutOutput| (output.value, output.script_pubkey.clone());
        let owned: Vec<(Amount, Vec<u8>)> = self.spent.iter().map(view).collect();
        let spent: Vec<_> =
            owned.iter().map(|(value, script)| Output { value: *value, script_pubkey: script }).collect();
        let context = self.tx.as_ref().and_then(|tx| TxContext::new(tx.view(), &spent));
        let sign = |token: &Token| match token {
            Token::Signature(plan) => {
                let digest = context.as_ref().and_then(|context| self.digest(context, plan, script, signing));
                Token::Push(signature(plan, digest.unwrap_or([7; 32]), signing), PushBy::Length)
            }
            other => other.clone(),
        };
        tokens.iter().map(sign).collect()
    }

    fn digest(
        &self,
        context: &TxContext<'_>,
        plan: &SigPlan,
        script: &[Token],
        signing: &Signing<'_>,
    ) -> Option<[u8; 32]> {
        if self.index >= context.tx().input_count() {
            return None;
        }
        let bytes = encode(script);
        let separators = ops(&bytes).map_while(Result::ok).zip(0_u32..);
        let mut separators = separators.filter(|(op, _)| op.opcode == OP_CODESEPARATOR);
        let last = usize::from(plan.separators).checked_sub(1).and_then(|before| separators.nth(before));
        let code = &bytes[last.map_or(0, |(op, _)| op.end)..];
        let hash_type = u32::from(plan.hash_type);
        let ext = |leaf| TaprootExt { annex_hash: self.annex_hash, leaf };
        match signing {
            Signing::Base => Some(context.legacy(self.index, code, hash_type, &mut LegacyCache::new())),
            Signing::WitnessV0 => Some(context.segwit_v0(self.index, code, hash_type)),
            Signing::KeyPath(_) => context.taproot(self.index, plan.hash_type, &ext(None)),
            Signing::Tapscript(leaf_hash) => {
                let position = last.map_or(u32::MAX, |(_, position)| position);
                context.taproot(self.index, plan.hash_type, &ext(Some((*leaf_hash, position))))
            }
        }
    }
}

fn signature(plan: &SigPlan, digest: [u8; 32], signing: &Signing<'_>) -> Vec<u8> {
    match signing {
        Signing::Base | Signing::WitnessV0 => ecdsa_signature(plan, digest),
        Signing::KeyPath(key) => schnorr_signature(plan, key, digest),
        Signing::Tapscript(_) => schnorr_signature(plan, keypair(plan.key), digest),
    }
}
