//! Verifies that an input may spend its output: Core's `VerifyScript` (script/interpreter.cpp), with P2SH, witness
//! programs and taproot.
//!
//! Input: a transaction with the outputs it spends, the input's index, flags. Output: `Ok`, or the first broken rule in
//! Core's order. One interpreter has two modes: exact ([`verify_input`]) decides; capture ([`capture_input`]) can only
//! prove that the input is valid. Cost besides signatures and hashes: one or two small allocations per input.

use crate::checker::{Capture, CheckCounts, Checker, Counting, Inline};
use crate::error::ScriptError;
use crate::flags::Flags;
use crate::interpreter::{Tapscript, Version, evaluate};
use crate::iter::ops;
use crate::limits::{MAX_SCRIPT_ELEMENT_SIZE, MAX_STACK_SIZE, TAPROOT_CONTROL_MAX_NODE_COUNT};
use crate::obligations::Obligations;
use crate::opcodes::*;
use crate::pattern::{WitnessProgram, is_p2sh, is_push_only, witness_program};
use crate::sighash::{
    LegacyCache, TaprootExt, TxContext, compute_annex_hash, compute_tapleaf_hash, compute_taproot_merkle_root,
};
use crate::spend::{EcdsaVersion, Spend};
use crate::stack::{Element, Stack};
use crate::templates;
use lydian_curve::Engine;
use lydian_hash::{TAP_TWEAK, sha256};
use lydian_primitives::Witness;

/// First byte of an annex (BIP-0341).
const ANNEX_TAG: u8 = 0x50;
/// The bits of a control block's first byte that hold the leaf version; the remaining bit is the parity of the output
/// key.
const TAPROOT_LEAF_MASK: u8 = 0xfe;
/// The leaf version of tapscript (BIP-0342).
const TAPROOT_LEAF_TAPSCRIPT: u8 = 0xc0;
/// Size of a control block before the path.
const TAPROOT_CONTROL_BASE_SIZE: usize = 33;
const TAPROOT_CONTROL_NODE_SIZE: usize = 32;
/// Weight that signatures of a tapscript may use in addition to the size of its witness.
const VALIDATION_WEIGHT_OFFSET: i64 = 50;

/// An input MUST satisfy the script of the output it spends. Decides with libsecp256k1.
///
/// Panics if there is no such input, or if Core does not accept the combination of flags ([`Flags::is_legal`]).
pub fn verify_input(context: &TxContext<'_>, input: usize, flags: Flags) -> Result<(), ScriptError> {
    verify_input_with(context, input, flags, &mut LegacyCache::new())
}

/// [`verify_input`] with a cache that is kept for all inputs of a transaction.
pub fn verify_input_with(
    context: &TxContext<'_>,
    input: usize,
    flags: Flags,
    legacy_cache: &mut LegacyCache,
) -> Result<(), ScriptError> {
    let scripts = Scripts::of_input(context, input);
    Spend::new(context, input, flags, &mut Inline, legacy_cache).verify(&scripts)
}

/// [`verify_input_with`] that also counts the signature and tweak checks made, with keys tried in Core's order.
pub fn verify_input_counting(
    context: &TxContext<'_>,
    input: usize,
    flags: Flags,
    legacy_cache: &mut LegacyCache,
    counts: &mut CheckCounts,
) -> Result<(), ScriptError> {
    let scripts = Scripts::of_input(context, input);
    Spend::new(context, input, flags, &mut Counting(counts), legacy_cache).verify(&scripts)
}

/// The result of a capture run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Captured {
    /// The input is valid if the obligations recorded for it hold.
    Accepted,
    /// Nothing was proven and nothing recorded: exact mode must decide.
    Exact,
}

/// Runs the input's scripts, assuming that all signatures hold, and records their checks as obligations.
///
/// Panics like [`verify_input`].
pub fn capture_input(context: &TxContext<'_>, input: usize, flags: Flags, obligations: &mut Obligations) -> Captured {
    capture_with(context, input, flags, obligations, |spend, scripts| {
        let mark = spend.checker.mark();
        if templates::recognise(spend, scripts).is_some() {
            return Ok(());
        }
        spend.checker.fall_back(mark);
        spend.verify(scripts)
    })
}

/// [`capture_input`] without the templates: the interpreter alone, for comparison.
pub fn capture_input_interpreted(
    context: &TxContext<'_>,
    input: usize,
    flags: Flags,
    obligations: &mut Obligations,
) -> Captured {
    capture_with(context, input, flags, obligations, |spend, scripts| spend.verify(scripts))
}

