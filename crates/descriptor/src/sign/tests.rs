use super::*;
use lydian_consensus::Chain;
use lydian_hash::sha256;
use lydian_primitives::build::{MutInput, MutOutput};
use lydian_primitives::{OutPoint, Transaction, Txid};
use lydian_script::builder::scripts;
use lydian_script::{ScriptBuilder, opcodes::*};

/// The private keys 1 and 2.
const KEYS: [&str; 2] =
    ["cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87JcbXMTcA", "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87K7XCyj5v"];

fn key(index: usize) -> PrivateKey {
    PrivateKey::from_wif(KEYS[index], Chain::Regtest).unwrap()
}

fn keystore(keys: &[usize], scripts: &[&[u8]]) -> Keystore {
    let mut store = Keystore::new();
    keys.iter().for_each(|index| store.add_key(key(*index)));
    scripts.iter().for_each(|script| store.add_script(script.to_vec()));
    store
}

/// A transaction with one input.
fn unsigned() -> MutTx {
    let prevout = OutPoint { txid: Txid([7; 32]), vout: 3 };
    MutTx {
        version: 2,
        inputs: vec![MutInput { prevout, script_sig: Vec::new(), sequence: 10, witness: Vec::new() }],
        outputs: vec![MutOutput { value: Amount(1), script_pubkey: vec![OP_1] }],
        lock_time: 100,
    }
}

fn sign(tx: &MutTx, script: &[u8], keys: &Keystore, hash_type: u8) -> Signed {
    let tx = Transaction::parse(tx.encode()).unwrap();
    let output = Output { value: Amount(5), script_pubkey: script };
    sign_transaction(tx.view(), &[Some(output)], keys, hash_type)
}

/// Each kind is complete with its keys and scripts, in every hash type, and not without them.
#[test]
fn every_kind_of_output_is_signed() {
    let (one, two) = (key(0), key(1));
    let (first, second) = (one.public_key(), two.public_key());
    let multisig = scripts::multisig(2, &[first, second]);
    let start = ScriptBuilder::new().push_slice(first).op(OP_CHECKSIGVERIFY);
    let miniscript = start.push_int(10).op(OP_CHECKSEQUENCEVERIFY).into_bytes();
    let key_hash = scripts::witness_program(0, &hash160(first));
    let program = |script: &[u8]| scripts::witness_program(0, &sha256(script));
    let nested = program(&miniscript);
    let kinds: [(Vec<u8>, Vec<&[u8]>); 9] = [
        (scripts::p2pk(first), vec![]),
        (scripts::p2pkh(&hash160(first)), vec![]),
        (multisig.clone(), vec![]),
        (key_hash.clone(), vec![]),
        (scripts::witness_program(1, &first[1..]), vec![]),
        (scripts::p2sh(&hash160(&multisig)), vec![&multisig]),
        (scripts::p2sh(&hash160(&key_hash)), vec![&key_hash]),
        (program(&multisig), vec![&multisig]),
        (scripts::p2sh(&hash160(&nested)), vec![&nested, &miniscript]),
    ];
    for (script, inside) in &kinds {
        for hash_type in [0, 1, 2, 3, 0x81, 0x82, 0x83] {
            let signed = sign(&unsigned(), script, &keystore(&[0, 1], inside), hash_type);
            assert_eq!(signed.errors, [], "{script:02x?} {hash_type}");
            // A second signer has nothing to do.
            let again = sign(&signed.tx, script, &Keystore::new(), 1);
            assert_eq!((again.errors, again.tx), (Vec::new(), signed.tx));
        }
        assert_eq!(sign(&unsigned(), script, &Keystore::new(), 0).errors.len(), 1);
    }
}

/// Signers who each have one key: one after another, and apart with their signatures combined.
#[test]
fn signatures_are_collected() {
    let (one, two) = (key(0), key(1));
    let script = scripts::multisig(2, &[one.public_key(), two.public_key()]);
    let [a, b] = [0, 1].map(|index| sign(&unsigned(), &script, &keystore(&[index], &[]), 0));
    for partial in [&a, &b] {
        let [(0, InputError::Script(error))] = partial.errors[..] else { panic!("{:?}", partial.errors) };
        assert!(InputError::Script(error).to_string().contains("possibly"), "{error}");
    }
    let both = sign(&a.tx, &script, &keystore(&[1], &[]), 0);
    assert_eq!(both.errors, []);
    let variants = [a.tx.to_transaction().unwrap(), b.tx.to_transaction().unwrap()];
    let views: Vec<Tx<'_>> = variants.iter().map(Transaction::view).collect();
    let spent = [Output { value: Amount(5), script_pubkey: &script }];
    assert_eq!(combine(&views, &spent), Some(both.tx));
}

#[test]
fn what_is_missing_is_an_error() {
    let script = scripts::witness_program(0, &hash160(key(0).public_key()));
    let tx = Transaction::parse(unsigned().encode()).unwrap();
    let keys = keystore(&[0], &[]);
    assert_eq!(sign_transaction(tx.view(), &[None], &keys, 0).errors, [(0, InputError::NotFound)]);
    let no_amount = Output { value: AMOUNT_NOT_GIVEN, script_pubkey: &script };
    assert_eq!(sign_transaction(tx.view(), &[Some(no_amount)], &keys, 0).errors, [(0, InputError::MissingAmount)]);
    // SINGLE without an output of the same index signs nothing.
    let no_outputs = MutTx { outputs: Vec::new(), ..unsigned() };
    assert_eq!(sign(&no_outputs, &script, &keys, 3).errors.len(), 1);
    assert!(PrivateKey::from_wif(KEYS[0], Chain::Main).is_none(), "a key of another chain");
}

/// r is below 2^255, so that no signature is longer than 71 bytes with its hash type; and the same message has the same
/// signature.
#[test]
fn signatures_are_short_and_deterministic() {
    let key = key(0);
    for message in 0..200_u8 {
        let signature = key.sign_ecdsa([message; 32]);
        assert!(signature.len() <= 70 && signature[3] <= 32, "{message}");
        assert_eq!(signature, key.sign_ecdsa([message; 32]));
        assert_eq!(key.sign_schnorr(&[message; 32], None), key.sign_schnorr(&[message; 32], None));
    }
}

#[test]
fn keys_are_in_no_text() {
    let text = format!("{:?}", keystore(&[0], &[]));
    assert!(text.contains("PrivateKey") && !text.contains(KEYS[0]) && !text.contains(&"00".repeat(31)), "{text}");
    assert!(!text.contains("secret"), "{text}");
}
