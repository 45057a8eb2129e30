//! `signrawtransactionwithkey` and `combinerawtransaction`.

use super::locks::{Key, Lock, keys, lock};
use super::{pick, seeded};
use crate::chain::Pair;
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint, Txid, to_hex};
use lydian_stdx::SplitMix64;
use serde_json::Value;

/// An output that may be spent.
struct Coin {
    txid: String,
    lock: Lock,
    /// As JSON.
    amount: &'static str,
}

impl Coin {
    /// The description for `prevtxs`, usually complete and right.
    fn describe(&self, random: &mut SplitMix64) -> String {
        let mut fields = vec![
            format!("\"txid\":\"{}\"", self.txid),
            "\"vout\":0".to_owned(),
            format!("\"scriptPubKey\":\"{}\"", to_hex(&self.lock.script)),
        ];
        // Core also takes the witness script as redeem script.
        let is_swapped = random.below(10) == 0;
        let scripts = [(&self.lock.redeem_script, "redeemScript"), (&self.lock.witness_script, "witnessScript")];
        for (script, name) in scripts {
            let name = if is_swapped && name == "witnessScript" { "redeemScript" } else { name };
            fields.extend(script.as_ref().map(|script| format!("\"{name}\":\"{}\"", to_hex(script))));
        }
        if random.below(12) > 0 {
            fields.push(format!("\"amount\":{}", self.amount));
        }
        match random.below(25) {
            0 => drop(fields.remove(random.below(fields.len()))),
            1 => {
                let odd = [
                    "\"txid\":\"00\"",
                    "\"txid\":5",
                    "\"vout\":-1",
                    "\"vout\":\"0\"",
                    "\"vout\":2147483648",
                    "\"scriptPubKey\":\"zz\"",
                    "\"scriptPubKey\":5",
                    "\"scriptPubKey\":\"51\"",
                    "\"redeemScript\":5",
                    "\"redeemScript\":\"51\"",
                    "\"redeemScript\":\"\"",
                    "\"witnessScript\":\"51\"",
                    "\"witnessScript\":null",
                    "\"amount\":-1",
                    "\"amount\":\"x\"",
                    "\"amount\":null",
                    "\"amount\":21000000.00000001",
                    "\"extra\":1",
                ];
                fields.insert(0, pick(random, &odd).to_owned());
            }
            _ => {}
        }
        format!("{{{}}}", fields.join(","))
    }
}

fn spend(random: &mut SplitMix64, coins: &[&Coin]) -> MutTx {
    let inputs = coins.iter().map(|coin| MutInput {
        prevout: OutPoint { txid: coin.txid.parse::<Txid>().unwrap(), vout: 0 },
        script_sig: Vec::new(),
        sequence: [10, 10, 5, 0, 0x0040_0001, 0xffff_fffd, 0xffff_fffe, 0xffff_ffff][random.below(8)],
        witness: Vec::new(),
    });
    let inputs = inputs.collect();
    let output = |value| MutOutput { value: Amount(value), script_pubkey: vec![0x51] };
    let outputs = (0..random.below(4)).map(|value| output(i64::try_from(value).unwrap())).collect();
    let lock_time = [0, 100, 101, 500_000_001][random.below(4)];
    MutTx { version: [1, 2, 2, 3][random.below(4)], inputs, outputs, lock_time }
}

const HASH_TYPES: &[&str] = &[
    "\"DEFAULT\"",
    "\"ALL\"",
    "\"NONE\"",
    "\"SINGLE\"",
    "\"ALL|ANYONECANPAY\"",
    "\"NONE|ANYONECANPAY\"",
    "\"SINGLE|ANYONECANPAY\"",
    "null",
];

fn wifs(random: &mut SplitMix64, keys: &[Key], per_mille: usize) -> String {
    let chosen: Vec<String> =
        keys.iter().filter(|_| random.below(1000) < per_mille).map(|key| format!("\"{}\"", key.wif)).collect();
    format!("[{}]", chosen.join(","))
}

/// Asks both to sign, and returns Core's answer.
fn sign(pair: &Pair, params: &str) -> Value {
    pair.ask("signrawtransactionwithkey", params);
    let answer: Value = serde_json::from_str(&pair.core.call("signrawtransactionwithkey", params).body).unwrap();
    answer["result"].clone()
}

/// Outputs that are only described, each signed at once or by several signers in turn.
#[test]
fn described_outputs_are_signed_as_in_core() {
    let Some(pair) = Pair::start("described_outputs_are_signed", &[]) else { return };
    let keys = keys(&pair, 6);
    let mut random = seeded(41);
    let (mut complete, mut partial) = (0, 0);
    for _ in 0..900 {
        let coins: Vec<Coin> = (0..1 + random.below(3))
            .map(|_| Coin {
                txid: to_hex(&[random.byte(); 32]),
                lock: lock(&mut random, &keys),
                amount: pick(&mut random, &["1", "0.5", "0", "0.00000001", "20999999.99999999", "21000000"]),
            })
            .collect();
        let tx = spend(&mut random, &coins.iter().collect::<Vec<_>>());
        let known: Vec<String> =
            coins.iter().filter(|_| random.below(15) > 0).map(|coin| coin.describe(&mut SplitMix64::new(7))).collect();
        let known = match random.below(4) {
            0 => coins.iter().map(|coin| coin.describe(&mut random)).collect(),
            _ => known,
        };
        let (mut text, mut share) = (to_hex(&tx.encode()), [1000, 700, 400, 0][random.below(4)]);
        for _ in 0..3 {
            let (wifs, hash_type) = (wifs(&mut random, &keys, share), pick(&mut random, HASH_TYPES));
            let signed = sign(&pair, &format!("[\"{text}\",{wifs},[{}],{hash_type}]", known.join(",")));
            complete += usize::from(signed["complete"] == true);
            partial += usize::from(signed["complete"] == false);
            let Some(hex) = signed["hex"].as_str() else { break };
            hex.clone_into(&mut text);
            share = 500;
        }
    }
    assert!(complete > 150 && partial > 300, "{complete} complete, {partial} partial");
    pair.comparison.finish();
}

