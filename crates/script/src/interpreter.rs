//! The interpreter: Core's `EvalScript` (script/interpreter.cpp), generic over the checker.
//!
//! Input: a stack, a script and the input being verified. Output: the stack after the script, or the first error.
//! Invariants: checks run in Core's order, which determines the error; pushed data are never copied. Cost: one pass
//! over the script; no allocation except to grow the stack. Must never check the final stack (`verify.rs` does).

use crate::checker::Checker;
use crate::error::ScriptError;
use crate::flags::Flags;
use crate::iter::{Op, ops};
use crate::limits::*;
use crate::num;
use crate::opcodes::*;
use crate::pattern::is_minimal_push;
use crate::spend::{EcdsaVersion, SEQUENCE_LOCKTIME_DISABLE_FLAG, Spend};
use crate::stack::{Element, Stack};
use lydian_hash::{hash160, ripemd160, sha1, sha256, sha256d};

/// The rules a script runs under (Core's `SigVersion`; a taproot key path runs no script).
#[derive(Debug)]
pub(crate) enum Version {
    Ecdsa(EcdsaVersion),
    Tapscript(Tapscript),
}

/// What tapscript's signatures need besides the transaction (Core's `ScriptExecutionData`).
#[derive(Debug)]
pub(crate) struct Tapscript {
    pub(crate) annex_hash: Option<[u8; 32]>,
    pub(crate) leaf_hash: [u8; 32],
    /// The remaining signature budget, in weight units.
    pub(crate) validation_weight_left: i64,
}

/// Runs `script` on `stack`.
pub(crate) fn evaluate<'s, C: Checker>(
    spend: &mut Spend<'_, '_, C>,
    stack: &mut Stack<'s>,
    script: &'s [u8],
    version: Version,
) -> Result<(), ScriptError> {
    if matches!(version, Version::Ecdsa(_)) && script.len() > MAX_SCRIPT_SIZE {
        return Err(ScriptError::ScriptSize);
    }
    let mut run = Run {
        require_minimal: spend.flags.contains(Flags::MINIMALDATA),
        spend,
        stack,
        alt_stack: Stack::empty(),
        conditions: Conditions::default(),
        op_count: 0,
        script,
        code_start: 0,
        code_separator: u32::MAX,
        version,
    };
    for (position, op) in (0..).zip(ops(script)) {
        run.step(&op.map_err(|_| ScriptError::BadOpcode)?, position)?;
    }
    if run.conditions.is_empty() { Ok(()) } else { Err(ScriptError::UnbalancedConditional) }
}

/// The state of a running script.
pub(crate) struct Run<'r, 's, 'x, 'a, C> {
    pub(crate) spend: &'r mut Spend<'x, 'a, C>,
    pub(crate) stack: &'r mut Stack<'s>,
    alt_stack: Stack<'s>,
    conditions: Conditions,
    pub(crate) op_count: usize,
    pub(crate) script: &'s [u8],
    /// Start of the script code of signatures: the byte after the last executed `OP_CODESEPARATOR`.
    pub(crate) code_start: usize,
    /// Index of that `OP_CODESEPARATOR` among the operations, counted from 0; 0xffffffff if none was executed.
    pub(crate) code_separator: u32,
    pub(crate) version: Version,
    pub(crate) require_minimal: bool,
}

