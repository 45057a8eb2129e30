//! The judge interface: its numbering, its verdicts on known vectors, its answers to invalid requests, and its pipe
//! under load.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "an integration test")]

mod common;

use std::io::Write;
use std::process::{Command, Stdio};

use common::{hex, shown, testdata, unhex};
use lydian_oracle::limits::MAX_FRAME_BYTES;
use lydian_oracle::{
    Answer, HashRequest, Judge, JudgeError, Prevout, ScriptError, ScriptRequest, SighashRequest, SpendRequest,
    TaprootSighashRequest, TxRequest, build, or_skip,
};

/// c99c49da... of tx_valid.json: one P2PKH input whose signature has hash type 0.
const TX: &str = "01000000010276b76b07f4935c70acf54fbf1f438a4c397a9fb7e633873c4dd3bc062b6b40000000008c493046022100d23459d\
    03ed7e9511a47d13292d3430a04627de6235b6e51a40f9cd386f2abe3022100e7d25b080f0bb8d8d5f878bba7d54ad2fda650ea8d158a33ee3cbd1\
    1768191fd004104b0e2c879e4daf7b9ab68350228c159766676a14f5815084ba166432aab46198d4cca98fa3e9981d0a90b2effc514b7627947655\
    0ba3663fdcaff94c38420e9d5000000000100093d00000000001976a9149a7b0f3b80c6baaeedce0a0842553800f832ba1f88ac00000000";
const SCRIPT_PUBKEY: &str = "76a914dc44b1164188067c3a32d4780f5996fa14a4f2d988ac";
const P2SH: u32 = 1;
const WITNESS: u32 = 1 << 11;
const CLEANSTACK: u32 = 1 << 8;

fn judge(test: &str) -> Option<Judge> {
    or_skip(test, Judge::start())
}

fn name(judge: &Judge, answer: Answer<ScriptError>) -> String {
    judge.error_name(answer.known().unwrap()).to_owned()
}

#[test]
fn core_numbers_its_flags_and_errors_so() {
    let Some(judge) = judge("judge: numbers") else { return };
    let mut flags: Vec<_> = judge.info().flags.iter().map(|(name, bit)| (*bit, name.as_str())).collect();
    flags.sort_unstable();
    let expected = [
        "P2SH",
        "STRICTENC",
        "DERSIG",
        "LOW_S",
        "NULLDUMMY",
        "SIGPUSHONLY",
        "MINIMALDATA",
        "DISCOURAGE_UPGRADABLE_NOPS",
        "CLEANSTACK",
        "CHECKLOCKTIMEVERIFY",
        "CHECKSEQUENCEVERIFY",
        "WITNESS",
        "DISCOURAGE_UPGRADABLE_WITNESS_PROGRAM",
        "MINIMALIF",
        "NULLFAIL",
        "WITNESS_PUBKEYTYPE",
        "CONST_SCRIPTCODE",
        "TAPROOT",
        "DISCOURAGE_UPGRADABLE_TAPROOT_VERSION",
        "DISCOURAGE_OP_SUCCESS",
        "DISCOURAGE_UPGRADABLE_PUBKEYTYPE",
    ];
    let expected: Vec<_> = (0u8..).zip(expected).collect();
    assert_eq!(flags, expected);
    assert_eq!(judge.flag_bits("P2SH, WITNESS,"), Some(P2SH | WITNESS));
    assert_eq!((judge.flag_bits("NONE"), judge.flag_bits("P2SH,OTHER")), (Some(0), None));
    let errors = &judge.info().errors;
    assert_eq!(errors.len(), 55);
    assert_eq!(errors[0], ("OK".into(), "No error".into()));
    assert_eq!(errors[23].0, "SIG_HASHTYPE");
    assert_eq!(errors[54].0, "SIG_FINDANDDELETE");
    let mut texts: Vec<_> = errors.iter().map(|(_, text)| text).collect();
    texts.sort_unstable();
    texts.dedup();
    assert_eq!(texts.len(), errors.len(), "each error has words of its own");
}

