//! `decoderawtransaction`, `createrawtransaction` and `getrawtransaction`.

use super::{pick, quoted, seeded};
use crate::chain::Pair;
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint, Txid, to_hex};
use lydian_stdx::SplitMix64;

/// A transaction of random shape: any number of inputs and outputs, scripts of any bytes, witnesses or none.
pub(crate) fn random_tx(random: &mut SplitMix64) -> MutTx {
    let script = |random: &mut SplitMix64| {
        let size = [0, 1, 2, 3, 22, 25, 34, 60, 600][random.below(9)];
        match random.below(4) {
            0 => (0..size).map(|_| random.byte()).collect::<Vec<u8>>(),
            1 => vec![0x51; size],
            2 => [&[0x00, 0x14][..], &[7; 20]].concat(),
            _ => [&[0x30, 6, 2, 1, 1, 2, 1, 1, 1][..], &[0xac]].concat(),
        }
    };
    let has_witness = random.below(2) == 0;
    let inputs = (0..random.below(4)).map(|_| MutInput {
        prevout: match random.below(6) {
            0 => OutPoint::NULL,
            _ => OutPoint { txid: Txid([random.byte(); 32]), vout: u32::from(random.byte()) },
        },
        script_sig: script(random),
        sequence: [0, 5, 0xffff_fffd, 0xffff_ffff][random.below(4)],
        witness: (0..if has_witness { random.below(3) } else { 0 }).map(|_| script(random)).collect(),
    });
    let inputs = inputs.collect();
    let outputs = (0..random.below(4)).map(|_| MutOutput {
        value: Amount([0, 1, 546, 100_000_000, -1, i64::MAX, 0x0001_0000][random.below(7)]),
        script_pubkey: script(random),
    });
    let outputs = outputs.collect();
    MutTx { version: [0, 1, 2, 3, u32::MAX][random.below(5)], inputs, outputs, lock_time: u32::from(random.byte()) }
}

#[test]
fn transactions_are_decoded_as_core_decodes_them() {
    let Some(pair) = Pair::start("transactions_are_decoded", &[]) else { return };
    let mut random = seeded(11);
    for _ in 0..400 {
        let mut bytes = random_tx(&mut random).encode();
        match random.below(6) {
            // Any byte changed, cut off or added.
            0 => {
                let place = random.below(bytes.len());
                bytes[place] = random.byte();
            }
            1 => bytes.truncate(random.below(bytes.len())),
            2 => bytes.push(0),
            _ => {}
        }
        let text = quoted(&to_hex(&bytes));
        for more in ["", ",true", ",false"] {
            pair.ask("decoderawtransaction", &format!("[{text}{more}]"));
        }
    }
    // Outputs without inputs, whose bytes may also be read with witnesses.
    for value in 0..300_u16 {
        let tail: Vec<u8> = (0..random.below(30)).map(|_| u8::try_from(random.below(4)).unwrap()).collect();
        let bytes = [&[2, 0, 0, 0, 0, 1][..], &value.to_le_bytes()[..1], &tail, &[0; 4]].concat();
        for more in ["", ",true", ",false"] {
            pair.ask("decoderawtransaction", &format!("[{}{more}]", quoted(&to_hex(&bytes))));
        }
    }
    // Bytes that can be read both ways.
    for in_script in ["51", "4c", "ff"] {
        for in_txid in ["00", "ff", "ba"] {
            let txid = format!("00000000000000{:02x}{}{in_txid}{}", 47, "00".repeat(12), "00".repeat(11));
            let input = format!("01{txid}000000000000000000");
            let text = format!("020000000001{input}01000000000000000001{in_script}01015100000000");
            for more in ["", ",true", ",false"] {
                pair.ask("decoderawtransaction", &format!("[\"{text}\"{more}]"));
            }
        }
    }
    for params in ["[\"\"]", "[\"0\"]", "[\"zz\"]", "[1]", "[null]", "[\"00\",1]", "[\"00\",null]", "[]"] {
        pair.ask_about_help("decoderawtransaction", params);
    }
    pair.comparison.finish();
}

const ADDRESSES: &[&str] = &[
    "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080",
    "BCRT1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KYGT080",
    "mfWxJ45yp2SFn7UciZyNpvDKrzbhyfKrY8",
    "2N2JD6wb56AfK4tfmM6PwdVmoYk2dCKf4Br",
    "bcrt1pfeesnyr2tx",
    "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt081",
    "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2",
    "data",
    "",
    "x",
];

const VALUES: &[&str] = &[
    "0",
    "1",
    "0.1",
    "0.00000001",
    "0.000000001",
    "21000000",
    "21000000.00000001",
    "-1",
    "1e-8",
    "1e8",
    "\"1\"",
    "\"0.5\"",
    "\"\"",
    "\"00ff\"",
    "\"0\"",
    "\"zz\"",
    "true",
    "false",
    "null",
    "[]",
    "{}",
    "1234",
    "123",
    "1e400",
    "00",
    "\" 1\"",
];

const SEQUENCES: &[&str] =
    &["0", "4294967293", "4294967294", "4294967295", "4294967296", "-1", "1.5", "\"1\"", "null", "true"];