impl<'s, C: Checker> Run<'_, 's, '_, '_, C> {
    /// Runs one operation, with all checks before and after it.
    #[inline]
    fn step(&mut self, op: &Op<'s>, position: u32) -> Result<(), ScriptError> {
        let executes = self.conditions.all_true();
        if op.push.len() > MAX_SCRIPT_ELEMENT_SIZE {
            return Err(ScriptError::PushSize);
        }
        self.check_opcode(op.opcode)?;
        if op.opcode <= OP_PUSHDATA4 {
            if executes {
                self.push_data(op)?;
            }
        } else if executes || (OP_IF..=OP_ENDIF).contains(&op.opcode) {
            self.execute(op, position, executes)?;
        }
        if self.stack.len() + self.alt_stack.len() > MAX_STACK_SIZE { Err(ScriptError::StackSize) } else { Ok(()) }
    }

    /// The checks that apply to an opcode whether or not it is executed.
    #[inline]
    fn check_opcode(&mut self, opcode: u8) -> Result<(), ScriptError> {
        if let Version::Ecdsa(version) = self.version {
            if opcode > OP_16 {
                self.op_count += 1;
                if self.op_count > MAX_OPS_PER_SCRIPT {
                    return Err(ScriptError::OpCount);
                }
            }
            if is_disabled(opcode) {
                return Err(ScriptError::DisabledOpcode);
            }
            let is_const = version == EcdsaVersion::Base && self.spend.flags.contains(Flags::CONST_SCRIPTCODE);
            if opcode == OP_CODESEPARATOR && is_const {
                return Err(ScriptError::OpCodeSeparator);
            }
            return Ok(());
        }
        if is_disabled(opcode) { Err(ScriptError::DisabledOpcode) } else { Ok(()) }
    }

    #[inline]
    fn push_data(&mut self, op: &Op<'s>) -> Result<(), ScriptError> {
        if self.require_minimal && !is_minimal_push(op.push, op.opcode) {
            return Err(ScriptError::MinimalData);
        }
        self.stack.push(Element::Slice(op.push));
        Ok(())
    }

    fn execute(&mut self, op: &Op<'s>, position: u32, executes: bool) -> Result<(), ScriptError> {
        let opcode = op.opcode;
        match opcode {
            OP_1NEGATE | OP_1..=OP_16 => self.stack.push(Element::from_number_opcode(opcode)),
            OP_NOP => {}
            OP_IF | OP_NOTIF => self.start_condition(opcode == OP_NOTIF, executes)?,
            OP_ELSE => self.conditions.toggle_top()?,
            OP_ENDIF => self.conditions.pop()?,
            OP_VERIFY => self.verify(ScriptError::Verify)?,
            OP_RETURN => return Err(ScriptError::OpReturn),
            OP_CHECKLOCKTIMEVERIFY => self.check_lock_time_verify()?,
            OP_CHECKSEQUENCEVERIFY => self.check_sequence_verify()?,
            OP_NOP1 | OP_NOP4..=OP_NOP10 => {
                if self.spend.flags.contains(Flags::DISCOURAGE_UPGRADABLE_NOPS) {
                    return Err(ScriptError::DiscourageUpgradableNops);
                }
            }
            OP_TOALTSTACK => self.alt_stack.push(self.stack.pop()?),
            OP_FROMALTSTACK => {
                let element = self.alt_stack.pop().map_err(|_| ScriptError::InvalidAltstackOperation)?;
                self.stack.push(element);
            }
            OP_2DROP..=OP_TUCK => self.stack.operate(opcode, self.require_minimal)?,
            OP_SIZE => self.stack.push_size(self.stack.peek(0)?.as_bytes().len()),
            OP_EQUAL | OP_EQUALVERIFY => self.equal(opcode == OP_EQUALVERIFY)?,
            OP_1ADD | OP_1SUB | OP_NEGATE..=OP_0NOTEQUAL => self.unary(opcode)?,
            OP_ADD | OP_SUB | OP_BOOLAND..=OP_MAX => self.binary(opcode)?,
            OP_WITHIN => self.within()?,
            OP_RIPEMD160..=OP_HASH256 => self.hash(opcode)?,
            OP_CODESEPARATOR => (self.code_start, self.code_separator) = (op.end, position),
            OP_CHECKSIG..=OP_CHECKMULTISIGVERIFY | OP_CHECKSIGADD => self.execute_signature_op(opcode)?,
            _ => return Err(ScriptError::BadOpcode),
        }
        Ok(())
    }

    /// Pops the top if it is true; otherwise fails with `error`.
    pub(crate) fn verify(&mut self, error: ScriptError) -> Result<(), ScriptError> {
        if self.stack.peek(0)?.to_bool() { self.stack.pop().map(drop) } else { Err(error) }
    }

    /// `OP_IF` and `OP_NOTIF`. Their argument MUST be empty or exactly 1 in tapscript, and in witness v0 under
    /// `MINIMALIF`.
    fn start_condition(&mut self, is_negated: bool, executes: bool) -> Result<(), ScriptError> {
        let mut value = false;
        if executes {
            let top = self.stack.pop()?;
            if !matches!(top.as_bytes(), [] | [1]) {
                match self.version {
                    Version::Tapscript(_) => return Err(ScriptError::TapscriptMinimalIf),
                    Version::Ecdsa(EcdsaVersion::WitnessV0) if self.spend.flags.contains(Flags::MINIMALIF) => {
                        return Err(ScriptError::MinimalIf);
                    }
                    Version::Ecdsa(_) => {}
                }
            }
            value = top.to_bool() != is_negated;
        }
        self.conditions.push(value);
        Ok(())
    }

    /// BIP-0065.
    fn check_lock_time_verify(&mut self) -> Result<(), ScriptError> {
        if !self.spend.flags.contains(Flags::CHECKLOCKTIMEVERIFY) {
            return Ok(());
        }
        let lock_time = self.peek_lock_time()?;
        if self.spend.check_lock_time(lock_time) { Ok(()) } else { Err(ScriptError::UnsatisfiedLockTime) }
    }

    /// BIP-0112. An operand with the disable flag set imposes no condition.
    fn check_sequence_verify(&mut self) -> Result<(), ScriptError> {
        if !self.spend.flags.contains(Flags::CHECKSEQUENCEVERIFY) {
            return Ok(());
        }
        let sequence = self.peek_lock_time()?;
        if sequence & SEQUENCE_LOCKTIME_DISABLE_FLAG != 0 || self.spend.check_sequence(sequence) {
            Ok(())
        } else {
            Err(ScriptError::UnsatisfiedLockTime)
        }
    }

    fn peek_lock_time(&self) -> Result<i64, ScriptError> {
        let top = self.stack.peek(0)?;
        let value = num::decode_sized(top.as_bytes(), self.require_minimal, LOCK_TIME_NUM_SIZE_MAX)?;
        if value < 0 { Err(ScriptError::NegativeLockTime) } else { Ok(value) }
    }

    fn equal(&mut self, verifies: bool) -> Result<(), ScriptError> {
        self.stack.require(2)?;
        let are_equal = self.stack.peek(1)?.as_bytes() == self.stack.peek(0)?.as_bytes();
        self.stack.drop_top(2);
        match (verifies, are_equal) {
            (false, _) => self.stack.push(Element::from_bool(are_equal)),
            (true, true) => {}
            (true, false) => return Err(ScriptError::EqualVerify),
        }
        Ok(())
    }

    /// Decodes the element `depth` places below the top as an operand.
    pub(crate) fn number(&self, depth: usize) -> Result<i64, ScriptError> {
        num::decode(self.stack.peek(depth)?.as_bytes(), self.require_minimal)
    }

    fn unary(&mut self, opcode: u8) -> Result<(), ScriptError> {
        let operand = self.number(0)?;
        self.stack.drop_top(1);
        let result = match opcode {
            OP_1ADD => operand + 1,
            OP_1SUB => operand - 1,
            OP_NEGATE => -operand,
            OP_ABS => operand.abs(),
            OP_NOT => i64::from(operand == 0),
            _ => i64::from(operand != 0),
        };
        self.stack.push(Element::from_number(result));
        Ok(())
    }

    fn binary(&mut self, opcode: u8) -> Result<(), ScriptError> {
        self.stack.require(2)?;
        let (a, b) = (self.number(1)?, self.number(0)?);
        self.stack.drop_top(2);
        let result = match opcode {
            OP_ADD => a + b,
            OP_SUB => a - b,
            OP_MIN => a.min(b),
            OP_MAX => a.max(b),
            OP_BOOLAND => i64::from(a != 0 && b != 0),
            OP_BOOLOR => i64::from(a != 0 || b != 0),
            OP_NUMNOTEQUAL => i64::from(a != b),
            OP_LESSTHAN => i64::from(a < b),
            OP_GREATERTHAN => i64::from(a > b),
            OP_LESSTHANOREQUAL => i64::from(a <= b),
            OP_GREATERTHANOREQUAL => i64::from(a >= b),
            // OP_NUMEQUAL, OP_NUMEQUALVERIFY
            _ => i64::from(a == b),
        };
        self.stack.push(Element::from_number(result));
        if opcode == OP_NUMEQUALVERIFY { self.verify(ScriptError::NumEqualVerify) } else { Ok(()) }
    }

    fn within(&mut self) -> Result<(), ScriptError> {
        self.stack.require(3)?;
        let (value, min, max) = (self.number(2)?, self.number(1)?, self.number(0)?);
        self.stack.drop_top(3);
        self.stack.push(Element::from_bool((min..max).contains(&value)));
        Ok(())
    }

    fn hash(&mut self, opcode: u8) -> Result<(), ScriptError> {
        let top = self.stack.pop()?;
        let bytes = top.as_bytes();
        self.stack.push(match opcode {
            OP_RIPEMD160 => Element::from_hash(ripemd160(bytes)),
            OP_SHA1 => Element::from_hash(sha1(bytes)),
            OP_SHA256 => Element::from_hash(sha256(bytes)),
            OP_HASH160 => Element::from_hash(hash160(bytes)),
            _ => Element::from_hash(sha256d(bytes)),
        });
        Ok(())
    }
}

/// The nested conditions, like Core's `ConditionStack`: only their number and the position of the first false one
/// matter.
#[derive(Debug, Default)]
struct Conditions {
    count: usize,
    first_false: Option<usize>,
}

impl Conditions {
    fn is_empty(&self) -> bool {
        self.count == 0
    }

    #[inline]
    fn all_true(&self) -> bool {
        self.first_false.is_none()
    }

    fn push(&mut self, value: bool) {
        if self.all_true() && !value {
            self.first_false = Some(self.count);
        }
        self.count += 1;
    }

    fn top(&self) -> Result<usize, ScriptError> {
        self.count.checked_sub(1).ok_or(ScriptError::UnbalancedConditional)
    }

    fn pop(&mut self) -> Result<(), ScriptError> {
        self.count = self.top()?;
        if self.first_false == Some(self.count) {
            self.first_false = None;
        }
        Ok(())
    }

    fn toggle_top(&mut self) -> Result<(), ScriptError> {
        let top = self.top()?;
        match self.first_false {
            None => self.first_false = Some(top),
            Some(first) if first == top => self.first_false = None,
            // A condition inside a false one has no effect, whatever its value.
            Some(_) => {}
        }
        Ok(())
    }
}