#[test]
fn a_known_spend_and_its_mutants() {
    let Some(mut judge) = judge("judge: P2PKH") else { return };
    let (tx, script) = (unhex(TX), unhex(SCRIPT_PUBKEY));
    let mut ask = |flags: &str, tx: &[u8], script: &[u8]| {
        let flags = judge.flag_bits(flags).unwrap();
        let prevouts = [Prevout { value: 0, script_pubkey: script }];
        let answer = judge.verify(&ScriptRequest { flags, index: 0, tx, prevouts: &prevouts }).unwrap();
        name(&judge, answer)
    };
    assert_eq!(ask("P2SH", &tx, &script), "OK");
    assert_eq!(ask("P2SH,STRICTENC", &tx, &script), "SIG_HASHTYPE");
    let mut other = script.clone();
    other[5] ^= 1;
    assert_eq!(ask("P2SH", &tx, &other), "EQUALVERIFY");
    let mut other = tx.clone();
    other[190] ^= 1; // the amount that is paid
    assert_eq!(ask("P2SH", &other, &script), "EVAL_FALSE");
    assert_eq!(ask("P2SH,NULLFAIL", &other, &script), "SIG_NULLFAIL");
    assert_eq!(ask("P2SH", &tx, &[]), "OK", "the public key stays on the stack");
    assert_eq!(ask("P2SH,WITNESS,CLEANSTACK", &tx, &[]), "CLEANSTACK");
}

/// Every P2PKH entry of tx_valid.json with one input is valid under all flags except the ones it names, and invalid if
/// a bit of its output value is flipped.
#[test]
fn p2pkh_of_tx_valid() {
    let Some(mut judge) = judge("judge: tx_valid") else { return };
    let text = testdata("vectors/core/tx_valid.json");
    let vectors: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut count = 0;
    for vector in vectors.as_array().unwrap() {
        let (Some(inputs), Some(tx), Some(excluded)) = (vector[0].as_array(), vector[1].as_str(), vector[2].as_str())
        else {
            continue;
        };
        let script = inputs[0][2].as_str().unwrap();
        let key_hash = script.strip_prefix("DUP HASH160 0x14 0x").and_then(|s| s.strip_suffix(" EQUALVERIFY CHECKSIG"));
        let (Some(key_hash), 1) = (key_hash, inputs.len()) else { continue };
        let script = unhex(&format!("76a914{key_hash}88ac"));
        let prevouts = [Prevout { value: 0, script_pubkey: &script }];
        let all = judge.info().flags.values().fold(0, |bits, bit| bits | 1 << bit);
        let flags = all & !judge.flag_bits(excluded).unwrap();
        let mut tx = unhex(tx);
        let answer = judge.spend(&SpendRequest { flags, tx: &tx, prevouts: &prevouts }).unwrap();
        assert_eq!(answer, Answer::Known(vec![ScriptError::OK]), "{vector}");
        let version = &mut tx[1]; // signed in every hash type
        *version ^= 1;
        let answer = judge.spend(&SpendRequest { flags, tx: &tx, prevouts: &prevouts }).unwrap();
        assert_ne!(answer.known().unwrap()[0], ScriptError::OK, "{vector}");
        count += 1;
    }
    assert_eq!(count, 6);
}

#[test]
fn sighash_json() {
    let Some(mut judge) = judge("judge: sighash.json") else { return };
    let text = testdata("vectors/core/sighash.json");
    let vectors: serde_json::Value = serde_json::from_str(&text).unwrap();
    let vectors: Vec<_> = vectors.as_array().unwrap().iter().filter(|vector| vector[1].is_string()).collect();
    let owned: Vec<_> = vectors.iter().map(|v| [0, 1].map(|i| unhex(v[i].as_str().unwrap()))).collect();
    let requests: Vec<_> = vectors
        .iter()
        .zip(&owned)
        .map(|(vector, [tx, script_code])| SighashRequest {
            index: vector[2].as_u64().unwrap().try_into().unwrap(),
            hash_type: vector[3].as_i64().unwrap().try_into().unwrap(),
            amount: 0,
            sigversion: 0,
            script_code,
            tx,
        })
        .collect();
    let answers = judge.ask_many(&requests).unwrap();
    for (vector, answer) in vectors.iter().zip(answers) {
        assert_eq!(shown(&answer.known().unwrap()), vector[4].as_str().unwrap(), "{vector}");
    }
    assert_eq!(vectors.len(), 500);
}

