//! Turns a foreign spend into a plan: its keys are replaced with ours, so that it can be signed again after a change.
//!
//! Input: a case, such as a published vector. Output: a plan of the same form. Whatever looks like a key, the hash of a
//! key, or a signature is replaced; the i-th signature gets the i-th key, as in multisig. Must never be treated as the
//! same spend: only its form is kept.

use super::keys::{KEY_COUNT, KeyForm, KeyPlan};
use super::plan::{Case, Leaf, Plan, Wrap};
use super::signature::{Shape, SigPlan};
use super::token::{Token, parse};
use lydian_hash::hash160;
use lydian_script::{WitnessProgram, is_p2sh, witness_program};

/// Returns the plan of a case.
pub fn adopt(case: &Case) -> Option<Plan> {
    let (input, spent) = (case.tx.inputs.get(case.index)?, case.spent.get(case.index)?);
    let mut args = parse(&input.script_sig);
    let mut program_script = spent.script_pubkey.clone();
    let is_p2sh = is_p2sh(&spent.script_pubkey);
    if is_p2sh {
        program_script = args.pop().and_then(|token| token.element())?;
    }
    let mut plan = Plan {
        name: case.name,
        script: Vec::new(),
        args: Vec::new(),
        wrap: if is_p2sh { Wrap::P2sh } else { Wrap::Bare },
        annex: None,
        tx: case.tx.clone(),
        spent: case.spent.clone(),
        index: case.index,
        flags: case.flags,
    };
    match witness_program(&program_script) {
        Some(program) => adopt_witness(&mut plan, program, &input.witness, is_p2sh),
        None => (plan.script, plan.args) = (parse(&program_script), args),
    }
    Renaming::default().rename(&mut plan);
    Some(plan)
}

fn adopt_witness(plan: &mut Plan, program: WitnessProgram<'_>, witness: &[Vec<u8>], is_p2sh: bool) {
    let mut elements = witness.to_vec();
    match (program.version, program.program.len()) {
        (0, 20) => {
            plan.wrap = if is_p2sh { Wrap::P2shP2wpkh } else { Wrap::P2wpkh };
            plan.script = parse(&[&[0x76, 0xa9, 0x14], program.program, &[0x88, 0xac]].concat());
        }
        (0, 32) if !elements.is_empty() => {
            plan.wrap = if is_p2sh { Wrap::P2shP2wsh } else { Wrap::P2wsh };
            plan.script = parse(&elements.pop().unwrap_or_default());
        }
        (1, 32) if !is_p2sh => {
            if elements.len() > 1 && elements.last().is_some_and(|last| last.first() == Some(&0x50)) {
                plan.annex = elements.pop();
            }
            plan.wrap = Wrap::TaprootKey { internal: 0, root: None };
            if elements.len() > 1 {
                let control = elements.pop().unwrap_or_default();
                plan.script = parse(&elements.pop().unwrap_or_default());
                let (path, _) = control.get(33..).unwrap_or_default().as_chunks::<32>();
                let version = control.first().copied().unwrap_or(0xc0);
                plan.wrap = Wrap::TaprootLeaf(Leaf { internal: 0, version, path: path.to_vec() });
            }
        }
        _ => {
            let (version, program) = (program.version, program.program.to_vec());
            plan.wrap = Wrap::Program { version, program, is_p2sh };
        }
    }
    plan.args = elements.iter().map(|element| Token::push(element)).collect();
}

/// Foreign keys by their bytes, in order of appearance; the index determines our key.
#[derive(Default)]
struct Renaming {
    keys: Vec<Vec<u8>>,
    signatures: u8,
}

impl Renaming {
    fn rename(&mut self, plan: &mut Plan) {
        let is_taproot = matches!(plan.wrap, Wrap::TaprootKey { .. } | Wrap::TaprootLeaf(_));
        let is_leaf = matches!(plan.wrap, Wrap::TaprootLeaf(_));
        plan.script.iter_mut().chain(&mut plan.args).for_each(|token| self.rename_key(token, is_leaf));
        plan.script.iter_mut().for_each(|token| self.rename_hash(token));
        plan.args.iter_mut().for_each(|token| self.rename_signature(token, is_taproot));
    }

    fn rename_key(&mut self, token: &mut Token, is_leaf: bool) {
        let Token::Push(bytes, _) = token else { return };
        let form = match (bytes.first(), bytes.len()) {
            (Some(2 | 3), 33) => KeyForm::Compressed,
            (Some(4), 65) => KeyForm::Uncompressed,
            (Some(6 | 7), 65) => KeyForm::Hybrid,
            (_, 32) if is_leaf => KeyForm::XOnly,
            _ => return,
        };
        let known = self.keys.iter().position(|key| key == bytes);
        let number = known.unwrap_or_else(|| {
            self.keys.push(bytes.clone());
            self.keys.len() - 1
        });
        *token = Token::Key(KeyPlan { key: number_of(number), form });
    }

    fn rename_hash(&self, token: &mut Token) {
        let Token::Push(bytes, _) = token else { return };
        let found = self.keys.iter().position(|key| hash160(key) == bytes[..]);
        if let Some(number) = found {
            let form = if self.keys[number].len() == 33 { KeyForm::Compressed } else { KeyForm::Uncompressed };
            *token = Token::KeyHash(KeyPlan { key: number_of(number), form });
        }
    }

    fn rename_signature(&mut self, token: &mut Token, is_taproot: bool) {
        let Token::Push(bytes, _) = token else { return };
        let last = bytes.last().copied().unwrap_or_default();
        let hash_type = match bytes.len() {
            64 if is_taproot => 0,
            65 if is_taproot => last,
            9..=80 if !is_taproot && bytes[0] == 0x30 => last,
            _ => return,
        };
        let key = if is_taproot { 0 } else { self.signatures };
        self.signatures = (self.signatures + 1) % KEY_COUNT;
        *token = Token::Signature(SigPlan { key, hash_type, separators: 0, shape: Shape::Plain });
    }
}

fn number_of(index: usize) -> u8 {
    u8::try_from(index % usize::from(KEY_COUNT)).unwrap_or_default()
}
