//! Recognises the spends that most inputs are: P2PKH, P2WPKH, P2SH-P2WPKH, P2TR key path, and multisig (bare, P2SH,
//! P2WSH, P2SH-P2WSH).
//!
//! Not a second evaluator: a template accepts the one well-formed shape of its kind and makes the same checks through
//! [`Spend`] as the interpreter, so that it records the same obligations. Everything else is left to the interpreter.
//!
//! Input: an input being verified. Output: whether it is accepted. Invariant: `true` only if the interpreter succeeds
//! with the same checks in the same order; `false` means nothing. Cost: no allocation; one or two hashes besides the
//! digests.

use crate::checker::Checker;
use crate::flags::Flags;
use crate::iter::ops;
use crate::limits::MAX_SCRIPT_ELEMENT_SIZE;
use crate::num::to_bool;
use crate::opcodes::*;
use crate::pattern::{is_minimal_push, is_p2sh};
use crate::sighash::{LegacyCache, TaprootExt, TxContext};
use crate::spend::{EcdsaVersion, Spend};
use crate::stack::Element;
use crate::verify::{Scripts, p2pkh_script};
use lydian_hash::sha256;
use lydian_primitives::Witness;

/// Maximum number of keys of a multisig whose key count is a number opcode.
const MULTISIG_KEYS_MAX: usize = 16;
/// Sizes of signatures accepted in a direct push: no number opcode can push them, and a direct push can hold them.
const SIGNATURE_SIZES: std::ops::RangeInclusive<usize> = 9..=75;

/// Whether the input has one of the known shapes and is accepted according to `checker`. `false` means nothing.
///
/// Panics like [`crate::verify_input`].
pub fn verify_by_template<'a, C: Checker>(
    context: &TxContext<'a>,
    input: usize,
    flags: Flags,
    checker: &mut C,
    legacy_cache: &mut LegacyCache,
) -> bool {
    let scripts = Scripts::of_input(context, input);
    recognise(&mut Spend::new(context, input, flags, checker, legacy_cache), &scripts).is_some()
}

/// `Some` if accepted. On `None`, the caller must discard the checks made so far.
pub(crate) fn recognise<C: Checker>(spend: &mut Spend<'_, '_, C>, scripts: &Scripts<'_>) -> Option<()> {
    let Scripts { script_sig, script_pubkey, witness } = *scripts;
    let has = |flags: Flags| spend.flags.contains(flags);
    match *script_pubkey {
        [OP_DUP, OP_HASH160, 20, ref hash @ .., OP_EQUALVERIFY, OP_CHECKSIG] if hash.len() == 20 => {
            p2pkh(spend, script_sig, script_pubkey, hash.first_chunk()?, &witness)
        }
        [OP_0, 20, ref program @ ..] if program.len() == 20 && has(Flags::WITNESS) => {
            is_absent(script_sig)?;
            p2wpkh(spend, program.first_chunk()?, &witness)
        }
        [OP_1, 32, ref program @ ..] if program.len() == 32 && has(Flags::WITNESS) && has(Flags::TAPROOT) => {
            is_absent(script_sig)?;
            p2tr_key_path(spend, program, &witness)
        }
        [OP_0, 32, ref program @ ..] if program.len() == 32 && has(Flags::WITNESS) => {
            is_absent(script_sig)?;
            p2wsh_multisig(spend, program, &witness)
        }
        [.., OP_CHECKMULTISIG] => {
            is_witness_absent(&witness)?;
            script_sig_multisig(spend, script_sig, script_pubkey)
        }
        _ if has(Flags::P2SH) && is_p2sh(script_pubkey) => {
            p2sh(spend, script_sig, script_pubkey[2..].first_chunk()?, &witness)
        }
        _ => None,
    }
}

fn is_absent(script_sig: &[u8]) -> Option<()> {
    script_sig.is_empty().then_some(())
}

