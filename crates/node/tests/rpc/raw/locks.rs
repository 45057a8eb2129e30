//! Keys, and output scripts of every kind that a signer may meet.

use crate::chain::Pair;
use lydian_hash::{hash160, sha256, sha256d};
use lydian_primitives::hex;
use lydian_script::ScriptBuilder;
use lydian_script::builder::scripts;
use lydian_script::opcodes::*;
use lydian_stdx::SplitMix64;

/// A private key as text, and its public key.
pub(crate) struct Key {
    pub(crate) wif: String,
    pub(crate) public: Vec<u8>,
}

/// Base58 with a checksum, for private keys of regtest.
fn encode(mut bytes: Vec<u8>) -> String {
    let checksum = sha256d(&bytes);
    bytes.extend_from_slice(&checksum[..4]);
    let mut digits: Vec<u32> = Vec::new();
    for byte in bytes {
        let mut carry = u32::from(byte);
        for digit in &mut digits {
            carry += *digit << 8;
            *digit = carry % 58;
            carry /= 58;
        }
        while carry > 0 {
            digits.push(carry % 58);
            carry /= 58;
        }
    }
    let letters = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
    digits.iter().rev().map(|digit| char::from(letters[usize::try_from(*digit).unwrap()])).collect()
}

/// A private key of regtest as text.
pub(crate) fn encode_key(secret: [u8; 32], is_compressed: bool) -> String {
    let mut bytes = [&[239][..], &secret].concat();
    bytes.extend(is_compressed.then_some(1));
    encode(bytes)
}

/// Keys with their public keys from Core. The last two are not compressed.
pub(crate) fn keys(pair: &Pair, count: u8) -> Vec<Key> {
    let key = |index: u8| {
        let wif = encode_key(sha256(&[index]), index + 2 < count);
        let info = pair.core.result("getdescriptorinfo", &format!("[\"pk({wif})\"]"));
        let public = info["descriptor"].as_str().unwrap().split(['(', ')']).nth(1).unwrap().to_owned();
        Key { wif, public: hex(&public).unwrap() }
    };
    (0..count).map(key).collect()
}

/// An output script with what it commits to.
#[derive(Clone)]
pub(crate) struct Lock {
    pub(crate) script: Vec<u8>,
    pub(crate) redeem_script: Option<Vec<u8>>,
    pub(crate) witness_script: Option<Vec<u8>>,
}

impl Lock {
    fn plain(script: Vec<u8>) -> Lock {
        Lock { script, redeem_script: None, witness_script: None }
    }

    fn p2sh(redeem: Vec<u8>) -> Lock {
        Lock { script: scripts::p2sh(&hash160(&redeem)), redeem_script: Some(redeem), witness_script: None }
    }

    fn p2wsh(witness: Vec<u8>) -> Lock {
        Lock {
            script: scripts::witness_program(0, &sha256(&witness)),
            redeem_script: None,
            witness_script: Some(witness),
        }
    }

    fn p2sh_p2wsh(witness: Vec<u8>) -> Lock {
        let program = scripts::witness_program(0, &sha256(&witness));
        Lock { script: scripts::p2sh(&hash160(&program)), redeem_script: Some(program), witness_script: Some(witness) }
    }
}

fn key<'a>(random: &mut SplitMix64, keys: &'a [Key]) -> &'a [u8] {
    &keys[random.below(keys.len())].public
}

fn multisig(random: &mut SplitMix64, keys: &[Key]) -> Vec<u8> {
    let count = 1 + random.below(4);
    let required = 1 + random.below(count);
    let chosen: Vec<&[u8]> = (0..count).map(|_| key(random, keys)).collect();
    scripts::multisig(u8::try_from(required).unwrap(), &chosen)
}

/// A script that may stand in an output, in P2SH or in P2WSH.
fn inner(random: &mut SplitMix64, keys: &[Key]) -> Vec<u8> {
    match random.below(10) {
        0 => scripts::p2pk(key(random, keys)),
        1 => scripts::p2pkh(&hash160(key(random, keys))),
        2 => vec![[0x51, 0x00, 0x6a, 0xac][random.below(4)]],
        3 | 4 => multisig(random, keys),
        5..=7 => template(random, &keys[..keys.len() - 2]),
        _ => expression(random, keys, 3),
    }
}

