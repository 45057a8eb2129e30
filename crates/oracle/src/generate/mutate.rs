//! Changes of spends: of a plan, which is then signed again or not, and of a case's bytes, which are not signed again.
//!
//! Input: choices and a spend. Output: the spend with one thing changed; flags stay legal, and the transaction keeps
//! its input under test and one spent output for each input. Must never make a request that the judge refuses.

use super::flags::{legal, random_flags};
use super::keys::{KEY_COUNT, KeyForm, KeyPlan};
use super::plan::{Case, Plan, Wrap};
use super::random::Random;
use super::signature::{Shape, SigPlan};
use super::templates::{amount, annex, any_wrap, hash_type};
use super::token::{PushBy, Token};
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint, Txid};
use lydian_script::Flags;
use lydian_script::opcodes::*;

/// Maximum number of inputs or outputs of a mutant.
const ENTRIES_MAX: usize = 8;

/// Changes one thing of a plan.
pub fn mutate_plan(random: &mut Random, plan: &mut Plan) {
    match random.below(20) {
        0..6 => mutate_tokens(random, &mut plan.script),
        6..11 => mutate_tokens(random, &mut plan.args),
        11..15 => mutate_signatures(random, plan),
        15 => mutate_wrap(random, plan),
        16 => plan.annex = if plan.annex.is_some() { None } else { annex(random) },
        17 => plan.flags = mutate_flags(random, plan.flags),
        _ => mutate_transaction(random, &mut plan.tx, &mut plan.spent, plan.index),
    }
}

/// Changes one thing of a case without signing again.
pub fn mutate_case(random: &mut Random, case: &mut Case) {
    let Some(input) = case.tx.inputs.get_mut(case.index) else { return };
    match random.below(12) {
        0 => mutate_bytes(random, &mut input.script_sig),
        1..5 => mutate_witness(random, &mut input.witness),
        5 => {
            if let Some(output) = case.spent.get_mut(case.index) {
                mutate_bytes(random, &mut output.script_pubkey);
            }
        }
        6 => {
            let mut tokens = super::token::parse(&input.script_sig);
            mutate_tokens(random, &mut tokens);
            input.script_sig = super::token::encode(&tokens);
        }
        7 | 8 => case.flags = mutate_flags(random, case.flags),
        9 => case.flags = random_flags(random),
        _ => mutate_transaction(random, &mut case.tx, &mut case.spent, case.index),
    }
}

/// Adds or removes one flag, or returns another set.
fn mutate_flags(random: &mut Random, flags: Flags) -> Flags {
    if random.chance(30) {
        return random_flags(random);
    }
    let (_, flag) = random.pick(Flags::ALL);
    legal(Flags(flags.0 ^ flag.0), random)
}

/// Inserts, removes, replaces, duplicates, moves or re-encodes one operation or element.
fn mutate_tokens(random: &mut Random, tokens: &mut Vec<Token>) {
    let at = random.below(tokens.len());
    let behind = random.below(tokens.len() + 1);
    let other = random.below(tokens.len());
    if tokens.is_empty() {
        return tokens.push(random_token(random));
    }
    match random.below(12) {
        0 | 1 => tokens.insert(behind, random_token(random)),
        2 => drop(tokens.remove(at)),
        3 => tokens[at] = random_token(random),
        4 => tokens.insert(behind, tokens[at].clone()),
        5 => tokens.swap(at, other),
        6 => tokens.truncate(behind),
        7 => {
            let around = random.pick(&[[OP_0, OP_IF], [OP_1, OP_IF], [OP_1, OP_NOTIF], [OP_NOP, OP_CODESEPARATOR]]);
            tokens.insert(behind, Token::Op(OP_ENDIF));
            let from = at.min(behind);
            tokens.splice(from..from, around.map(Token::Op));
        }
        _ => mutate_token(random, &mut tokens[at]),
    }
}

fn mutate_token(random: &mut Random, token: &mut Token) {
    match token {
        Token::Op(opcode) => *opcode = related(random, *opcode),
        Token::Push(bytes, by) => {
            if random.chance(50) {
                *by = random.pick(&PushBy::ALL);
            } else {
                mutate_bytes(random, bytes);
            }
        }
        Token::Key(key) | Token::KeyHash(key) => mutate_key(random, key),
        Token::Signature(plan) => mutate_signature(random, plan),
        Token::Raw(bytes) => mutate_bytes(random, bytes),
    }
}

