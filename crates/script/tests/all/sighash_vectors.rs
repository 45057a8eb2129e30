//! Compares signature hashes with Core's file, the examples of BIP-0143 and the vectors of BIP-0341.

use crate::common::*;
use lydian_curve::{Check, Engine, PublicKeyBytes, Reference, parse_der_lax};
use lydian_primitives::Transaction;
use lydian_script::Flags;
use lydian_script::sighash::{
    LegacyCache, TaprootExt, TxContext, compute_tapbranch_hash, compute_tapleaf_hash, compute_taproot_merkle_root,
    plain,
};
use serde_json::Value;

fn holds(check: Check) -> bool {
    let mut verdict = [false];
    Reference.verify(&[check], &mut verdict);
    verdict[0]
}

/// Core's `sighash_from_data` (sighash_tests.cpp): 500 legacy hashes with random hash types.
///
/// checklist: 37, 39
#[test]
fn core_sighash_json() {
    let mut count = 0;
    let mut cache = LegacyCache::new();
    for entry in list(&testdata_json("vectors/core/sighash.json")) {
        let [tx, script, input, hash_type, expected] = list(entry) else { continue };
        let tx = Transaction::parse(bytes(tx)).unwrap();
        let script = bytes(script);
        let input = usize::try_from(input.as_u64().unwrap()).unwrap();
        let hash_type = i32::try_from(hash_type.as_i64().unwrap()).unwrap().cast_unsigned();
        let mut expected = array32(expected);
        expected.reverse();
        let owned = vec![(0, Vec::new()); tx.view().input_count()];
        let spent = outputs(&owned);
        let context = TxContext::new(tx.view(), &spent).unwrap();
        assert_eq!(context.legacy(input, &script, hash_type, &mut cache), expected, "{entry}");
        assert_eq!(plain::legacy(tx.view(), input, &script, hash_type), expected, "{entry}");
        count += 1;
    }
    report(&format!("sighash: {count}"));
    assert_eq!(count, 500);
}

/// Every signature in the examples: the hash equals the printed one, the printed signature is valid for it, and the
/// transaction is valid.
///
/// checklist: 36, 37, 38, 39
#[test]
fn bip143_examples() {
    let mut count = 0;
    for example in list(&vectors_json("bip143.json")) {
        let tx = Transaction::parse(bytes(&example["tx"])).unwrap();
        let owned = prevouts(&example["prevouts"]);
        let spent = outputs(&owned);
        let context = TxContext::new(tx.view(), &spent).unwrap();
        for signed in list(&example["signatures"]) {
            let input = usize::try_from(signed["input"].as_u64().unwrap()).unwrap();
            let hash_type = u32::try_from(signed["hash_type"].as_u64().unwrap()).unwrap();
            let message = context.segwit_v0(input, &bytes(&signed["script_code"]), hash_type);
            assert_eq!(message, array32(&signed["sighash"]), "{}", example["name"]);
            let key = PublicKeyBytes::new(&bytes(&signed["key"])).unwrap();
            let signature = bytes(&signed["signature"]);
            let (type_byte, der) = signature.split_last().unwrap();
            assert_eq!(u32::from(*type_byte), hash_type);
            let signature = parse_der_lax(der).unwrap();
            assert!(holds(Check::Ecdsa { key, message, signature }), "{}: {signed}", example["name"]);
            count += 1;
        }
        for input in 0..owned.len() {
            assert_eq!(verify(&context, input, Flags::MANDATORY), Ok(()), "input {input} of {}", example["name"]);
        }
    }
    report(&format!("BIP-0143: {count} signatures"));
    assert_eq!(count, 17);
}

fn prevouts(value: &Value) -> Vec<(i64, Vec<u8>)> {
    list(value).iter().map(|prevout| (prevout[0].as_i64().unwrap(), bytes(&prevout[1]))).collect()
}

