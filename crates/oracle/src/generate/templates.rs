//! Spends of every template, before any change: most of them are valid under the consensus flags.
//!
//! Input: choices. Output: a plan that carries the name of its template. Invariant: [`TEMPLATES`] contains each name
//! once; the counts of a comparison are kept by these names.

use super::flags::random_flags;
use super::keys::{KEY_COUNT, KeyForm, KeyPlan};
use super::plan::{Leaf, Plan, Wrap};
use super::program::random_program;
use super::random::Random;
use super::signature::{Shape, SigPlan};
use super::token::{PushBy, Token};
use lydian_hash::{hash160, ripemd160, sha1, sha256, sha256d};
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint, Txid};
use lydian_script::opcodes::*;

type Template = fn(&mut Random, &mut Plan);

/// All templates, each with its weight.
pub const TEMPLATES: &[(&str, usize, Template)] = &[
    ("p2pk", 4, p2pk),
    ("p2pkh", 6, p2pkh),
    ("multisig", 12, multisig),
    ("p2wpkh", 4, p2wpkh),
    ("p2tr-key", 6, taproot_key),
    ("p2tr-checksig", 5, taproot_checksig),
    ("p2tr-checksigadd", 5, taproot_checksigadd),
    ("p2tr-success", 3, taproot_success),
    ("p2tr-unknown", 3, taproot_unknown),
    ("p2tr-weight", 2, taproot_weight),
    ("witness-program", 3, witness_programs),
    ("lock-time", 6, lock_time),
    ("hash-lock", 4, hash_lock),
    ("code-separator", 5, code_separator),
    ("find-and-delete", 4, find_and_delete),
    ("conditions", 5, conditions),
    ("signature-branch", 5, signature_branch),
    ("limits", 5, limits),
    ("program", 22, random_program),
    ("noise", 3, noise),
];

/// Returns a plan of a random template.
pub fn random_plan(random: &mut Random) -> Plan {
    let total = TEMPLATES.iter().map(|(_, share, _)| share).sum();
    let mut point = random.below(total);
    for (name, share, template) in TEMPLATES {
        if point < *share {
            return plan_of(random, name, *template);
        }
        point -= share;
    }
    plan_of(random, "noise", noise)
}

fn plan_of(random: &mut Random, name: &'static str, template: Template) -> Plan {
    let (tx, spent, index) = transaction(random);
    let flags = random_flags(random);
    let (script, args) = (Vec::new(), Vec::new());
    let mut plan = Plan { name, script, args, wrap: Wrap::Bare, annex: None, tx, spent, index, flags };
    template(random, &mut plan);
    plan
}

/// Returns a transaction with few inputs and outputs, and with lock times and versions near their limits.
fn transaction(random: &mut Random) -> (MutTx, Vec<MutOutput>, usize) {
    let input = |random: &mut Random| MutInput {
        prevout: OutPoint { txid: Txid(random.hash()), vout: random.edge_u32() },
        script_sig: Vec::new(),
        sequence: if random.chance(40) { u32::MAX - 1 } else { random.edge_u32() },
        witness: Vec::new(),
    };
    let output = |random: &mut Random| {
        let size = random.below(40);
        MutOutput { value: Amount(amount(random)), script_pubkey: random.bytes(size) }
    };
    let input_count = if random.chance(60) { 1 } else { 1 + random.below(4) };
    let output_count = random.below(5);
    let version = if random.chance(70) { 2 } else { random.edge_u32() };
    let lock_time = if random.chance(40) { 0 } else { random.edge_u32() };
    let mut tx = MutTx { version, inputs: Vec::new(), outputs: Vec::new(), lock_time };
    tx.inputs.extend((0..input_count).map(|_| input(random)));
    tx.outputs.extend((0..output_count).map(|_| output(random)));
    let spent = (0..input_count).map(|_| output(random)).collect();
    (tx, spent, random.below(input_count))
}

/// Returns any amount, also one above what a coin may hold, but never a negative one: Core's BIP-0143 checker asserts
/// that.
pub(crate) fn amount(random: &mut Random) -> i64 {
    match random.below(6) {
        0 => 0,
        1 => i64::MAX,
        2 => Amount::MAX_MONEY.0 + 1,
        3 => (random.next_u64() >> 1).cast_signed(),
        _ => i64::from(random.u32()),
    }
}