/// Sane miniscript: each has several ways to be spent.
fn template(random: &mut SplitMix64, keys: &[Key]) -> Vec<u8> {
    let [a, b, c] = [(); 3].map(|()| scripts::p2pk(key(random, keys)));
    let hash = hash160(key(random, keys));
    let start = ScriptBuilder::new();
    match random.below(11) {
        // and_v(v:pk,pk)
        0 => start.raw(&verified(a)).raw(&b),
        // or_d(pk,and_v(v:pk,older(10)))
        1 => {
            let start = start.raw(&a).op(OP_IFDUP).op(OP_NOTIF).raw(&verified(b));
            start.push_int(10).op(OP_CHECKSEQUENCEVERIFY).op(OP_ENDIF)
        }
        // or_i(pk,and_v(v:pk,after(100)))
        2 => {
            let start = start.op(OP_IF).raw(&a).op(OP_ELSE).raw(&verified(b));
            start.push_int(100).op(OP_CHECKLOCKTIMEVERIFY).op(OP_ENDIF)
        }
        // thresh(2,pk,s:pk,s:pk)
        3 => {
            let start = start.raw(&a).op(OP_SWAP).raw(&b).op(OP_ADD).op(OP_SWAP).raw(&c).op(OP_ADD);
            start.push_int(2).op(OP_EQUAL)
        }
        // thresh(2,pk,s:pk,sln:older(5))
        4 => {
            let start = start.raw(&a).op(OP_SWAP).raw(&b).op(OP_ADD).op(OP_SWAP).op(OP_IF).op(OP_0).op(OP_ELSE);
            let start = start.push_int(5).op(OP_CHECKSEQUENCEVERIFY).op(OP_0NOTEQUAL).op(OP_ENDIF);
            start.op(OP_ADD).push_int(2).op(OP_EQUAL)
        }
        // and_v(v:pk,pkh)
        5 => start.raw(&verified(a)).raw(&scripts::p2pkh(&hash)),
        // andor(pk,older(10),pk)
        6 => {
            let start = start.raw(&a).op(OP_NOTIF).raw(&b).op(OP_ELSE);
            start.push_int(10).op(OP_CHECKSEQUENCEVERIFY).op(OP_ENDIF)
        }
        // and_v(v:multi,pk)
        7 => start.raw(&verified(multisig(random, keys))).raw(&c),
        // and_b(pk,a:pk)
        8 => start.raw(&a).op(OP_TOALTSTACK).raw(&b).op(OP_FROMALTSTACK).op(OP_BOOLAND),
        // or_b(pk,s:pk)
        9 => start.raw(&a).op(OP_SWAP).raw(&b).op(OP_BOOLOR),
        // or_i(j:and_v(v:pk,older(5)),pk)
        _ => {
            let start = start.op(OP_IF).op(OP_SIZE).op(OP_0NOTEQUAL).op(OP_IF).raw(&verified(a));
            start.push_int(5).op(OP_CHECKSEQUENCEVERIFY).op(OP_ENDIF).op(OP_ELSE).raw(&b).op(OP_ENDIF)
        }
    }
    .into_bytes()
}

/// A lock of any kind.
pub(crate) fn lock(random: &mut SplitMix64, keys: &[Key]) -> Lock {
    match random.below(16) {
        0 => Lock::plain(scripts::p2pk(key(random, keys))),
        1 => Lock::plain(scripts::p2pkh(&hash160(key(random, keys)))),
        2 => Lock::plain(multisig(random, keys)),
        3 => Lock::plain(scripts::witness_program(0, &hash160(key(random, keys)))),
        4 => Lock::p2sh(scripts::witness_program(0, &hash160(key(random, keys)))),
        5 | 6 => Lock::plain(scripts::witness_program(1, &key(random, keys)[1..33])),
        7 | 8 => Lock::p2sh(inner(random, keys)),
        9..=11 => Lock::p2wsh(inner(random, keys)),
        12 | 13 => Lock::p2sh_p2wsh(inner(random, keys)),
        14 => Lock::plain(match random.below(4) {
            0 => scripts::witness_program(1, &[0x4e, 0x73]),
            1 => scripts::witness_program(2, &[7; 32]),
            2 => scripts::witness_program(1, &[7; 32]),
            _ => vec![0x6a, 1, 7],
        }),
        // What should not be wrapped.
        _ => Lock::p2sh(match random.below(3) {
            0 => scripts::witness_program(1, &key(random, keys)[1..33]),
            1 => scripts::p2sh(&[7; 20]),
            _ => scripts::witness_program(0, &[7; 32]),
        }),
    }
}