fn capture_with<'a>(
    context: &TxContext<'a>,
    input: usize,
    flags: Flags,
    obligations: &mut Obligations,
    run: impl FnOnce(&mut Spend<'_, 'a, Capture<'_>>, &Scripts<'a>) -> Result<(), ScriptError>,
) -> Captured {
    let Obligations { lists, legacy_cache } = obligations;
    let mark = lists.mark();
    let scripts = Scripts::of_input(context, input);
    let outcome = run(&mut Spend::new(context, input, flags, &mut Capture::new(lists), legacy_cache), &scripts);
    match outcome {
        Ok(()) => {
            lists.finish_input();
            Captured::Accepted
        }
        Err(_) => {
            lists.fall_back(mark);
            Captured::Exact
        }
    }
}

/// Verifies one input in all stages: captures it, settles it with `engine`, and verifies it exactly if that proved
/// nothing. Gives the same result as [`verify_input`] with any engine that accepts no check that does not hold.
pub fn verify_input_by_capture(
    context: &TxContext<'_>,
    input: usize,
    flags: Flags,
    engine: &dyn Engine,
) -> Result<(), ScriptError> {
    let mut obligations = Obligations::new();
    let captured = capture_input(context, input, flags, &mut obligations);
    if captured == Captured::Accepted && obligations.settle(engine) == [true] {
        return Ok(());
    }
    verify_input(context, input, flags)
}

/// The scripts and the witness of one input.
#[derive(Clone, Copy, Debug)]
pub struct Scripts<'a> {
    pub script_sig: &'a [u8],
    pub script_pubkey: &'a [u8],
    pub witness: Witness<'a>,
}

impl<'a> Scripts<'a> {
    pub fn of_input(context: &TxContext<'a>, input: usize) -> Scripts<'a> {
        let (tx_input, spent) = (context.tx().input(input), context.spent(input));
        Scripts { script_sig: tx_input.script_sig, script_pubkey: spent.script_pubkey, witness: tx_input.witness }
    }
}

/// Core's `VerifyScript` for any scripts and any checker. Signatures hash the context's input.
///
/// Panics like [`verify_input`].
pub fn verify_script<'a, C: Checker>(
    scripts: &Scripts<'a>,
    flags: Flags,
    context: &TxContext<'a>,
    input: usize,
    checker: &mut C,
) -> Result<(), ScriptError> {
    verify_script_with(scripts, flags, context, input, checker, &mut LegacyCache::new())
}

/// [`verify_script`] with a cache that is kept for all inputs of a transaction.
pub fn verify_script_with<'a, C: Checker>(
    scripts: &Scripts<'a>,
    flags: Flags,
    context: &TxContext<'a>,
    input: usize,
    checker: &mut C,
    legacy_cache: &mut LegacyCache,
) -> Result<(), ScriptError> {
    Spend::new(context, input, flags, checker, legacy_cache).verify(scripts)
}

impl<'s, 'a, C: Checker> Spend<'s, 'a, C> {
    pub(crate) fn new(
        context: &'s TxContext<'a>,
        input: usize,
        flags: Flags,
        checker: &'s mut C,
        legacy_cache: &'s mut LegacyCache,
    ) -> Spend<'s, 'a, C> {
        assert!(flags.is_legal(), "illegal flag combination: {flags}");
        Spend { context, input, flags, checker, legacy_cache }
    }