/// Returns one of the hash types that every signature may have, rarely any byte.
pub(super) fn hash_type(random: &mut Random) -> u8 {
    match random.below(10) {
        0..6 => 1,
        6..9 => random.pick(&[1, 2, 3, 0x81, 0x82, 0x83]),
        _ => random.byte(),
    }
}

fn schnorr_type(random: &mut Random) -> u8 {
    match random.below(10) {
        0..5 => 0,
        5..9 => random.pick(&[0, 1, 2, 3, 0x81, 0x82, 0x83]),
        _ => random.byte(),
    }
}

fn key(random: &mut Random) -> u8 {
    random.byte() % KEY_COUNT
}

/// Returns a form that ECDSA accepts, rarely another.
pub(super) fn key_form(random: &mut Random) -> KeyForm {
    match random.below(20) {
        0..12 => KeyForm::Compressed,
        12..16 => KeyForm::Uncompressed,
        16 | 17 => KeyForm::Hybrid,
        _ => random.pick(&KeyForm::ALL),
    }
}

pub(super) fn signature(random: &mut Random, key: u8) -> Token {
    let shape = if random.chance(85) { Shape::Plain } else { random.pick(&Shape::ALL) };
    Token::Signature(SigPlan { key, hash_type: hash_type(random), separators: 0, shape })
}

pub(super) fn schnorr(random: &mut Random, key: u8) -> Token {
    let shape = if random.chance(90) { Shape::Plain } else { random.pick(&Shape::ALL) };
    Token::Signature(SigPlan { key, hash_type: schnorr_type(random), separators: 0, shape })
}

/// Returns a way to commit to a script without taproot.
fn any_ecdsa_wrap(random: &mut Random) -> Wrap {
    random.pick(&[|| Wrap::Bare, || Wrap::P2sh, || Wrap::P2wsh, || Wrap::P2shP2wsh])()
}

/// Returns a way to commit to any script.
pub(super) fn any_wrap(random: &mut Random) -> Wrap {
    if random.chance(35) { Wrap::TaprootLeaf(leaf(random)) } else { any_ecdsa_wrap(random) }
}

/// Returns a tapscript leaf in a tree of depth 0 to 5, rarely at the limit of 128.
pub(super) fn leaf(random: &mut Random) -> Leaf {
    let depth = if random.chance(4) { 127 + random.below(3) } else { random.below(6) };
    Leaf { internal: key(random), version: 0xc0, path: (0..depth).map(|_| random.hash()).collect() }
}

pub(super) fn annex(random: &mut Random) -> Option<Vec<u8>> {
    random.chance(20).then(|| {
        let size = random.below(60);
        [&[0x50][..], &random.bytes(size)].concat()
    })
}

fn p2pk(random: &mut Random, plan: &mut Plan) {
    let key = key(random);
    plan.script = vec![Token::Key(KeyPlan { key, form: key_form(random) }), Token::Op(OP_CHECKSIG)];
    plan.args = vec![signature(random, key)];
    plan.wrap = any_ecdsa_wrap(random);
}

fn pay_to_key_hash(key: KeyPlan) -> Vec<Token> {
    let op = Token::Op;
    vec![op(OP_DUP), op(OP_HASH160), Token::KeyHash(key), op(OP_EQUALVERIFY), op(OP_CHECKSIG)]
}

fn p2pkh(random: &mut Random, plan: &mut Plan) {
    let key = KeyPlan { key: key(random), form: key_form(random) };
    plan.script = pay_to_key_hash(key);
    plan.args = vec![signature(random, key.key), Token::Key(key)];
    plan.wrap = if random.chance(70) { Wrap::Bare } else { any_ecdsa_wrap(random) };
}

fn p2wpkh(random: &mut Random, plan: &mut Plan) {
    let form = if random.chance(85) { KeyForm::Compressed } else { key_form(random) };
    let key = KeyPlan { key: key(random), form };
    plan.script = pay_to_key_hash(key);
    plan.args = vec![signature(random, key.key), Token::Key(key)];
    plan.wrap = if random.chance(50) { Wrap::P2wpkh } else { Wrap::P2shP2wpkh };
}