/// Miniscript of type B, or what looks like it: not every one is well typed.
pub(crate) fn expression(random: &mut SplitMix64, keys: &[Key], depth: usize) -> Vec<u8> {
    let start = ScriptBuilder::new;
    let number = |random: &mut SplitMix64| [1, 5, 10, 16, 17, 100, 500_000_001, 4_194_305][random.below(8)];
    if depth == 0 || random.below(4) == 0 {
        return match random.below(9) {
            0..=2 => scripts::p2pk(key(random, keys)),
            3 => scripts::p2pkh(&hash160(key(random, keys))),
            4 => start().push_int(number(random)).op(OP_CHECKSEQUENCEVERIFY).into_bytes(),
            5 => start().push_int(number(random)).op(OP_CHECKLOCKTIMEVERIFY).into_bytes(),
            6 => multisig(random, keys),
            7 => vec![[OP_0, OP_1][random.below(2)]],
            _ => {
                let (opcode, size) =
                    [(OP_SHA256, 32), (OP_HASH256, 32), (OP_RIPEMD160, 20), (OP_HASH160, 20)][random.below(4)];
                let start = start().op(OP_SIZE).push_int(32).op(OP_EQUALVERIFY).op(opcode);
                start.push_slice(&vec![9; size]).op(OP_EQUAL).into_bytes()
            }
        };
    }
    let below = depth - 1;
    let first = expression(random, keys, below);
    let start = start();
    match random.below(11) {
        0..=2 => start.raw(&verified(first)).raw(&expression(random, keys, below)),
        3 => start.op(OP_IF).raw(&first).op(OP_ELSE).raw(&expression(random, keys, below)).op(OP_ENDIF),
        4 => start.raw(&first).op(OP_IFDUP).op(OP_NOTIF).raw(&expression(random, keys, below)).op(OP_ENDIF),
        5 => {
            let second = expression(random, keys, below);
            let start = start.raw(&first).op(OP_NOTIF).raw(&expression(random, keys, below));
            start.op(OP_ELSE).raw(&second).op(OP_ENDIF)
        }
        6 => {
            let last = [OP_BOOLAND, OP_BOOLOR][random.below(2)];
            start.raw(&first).raw(&wrapped(random, keys, below)).op(last)
        }
        7 | 8 => {
            let count = 1 + random.below(3);
            let mut script = start.raw(&first);
            for _ in 0..count {
                script = script.raw(&wrapped(random, keys, below)).op(OP_ADD);
            }
            script.push_int(i64::try_from(1 + random.below(count + 1)).unwrap()).op(OP_EQUAL)
        }
        9 => match random.below(3) {
            0 => start.raw(&first).op(OP_0NOTEQUAL),
            1 => start.op(OP_SIZE).op(OP_0NOTEQUAL).op(OP_IF).raw(&first).op(OP_ENDIF),
            _ => start.op(OP_DUP).op(OP_IF).raw(&verified(first)).op(OP_ENDIF),
        },
        _ => {
            let condition = expression(random, keys, below);
            let start = start.raw(&condition).op(OP_NOTIF).raw(&verified(first)).op(OP_ENDIF);
            start.raw(&expression(random, keys, below))
        }
    }
    .into_bytes()
}

/// An expression of type W.
fn wrapped(random: &mut SplitMix64, keys: &[Key], depth: usize) -> Vec<u8> {
    let inner = expression(random, keys, depth);
    let start = ScriptBuilder::new();
    match random.below(3) {
        0 => start.op(OP_TOALTSTACK).raw(&inner).op(OP_FROMALTSTACK),
        _ => start.op(OP_SWAP).raw(&inner),
    }
    .into_bytes()
}

/// With OP_VERIFY, as a part of the last opcode if that exists.
fn verified(mut script: Vec<u8>) -> Vec<u8> {
    match script.last_mut() {
        Some(last @ (&mut OP_CHECKSIG | &mut OP_CHECKMULTISIG | &mut OP_EQUAL)) => *last += 1,
        _ => script.push(OP_VERIFY),
    }
    script
}
