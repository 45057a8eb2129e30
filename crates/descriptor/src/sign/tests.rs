use super::*;
use lydian_consensus::Chain;
use lydian_curve::{Check, Engine, Reference, Scheme, ToSign};
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
    sign_transaction(tx.view(), &[Some(output)], keys, hash_type, &Batch::default())
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
    assert_eq!(sign_transaction(tx.view(), &[None], &keys, 0, &Batch::default()).errors, [(0, InputError::NotFound)]);
    let no_amount = Output { value: AMOUNT_NOT_GIVEN, script_pubkey: &script };
    assert_eq!(
        sign_transaction(tx.view(), &[Some(no_amount)], &keys, 0, &Batch::default()).errors,
        [(0, InputError::MissingAmount)]
    );
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
        let sign = |scheme, tweak| {
            let wanted = key.to_sign([message; 32], scheme, tweak).unwrap();
            Reference.sign(&[wanted], &[0; 32]).pop().flatten().unwrap()
        };
        let signature = sign(Scheme::Ecdsa, None);
        assert!(signature[0] < 0x80, "{message}");
        assert_eq!(signature, sign(Scheme::Ecdsa, None));
        assert_eq!(sign(Scheme::Schnorr, Some([3; 32])), sign(Scheme::Schnorr, Some([3; 32])));
    }
}

/// Many inputs of every kind, signed together by each engine, are those that libsecp256k1 signs alone, byte for byte;
/// the inputs of another signer are completed by a second call, and a bad signature that is met is no valid one.
#[test]
fn inputs_are_signed_together_as_alone() {
    let (one, two) = (key(0), key(1));
    let (first, second) = (one.public_key(), two.public_key());
    let multisig = scripts::multisig(2, &[first, second]);
    let key_hash = scripts::witness_program(0, &hash160(first));
    let program = scripts::witness_program(0, &sha256(&multisig));
    let tree = TaprootTree::new(second[1..].try_into().unwrap(), Vec::new()).unwrap();
    let kinds = [
        scripts::p2pk(second),
        scripts::p2pkh(&hash160(first)),
        key_hash.clone(),
        scripts::p2sh(&hash160(&key_hash)),
        multisig.clone(),
        program,
        scripts::witness_program(1, &first[1..]),
        scripts::witness_program(1, &tree.output_key()),
    ];
    let mut tx = unsigned();
    let input = tx.inputs.remove(0);
    let mut spent = Vec::new();
    for index in 0..100 {
        tx.inputs.push(MutInput { prevout: OutPoint { vout: index, ..input.prevout }, ..input.clone() });
        let script_pubkey = &kinds[usize::try_from(index).unwrap() % kinds.len()][..];
        spent.push(Some(Output { value: Amount(5), script_pubkey }));
    }
    for keys in [&[0][..], &[1], &[0, 1]] {
        let mut keys = keystore(keys, &[&multisig, &key_hash]);
        keys.add_tree(tree.clone());
        let all = |tx: &MutTx, batch: &Batch<'_>| {
            let tx = Transaction::parse(tx.encode()).unwrap();
            sign_transaction(tx.view(), &spent, &keys, 0, batch)
        };
        let alone = all(&tx, &Batch::default());
        assert_eq!(alone.errors.is_empty(), keys.keys.len() == 2);
        for engine in lydian_curve::engines() {
            let together = all(&tx, &Batch::new(&*engine, [9; 32]));
            assert_eq!((&together.tx, &together.errors), (&alone.tx, &alone.errors), "{}", engine.name());
            let mut spoiled = alone.tx.clone();
            for input in &mut spoiled.inputs {
                if let Some(byte) = input.witness.first_mut().and_then(|element| element.get_mut(20)) {
                    *byte ^= 1;
                }
            }
            let again = all(&spoiled, &Batch::new(&*engine, [9; 32]));
            let expected = all(&spoiled, &Batch::default());
            assert_eq!((again.tx, again.errors), (expected.tx, expected.errors), "{}", engine.name());
        }
    }
}

/// An engine that makes wrong signatures, each of which would reveal the private key.
#[derive(Debug)]
struct Faulty;

impl Engine for Faulty {
    fn name(&self) -> &'static str {
        "faulty"
    }

    fn verify(&self, checks: &[Check], verdicts: &mut [bool]) {
        Reference.verify(checks, verdicts);
    }

    fn sign(&self, wanted: &[ToSign], seed: &[u8; 32]) -> Vec<Option<[u8; 64]>> {
        let spoil = |mut signature: [u8; 64]| {
            signature[50] ^= 1;
            signature
        };
        Reference.sign(wanted, seed).into_iter().map(|made| made.map(spoil)).collect()
    }
}

#[test]
fn wrong_signatures_are_made_again() {
    let (one, two) = (key(0), key(1));
    let multisig = scripts::multisig(2, &[one.public_key(), two.public_key()]);
    let taproot = scripts::witness_program(1, &one.public_key()[1..]);
    for (script, keys) in [(scripts::p2pk(one.public_key()), 2), (taproot, 2), (multisig, 1)] {
        let keys = keystore(&[0, 1][..keys], &[]);
        let tx = Transaction::parse(unsigned().encode()).unwrap();
        let spent = [Some(Output { value: Amount(5), script_pubkey: &script })];
        let signed = |batch: &Batch<'_>| sign_transaction(tx.view(), &spent, &keys, 0, batch).tx;
        assert_eq!(signed(&Batch::new(&Faulty, [0; 32])), signed(&Batch::default()));
    }
}

#[test]
fn keys_are_in_no_text() {
    let text = format!("{:?}", keystore(&[0], &[]));
    assert!(text.contains("PrivateKey") && !text.contains(KEYS[0]) && !text.contains(&"00".repeat(31)), "{text}");
    assert!(!text.contains("secret"), "{text}");
}

/// Regression: for each participant whose private key is known, all participants were aggregated again. A PSBT can name
/// one participant thousands of times.
#[test]
fn many_participants_are_aggregated_once() {
    let [one, two] = [0, 1].map(|index| CompressedKey::try_from(key(index).public_key()).unwrap());
    let script = scripts::witness_program(1, &two[1..]);
    let tx = Transaction::parse(unsigned().encode()).unwrap();
    let spent = [Output { value: Amount(5), script_pubkey: &script }];
    let context = TxContext::new(tx.view(), &spent).unwrap();
    let (mut keys, batch) = (keystore(&[0], &[]), Batch::default());
    keys.add_entropy([1; 32]);
    let participants = [(two, vec![one; 3_000])].into();
    let mut data = SignatureData { musig_participants: participants, ..SignatureData::default() };
    Signer::new(&context, 0, &keys, &batch, (0, true)).produce(&script, &mut data);
    assert!(data.musig_nonces.is_empty(), "the aggregate is another");
    assert_eq!(data.musig_participants.len(), 1);
}