/// Every m of n up to 3 of 5, up to 20 keys and above; the signers are in order, rarely not.
fn multisig(random: &mut Random, plan: &mut Plan) {
    let key_count = if random.chance(75) { random.below(6) } else { random.below(22) };
    let required = if random.chance(85) { random.below(key_count.min(3) + 1) } else { random.below(22) };
    let first = key(random);
    let mut keys: Vec<u8> = (0..=255).take(key_count).map(|i: u8| (first + i) % KEY_COUNT).collect();
    let mut signers = keys.clone();
    while signers.len() > required {
        signers.remove(random.below(signers.len()));
    }
    match random.below(12) {
        0 => signers.reverse(),
        1 if !signers.is_empty() => {
            // One signature twice, or out of order: an assignment that does not exist, or only just exists.
            let (from, to) = (random.below(signers.len()), random.below(signers.len()));
            signers[to] = signers[from];
        }
        2 | 3 if !keys.is_empty() => {
            let (from, to) = (random.below(keys.len()), random.below(keys.len()));
            keys[to] = keys[from];
        }
        _ => {}
    }
    let plain = random.chance(80);
    let form = |random: &mut Random| if plain { KeyForm::Compressed } else { key_form(random) };
    let count = |count: usize| Token::number(i64::try_from(count).unwrap_or_default());
    plan.script = vec![count(required)];
    plan.script.extend(keys.iter().map(|&key| Token::Key(KeyPlan { key, form: form(random) })));
    plan.script.extend([count(key_count), Token::Op(OP_CHECKMULTISIG)]);
    if random.chance(15) {
        plan.script.pop();
        plan.script.extend([Token::Op(OP_CHECKMULTISIGVERIFY), Token::Op(OP_1)]);
    }
    plan.args = vec![if random.chance(95) { Token::Op(OP_0) } else { Token::Op(OP_1) }];
    plan.args.extend(signers.iter().map(|&key| signature(random, key)));
    plan.wrap = any_ecdsa_wrap(random);
}

fn taproot_key(random: &mut Random, plan: &mut Plan) {
    let internal = key(random);
    let root = random.chance(40).then(|| random.hash());
    plan.wrap = Wrap::TaprootKey { internal, root };
    plan.args = vec![schnorr(random, internal)];
    plan.annex = annex(random);
}

fn taproot_checksig(random: &mut Random, plan: &mut Plan) {
    let key = key(random);
    plan.script = vec![Token::Key(KeyPlan::x_only(key)), Token::Op(OP_CHECKSIG)];
    plan.args = vec![schnorr(random, key)];
    match random.below(4) {
        0 => {
            plan.script[1] = Token::Op(OP_CHECKSIGVERIFY);
            plan.script.push(Token::Op(OP_1));
        }
        1 => {
            // The envelope of an inscription.
            plan.script.extend([Token::Op(OP_0), Token::Op(OP_IF), Token::push(b"ord")]);
            for _ in 0..random.below(4) {
                let size = random.pick(&[1, 75, 76, 255, 256, 519, 520, 521]);
                plan.script.push(Token::push(&random.bytes(size)));
            }
            plan.script.push(Token::Op(OP_ENDIF));
        }
        _ => {}
    }
    plan.annex = annex(random);
    plan.wrap = Wrap::TaprootLeaf(leaf(random));
}

/// `K CHECKSIG K CHECKSIGADD ... m NUMEQUAL`, with some signatures empty.
fn taproot_checksigadd(random: &mut Random, plan: &mut Plan) {
    let count = 1 + random.below(6);
    let first = key(random);
    let mut given = 0;
    for i in (0..=255_u8).take(count) {
        let key = (first + i) % KEY_COUNT;
        let op = if i == 0 { OP_CHECKSIG } else { OP_CHECKSIGADD };
        plan.script.extend([Token::Key(KeyPlan::x_only(key)), Token::Op(op)]);
        let signs = random.chance(60);
        given += i64::from(signs);
        plan.args.insert(0, if signs { schnorr(random, key) } else { Token::Op(OP_0) });
    }
    let wanted = if random.chance(85) { given } else { given + 1 };
    plan.script.extend([Token::number(wanted), Token::Op(OP_NUMEQUAL)]);
    plan.annex = annex(random);
    plan.wrap = Wrap::TaprootLeaf(leaf(random));
}

