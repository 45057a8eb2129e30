//! Random programs that run for long: each operation is chosen among those whose operands are available.
//!
//! Input: choices. Output: a script with its arguments. Invariant: the model tracks the height of the stack and which
//! elements are small numbers; if it is wrong, the script merely fails earlier. Must never decide what a script means:
//! the judge does.

use super::keys::{KEY_COUNT, KeyForm, KeyPlan};
use super::plan::{Plan, Wrap};
use super::random::Random;
use super::signature::SigPlan;
use super::templates::{annex, any_wrap, schnorr, signature};
use super::token::{PushBy, Token};
use lydian_script::opcodes::*;

/// What the model knows about an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    Known(i64),
    /// At most four bytes, minimal unless overflowed.
    Number,
    Bytes,
}

/// A script under construction, and the stack at its end.
struct Model<'r> {
    random: &'r mut Random,
    stack: Vec<Slot>,
    alt: usize,
    script: Vec<Token>,
    separators: u8,
    is_tapscript: bool,
    depth: usize,
}

/// Fills script, arguments and wrap of a plan.
pub(super) fn random_program(random: &mut Random, plan: &mut Plan) {
    plan.wrap = any_wrap(random);
    plan.annex = if matches!(plan.wrap, Wrap::TaprootLeaf(_)) { annex(random) } else { None };
    let is_tapscript = matches!(plan.wrap, Wrap::TaprootLeaf(_));
    let mut model =
        Model { random, stack: Vec::new(), alt: 0, script: Vec::new(), separators: 0, is_tapscript, depth: 0 };
    for _ in 0..model.random.below(5) {
        let (token, slot) = model.constant();
        plan.args.push(token);
        model.stack.push(slot);
    }
    let steps = if model.random.chance(90) { 3 + model.random.below(40) } else { 60 + model.random.below(200) };
    for _ in 0..steps {
        model.step();
    }
    model.finish();
    plan.script = model.script;
}