/// Mostly valid, with one thing wrong at a time.
pub(crate) fn random_creation(random: &mut SplitMix64) -> String {
    let txid = format!("\"{}\"", "1f".repeat(32));
    let inputs: Vec<String> = (0..random.below(3))
        .map(|_| {
            let mut fields = Vec::new();
            match random.below(12) {
                0 => {}
                1 => fields.push("\"txid\":\"12\"".to_owned()),
                2 => fields.push("\"txid\":5".to_owned()),
                _ => fields.push(format!("\"txid\":{txid}")),
            }
            let vouts = ["0", "1", "2147483647", "2147483648", "-1", "\"0\"", "null", "1.0"];
            match random.below(3) {
                0 => fields.push(format!("\"vout\":{}", pick(random, &vouts))),
                _ => fields.push("\"vout\":7".to_owned()),
            }
            if random.below(2) == 0 {
                fields.push(format!("\"sequence\":{}", pick(random, SEQUENCES)));
            }
            format!("{{{}}}", fields.join(","))
        })
        .collect();
    let inputs = match random.below(15) {
        0 => pick(random, &["null", "{}", "\"x\"", "[1]", "[null]", "[[]]"]).to_owned(),
        _ => format!("[{}]", inputs.join(",")),
    };
    let pairs: Vec<String> = (0..random.below(4))
        .map(|_| {
            let address = match random.below(3) {
                0 => pick(random, ADDRESSES),
                _ => ADDRESSES[[0, 2, 3, 4, 7][random.below(5)]],
            };
            let value = match (random.below(3), address) {
                (0, _) => pick(random, VALUES),
                (_, "data") => "\"00ff\"",
                _ => "0.5",
            };
            format!("\"{address}\":{value}")
        })
        .collect();
    let outputs = match random.below(12) {
        0 => pick(random, &["null", "1", "\"x\"", "[1]", "[{}]", "[{\"data\":\"00\",\"x\":1}]", "[[]]"]).to_owned(),
        1..=4 => format!("{{{}}}", pairs.join(",")),
        _ => format!("[{}]", pairs.iter().map(|pair| format!("{{{pair}}}")).collect::<Vec<_>>().join(",")),
    };
    let lock_times = ["0", "1", "499999999", "4294967295", "4294967296", "-1", "1.0", "null", "\"1\""];
    let versions = ["1", "2", "3", "0", "4", "-1", "4294967295", "4294967296", "null", "true", "2.0"];
    let mut params = vec![inputs, outputs];
    for options in [&lock_times[..], &["true", "false", "null", "1", "\"x\""], &versions] {
        if random.below(4) == 0 {
            break;
        }
        let usual = options[random.below(3)];
        params.push(if random.below(3) == 0 { pick(random, options) } else { usual }.to_owned());
    }
    format!("[{}]", params.join(","))
}

#[test]
fn transactions_are_created_as_core_creates_them() {
    let Some(pair) = Pair::start("transactions_are_created", &[]) else { return };
    let mut random = seeded(12);
    for _ in 0..2_500 {
        pair.ask_about_help("createrawtransaction", &random_creation(&mut random));
    }
    // Data up to what a script may hold, and many outputs.
    for size in [1, 75, 76, 255, 256, 520, 521, 65_536] {
        pair.ask("createrawtransaction", &format!("[[],[{{\"data\":\"{}\"}}]]", "ab".repeat(size)));
    }
    pair.comparison.finish();
}

#[test]
fn transactions_are_found_where_core_finds_them() {
    let Some(pair) = Pair::start("transactions_are_found", &[]) else { return };
    let tip = pair.feed_mix();
    for height in [0, 1, 150, tip - 1, tip] {
        let hash = pair.core.result("getblockhash", &format!("[{height}]"));
        let block = pair.core.result("getblock", &format!("[{hash},1]"));
        let txs = block["tx"].as_array().unwrap();
        for txid in txs.iter().take(3).chain(txs.iter().rev().take(if height < tip { 20 } else { 120 })) {
            for verbosity in ["0", "1", "2", "3", "-1", "true", "false", "null", "1.5", "\"1\""] {
                pair.ask("getrawtransaction", &format!("[{txid},{verbosity},{hash}]"));
            }
            pair.ask("getrawtransaction", &format!("[{txid}]"));
            pair.ask("getrawtransaction", &format!("[{txid},1]"));
        }
    }
    let (none, hash) = ("0".repeat(64), pair.core.result("getbestblockhash", "[]"));
    for params in [
        format!("[\"{none}\"]"),
        format!("[\"{none}\",0,{hash}]"),
        format!("[\"{none}\",0,\"{none}\"]"),
        format!("[\"{none}\",0,\"00\"]"),
        format!("[\"{none}\",0,5]"),
        "[\"00\"]".to_owned(),
        format!("[\"{}\"]", "g".repeat(64)),
        format!("[{hash},\"x\"]"),
    ] {
        pair.ask("getrawtransaction", &params);
    }
    pair.comparison.finish();
}

/// Blocks off the active chain: with their data but without undo data, and headers alone.
#[test]
fn transactions_of_stale_blocks() {
    let Some(pair) = Pair::start("transactions_of_stale_blocks", &[]) else { return };
    pair.feed_branches();
    for tip in pair.core.result("getchaintips", "[]").as_array().unwrap() {
        let hash = &tip["hash"];
        let answer: serde_json::Value =
            serde_json::from_str(&pair.core.call("getblock", &format!("[{hash},1]")).body).unwrap();
        let txs = answer["result"]["tx"].as_array().cloned().unwrap_or_default();
        for txid in txs.iter().chain([&serde_json::Value::from("1".repeat(64))]) {
            for verbosity in 0..3 {
                pair.ask("getrawtransaction", &format!("[{txid},{verbosity},{hash}]"));
            }
            pair.ask("gettxoutproof", &format!("[[{txid}],{hash}]"));
        }
    }
    pair.comparison.finish();
}