/// OP_SUCCESSx before, after or inside of operations that would fail.
fn taproot_success(random: &mut Random, plan: &mut Plan) {
    let success: Vec<u8> = (0..=255).filter(|&opcode| is_op_success(opcode)).collect();
    plan.script = (0..random.below(6)).map(|_| Token::Op(random.byte())).collect();
    let at = random.below(plan.script.len() + 1);
    plan.script.insert(at, Token::Op(random.pick(&success)));
    if random.chance(30) {
        // A push that extends beyond the end: decoded before or after the success.
        plan.script.insert(random.below(plan.script.len() + 1), Token::Raw(vec![OP_PUSHDATA1]));
    }
    let size = random.pick(&[0, 1, 520, 521]);
    plan.args = (0..random.below(3)).map(|_| Token::push(&random.bytes(size))).collect();
    plan.annex = annex(random);
    plan.wrap = Wrap::TaprootLeaf(leaf(random));
}

/// Leaf versions and key types that have no meaning yet.
fn taproot_unknown(random: &mut Random, plan: &mut Plan) {
    taproot_checksig(random, plan);
    let mut leaf = leaf(random);
    if random.chance(50) {
        leaf.version = random.pick(&[0xc2, 0x02, 0x50, 0x66, 0x7e, 0x80, 0xfe, 0x00]);
    } else {
        let form = random.pick(&[KeyForm::Compressed, KeyForm::Uncompressed, KeyForm::OneByte, KeyForm::Empty]);
        plan.script[0] = Token::Key(KeyPlan { key: key(random), form });
        if random.chance(60) {
            plan.args[0] = random.pick(&[Token::Op as fn(u8) -> Token])(random.pick(&[OP_0, OP_1]));
        }
    }
    plan.wrap = Wrap::TaprootLeaf(leaf);
}

/// Signature checks up to the budget of the witness, and beyond.
fn taproot_weight(random: &mut Random, plan: &mut Plan) {
    let key = key(random);
    let unknown = random.chance(50);
    let form = if unknown { KeyForm::OneByte } else { KeyForm::XOnly };
    for _ in 0..random.below(12) {
        plan.script.extend([Token::Op(OP_DUP), Token::Key(KeyPlan { key, form }), Token::Op(OP_CHECKSIGVERIFY)]);
    }
    plan.args = vec![if unknown { Token::Op(OP_1) } else { schnorr(random, key) }];
    if random.chance(40) {
        let size = random.below(300);
        plan.annex = Some([&[0x50][..], &random.bytes(size)].concat());
    }
    plan.wrap = Wrap::TaprootLeaf(Leaf { path: Vec::new(), ..leaf(random) });
}

/// Programs of any version and size, including the anchor.
fn witness_programs(random: &mut Random, plan: &mut Plan) {
    let sizes = [2, 3, 19, 20, 21, 31, 32, 33, 40];
    let size = random.pick(&sizes);
    let version = if random.chance(60) { random.pick(&[0, 1]) } else { random.pick(&[2, 3, 15, 16]) };
    let program = if random.chance(20) { vec![0x4e, 0x73] } else { random.bytes(size) };
    plan.wrap = Wrap::Program { version, program, is_p2sh: random.chance(30) };
    plan.args = (0..random.below(3)).map(|_| Token::push(&random.bytes(size))).collect();
    plan.annex = annex(random);
}

/// CHECKLOCKTIMEVERIFY and CHECKSEQUENCEVERIFY near the values of the transaction.
fn lock_time(random: &mut Random, plan: &mut Plan) {
    for _ in 0..=random.below(2) {
        let sequence = plan.tx.inputs[plan.index].sequence;
        let near = |value: u32, random: &mut Random| i64::from(value) + random.pick(&[-1, 0, 0, 0, 1]);
        let (op, value) = if random.chance(50) {
            (OP_CHECKLOCKTIMEVERIFY, near(plan.tx.lock_time, random))
        } else {
            (OP_CHECKSEQUENCEVERIFY, near(sequence, random))
        };
        let value = match random.below(8) {
            0 => i64::from(random.edge_u32()),
            1 => -1,
            2 => 1 << 39,
            _ => value,
        };
        plan.script.extend([Token::number(value), Token::Op(op), Token::Op(OP_DROP)]);
    }
    let mut inner = plan.clone();
    p2pk(random, &mut inner);
    plan.script.extend(inner.script);
    (plan.args, plan.wrap) = (inner.args, inner.wrap);
}