impl Model<'_> {
    fn op(&mut self, opcode: u8) {
        self.script.push(Token::Op(opcode));
    }

    fn push(&mut self, value: i64) {
        self.script.push(Token::number(value));
        self.stack.push(Slot::Known(value));
    }

    /// Removes `count` elements and adds `slots`.
    fn effect(&mut self, count: usize, slots: &[Slot]) {
        self.stack.truncate(self.stack.len().saturating_sub(count));
        self.stack.extend_from_slice(slots);
    }

    fn slot(&self, depth: usize) -> Option<Slot> {
        self.stack.len().checked_sub(depth + 1).map(|at| self.stack[at])
    }

    fn are_numbers(&self, count: usize) -> bool {
        (0..count).all(|depth| matches!(self.slot(depth), Some(Slot::Known(_) | Slot::Number)))
    }

    /// Returns a constant to push.
    fn constant(&mut self) -> (Token, Slot) {
        match self.random.below(10) {
            0..5 => {
                let value = i64::from(self.random.byte()) - 100;
                (Token::number(value), Slot::Known(value))
            }
            5 => {
                let value = i64::from(self.random.u32() >> 1);
                (Token::number(value), Slot::Number)
            }
            6 => (
                Token::Push(self.random.pick(&[&[0][..], &[0x80], &[1, 0], &[]]).to_vec(), PushBy::Length),
                Slot::Number,
            ),
            7 => {
                let size = self.random.pick(&[5, 20, 32, 33, 75, 76, 255, 256, 520]);
                (Token::push(&self.random.bytes(size)), Slot::Bytes)
            }
            8 => (Token::Key(KeyPlan { key: self.random.byte() % KEY_COUNT, form: self.key_form() }), Slot::Bytes),
            _ => (Token::Op(OP_1), Slot::Known(1)),
        }
    }

    fn key_form(&self) -> KeyForm {
        if self.is_tapscript { KeyForm::XOnly } else { KeyForm::Compressed }
    }

    /// Adds one operation, or several that belong together.
    fn step(&mut self) {
        match self.random.below(40) {
            0..8 => {
                let (token, slot) = self.constant();
                self.script.push(token);
                self.stack.push(slot);
            }
            8..17 => self.shuffle(),
            17..25 => self.arithmetic(),
            25..28 => self.hash(),
            28..30 => self.compare(),
            30..33 => self.condition(),
            33..36 => self.check_signature(),
            36 => self.verify(),
            37 => self.no_operation(),
            38 => {
                self.op(OP_CODESEPARATOR);
                self.separators = self.separators.saturating_add(1);
            }
            _ if self.random.chance(15) => {
                let opcode = self.random.byte();
                self.op(opcode);
            }
            _ => {}
        }
    }

    /// Moves or copies elements.
    fn shuffle(&mut self) {
        let known = |depth: usize| self.slot(depth).unwrap_or(Slot::Bytes);
        let (a, b, c, d) = (known(0), known(1), known(2), known(3));
        let (e, f) = (known(4), known(5));
        let height = self.stack.len();
        let (opcode, needs, takes, leaves): (u8, usize, usize, Vec<Slot>) = match self.random.below(20) {
            0 | 1 => (OP_DUP, 1, 0, vec![a]),
            2 => (OP_OVER, 2, 0, vec![b]),
            3 => (OP_SWAP, 2, 2, vec![a, b]),
            4 => (OP_ROT, 3, 3, vec![b, a, c]),
            5 => (OP_TUCK, 2, 2, vec![a, b, a]),
            6 => (OP_NIP, 2, 2, vec![a]),
            7 => (OP_DROP, 1, 1, vec![]),
            8 => (OP_2DUP, 2, 0, vec![b, a]),
            9 => (OP_3DUP, 3, 0, vec![c, b, a]),
            10 => (OP_2OVER, 4, 0, vec![d, c]),
            11 => (OP_2ROT, 6, 6, vec![d, c, b, a, f, e]),
            12 => (OP_2SWAP, 4, 4, vec![b, a, d, c]),
            13 => (OP_2DROP, 2, 2, vec![]),
            14 => (OP_DEPTH, 0, 0, vec![Slot::Known(i64::try_from(height).unwrap_or_default())]),
            15 => (OP_SIZE, 1, 0, vec![Slot::Number]),
            16 => match a {
                Slot::Known(0) => (OP_IFDUP, 1, 0, vec![]),
                Slot::Known(_) => (OP_IFDUP, 1, 0, vec![a]),
                _ => return,
            },
            17 if height > 0 => return self.pick_or_roll(),
            18 if height > 0 => {
                self.alt += 1;
                (OP_TOALTSTACK, 1, 1, vec![])
            }
            19 if self.alt > 0 => {
                self.alt -= 1;
                (OP_FROMALTSTACK, 0, 0, vec![Slot::Bytes])
            }
            _ => return,
        };
        if height >= needs {
            self.op(opcode);
            self.effect(takes, &leaves);
        }
    }

    fn pick_or_roll(&mut self) {
        let depth = self.random.below(self.stack.len());
        let slot = self.slot(depth).unwrap_or(Slot::Bytes);
        self.script.push(Token::number(i64::try_from(depth).unwrap_or_default()));
        if self.random.chance(50) {
            self.op(OP_PICK);
        } else {
            self.op(OP_ROLL);
            let at = self.stack.len() - depth - 1;
            self.stack.remove(at);
        }
        self.stack.push(slot);
    }

    fn arithmetic(&mut self) {
        let count = 1 + self.random.below(3);
        while !self.are_numbers(count) {
            let value = i64::from(self.random.byte()) - 128;
            self.push(value);
        }
        const UNARY: [u8; 6] = [OP_1ADD, OP_1SUB, OP_NEGATE, OP_ABS, OP_NOT, OP_0NOTEQUAL];
        const BINARY: [u8; 12] = [
            OP_ADD,
            OP_SUB,
            OP_BOOLAND,
            OP_BOOLOR,
            OP_NUMEQUAL,
            OP_NUMNOTEQUAL,
            OP_LESSTHAN,
            OP_GREATERTHAN,
            OP_LESSTHANOREQUAL,
            OP_GREATERTHANOREQUAL,
            OP_MIN,
            OP_MAX,
        ];
        let opcode = match count {
            1 => self.random.pick(&UNARY),
            2 => self.random.pick(&BINARY),
            _ => OP_WITHIN,
        };
        self.op(opcode);
        self.effect(count, &[Slot::Number]);
    }

    fn hash(&mut self) {
        if !self.stack.is_empty() {
            let opcode = self.random.pick(&[OP_RIPEMD160, OP_SHA1, OP_SHA256, OP_HASH160, OP_HASH256]);
            self.op(opcode);
            self.effect(1, &[Slot::Bytes]);
        }
    }

    fn compare(&mut self) {
        if self.stack.is_empty() {
            return;
        }
        if self.random.chance(50) {
            self.op(OP_DUP);
            self.op(OP_DUP);
            self.op(OP_EQUALVERIFY);
            self.effect(1, &[]);
        } else if self.stack.len() > 1 {
            self.op(OP_EQUAL);
            self.effect(2, &[Slot::Number]);
        }
    }

    fn verify(&mut self) {
        match self.slot(0) {
            Some(Slot::Known(value)) if value != 0 => {
                self.op(OP_VERIFY);
                self.effect(1, &[]);
            }
            _ => {
                let value = i64::from(self.random.byte());
                self.script.extend([Token::number(value), Token::number(value), Token::Op(OP_NUMEQUALVERIFY)]);
            }
        }
    }

    fn no_operation(&mut self) {
        let opcode =
            self.random.pick(&[OP_NOP, OP_NOP1, OP_NOP4, OP_NOP10, OP_CHECKLOCKTIMEVERIFY, OP_CHECKSEQUENCEVERIFY]);
        if matches!(opcode, OP_CHECKLOCKTIMEVERIFY | OP_CHECKSEQUENCEVERIFY) {
            self.script.extend([Token::number(0), Token::Op(opcode), Token::Op(OP_DROP)]);
        } else {
            self.op(opcode);
        }
    }

    /// `c IF .. ELSE .. ENDIF`: the model continues in the branch that is taken; the other branch contains anything.
    fn condition(&mut self) {
        if self.depth > 4 {
            return;
        }
        self.depth += 1;
        let value = self.random.chance(50);
        let is_negated = self.random.chance(50);
        self.script
            .extend([Token::Op(OP_0 + u8::from(value) * OP_1), Token::Op(if is_negated { OP_NOTIF } else { OP_IF })]);
        let first_is_taken = value != is_negated;
        for taken in [first_is_taken, !first_is_taken] {
            if taken {
                for _ in 0..self.random.below(5) {
                    self.step();
                }
            } else {
                self.dead_code();
            }
            if taken == first_is_taken {
                if !taken && self.random.chance(20) {
                    break;
                }
                self.op(OP_ELSE);
            }
        }
        self.op(OP_ENDIF);
        self.depth -= 1;
    }

    /// Code that is not executed. It usually avoids operations that fail or count even there.
    fn dead_code(&mut self) {
        for _ in 0..self.random.below(5) {
            let opcode = self.random.byte();
            let is_dangerous = opcode < OP_1NEGATE
                || matches!(opcode, OP_IF | OP_NOTIF | OP_VERIF | OP_VERNOTIF | OP_ELSE | OP_ENDIF)
                || is_disabled(opcode)
                || (self.is_tapscript && is_op_success(opcode));
            if !is_dangerous || self.random.chance(2) {
                self.op(opcode);
            }
        }
    }

    fn check_signature(&mut self) {
        let key = self.random.byte() % KEY_COUNT;
        let made = if self.is_tapscript { schnorr(self.random, key) } else { signature(self.random, key) };
        let Token::Signature(made) = made else { return };
        let is_empty = self.random.chance(15);
        let token = |made| if is_empty { Token::Op(OP_0) } else { Token::Signature(made) };
        // In a script only FindAndDelete makes such a signature valid; in tapscript an empty one does not abort.
        let made = token(SigPlan { separators: self.separators, ..made });
        let key = Token::Key(KeyPlan { key, form: self.key_form() });
        match self.random.below(4) {
            0 if self.is_tapscript => {
                let number = Token::number(i64::from(self.random.byte()));
                self.script.extend([Token::Op(OP_0), number, key, Token::Op(OP_CHECKSIGADD)]);
                self.stack.push(Slot::Number);
            }
            1 if !self.is_tapscript => {
                self.script.extend([Token::Op(OP_0), made, Token::Op(OP_1), key, Token::Op(OP_1)]);
                self.op(OP_CHECKMULTISIG);
                self.stack.push(Slot::Number);
            }
            2 if !self.is_tapscript => {
                self.script.extend([OP_0, OP_0, OP_0, OP_CHECKMULTISIG].map(Token::Op));
                self.stack.push(Slot::Known(1));
            }
            _ => {
                let made = if self.is_tapscript { Token::Op(OP_0) } else { made };
                self.script.extend([made, key, Token::Op(OP_CHECKSIG)]);
                self.stack.push(Slot::Number);
            }
        }
    }

    /// Mostly leaves one true element.
    fn finish(&mut self) {
        if self.random.chance(60) {
            while self.stack.len() > 1 {
                self.op(OP_2DROP);
                self.effect(2, &[]);
            }
            if self.stack.len() == 1 {
                self.op(OP_DROP);
            }
        }
        if self.random.chance(80) {
            self.op(OP_1);
        }
    }
}