fn is_witness_absent(witness: &Witness<'_>) -> Option<()> {
    witness.is_empty().then_some(())
}

/// scriptSig: a signature and a key, each pushed directly.
fn p2pkh<C: Checker>(
    spend: &mut Spend<'_, '_, C>,
    script_sig: &[u8],
    script_pubkey: &[u8],
    key_hash: &[u8; 20],
    witness: &Witness<'_>,
) -> Option<()> {
    is_witness_absent(witness)?;
    let (signature, rest) = split_direct_push(script_sig)?;
    let (key, rest) = split_direct_push(rest)?;
    let are_usual = SIGNATURE_SIZES.contains(&signature.len()) && matches!(key.len(), 33 | 65) && rest.is_empty();
    if !are_usual || !spend.checker.hash160_is(key, key_hash) {
        return None;
    }
    accepted(spend.check_ecdsa(EcdsaVersion::Base, signature, key, script_pubkey))
}

/// Witness: a signature and a key.
fn p2wpkh<C: Checker>(spend: &mut Spend<'_, '_, C>, program: &[u8; 20], witness: &Witness<'_>) -> Option<()> {
    let mut elements = witness.iter();
    let (signature, key) = (elements.next()?, elements.next()?);
    let are_usual = witness.len() == 2 && signature.len() <= MAX_SCRIPT_ELEMENT_SIZE && matches!(key.len(), 33 | 65);
    if !are_usual || !to_bool(program) || !spend.checker.hash160_is(key, program) {
        return None;
    }
    accepted(spend.check_ecdsa(EcdsaVersion::WitnessV0, signature, key, &p2pkh_script(program)))
}

/// Witness: a signature alone, without annex.
fn p2tr_key_path<C: Checker>(spend: &mut Spend<'_, '_, C>, program: &[u8], witness: &Witness<'_>) -> Option<()> {
    if witness.len() != 1 || !to_bool(program) {
        return None;
    }
    let ext = TaprootExt { annex_hash: None, leaf: None };
    spend.check_schnorr(witness.iter().next()?, program.first_chunk()?, &ext).ok()
}

/// scriptSig: one push of a P2WPKH or P2WSH program, or the operands of a multisig followed by its redeem script.
fn p2sh<C: Checker>(
    spend: &mut Spend<'_, '_, C>,
    script_sig: &[u8],
    script_hash: &[u8; 20],
    witness: &Witness<'_>,
) -> Option<()> {
    let is_nested = matches!(*script_sig, [22, OP_0, 20, ..] | [34, OP_0, 32, ..]);
    if is_nested && spend.flags.contains(Flags::WITNESS) {
        let (redeem_script, rest) = split_direct_push(script_sig)?;
        let program = &redeem_script[2..];
        if !rest.is_empty() || !to_bool(program) || !spend.checker.hash160_is(redeem_script, script_hash) {
            return None;
        }
        return match program.as_array() {
            Some(program) => p2wpkh(spend, program, witness),
            None => p2wsh_multisig(spend, program, witness),
        };
    }
    is_witness_absent(witness)?;
    let last = ops(script_sig).last()?.ok()?;
    let redeem_script = last.push;
    let is_usual = redeem_script.len() <= MAX_SCRIPT_ELEMENT_SIZE && is_minimal_push(redeem_script, last.opcode);
    if last.opcode > OP_PUSHDATA4 || !is_usual || !spend.checker.hash160_is(redeem_script, script_hash) {
        return None;
    }
    let header_size = script_sig.len() - redeem_script.len();
    let operands_size = header_size - crate::find_and_delete::push_header(redeem_script.len()).1;
    script_sig_multisig(spend, &script_sig[..operands_size], redeem_script)
}