fn hash_lock(random: &mut Random, plan: &mut Plan) {
    let size = random.pick(&[0, 1, 20, 32, 55, 56, 64, 119, 520]);
    let secret = random.bytes(size);
    let (op, hash) = match random.below(5) {
        0 => (OP_RIPEMD160, ripemd160(&secret).to_vec()),
        1 => (OP_SHA1, sha1(&secret).to_vec()),
        2 => (OP_SHA256, sha256(&secret).to_vec()),
        3 => (OP_HASH160, hash160(&secret).to_vec()),
        _ => (OP_HASH256, sha256d(&secret).to_vec()),
    };
    plan.script = vec![Token::Op(OP_SIZE), Token::number(i64::try_from(size).unwrap_or_default())];
    plan.script.extend([Token::Op(OP_EQUALVERIFY), Token::Op(op), Token::push(&hash), Token::Op(OP_EQUAL)]);
    plan.args = vec![Token::Push(secret, PushBy::Shortest)];
    plan.wrap = any_wrap(random);
}

/// Checks before and after separators that are executed or not.
fn code_separator(random: &mut Random, plan: &mut Plan) {
    plan.wrap = any_wrap(random);
    let is_tapscript = matches!(plan.wrap, Wrap::TaprootLeaf(_));
    let mut separators = 0;
    for _ in 0..=random.below(3) {
        if random.chance(60) {
            plan.script.push(Token::Op(OP_CODESEPARATOR));
            separators += 1;
        }
        let key = key(random);
        let mut made = if is_tapscript { schnorr(random, key) } else { signature(random, key) };
        if let Token::Signature(plan) = &mut made {
            plan.separators = separators;
        }
        let form = if is_tapscript { KeyForm::XOnly } else { KeyForm::Compressed };
        plan.script.extend([Token::Key(KeyPlan { key, form }), Token::Op(OP_CHECKSIGVERIFY)]);
        plan.args.insert(0, made);
        if random.chance(25) {
            // Not executed; a wrong implementation would count it.
            let skipped = [OP_0, OP_IF, OP_CODESEPARATOR, OP_ENDIF];
            plan.script.extend(skipped.map(Token::Op));
            separators += random.pick(&[0, 1]);
        }
    }
    plan.script.push(Token::Op(OP_1));
}

/// Scripts that contain the signature they check.
fn find_and_delete(random: &mut Random, plan: &mut Plan) {
    let key = key(random);
    let made = SigPlan { hash_type: hash_type(random), ..SigPlan::all(key) };
    let signature = Token::Signature(made);
    let check = if random.chance(50) {
        vec![Token::Key(KeyPlan::compressed(key)), Token::Op(OP_CHECKSIG)]
    } else {
        let keys = [key, key.wrapping_add(1)].map(|key| Token::Key(KeyPlan::compressed(key)));
        let [first, second] = keys;
        plan.args.push(Token::Op(OP_0));
        vec![Token::Op(OP_1), first, second, Token::Op(OP_2), Token::Op(OP_CHECKMULTISIG)]
    };
    plan.args.push(signature.clone());
    for _ in 0..=random.below(2) {
        plan.script.extend([signature.clone(), Token::Op(OP_DROP)]);
    }
    plan.script.extend(check);
    if random.chance(30) {
        // The signature is pushed by the script itself.
        plan.args.pop();
        plan.script.drain(..2);
        plan.script.insert(0, signature);
        if matches!(plan.script[1], Token::Op(OP_1)) {
            plan.args = vec![Token::Op(OP_0)];
        }
    }
    plan.wrap = if random.chance(70) { Wrap::Bare } else { any_ecdsa_wrap(random) };
}