#[test]
fn taproot_sighashes_of_bip341() {
    let Some(mut judge) = judge("judge: bip341") else { return };
    let text = testdata("vectors/core/bip341_wallet_vectors.json");
    let vectors: serde_json::Value = serde_json::from_str(&text).unwrap();
    let vector = &vectors["keyPathSpending"][0];
    let tx = unhex(vector["given"]["rawUnsignedTx"].as_str().unwrap());
    let utxos = vector["given"]["utxosSpent"].as_array().unwrap();
    let scripts: Vec<_> = utxos.iter().map(|utxo| unhex(utxo["scriptPubKey"].as_str().unwrap())).collect();
    let values = utxos.iter().map(|utxo| utxo["amountSats"].as_i64().unwrap());
    let prevouts: Vec<_> =
        values.zip(&scripts).map(|(value, script_pubkey)| Prevout { value, script_pubkey }).collect();
    let inputs = vector["inputSpending"].as_array().unwrap();
    assert_eq!(inputs.len(), 7);
    let mut request =
        TaprootSighashRequest { index: 0, hash_type: 0, annex: None, leaf: None, tx: &tx, prevouts: &prevouts };
    for input in inputs {
        request.index = input["given"]["txinIndex"].as_u64().unwrap().try_into().unwrap();
        request.hash_type = input["given"]["hashType"].as_u64().unwrap().try_into().unwrap();
        let digest = judge.taproot_sighash(&request).unwrap().known().unwrap().unwrap();
        assert_eq!(hex(&digest), input["intermediary"]["sigHash"].as_str().unwrap(), "{input}");
        // Annex, leaf and its position are signed.
        let annex = TaprootSighashRequest { annex: Some(&[0x50]), ..request };
        let leaf = TaprootSighashRequest { leaf: Some(([7; 32], u32::MAX)), ..request };
        let position = TaprootSighashRequest { leaf: Some(([7; 32], 0)), ..request };
        let mut digests = vec![digest];
        digests.extend([annex, leaf, position].map(|r| judge.taproot_sighash(&r).unwrap().known().unwrap().unwrap()));
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), 4);
    }
    for hash_type in [4, 0x80, 0x84, 0xff] {
        request.hash_type = hash_type;
        assert_eq!(judge.taproot_sighash(&request).unwrap(), Answer::Known(None), "{hash_type}");
    }
}

#[test]
fn a_transaction_by_itself() {
    let Some(mut judge) = judge("judge: tx") else { return };
    let (tx, script) = (unhex(TX), unhex(SCRIPT_PUBKEY));
    let mut ask = |flags, tx: &[u8], prevouts| judge.tx(&TxRequest { flags, tx, prevouts }).unwrap();
    let report = ask(0, &tx, None).known().unwrap();
    assert_eq!(shown(&report.txid), "c99c49da4c38af669dea436d3e73780dfdb6c1ecf9958baa52960e8baee30e73");
    assert_eq!((report.txid, report.total_size), (report.wtxid, report.base_size));
    assert_eq!((report.base_size, report.legacy_sigops, report.sigop_cost), (225, 1, None));
    assert_eq!(report.reject_reason, None);
    // The cost with prevouts, including one that Core's coin cache would not keep (OP_RETURN) with a value that means
    // "spent".
    let p2pkh = [Prevout { value: 5, script_pubkey: &script }];
    assert_eq!(ask(P2SH | WITNESS, &tx, Some(&p2pkh)).known().unwrap().sigop_cost, Some(4));
    let odd = [Prevout { value: -1, script_pubkey: &[0x6a, 0xac] }];
    assert_eq!(ask(P2SH | WITNESS, &tx, Some(&odd)).known().unwrap().sigop_cost, Some(4));
    let p2wpkh = unhex(&format!("0014{}", &SCRIPT_PUBKEY[6..46]));
    let v0 = [Prevout { value: 5, script_pubkey: &p2wpkh }];
    assert_eq!(ask(P2SH | WITNESS, &tx, Some(&v0)).known().unwrap().sigop_cost, Some(5));
    // A reject reason of CheckTransaction.
    let mut negative = tx.clone();
    negative[187..195].copy_from_slice(&(-1i64).to_le_bytes());
    let report = ask(0, &negative, None).known().unwrap();
    assert_eq!(report.reject_reason.as_deref(), Some("bad-txns-vout-negative"), "{}", hex(&negative));
}