    pub(crate) fn verify<'v>(&mut self, scripts: &Scripts<'v>) -> Result<(), ScriptError> {
        let Scripts { script_sig, script_pubkey, witness } = *scripts;
        if self.flags.contains(Flags::SIGPUSHONLY) && !is_push_only(script_sig) {
            return Err(ScriptError::SigPushOnly);
        }
        let is_p2sh = self.flags.contains(Flags::P2SH) && is_p2sh(script_pubkey);
        let mut stack = Stack::new();
        self.evaluate_base(&mut stack, script_sig)?;
        let before = is_p2sh.then(|| stack.clone());
        self.evaluate_base(&mut stack, script_pubkey)?;
        if !stack.top_is_true() {
            return Err(ScriptError::EvalFalse);
        }
        let mut had_witness = false;
        if let Some(program) = self.program_of(script_pubkey) {
            had_witness = true;
            if !script_sig.is_empty() {
                return Err(ScriptError::WitnessMalleated);
            }
            self.verify_witness_program(&witness, program, false)?;
            stack.keep_first();
        }
        if let Some(before) = before {
            stack = before;
            had_witness |= self.verify_p2sh(&mut stack, script_sig, &witness)?;
        }
        if self.flags.contains(Flags::CLEANSTACK) && stack.len() != 1 {
            return Err(ScriptError::CleanStack);
        }
        if self.flags.contains(Flags::WITNESS) && !had_witness && !witness.is_empty() {
            return Err(ScriptError::WitnessUnexpected);
        }
        Ok(())
    }

    fn evaluate_base<'v>(&mut self, stack: &mut Stack<'v>, script: &'v [u8]) -> Result<(), ScriptError> {
        evaluate(self, stack, script, Version::Ecdsa(EcdsaVersion::Base))
    }

    fn program_of<'v>(&self, script: &'v [u8]) -> Option<WitnessProgram<'v>> {
        if self.flags.contains(Flags::WITNESS) { witness_program(script) } else { None }
    }

    /// The redeem script on top of `stack` MUST succeed on the elements below it, and scriptSig MUST only push
    /// (BIP-0016). Returns whether it was a witness program.
    fn verify_p2sh<'v>(
        &mut self,
        stack: &mut Stack<'v>,
        script_sig: &'v [u8],
        witness: &Witness<'v>,
    ) -> Result<bool, ScriptError> {
        if !is_push_only(script_sig) {
            return Err(ScriptError::SigPushOnly);
        }
        // Pushed elements are slices, so the only possible error is that of an empty stack.
        let redeem_script = stack.pop()?.as_slice().ok_or(ScriptError::InvalidStackOperation)?;
        self.evaluate_base(stack, redeem_script)?;
        if !stack.top_is_true() {
            return Err(ScriptError::EvalFalse);
        }
        let Some(program) = self.program_of(redeem_script) else {
            return Ok(false);
        };
        // A witness program script has at most 42 bytes, so its push is one length byte and the script.
        if script_sig.len() != redeem_script.len() + 1 || usize::from(script_sig[0]) != redeem_script.len() {
            return Err(ScriptError::WitnessMalleatedP2sh);
        }
        self.verify_witness_program(witness, program, true)?;
        stack.keep_first();
        Ok(true)
    }

    /// Core's `VerifyWitnessProgram` (BIP-0141, BIP-0341).
    fn verify_witness_program<'v>(
        &mut self,
        witness: &Witness<'v>,
        program: WitnessProgram<'v>,
        is_p2sh: bool,
    ) -> Result<(), ScriptError> {
        match (program.version, program.program.len()) {
            (0, 32) => self.verify_p2wsh(witness, program.program),
            (0, 20) => self.verify_p2wpkh(witness, program.program),
            (0, _) => Err(ScriptError::WitnessProgramWrongLength),
            (1, 32) if !is_p2sh => match program.program.first_chunk() {
                Some(output_key) if self.flags.contains(Flags::TAPROOT) => self.verify_taproot(witness, output_key),
                _ => Ok(()),
            },
            _ if !is_p2sh && program.is_pay_to_anchor() => Ok(()),
            _ if self.flags.contains(Flags::DISCOURAGE_UPGRADABLE_WITNESS_PROGRAM) => {
                Err(ScriptError::DiscourageUpgradableWitnessProgram)
            }
            _ => Ok(()),
        }
    }

    /// The last element is the script; its SHA-256 is the program.
    fn verify_p2wsh<'v>(&mut self, witness: &Witness<'v>, program: &[u8]) -> Result<(), ScriptError> {
        let mut stack = Stack::from_slices(witness.iter());
        let script = pop_slice(&mut stack).ok_or(ScriptError::WitnessProgramWitnessEmpty)?;
        if sha256(script) != *program {
            return Err(ScriptError::WitnessProgramMismatch);
        }
        self.execute_witness_script(stack, script, Version::Ecdsa(EcdsaVersion::WitnessV0))
    }

    /// A signature and a key, for the corresponding P2PKH script.
    fn verify_p2wpkh(&mut self, witness: &Witness<'_>, program: &[u8]) -> Result<(), ScriptError> {
        if witness.len() != 2 {
            return Err(ScriptError::WitnessProgramMismatch);
        }
        let script = p2pkh_script(program);
        let stack = Stack::from_slices(witness.iter());
        self.execute_witness_script(stack, &script, Version::Ecdsa(EcdsaVersion::WitnessV0))
    }

    /// A single element besides the annex is a signature for the output key. With more, the last two are a script and
    /// the control block that proves that the key commits to the script (BIP-0341).
    fn verify_taproot(&mut self, witness: &Witness<'_>, output_key: &[u8; 32]) -> Result<(), ScriptError> {
        let mut stack = Stack::from_slices(witness.iter());
        let annex_hash = pop_annex(&mut stack).map(compute_annex_hash);
        let last = pop_slice(&mut stack).ok_or(ScriptError::WitnessProgramWitnessEmpty)?;
        let Some(script) = pop_slice(&mut stack) else {
            return self.check_schnorr(last, output_key, &TaprootExt { annex_hash, leaf: None });
        };
        let control = ControlBlock::parse(last).ok_or(ScriptError::TaprootWrongControlSize)?;
        let leaf_hash = compute_tapleaf_hash(control.leaf_version, script);
        let merkle_root = compute_taproot_merkle_root(control.bytes, &leaf_hash);
        let tweak = TAP_TWEAK.hash(&[&control.internal_key, &merkle_root]);
        if !self.checker.tweak(*output_key, control.is_odd, control.internal_key, tweak) {
            return Err(ScriptError::WitnessProgramMismatch);
        }
        if control.leaf_version == TAPROOT_LEAF_TAPSCRIPT {
            let size = i64::try_from(witness.serialized_size()).unwrap_or(i64::MAX - VALIDATION_WEIGHT_OFFSET);
            let validation_weight_left = size + VALIDATION_WEIGHT_OFFSET;
            let tapscript = Tapscript { annex_hash, leaf_hash, validation_weight_left };
            return self.execute_witness_script(stack, script, Version::Tapscript(tapscript));
        }
        if self.flags.contains(Flags::DISCOURAGE_UPGRADABLE_TAPROOT_VERSION) {
            return Err(ScriptError::DiscourageUpgradableTaprootVersion);
        }
        Ok(())
    }

    /// Core's `ExecuteWitnessScript`: elements MUST NOT be above 520 bytes, and exactly one true element MUST be left,
    /// unless an `OP_SUCCESSx` of tapscript overrides everything.
    fn execute_witness_script<'v>(
        &mut self,
        mut stack: Stack<'v>,
        script: &'v [u8],
        version: Version,
    ) -> Result<(), ScriptError> {
        if matches!(version, Version::Tapscript(_)) {
            if has_op_success(script)? {
                let is_discouraged = self.flags.contains(Flags::DISCOURAGE_OP_SUCCESS);
                return if is_discouraged { Err(ScriptError::DiscourageOpSuccess) } else { Ok(()) };
            }
            if stack.len() > MAX_STACK_SIZE {
                return Err(ScriptError::StackSize);
            }
        }
        if stack.elements().iter().any(|element| element.as_bytes().len() > MAX_SCRIPT_ELEMENT_SIZE) {
            return Err(ScriptError::PushSize);
        }
        evaluate(self, &mut stack, script, version)?;
        if stack.len() != 1 {
            return Err(ScriptError::CleanStack);
        }
        if stack.top_is_true() { Ok(()) } else { Err(ScriptError::EvalFalse) }
    }
}