/// `OP_0` and the signatures, each pushed directly, for a legacy multisig.
fn script_sig_multisig<C: Checker>(spend: &mut Spend<'_, '_, C>, script_sig: &[u8], script: &[u8]) -> Option<()> {
    let multisig = Multisig::parse(script)?;
    let (&OP_0, mut rest) = script_sig.split_first()? else {
        return None;
    };
    let mut signatures = Few::new();
    while !rest.is_empty() {
        let (signature, after) = split_direct_push(rest)?;
        if !SIGNATURE_SIZES.contains(&signature.len()) {
            return None;
        }
        signatures.push(signature)?;
        rest = after;
    }
    multisig.check(spend, EcdsaVersion::Base, &signatures, script)
}

/// Witness: an empty element, the signatures, and the multisig script whose SHA-256 is the program.
fn p2wsh_multisig<C: Checker>(spend: &mut Spend<'_, '_, C>, program: &[u8], witness: &Witness<'_>) -> Option<()> {
    let script = witness.iter().last()?;
    let multisig = Multisig::parse(script)?;
    let mut operands = witness.iter().take(witness.len() - 1);
    let mut signatures = Few::new();
    let is_dummy_empty = operands.next()?.is_empty();
    for signature in operands {
        if signature.len() > MAX_SCRIPT_ELEMENT_SIZE {
            return None;
        }
        signatures.push(signature)?;
    }
    if !is_dummy_empty || !to_bool(program) || sha256(script) != *program {
        return None;
    }
    multisig.check(spend, EcdsaVersion::WitnessV0, &signatures, script)
}

fn accepted<E>(holds: Result<bool, E>) -> Option<()> {
    holds.is_ok_and(|holds| holds).then_some(())
}

/// Splits off the data of a direct push (1 to 75 bytes) and returns them and the rest.
fn split_direct_push(script: &[u8]) -> Option<(&[u8], &[u8])> {
    match *script {
        [size @ 1..=75, ref rest @ ..] => rest.split_at_checked(usize::from(size)),
        _ => None,
    }
}

/// `m KEYS n CHECKMULTISIG` with 1 <= m <= n <= 16 and keys of 33 or 65 bytes, pushed directly.
struct Multisig<'a> {
    required: usize,
    keys: Few<'a>,
}

impl<'a> Multisig<'a> {
    fn parse(script: &'a [u8]) -> Option<Multisig<'a>> {
        let &[required @ OP_1..=OP_16, ref pushes @ .., total @ OP_1..=OP_16, OP_CHECKMULTISIG] = script else {
            return None;
        };
        let mut keys = Few::new();
        let mut rest = pushes;
        while !rest.is_empty() {
            let (key, after) = split_direct_push(rest)?;
            if !matches!(key.len(), 33 | 65) {
                return None;
            }
            keys.push(key)?;
            rest = after;
        }
        let number = |opcode: u8| usize::from(opcode - (OP_1 - 1));
        let multisig = Multisig { required: number(required), keys };
        (multisig.keys.count == number(total) && multisig.required <= number(total)).then_some(multisig)
    }

    fn check<C: Checker>(
        &self,
        spend: &mut Spend<'_, '_, C>,
        version: EcdsaVersion,
        signatures: &Few<'_>,
        script: &[u8],
    ) -> Option<()> {
        if signatures.count != self.required {
            return None;
        }
        accepted(spend.check_multisig(version, signatures.as_slice(), self.keys.as_slice(), script))
    }
}

/// Up to 16 elements, stored inline.
struct Few<'a> {
    elements: [Element<'a>; MULTISIG_KEYS_MAX],
    count: usize,
}

impl<'a> Few<'a> {
    fn new() -> Few<'a> {
        Few { elements: [Element::FALSE; MULTISIG_KEYS_MAX], count: 0 }
    }

    fn push(&mut self, element: &'a [u8]) -> Option<()> {
        *self.elements.get_mut(self.count)? = Element::Slice(element);
        self.count += 1;
        Some(())
    }

    fn as_slice(&self) -> &[Element<'a>] {
        &self.elements[..self.count]
    }
}