#[test]
fn nonsense_is_an_answer() {
    let Some(mut judge) = judge("judge: nonsense") else { return };
    let (tx, script) = (unhex(TX), unhex(SCRIPT_PUBKEY));
    let prevout = Prevout { value: 0, script_pubkey: &script };
    let good = ScriptRequest { flags: P2SH, index: 0, tx: &tx, prevouts: &[prevout] };
    // Every truncation, and one byte too many.
    for length in 0..tx.len() {
        let request = ScriptRequest { tx: &tx[..length], ..good };
        assert!(matches!(judge.verify(&request).unwrap(), Answer::Undecodable(_)), "{length}");
    }
    let more = [&tx[..], &[0]].concat();
    let answer = judge.verify(&ScriptRequest { tx: &more, ..good }).unwrap();
    assert_eq!(answer, Answer::Undecodable("bytes follow the transaction".into()));
    // A count far above what follows.
    let huge = unhex("01000000fe00000002");
    assert!(matches!(judge.verify(&ScriptRequest { tx: &huge, ..good }).unwrap(), Answer::Undecodable(_)));
    for request in [
        ScriptRequest { flags: WITNESS, ..good },
        ScriptRequest { flags: CLEANSTACK | P2SH, ..good },
        ScriptRequest { flags: 1 << 21, ..good },
        ScriptRequest { flags: 1 << 31, ..good },
        ScriptRequest { index: 1, ..good },
        ScriptRequest { index: u32::MAX, ..good },
        ScriptRequest { prevouts: &[], ..good },
        ScriptRequest { prevouts: &[prevout, prevout], ..good },
    ] {
        assert!(matches!(judge.verify(&request).unwrap(), Answer::Refused(_)), "{request:?}");
    }
    let request = SighashRequest { index: 0, hash_type: 1, amount: 0, sigversion: 2, script_code: &[], tx: &tx };
    assert!(matches!(judge.sighash(&request).unwrap(), Answer::Refused(_)));
    assert_eq!(judge.verify(&good).unwrap(), Answer::Known(ScriptError::OK), "the judge still works after all that");
}

/// Random changes of bytes of transaction and scriptPubKey, with witness and without, under random legal flags, for
/// every kind of request with a transaction: each is answered, and no assertion in Core fails.
#[test]
fn mutants_never_end_the_judge() {
    let Some(mut judge) = judge("judge: mutants") else { return };
    let mut tx = unhex(TX);
    let witness = [&[2, 1, 0x51, 33], &[0x51; 33][..]].concat();
    let at_lock_time = tx.len() - 4;
    tx.splice(at_lock_time..at_lock_time, witness);
    tx.splice(4..4, [0, 1]);
    let scripts =
        [SCRIPT_PUBKEY.to_owned(), format!("5120{:064}", 7), format!("0020{:064}", 8), format!("a914{:040}87", 9)];
    let bases = [unhex(TX), tx];
    let mut state = 1u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    let mut decoded = 0;
    for _ in 0..20_000 {
        let mut tx = bases[random(2)].clone();
        let mut script = unhex(&scripts[random(scripts.len())]);
        for _ in 0..random(3) {
            let at = random(tx.len());
            tx[at] ^= 1 << random(8);
        }
        for _ in 0..random(3) {
            let at = random(script.len());
            script[at] ^= 1 << random(8);
        }
        let mut flags = u32::try_from(random(1 << 21)).unwrap();
        flags |= if flags & CLEANSTACK != 0 { WITNESS } else { 0 };
        flags |= if flags & WITNESS != 0 { P2SH } else { 0 };
        let value = i64::try_from(random(3)).unwrap() - 1;
        let prevouts = [Prevout { value, script_pubkey: &script }];
        let (tx, prevouts) = (&tx[..], &prevouts[..]);
        let answer = judge.verify(&ScriptRequest { flags, index: 0, tx, prevouts }).unwrap();
        decoded += u32::from(matches!(answer, Answer::Known(_)));
        judge.spend(&SpendRequest { flags, tx, prevouts }).unwrap();
        judge.tx(&TxRequest { flags, tx, prevouts: Some(prevouts) }).unwrap();
        let hash_type = i32::try_from(random(256)).unwrap();
        let sighash = SighashRequest { index: 0, hash_type, amount: value, sigversion: 0, script_code: &script, tx };
        judge.sighash(&sighash).unwrap();
        judge.sighash(&SighashRequest { sigversion: 1, ..sighash }).unwrap();
        let hash_type = u8::try_from(hash_type).unwrap();
        let taproot = TaprootSighashRequest { index: 0, hash_type, annex: None, leaf: None, tx, prevouts };
        judge.taproot_sighash(&taproot).unwrap();
    }
    assert!((10_000..20_000).contains(&decoded), "{decoded} of 20,000 decode");
}

