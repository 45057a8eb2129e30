//! A signet of one's own: Lydian makes the templates, a signer solves the challenge (BIP-0325), `lydian-cli grind`
//! finds the nonces, and both programs accept the blocks of the other.

use crate::chain::Pair;
use crate::compare::Comparison;
use crate::server::Server;
use crate::templates::{Assembled, NOW};
use lydian_oracle::{build, or_skip};
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, Header, OutPoint, Reader, hex, to_hex, write_compact_size};
use lydian_script::ScriptBuilder;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// The private key 1 and its public key.
const KEY: &str = "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87JcbXMTcA";
const PUBLIC_KEY: &str = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";

const SIGNET_HEADER: [u8; 4] = [0xec, 0xc7, 0xda, 0xa2];

/// Runs `lydian-cli grind`; returns stdout and stderr.
fn grind(arguments: &[&str]) -> (String, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_lydian")).with_file_name("lydian-cli");
    assert!(program.exists(), "build it first: cargo build --profile test -p lydian-cli");
    let output = Command::new(program).arg("grind").args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap().trim_end().to_owned();
    (text(output.stdout), text(output.stderr))
}

/// The transaction that the solution spends, and the one that spends it, without a signature.
fn challenge_transactions(block: &Assembled, challenge: &[u8]) -> (MutTx, MutTx) {
    let mut data = block.header.version.to_le_bytes().to_vec();
    data.extend(block.header.prev_block.0);
    data.extend(block.merkle_root());
    data.extend(block.header.time.to_le_bytes());
    let script_sig = ScriptBuilder::new().push_int(0).push_slice(&data).into_bytes();
    let input = |prevout, script_sig| MutInput { prevout, script_sig, sequence: 0, witness: Vec::new() };
    let output = |script: &[u8]| MutOutput { value: Amount(0), script_pubkey: script.to_vec() };
    let tx = |input, output| MutTx { version: 0, inputs: vec![input], outputs: vec![output], lock_time: 0 };
    let spent = tx(input(OutPoint::NULL, script_sig), output(challenge));
    let prevout = OutPoint { txid: spent.txid(), vout: 0 };
    let spending = tx(input(prevout, Vec::new()), output(&[0x6a]));
    (spent, spending)
}

/// Signs with the RPC of a node. Returns the solution: scriptSig and witness.
fn solve(node: &Server, block: &Assembled, challenge: &[u8]) -> Vec<u8> {
    let (spent, spending) = challenge_transactions(block, challenge);
    let coin = json!({"txid": spent.txid().to_string(), "vout": 0, "scriptPubKey": to_hex(challenge), "amount": 0});
    let params = json!([to_hex(&spending.encode()), [KEY], [coin]]);
    let signed = node.result("signrawtransactionwithkey", &params.to_string());
    assert_eq!(signed["complete"], true, "{signed}");
    let decoded = node.result("decoderawtransaction", &json!([signed["hex"]]).to_string());
    let input = &decoded["vin"][0];
    let script_sig = hex(input["scriptSig"]["hex"].as_str().unwrap()).unwrap();
    let witness = input["txinwitness"].as_array().cloned().unwrap_or_default();
    let mut solution = Vec::new();
    let bytes = |bytes: &[u8], out: &mut Vec<u8>| {
        write_compact_size(out, bytes.len());
        out.extend_from_slice(bytes);
    };
    bytes(&script_sig, &mut solution);
    write_compact_size(&mut solution, witness.len());
    for item in witness {
        bytes(&hex(item.as_str().unwrap()).unwrap(), &mut solution);
    }
    solution
}

/// Puts a solution after the commitment to witnesses.
fn push(block: &mut Assembled, commitment: &[u8], data: &[u8]) {
    let data = [&SIGNET_HEADER[..], data].concat();
    let script = [commitment, &ScriptBuilder::new().push_slice(&data).into_bytes()].concat();
    block.coinbase.outputs[1].script_pubkey = script;
    block.seal();
}

fn call(server: &Server, method: &str, params: &Value) -> Value {
    server.result(method, &params.to_string())
}

/// A block of a template of `maker`, solved and with its proof of work.
fn mined(maker: &Server, challenge: &[u8], is_signed: bool) -> Assembled {
    let template = call(maker, "getblocktemplate", &json!([{"rules": ["segwit", "signet"]}]));
    assert_eq!(template["signet_challenge"], to_hex(challenge));
    let mut block = Assembled::of(&template, vec![0x51]);
    if is_signed {
        let commitment = block.coinbase.outputs[1].script_pubkey.clone();
        push(&mut block, &commitment, &[]);
        let solution = solve(maker, &block, challenge);
        push(&mut block, &commitment, &solution);
    }
    let (found, errors) = grind(&[&to_hex(&block.header.to_bytes())]);
    assert_eq!(errors, "");
    block.header = Header::read(&mut Reader::new(&hex(&found).unwrap())).unwrap();
    block
}

/// Both programs on a signet with this challenge.
fn start(test: &str, challenge: &[u8]) -> Option<Pair> {
    let built = or_skip(test, build::locate())?;
    let option = format!("-signetchallenge={}", to_hex(challenge));
    let pair = Pair {
        lydian: Server::lydian_on("signet", test, &[&option]),
        core: Server::core_on("signet", &built.bitcoind, test, &[&option]),
        built,
        comparison: Comparison::default(),
    };
    pair.ask("setmocktime", &json!([NOW]).to_string());
    Some(pair)
}