/// Returns an opcode with a similar meaning, or any opcode.
fn related(random: &mut Random, opcode: u8) -> u8 {
    const FAMILIES: [&[u8]; 7] = [
        &[OP_CHECKSIG, OP_CHECKSIGVERIFY, OP_CHECKSIGADD, OP_CHECKMULTISIG, OP_CHECKMULTISIGVERIFY],
        &[OP_IF, OP_NOTIF, OP_VERIF, OP_VERNOTIF, OP_ELSE, OP_ENDIF],
        &[OP_EQUAL, OP_EQUALVERIFY, OP_NUMEQUAL, OP_NUMEQUALVERIFY, OP_RESERVED1],
        &[OP_HASH160, OP_SHA256, OP_HASH256, OP_RIPEMD160, OP_SHA1],
        &[OP_0, OP_1, OP_2, OP_3, OP_16, OP_1NEGATE, OP_RESERVED],
        &[OP_NOP, OP_NOP1, OP_CHECKLOCKTIMEVERIFY, OP_CHECKSEQUENCEVERIFY, OP_NOP10, OP_CODESEPARATOR],
        &[OP_DUP, OP_2DUP, OP_DROP, OP_2DROP, OP_SWAP, OP_IFDUP, OP_TOALTSTACK, OP_FROMALTSTACK],
    ];
    match FAMILIES.iter().find(|family| family.contains(&opcode)) {
        Some(family) if random.chance(70) => random.pick(family),
        _ => random.byte(),
    }
}

fn random_token(random: &mut Random) -> Token {
    let key = random.byte() % KEY_COUNT;
    match random.below(10) {
        0..4 => Token::Op(random.pick(OPCODES).0),
        4 => Token::Op(random.byte()),
        5 => {
            let size = random.below(80);
            Token::Push(random.bytes(size), random.pick(&PushBy::ALL))
        }
        6 => Token::number(i64::from(random.edge_u32())),
        7 => Token::Key(KeyPlan { key, form: random.pick(&KeyForm::ALL) }),
        8 => Token::Signature(SigPlan { hash_type: hash_type(random), ..SigPlan::all(key) }),
        _ => Token::Op(random.pick(&[OP_0, OP_1, OP_16])),
    }
}

fn mutate_key(random: &mut Random, key: &mut KeyPlan) {
    if random.chance(40) {
        key.key = (key.key + 1) % KEY_COUNT;
    } else {
        key.form = random.pick(&KeyForm::ALL);
    }
}

fn mutate_signature(random: &mut Random, plan: &mut SigPlan) {
    match random.below(8) {
        0 => plan.key = (plan.key + 1) % KEY_COUNT,
        1 | 2 => plan.hash_type = hash_type(random),
        3 => plan.hash_type ^= 1 << random.below(8),
        4 => plan.separators ^= 1,
        _ => plan.shape = random.pick(&Shape::ALL),
    }
}

/// Changes one key or signature of the plan, wherever it is.
fn mutate_signatures(random: &mut Random, plan: &mut Plan) {
    let is_one = |token: &&mut Token| matches!(token, Token::Key(_) | Token::KeyHash(_) | Token::Signature(_));
    let mut found: Vec<_> = plan.args.iter_mut().chain(&mut plan.script).filter(is_one).collect();
    let at = random.below(found.len());
    if let Some(token) = found.get_mut(at) {
        mutate_token(random, token);
    }
}

/// Chooses another kind of output for the same script, or changes the leaf's position.
fn mutate_wrap(random: &mut Random, plan: &mut Plan) {
    match &mut plan.wrap {
        Wrap::TaprootKey { internal, root } if random.chance(60) => {
            if random.chance(50) {
                *internal = (*internal + 1) % KEY_COUNT
            } else {
                *root = Some(random.hash())
            }
        }
        Wrap::TaprootLeaf(leaf) if random.chance(70) => match random.below(4) {
            0 => leaf.version = random.pick(&[0xc0, 0xc2, 0x50, 0]),
            1 => leaf.path.push(random.hash()),
            2 => drop(leaf.path.pop()),
            _ => leaf.internal = (leaf.internal + 1) % KEY_COUNT,
        },
        Wrap::Program { version, program, is_p2sh } if random.chance(70) => match random.below(3) {
            0 => *version = random.pick(&[0, 1, 2, 16]),
            1 => mutate_bytes(random, program),
            _ => *is_p2sh = !*is_p2sh,
        },
        _ => plan.wrap = any_wrap(random),
    }
    let is_taproot = matches!(plan.wrap, Wrap::TaprootLeaf(_));
    if random.chance(70) {
        // Encode the keys as the new rules require.
        for token in plan.script.iter_mut().chain(&mut plan.args) {
            match token {
                Token::Key(key) if is_taproot => key.form = KeyForm::XOnly,
                Token::Key(key) if key.form == KeyForm::XOnly => key.form = KeyForm::Compressed,
                _ => {}
            }
        }
    }
}