#[test]
fn a_batch_many_times_the_pipe_keeps_its_order() {
    let Some(mut judge) = judge("judge: batch") else { return };
    let (tx, script) = (unhex(TX), unhex(SCRIPT_PUBKEY));
    let good = [Prevout { value: 0, script_pubkey: &script }];
    let long = vec![0x61; 9_000]; // 9,000 OP_NOP: more than 201 operations
    let many = [Prevout { value: 0, script_pubkey: &long }];
    let requests: Vec<_> = (0..6_000u32)
        .map(|i| {
            let flags = if i % 3 == 0 { P2SH | 2 } else { P2SH };
            let prevouts = if i % 5 == 0 { &many } else { &good };
            ScriptRequest { flags, index: 0, tx: if i % 7 == 0 { &tx[..i as usize % 225] } else { &tx }, prevouts }
        })
        .collect();
    let answers = judge.verify_many(&requests).unwrap();
    for (i, answer) in (0..).zip(answers) {
        let answer = match answer {
            Answer::Undecodable(_) => "undecodable".to_owned(),
            other => name(&judge, other),
        };
        let expected = match (i % 7, i % 5, i % 3) {
            (0, _, _) => "undecodable",
            (_, 0, _) => "OP_COUNT",
            (_, _, 0) => "SIG_HASHTYPE",
            _ => "OK",
        };
        assert_eq!(answer, expected, "{i}");
    }
    assert_eq!(judge.verify_many(&[]).unwrap(), []);
}

#[test]
fn a_frame_at_its_limit_and_above() {
    let Some(mut judge) = judge("judge: limit") else { return };
    let bytes = vec![0; MAX_FRAME_BYTES];
    let at_limit = &bytes[..MAX_FRAME_BYTES - 5]; // kind and length come before
    assert_ne!(judge.sha256d(at_limit).unwrap(), [0; 32]);
    let above = &bytes[..MAX_FRAME_BYTES - 4];
    assert!(matches!(judge.sha256d(above), Err(JudgeError::TooLong { index: 0 })));
    assert_eq!(hex(&judge.sha256d(b"").unwrap()), "5df6e0e2761359d30a8275058e299fcc0381534545f55cf43e41983f5d4c9456");
    let requests = [HashRequest(b""), HashRequest(above)];
    assert!(matches!(judge.ask_many(&requests), Err(JudgeError::TooLong { index: 1 })));
    assert!(matches!(judge.sha256d(b""), Err(JudgeError::Broken)), "answers may be on their way: never asked again");
}

/// Sends raw bytes to a fresh judge. Returns its output and its exit code.
fn raw(bytes: &[u8]) -> Option<(Vec<u8>, Option<i32>)> {
    let built = or_skip("judge: raw frames", build::locate())?;
    let mut process = Command::new(built.judge).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    process.stdin.take().unwrap().write_all(bytes).unwrap();
    let output = process.wait_with_output().unwrap();
    Some((output.stdout, output.status.code()))
}

#[test]
fn the_examples_of_the_document() {
    let document = include_str!("../../../docs/formats/judge.md");
    let lines = |prefix: &str| document.lines().filter_map(|l| l.strip_prefix(prefix)).map(unhex).collect::<Vec<_>>();
    let (requests, answers) = (lines("> "), lines("< "));
    assert_eq!((requests.len(), answers.len()), (10, 10));
    let Some((found, code)) = raw(&requests.concat()) else { return };
    assert_eq!((hex(&found), code), (hex(&answers.concat()), Some(0)));
}

#[test]
fn torn_and_oversized_frames_end_the_judge() {
    let Some((found, code)) = raw(&[0, 0, 0, 0, 9, 0, 0, 0, 1]) else { return };
    assert_eq!(code, Some(5), "an empty request is refused, a torn one ends it");
    assert_eq!(found[4], 2);
    let too_long = u32::try_from(MAX_FRAME_BYTES + 1).unwrap().to_le_bytes();
    let (found, code) = raw(&too_long).unwrap();
    assert_eq!((found[4], code), (2, Some(4)));
}