/// Requests for a template, and the state of mining.
fn look(pair: &Pair) {
    for params in [
        json!([{"rules": ["segwit"]}]),
        json!([{"rules": ["signet"]}]),
        json!([{"rules": ["segwit", "signet"]}]),
        json!([{"rules": [], "longpollid": "0".repeat(64)}]),
    ] {
        pair.ask("getblocktemplate", &params.to_string());
    }
    pair.ask("getmininginfo", "[]");
    pair.ask("getblockchaininfo", "[]");
}

#[test]
fn blocks_of_an_open_signet() {
    let Some(pair) = start("signet-open", &[0x51]) else { return };
    look(&pair);
    // Core makes one for us, and Lydian one for Core.
    let core = call(&pair.core, "generatetodescriptor", &json!([1, "raw(51)", 100_000_000]))[0].clone();
    let block = call(&pair.core, "getblock", &json!([core, 0]));
    assert_eq!(call(&pair.lydian, "submitblock", &json!([block])), Value::Null);
    look(&pair);
    let ours = mined(&pair.lydian, &[0x51], false);
    for server in [&pair.lydian, &pair.core] {
        assert_eq!(call(server, "submitblock", &json!([to_hex(&ours.bytes())])), Value::Null);
    }
    look(&pair);
    pair.comparison.finish();
}

#[test]
fn blocks_of_signets_with_keys() {
    let key = hex(PUBLIC_KEY).unwrap();
    let multisig = [&[0x51, 33][..], &key, &[33], &[3; 33], &[0x52, 0xae]].concat();
    let to_key_hash = [&[0x00, 20][..], &lydian_hash::hash160(&key)].concat();
    for (test, challenge) in [("signet-multisig", multisig), ("signet-p2wpkh", to_key_hash)] {
        let Some(pair) = start(test, &challenge) else { return };
        look(&pair);
        let block = mined(&pair.lydian, &challenge, true);
        // A proposal needs no solution; a block does.
        let mut unsolved = block.clone();
        unsolved.coinbase.outputs[1].script_pubkey.truncate(38);
        unsolved.seal();
        let proposal = json!([{"mode": "proposal", "data": to_hex(&unsolved.bytes())}]);
        pair.ask("getblocktemplate", &proposal.to_string());
        assert_eq!(call(&pair.lydian, "getblocktemplate", &proposal), Value::Null);
        let (found, _) = grind(&[&to_hex(&unsolved.header.to_bytes())]);
        unsolved.header = Header::read(&mut Reader::new(&hex(&found).unwrap())).unwrap();
        for server in [&pair.core, &pair.lydian] {
            let submit = |block: &Assembled| call(server, "submitblock", &json!([to_hex(&block.bytes())]));
            assert_eq!(submit(&unsolved), "bad-signet-blksig");
            assert_eq!(submit(&block), Value::Null);
        }
        look(&pair);
        pair.comparison.finish();
    }
}

/// Headers on the genesis block of regtest, where every second nonce is one. The judge is built without `bitcoin-util`,
/// so that Core is asked for its verdict on the headers: that with the nonce found, and one with another nonce.
#[test]
fn headers_of_grind_are_valid_in_core() {
    let Some(pair) = Pair::start("headers_of_grind_are_valid_in_core", &[]) else { return };
    pair.ask("setmocktime", &json!([NOW]).to_string());
    let read = |text: &str| Header::read(&mut Reader::new(&hex(text).unwrap())).unwrap();
    let submit = |header: &Header| {
        let params = json!([to_hex(&header.to_bytes())]).to_string();
        pair.ask("submitheader", &params);
        pair.core.call("submitheader", &params).body
    };
    let hash = call(&pair.core, "getblockhash", &json!([0]));
    let genesis = read(call(&pair.core, "getblockheader", &json!([hash, false])).as_str().unwrap());
    for number in 0..24 {
        let time = genesis.time + 1 + u32::from(number);
        let header =
            Header { version: 0x2000_0000, prev_block: genesis.hash(), merkle_root: [number; 32], time, ..genesis };
        let (found, errors) = grind(&[&to_hex(&header.to_bytes())]);
        assert_eq!(errors, "");
        let found = read(&found);
        assert_eq!(Header { nonce: header.nonce, ..found }, header);
        let answer = submit(&found);
        assert!(answer.contains("\"error\":null"), "{answer}");
        let is_too_high = |header: &Header| header.hash().0[31] >= 0x80;
        let other = (0..).map(|nonce| Header { nonce, ..header }).find(is_too_high).unwrap();
        let answer = submit(&other);
        assert!(answer.contains("high-hash"), "{answer}");
    }
    pair.comparison.finish();
}

/// The texts of Core's `bitcoin-util`.
#[test]
fn errors_of_grind() {
    let said = |arguments: &[&str]| grind(arguments).1;
    assert_eq!(said(&[]), "Must specify block header to grind");
    assert_eq!(said(&["00", "00"]), "Must specify block header to grind");
    assert_eq!(said(&["00"]), "Could not decode block header");
    assert_eq!(said(&[&"00".repeat(80)]), "Could not satisfy difficulty target");
}