fn mutate_transaction(random: &mut Random, tx: &mut MutTx, spent: &mut Vec<MutOutput>, index: usize) {
    let at = random.below(tx.inputs.len());
    match random.below(12) {
        0 => tx.version = random.edge_u32(),
        1 => tx.lock_time = random.edge_u32(),
        2 => tx.inputs[at].sequence = random.edge_u32(),
        3 => tx.inputs[index].sequence = random.edge_u32(),
        4 => tx.inputs[at].prevout = OutPoint { txid: Txid(random.hash()), vout: random.edge_u32() },
        5 => spent[at].value = Amount(amount(random)),
        6 if at != index => mutate_bytes(random, &mut spent[at].script_pubkey),
        7 if tx.outputs.len() < ENTRIES_MAX => {
            let size = random.below(40);
            let script_pubkey = random.bytes(size);
            tx.outputs.push(MutOutput { value: Amount(amount(random)), script_pubkey });
        }
        8 if !tx.outputs.is_empty() => drop(tx.outputs.remove(random.below(tx.outputs.len()))),
        9 if !tx.outputs.is_empty() => {
            let output = random.below(tx.outputs.len());
            tx.outputs[output].value = Amount(amount(random));
        }
        10 if tx.inputs.len() < ENTRIES_MAX => {
            // Appended, so that the input under test keeps its index.
            let prevout = OutPoint { txid: Txid(random.hash()), vout: random.u32() };
            tx.inputs.push(MutInput {
                prevout,
                script_sig: Vec::new(),
                sequence: random.edge_u32(),
                witness: Vec::new(),
            });
            let size = random.below(40);
            spent.push(MutOutput { value: Amount(amount(random)), script_pubkey: random.bytes(size) });
        }
        11 if tx.inputs.len() > index + 1 => {
            tx.inputs.truncate(index + 1);
            spent.truncate(index + 1);
        }
        _ => tx.lock_time = tx.lock_time.wrapping_add(1),
    }
}

fn mutate_witness(random: &mut Random, witness: &mut Vec<Vec<u8>>) {
    let at = random.below(witness.len());
    let behind = random.below(witness.len() + 1);
    let other = random.below(witness.len());
    if witness.is_empty() || random.chance(10) {
        let size = random.pick(&[0, 1, 32, 33, 64, 65, 520, 521]);
        return witness.insert(behind, random.bytes(size));
    }
    match random.below(10) {
        0 => drop(witness.remove(at)),
        1 => witness.insert(behind, witness[at].clone()),
        2 => witness.swap(at, other),
        3 => witness.clear(),
        4 => {
            // Makes a control block longer or shorter by a node or a byte; in other spends, the last element.
            let last = witness.len() - 1;
            let size = witness[last].len();
            let changed = random.pick(&[size + 32, size.saturating_sub(32), size + 1, size.saturating_sub(1)]);
            witness[last].resize(changed, 0);
        }
        5 => {
            let mut tokens = super::token::parse(&witness[at]);
            mutate_tokens(random, &mut tokens);
            witness[at] = super::token::encode(&tokens);
        }
        _ => mutate_bytes(random, &mut witness[at]),
    }
}

fn mutate_bytes(random: &mut Random, bytes: &mut Vec<u8>) {
    let at = random.below(bytes.len());
    if bytes.is_empty() {
        return bytes.push(random.byte());
    }
    match random.below(8) {
        0..4 => bytes[at] ^= 1 << random.below(8),
        4 => bytes[at] = random.pick(&[0, 1, 0x30, 0x50, 0x7f, 0x80, 0xc0, 0xff]),
        5 => drop(bytes.remove(at)),
        6 => bytes.insert(at, random.byte()),
        _ => bytes.truncate(at),
    }
}