/// Nested IF and NOTIF with arguments that are minimal, rarely not.
fn conditions(random: &mut Random, plan: &mut Plan) {
    let depth = if random.chance(90) { 1 + random.below(6) } else { 40 + random.below(100) };
    let mut tail = Vec::new();
    for _ in 0..depth {
        let value = match random.below(12) {
            0 => Token::Push(vec![0x80], PushBy::Length),
            1 => Token::Push(vec![2], PushBy::Length),
            2 => Token::Push(vec![1, 0], PushBy::Length),
            choice => Token::Op(if choice % 2 == 0 { OP_0 } else { OP_1 }),
        };
        plan.args.push(value);
        plan.script.push(Token::Op(random.pick(&[OP_IF, OP_NOTIF])));
        tail.push(Token::Op(OP_ENDIF));
        if random.chance(50) {
            tail.push(Token::Op(OP_ELSE));
        }
        if random.chance(10) {
            tail.push(Token::Op(random.pick(&[
                OP_VERIF,
                OP_VERNOTIF,
                OP_RETURN,
                OP_CAT,
                OP_ELSE,
                OP_RESERVED,
                OP_VER,
            ])));
        }
    }
    tail.reverse();
    plan.script.extend(tail);
    plan.script.push(Token::Op(OP_1));
    plan.wrap = any_wrap(random);
}

/// Scripts whose result depends on a failed check, so that assuming success would be wrong: `CHECKSIG NOT`, `CHECKSIG
/// IF .. ELSE`.
fn signature_branch(random: &mut Random, plan: &mut Plan) {
    if random.chance(50) {
        p2pk(random, plan)
    } else {
        multisig(random, plan)
    }
    if random.chance(40) {
        // One invalid signature, at a position that an assignment may or may not use.
        let at = random.below(plan.args.len().max(1));
        if let Some(arg) = plan.args.get_mut(at) {
            *arg = Token::Signature(SigPlan { shape: random.pick(&Shape::ALL), ..SigPlan::all(key(random)) });
        }
    }
    let branch = |a, b| [OP_IF, a, OP_ELSE, b, OP_ENDIF].map(Token::Op).to_vec();
    let tail = match random.below(6) {
        0 => vec![Token::Op(OP_NOT)],
        1 => branch(OP_1, OP_0),
        2 => branch(OP_0, OP_1),
        3 => branch(OP_RETURN, OP_1),
        4 => [OP_DUP, OP_NOT, OP_BOOLOR].map(Token::Op).to_vec(),
        _ => [OP_DROP, OP_1].map(Token::Op).to_vec(),
    };
    plan.script.extend(tail);
}

/// Each limit of a script, at the limit and above.
fn limits(random: &mut Random, plan: &mut Plan) {
    let over = random.below(3);
    let size = 519 + over;
    match random.below(7) {
        0 => plan.script = vec![Token::Op(OP_NOP); 200 + over],
        1 => plan.script = vec![Token::push(&random.bytes(size)), Token::Op(OP_DROP)],
        2 => plan.args = vec![Token::push(&random.bytes(size)), Token::Op(OP_0)],
        3 => plan.args = vec![Token::Op(OP_1); 997 + over],
        4 => plan.script = vec![Token::Op(OP_1); 997 + over],
        5 => {
            // 10,000 bytes: pushes that take 520 bytes each, and a rest.
            for _ in 0..19 {
                plan.script.push(Token::push(&random.bytes(517)));
            }
            let left = 120 + over;
            plan.script.extend([Token::push(&random.bytes(left))]);
        }
        _ => {
            // The keys of a multisig count as operations.
            let keys = 18 + over;
            plan.script = vec![Token::Op(OP_NOP); 180];
            plan.script.push(Token::Op(OP_0));
            plan.script.extend(std::iter::repeat_n(Token::Op(OP_1), keys));
            plan.script.extend([Token::number(i64::try_from(keys).unwrap_or_default()), Token::Op(OP_CHECKMULTISIG)]);
            plan.args = vec![Token::Op(OP_0)];
        }
    }
    if plan.args.len() == 2 {
        plan.script = vec![Token::Op(OP_2DROP)];
    }
    plan.script.push(Token::Op(OP_1));
    plan.wrap = any_wrap(random);
}

/// Random bytes.
fn noise(random: &mut Random, plan: &mut Plan) {
    let (script, args) = (random.below(30), random.below(20));
    plan.script = super::token::parse(&random.bytes(script));
    plan.args = super::token::parse(&random.bytes(args));
    plan.wrap = any_wrap(random);
}