#[test]
fn wrong_arguments_of_signing() {
    let Some(pair) = Pair::start("wrong_arguments_of_signing", &[]) else { return };
    let keys = keys(&pair, 3);
    let tx = format!("0200000001{}00000000000000000001e80300000000000001510000000000", "11".repeat(32));
    let tx = &tx[..tx.len() - 2];
    let wif = &keys[0].wif;
    let bad_wif = wif.replacen('c', "d", 1);
    for params in [
        format!("[\"{tx}\",[\"{wif}\"]]"),
        format!("[\"{tx}\",[\"{bad_wif}\"]]"),
        format!("[\"{tx}\",[\"\"]]"),
        format!("[\"{tx}\",[5]]"),
        format!("[\"{tx}\",[null]]"),
        format!("[\"{tx}\",[\"5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ\"]]"),
        format!("[\"{tx}\",[]]"),
        format!("[\"{tx}\",[],[5]]"),
        format!("[\"{tx}\",[],[null]]"),
        format!("[\"{tx}\",[],[{{}}]]"),
        format!("[\"{tx}\",[],null,\"ALL\"]"),
        format!("[\"{tx}\",[],null,\"all\"]"),
        format!("[\"{tx}\",[],null,\"\"]"),
        format!("[\"{tx}\",[],null,5]"),
        format!("[\"{tx}\"]"),
        format!("[\"{tx}\",5]"),
        "[\"\",[]]".to_owned(),
        "[\"00\",[]]".to_owned(),
        "[5,[]]".to_owned(),
        // Without inputs, there is nothing to sign.
        "[\"0200000000010000000000000000015100000000\",[]]".to_owned(),
        "[\"02000000000000000000\",[]]".to_owned(),
    ] {
        pair.ask_about_help("signrawtransactionwithkey", &params);
    }
    for params in [
        "[]".to_owned(),
        "[[]]".to_owned(),
        format!("[[\"{tx}\"]]"),
        format!("[[\"{tx}\",\"{tx}\"]]"),
        format!("[[\"{tx}\",\"00\"]]"),
        format!("[[\"{tx}\",5]]"),
        format!("[[\"{tx}\",\"\"]]"),
        format!("[[\"{tx}\",\"{}\"]]", tx.replacen("02", "01", 1)),
        "[[\"02000000000000000000\",\"02000000000000000000\"]]".to_owned(),
        "[5]".to_owned(),
    ] {
        pair.ask_about_help("combinerawtransaction", &params);
    }
    pair.comparison.finish();
}

/// Outputs in the chain: signed without being described, by several signers whose signatures are combined.
#[test]
fn outputs_of_the_chain_are_signed_and_combined() {
    let Some(pair) = Pair::start("outputs_of_the_chain_are_signed", &[]) else { return };
    let keys = keys(&pair, 5);
    let mut random = seeded(42);
    for server in [&pair.lydian, &pair.core] {
        server.result("setmocktime", "[1700000000]");
    }
    let coins: Vec<Coin> = (0..80)
        .map(|_| {
            let lock = lock(&mut random, &keys);
            let params = format!("[1,\"raw({})\"]", to_hex(&lock.script));
            pair.ask("generatetodescriptor", &params);
            let hash = pair.core.result("getbestblockhash", "[]");
            let block = pair.core.result("getblock", &format!("[{hash}]"));
            Coin { txid: block["tx"][0].as_str().unwrap().to_owned(), lock, amount: "50" }
        })
        .collect();
    for _ in 0..250 {
        let chosen: Vec<&Coin> = (0..1 + random.below(3)).map(|_| &coins[random.below(coins.len())]).collect();
        let tx = spend(&mut random, &chosen);
        let empty = to_hex(&tx.encode());
        let is_described = random.below(3) > 0;
        let mut variants = Vec::new();
        for _ in 0..2 + random.below(2) {
            let wifs = wifs(&mut random, &keys, 500);
            let described: Vec<String> = chosen.iter().map(|coin| coin.describe(&mut SplitMix64::new(7))).collect();
            let described = if is_described { format!("[{}]", described.join(",")) } else { "null".to_owned() };
            let hash_type = if random.below(4) == 0 { pick(&mut random, HASH_TYPES) } else { "\"ALL\"" };
            let signed = sign(&pair, &format!("[\"{empty}\",{wifs},{described},{hash_type}]"));
            variants.extend(signed["hex"].as_str().map(str::to_owned));
        }
        variants.extend((random.below(3) == 0).then_some(empty));
        let list: Vec<String> = variants.iter().map(|variant| format!("\"{variant}\"")).collect();
        pair.ask("combinerawtransaction", &format!("[[{}]]", list.join(",")));
        let reversed: Vec<&str> = list.iter().rev().map(|variant| &variant[..]).collect();
        pair.ask("combinerawtransaction", &format!("[[{}]]", reversed.join(",")));
    }
    pair.comparison.finish();
}