/// Whether there is an `OP_SUCCESSx` before the first push that is cut off. Without one, such a push is an error.
fn has_op_success(script: &[u8]) -> Result<bool, ScriptError> {
    for op in ops(script) {
        if is_op_success(op.map_err(|_| ScriptError::BadOpcode)?.opcode) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// `DUP HASH160 <20 bytes> EQUALVERIFY CHECKSIG`. `key_hash` must have 20 bytes.
pub(crate) fn p2pkh_script(key_hash: &[u8]) -> [u8; 25] {
    let mut script = [0; 25];
    script[..3].copy_from_slice(&[OP_DUP, OP_HASH160, 20]);
    script[3..23].copy_from_slice(key_hash);
    script[23..].copy_from_slice(&[OP_EQUALVERIFY, OP_CHECKSIG]);
    script
}

fn pop_slice<'v>(stack: &mut Stack<'v>) -> Option<&'v [u8]> {
    stack.pop().ok()?.as_slice()
}

/// Pops the annex: the last of at least two elements, if it begins with 0x50.
fn pop_annex<'v>(stack: &mut Stack<'v>) -> Option<&'v [u8]> {
    let is_annex = |element: &Element<'_>| element.as_bytes().first() == Some(&ANNEX_TAG);
    if stack.len() >= 2 && stack.elements().last().is_some_and(is_annex) { pop_slice(stack) } else { None }
}

/// A control block of valid size.
struct ControlBlock<'a> {
    bytes: &'a [u8],
    leaf_version: u8,
    is_odd: bool,
    internal_key: [u8; 32],
}

impl<'a> ControlBlock<'a> {
    /// Parses 33 bytes, and 32 for each of at most 128 nodes.
    fn parse(bytes: &'a [u8]) -> Option<ControlBlock<'a>> {
        let (&[first, ref internal_key @ ..], path) = bytes.split_first_chunk::<TAPROOT_CONTROL_BASE_SIZE>()?;
        let is_whole = path.len().is_multiple_of(TAPROOT_CONTROL_NODE_SIZE);
        if !is_whole || path.len() > TAPROOT_CONTROL_MAX_NODE_COUNT * TAPROOT_CONTROL_NODE_SIZE {
            return None;
        }
        Some(ControlBlock {
            bytes,
            leaf_version: first & TAPROOT_LEAF_MASK,
            is_odd: first & 1 != 0,
            internal_key: *internal_key,
        })
    }
}
