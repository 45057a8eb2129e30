use super::*;
use lydian_consensus::Chain;
use lydian_descriptor::{Batch, Keystore, PrivateKey};
use lydian_primitives::to_hex;
use lydian_stdx::{SplitMix64, base64};
use serde_json::Value;

/// The vectors of Core's functional tests.
fn vectors() -> Value {
    serde_json::from_str(include_str!("../../../testdata/vectors/core/rpc_psbt.json")).unwrap()
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

fn read(text: &Value) -> Psbt {
    Psbt::from_base64(text.as_str().unwrap()).unwrap()
}

#[test]
fn valid_psbts_are_read_and_written() {
    let vectors = vectors();
    let valid = texts(&vectors["valid"]);
    assert_eq!(valid.len(), 34);
    for text in valid {
        let written = Psbt::from_base64(text).unwrap().to_bytes();
        assert_eq!(Psbt::from_bytes(&written).unwrap().to_bytes(), written, "{text}");
    }
}

#[test]
fn invalid_psbts_are_refused_with_cores_words() {
    let vectors = vectors();
    for text in texts(&vectors["invalid"]) {
        assert!(Psbt::from_base64(text).is_err(), "{text}");
    }
    let with_words = vectors["invalid_with_msg"].as_array().unwrap();
    assert_eq!(with_words.len(), 20);
    for case in with_words {
        let error = Psbt::from_base64(case[0].as_str().unwrap()).unwrap_err().to_string();
        let words = case[1].as_str().unwrap();
        // The file is older than these words.
        let newer = [
            "Size of key was not 34 for the type Input MuSig2 Participants Pubkeys: iostream error",
            "Size of key was not 34 for the type Output MuSig2 Participants Pubkeys: iostream error",
        ];
        let is_newer = words.ends_with("aggregate key is not 34 bytes") && newer.contains(&error.as_str());
        assert!(is_newer || error.starts_with(words) && error.ends_with(": iostream error"), "{error}, {words}");
    }
    assert_eq!(Psbt::from_base64("cHNidP8").unwrap_err().to_string(), "invalid base64");
    assert_eq!(Psbt::from_base64("").unwrap_err().to_string(), "SpanReader::read(): end of data: iostream error");
}

/// Signs with the keys of a vector.
fn signed(case: &Value) -> Result<Psbt, SignError> {
    let (mut psbt, mut keys) = (read(&case["psbt"]), Keystore::new());
    for wif in texts(&case["privkeys"]) {
        keys.add_key(PrivateKey::from_wif(wif, Chain::Regtest).unwrap());
    }
    let prepared = Prepared::new(&psbt)?;
    let outputs = prepared.outputs();
    let batch = Batch::default();
    let context = prepared.context(&outputs, &batch)?;
    context.plan(&psbt.inputs, &keys, |_| None);
    for (index, input) in psbt.inputs.iter_mut().enumerate() {
        let options = SignOptions { sighash_type: None, finalize: false };
        // The other signer is missing.
        let _ = context.sign(index, input, &keys, options, None);
    }
    Ok(psbt)
}

#[test]
fn every_role_of_bip_0174() {
    let vectors = vectors();
    let list = |name: &str| vectors[name].as_array().unwrap().clone();
    for case in list("signer") {
        assert_eq!(signed(&case).unwrap().to_base64(), case["result"].as_str().unwrap());
    }
    // The second has unknown fields of a type that has a meaning by now.
    for case in list("combiner").iter().take(1) {
        let mut psbts: Vec<Psbt> = case["combine"].as_array().unwrap().iter().map(read).collect();
        let mut first = psbts.remove(0);
        assert!(psbts.into_iter().all(|psbt| first.merge(psbt)));
        assert_eq!(first.to_base64(), case["result"].as_str().unwrap());
    }
    for case in list("finalizer") {
        let mut psbt = read(&case["finalize"]);
        assert!(psbt.finalize(&Batch::default()).is_some());
        assert_eq!(psbt.to_base64(), case["result"].as_str().unwrap());
    }
    for case in list("extractor") {
        let tx = read(&case["extract"]).finalize(&Batch::default()).unwrap();
        assert_eq!(to_hex(&tx.encode()), case["result"].as_str().unwrap());
    }
}

/// Mutated PSBTs give a PSBT that is written and read again, or an error; and nothing that is done with one panics.
#[test]
fn mangled_psbts_are_total() {
    let vectors = vectors();
    let valid: Vec<Vec<u8>> =
        texts(&vectors["valid"]).into_iter().map(|text| Psbt::from_base64(text).unwrap().to_bytes()).collect();
    let mut random = SplitMix64::new(1);
    let mut readable = 0;
    for round in 0..20_000 {
        let mut bytes = valid[round % valid.len()].clone();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len());
            match random.below(4) {
                0 => bytes[at] = random.byte(),
                1 => bytes.insert(at, random.byte()),
                2 => bytes.truncate(at.max(5)),
                _ => bytes[at] ^= 1 << random.below(8),
            }
        }
        let Ok(mut psbt) = Psbt::from_bytes(&bytes) else { continue };
        readable += 1;
        let written = psbt.to_bytes();
        let again = Psbt::from_bytes(&written).unwrap_or_else(|error| panic!("{error}: {}", base64(&bytes)));
        assert_eq!(again.to_bytes(), written, "{}", base64(&bytes));
        if round % 8 == 0 {
            again.clone().analyze();
            assert_eq!(psbt.merge(again), psbt.lock_time().is_some());
            psbt.finalize(&Batch::default());
        }
    }
    assert!(readable > 1_000, "{readable}");
}