/// BIP-0341's key path examples: each hash equals the printed one, and each printed signature is valid for it.
///
/// checklist: 53
#[test]
fn bip341_key_path_spending() {
    let mut count = 0;
    for case in list(&testdata_json("vectors/core/bip341_wallet_vectors.json")["keyPathSpending"]) {
        let tx = Transaction::parse(bytes(&case["given"]["rawUnsignedTx"])).unwrap();
        let owned: Vec<_> = list(&case["given"]["utxosSpent"])
            .iter()
            .map(|utxo| (utxo["amountSats"].as_i64().unwrap(), bytes(&utxo["scriptPubKey"])))
            .collect();
        let spent = outputs(&owned);
        let context = TxContext::new(tx.view(), &spent).unwrap();
        for signed in list(&case["inputSpending"]) {
            let input = usize::try_from(signed["given"]["txinIndex"].as_u64().unwrap()).unwrap();
            let hash_type = u8::try_from(signed["given"]["hashType"].as_u64().unwrap()).unwrap();
            let message = context.taproot(input, hash_type, &TaprootExt::default()).unwrap();
            assert_eq!(message, array32(&signed["intermediary"]["sigHash"]), "input {input}");
            let signature = bytes(&signed["expected"]["witness"][0]);
            let signature = signature[..64].try_into().unwrap();
            let key = spent[input].script_pubkey[2..].try_into().unwrap();
            assert!(holds(Check::Schnorr { key, message, signature }), "input {input}");
            count += 1;
        }
    }
    report(&format!("BIP-0341: {count} key path inputs"));
    assert_eq!(count, 7);
}

/// BIP-0341's script trees: leaf hashes, merkle root, tweak, output key, and the path back from every control block.
///
/// checklist: 52
#[test]
fn bip341_script_trees() {
    let (mut trees, mut leaves) = (0, 0);
    for case in list(&testdata_json("vectors/core/bip341_wallet_vectors.json")["scriptPubKey"]) {
        let mut found = Vec::new();
        let root = match &case["given"]["scriptTree"] {
            Value::Null => None,
            tree => Some(tree_hash(tree, &mut found)),
        };
        let internal = array32(&case["given"]["internalPubkey"]);
        let mut message = internal.to_vec();
        message.extend_from_slice(root.as_ref().map_or(&[], |root| &root[..]));
        let tweak = lydian_hash::TAP_TWEAK.hash(&[&message]);
        assert_eq!(tweak, array32(&case["intermediary"]["tweak"]));
        let output = array32(&case["intermediary"]["tweakedPubkey"]);
        let tweak_holds = |is_odd| holds(Check::Tweak { output, is_odd, internal, tweak });
        assert_ne!(tweak_holds(false), tweak_holds(true), "one parity of the output key fits");
        trees += 1;
        let Some(root) = root else { continue };
        assert_eq!(root, array32(&case["intermediary"]["merkleRoot"]));
        let printed: Vec<_> = list(&case["intermediary"]["leafHashes"]).iter().map(array32).collect();
        assert_eq!(found, printed);
        for (control, leaf) in list(&case["expected"]["scriptPathControlBlocks"]).iter().zip(&found) {
            let control = bytes(control);
            assert_eq!(control[1..33], internal);
            assert_eq!(compute_taproot_merkle_root(&control, leaf), root);
            assert!(tweak_holds(control[0] & 1 == 1));
            leaves += 1;
        }
    }
    assert_eq!((trees, leaves), (7, 12));
}

/// The hash of a tree in the notation of the vectors. Leaf hashes are appended in order.
fn tree_hash(tree: &Value, found: &mut Vec<[u8; 32]>) -> [u8; 32] {
    if let Some(branches) = tree.as_array() {
        let [left, right] = [0, 1].map(|side| tree_hash(&branches[side], found));
        return compute_tapbranch_hash(&left, &right);
    }
    let leaf_version = u8::try_from(tree["leafVersion"].as_u64().unwrap()).unwrap();
    let hash = compute_tapleaf_hash(leaf_version, &bytes(&tree["script"]));
    found.push(hash);
    hash
}
