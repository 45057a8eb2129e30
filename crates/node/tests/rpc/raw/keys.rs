//! `createmultisig`, `signmessagewithprivkey`, `verifymessage`, and scans for aggregate keys. Private keys are in no
//! answer and in no log.

use super::locks::{Key, keys};
use super::{pick, quoted, seeded};
use crate::chain::Pair;
use crate::server::Server;
use lydian_consensus::Chain;
use lydian_descriptor::Address;
use lydian_hash::hash160;
use lydian_primitives::to_hex;
use lydian_stdx::{SplitMix64, base64};
use serde_json::Value;

fn address(key: &Key) -> String {
    Address::PubkeyHash(hash160(&key.public)).text(Chain::Regtest)
}

/// Any number of keys, some not compressed, hybrid, wrong, or no keys.
#[test]
fn multisig_addresses_are_created_as_in_core() {
    let Some(pair) = Pair::start("multisig_addresses", &[]) else { return };
    let mut random = seeded(61);
    let keys = keys(&pair, 6);
    let hybrid = |key: &Key| {
        let mut bytes = key.public.clone();
        bytes[0] = 6 | bytes[64] & 1;
        to_hex(&bytes)
    };
    let short: Vec<String> = keys[..4].iter().map(|key| to_hex(&key.public)).collect();
    let odd = [
        to_hex(&keys[4].public),
        hybrid(&keys[4]),
        hybrid(&keys[5]).replacen("06", "07", 1),
        format!("04{}", "11".repeat(64)),
        format!("05{}", &short[0][2..]),
        short[1].to_uppercase(),
        short[1][..64].to_owned(),
        short[1][..65].to_owned(),
        format!("{} ", short[1]),
        String::new(),
        "é".to_owned(),
        keys[0].wif.clone(),
    ];
    let types = ["", "", ",null", ",\"legacy\"", ",\"p2sh-segwit\"", ",\"bech32\"", ",\"bech32\"", ",\"bech32m\""];
    let mut made = 0;
    for _ in 0..1_500 {
        let count = [0, 1, 2, 3, 5, 15, 16, 17, 20, 21][random.below(10)];
        let mut chosen: Vec<String> = (0..count).map(|_| quoted(&short[random.below(4)])).collect();
        if count > 0 && random.below(3) == 0 {
            let place = random.below(count);
            chosen[place] = quoted(&odd[random.below(odd.len())]);
        }
        if count > 0 && random.below(40) == 0 {
            chosen[0] = pick(&mut random, &["1", "null", "[]"]).to_owned();
        }
        let required = match random.below(8) {
            0 => pick(&mut random, &["0", "-1", "2147483647", "2147483648", "1.0", "1.5", "300", "\"1\""]).to_owned(),
            _ => (1 + random.below(count + 1)).to_string(),
        };
        let kind = match random.below(20) {
            0 => pick(&mut random, &[",\"\"", ",\"Legacy\"", ",1", ",\"bech32\",1"]),
            _ => pick(&mut random, &types),
        };
        let params = format!("[{required},[{}]{kind}]", chosen.join(","));
        pair.ask_about_help("createmultisig", &params);
        made += usize::from(pair.core.call("createmultisig", &params).status.contains(" 200 "));
    }
    assert!(made > 300, "{made}");
    pair.comparison.finish();
}

/// Signatures byte by byte, and verdicts on those of other messages, keys and bytes.
#[test]
fn messages_are_signed_and_verified_as_in_core() {
    let Some(pair) = Pair::start("messages_are_signed", &[]) else { return };
    let mut random = seeded(62);
    let keys = keys(&pair, 8);
    let messages =
        ["", " ", "my message", "\\\"\\n\\u0000", "é\\ud83d\\ude00", &"long ".repeat(60), &"x".repeat(70_000)];
    let mut verified = 0;
    for _ in 0..700 {
        let (key, other) = (&keys[random.below(8)], &keys[random.below(8)]);
        let message = match random.below(2) {
            0 => pick(&mut random, &messages).to_owned(),
            _ => random.next_u64().to_string(),
        };
        let params = format!("[\"{}\",\"{message}\"]", key.wif);
        pair.ask("signmessagewithprivkey", &params);
        let signed = pair.core.result("signmessagewithprivkey", &params);
        let mut signature = signed.as_str().unwrap().to_owned();
        let mut to = address(key);
        match random.below(8) {
            0 => to = address(other),
            1 => signature = mangled(&mut random, &signature),
            2 => signature = random_signature(&mut random),
            3 => {
                let odd =
                    ["", "x", "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080", "1D1ZrZNe3JUo7ZycKEYQQiQAWd9y54F4XX"];
                to = pick(&mut random, &odd).to_owned();
            }
            _ => {}
        }
        let said = if random.below(6) == 0 { "another message" } else { &message };
        let params = format!("[\"{to}\",\"{signature}\",\"{said}\"]");
        pair.ask("verifymessage", &params);
        verified += usize::from(pair.core.call("verifymessage", &params).body.contains("\"result\":true"));
    }
    assert!(verified > 200, "{verified}");
    for wrong in ["", "x", "KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn", &keys[0].wif[1..]] {
        pair.ask("signmessagewithprivkey", &format!("[\"{wrong}\",\"\"]"));
    }
    pair.ask("signmessagewithprivkey", &format!("[\" {} \",\"\"]", keys[0].wif));
    pair.comparison.finish();
}

/// A letter changed, removed or added, or the header of the signature changed.
fn mangled(random: &mut SplitMix64, signature: &str) -> String {
    let mut letters = signature.as_bytes().to_vec();
    let (place, letter) = (random.below(letters.len()), b"AZaz09+/=- "[random.below(11)]);
    match random.below(4) {
        0 => letters[place] = letter,
        1 => drop(letters.remove(place)),
        2 => letters.insert(place, letter),
        // The first byte and part of r.
        _ => {
            letters[0] = b"ABGHIJabc"[random.below(9)];
            letters[1] = letter;
        }
    }
    String::from_utf8(letters).unwrap()
}

/// A signature with r and s anywhere, above the order of the group too.
fn random_signature(random: &mut SplitMix64) -> String {
    let number = |random: &mut SplitMix64| match random.below(5) {
        0 => [0; 32],
        1 => [255; 32],
        2 => {
            let mut small = [0; 32];
            small[31] = random.byte();
            small
        }
        _ => [(); 32].map(|()| random.byte()),
    };
    let size = [64, 65, 65, 65, 65, 66][random.below(6)];
    let (r, s) = (number(random), number(random));
    let bytes = [&[27 + random.byte() % 12][..], &r, &s, &[0]].concat();
    base64(&bytes[..size])
}

const ROOTS: [&str; 2] = [
    "tpubD6NzVbkrYhZ4XgiXtGrdW5XDAPFCL9h7we1vwNCpn8tGbBcgfVYjXyhWo4E1xkh56hjod1RhGjxbaTLV3X4FyWuejifB9jusQ46QzG87VKp",
    "tprv8ZgxMBicQKsPd7Uf69XL1XwhmjHopUGep8GuEiJDZmbQz6o58LninorQAfcKZWARbtRtfnLcJ5MQ2AtHcQJCCRUcMRvmDUjyEmNUWwx8UbK",
];

/// The descriptors that Core infers for outputs of aggregate keys.
#[test]
fn scans_find_aggregate_keys_as_in_core() {
    let Some(pair) = Pair::start("scans_find_aggregate_keys", &[]) else { return };
    for server in [&pair.lydian, &pair.core] {
        server.result("setmocktime", "[1700000000]");
    }
    let (root, secret) = (ROOTS[0], ROOTS[1]);
    let key = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
    let descriptors = [
        format!("tr(musig({root},{secret})/<3;4>/*)"),
        format!("rawtr(musig({root}/0/*,[d34db33f/1h]{key}))"),
        format!("tr({},pk(musig({key},{root}/1)))", &key[2..]),
        format!("tr(musig({secret}/2h,{root}/<6;7>/*),{{pk(musig({root},{root})/8),pkh(musig({secret}/9))}})"),
    ];
    for descriptor in &descriptors {
        let info = pair.core.result("getdescriptorinfo", &quoted_list(descriptor));
        let checked = format!("{descriptor}#{}", info["checksum"].as_str().unwrap());
        let range = if info["isrange"] == true { ",[0,3]" } else { "" };
        pair.ask("deriveaddresses", &format!("[\"{checked}\"{range}]"));
        let derived = pair.core.result("deriveaddresses", &format!("[\"{checked}\"{range}]"));
        let one = |list: &Value| list.as_array().unwrap().last().unwrap().as_str().map(str::to_owned);
        let address = one(&derived).unwrap_or_else(|| one(derived.as_array().unwrap().last().unwrap()).unwrap());
        let block = pair.core.result("generatetoaddress", &format!("[1,\"{address}\"]"));
        let raw = pair.core.result("getblock", &format!("[{},0]", block[0]));
        pair.lydian.result("submitblock", &format!("[{raw}]"));
    }
    let objects: Vec<String> =
        descriptors.iter().map(|text| format!("{{\"desc\":\"{text}\",\"range\":[0,5]}}")).collect();
    let params = format!("[\"start\",[{}]]", objects.join(","));
    pair.ask("scantxoutset", &params);
    let found = pair.core.result("scantxoutset", &params);
    assert_eq!(found["unspents"].as_array().map(Vec::len), Some(descriptors.len()), "{found}");
    pair.comparison.finish();
}

fn quoted_list(text: &str) -> String {
    format!("[\"{text}\"]")
}

/// Calls with private keys, good and bad, with every category logged.
#[test]
fn private_keys_are_in_no_answer_and_in_no_log() {
    // The private key 1; its last letters are those of its checksum.
    let (key, root) = ("cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87JcbXMTcA", ROOTS[1]);
    let mut node = Server::lydian("private_keys_are_in_no_log", &["-debug=1", "-debug=rpc", "-debug=http"]);
    let tx = node
        .result("createrawtransaction", "[[{\"txid\":\"11\",\"vout\":0}],[]]".replace("11", &"11".repeat(32)).as_str());
    let psbt =
        node.result("createpsbt", "[[{\"txid\":\"11\",\"vout\":0}],[]]".replace("11", &"11".repeat(32)).as_str());
    let checked = |descriptor: String| {
        let info = node.result("getdescriptorinfo", &format!("[\"{descriptor}\"]"));
        format!("{descriptor}#{}", info["checksum"].as_str().unwrap())
    };
    let (single, ranged) = (checked(format!("pkh({key})")), checked(format!("wpkh({root}/1h/*)")));
    let calls = [
        ("signmessagewithprivkey", format!("[\"{key}\",\"message\"]"), " 200 "),
        ("signmessagewithprivkey", format!("[\"{root}\",\"message\"]"), " 500 "),
        ("signmessagewithprivkey", format!("[\"{key}\"]"), " 500 "),
        ("signmessagewithprivkey", format!("{{\"privkey\":\"{key}\",\"message\":1}}"), " 500 "),
        ("signmessagewithprivkey", format!("{{\"{key}\":1}}"), " 500 "),
        ("signrawtransactionwithkey", format!("[{tx},[\"{key}\",\"{root}\"]]"), " 500 "),
        ("signrawtransactionwithkey", format!("[{tx},[\"{key}\"]]"), " 200 "),
        ("getdescriptorinfo", format!("[\"tr(musig({root}/1h,{key}))\"]"), " 200 "),
        ("getdescriptorinfo", format!("[\"wpkh({root}/1h/*h)\"]"), " 200 "),
        ("deriveaddresses", format!("[\"{single}\"]"), " 200 "),
        ("deriveaddresses", format!("[\"{ranged}\",[0,2]]"), " 200 "),
        ("deriveaddresses", format!("[\"{ranged}\"]"), " 500 "),
        ("descriptorprocesspsbt", format!("[{psbt},[\"tr({key})\",{{\"desc\":\"{ranged}\",\"range\":2}}]]"), " 200 "),
        ("descriptorprocesspsbt", format!("[{psbt},[\"tr({key})\",\"{ranged}\"],\"none\"]"), " 500 "),
        ("utxoupdatepsbt", format!("[{psbt},[\"sh(wpkh({key}))\",\"{ranged}\"]]"), " 200 "),
        ("utxoupdatepsbt", format!("[\"\",[\"sh(wpkh({key}))\"]]"), " 500 "),
        ("scantxoutset", format!("[\"start\",[\"wpkh({key})\"]]"), " 200 "),
        ("generatetodescriptor", format!("[1,\"tr(musig({root}/1h,{key}))\"]"), " 200 "),
    ];
    for (method, params, status) in &calls {
        let answer = node.call(method, params);
        assert!(answer.status.contains(status), "{method} {params}: {}", answer.body);
        let names_argument = params.starts_with(&format!("{{\"{key}"));
        assert!(names_argument || !contains_secret(&answer.body, key, root), "{method} {params}: {}", answer.body);
    }
    // As in Core, an error quotes text that should be a public key.
    let answer = node.call("createmultisig", &format!("[1,[\"{key}\"]]"));
    assert!(answer.body.contains(&format!("Pubkey \\\"{key}\\\" must be a hex string")), "{}", answer.body);
    node.result("stop", "[]");
    assert_eq!(node.wait(), Some(0));
    let log = std::fs::read_to_string(node.folder.join("regtest/debug.log")).unwrap();
    assert!(log.contains("method=signmessagewithprivkey") && log.contains("Received a POST request"), "is logged");
    assert!(!contains_secret(&log, key, root));
}

/// Whether a text contains a private key, or its bytes in hex.
fn contains_secret(text: &str, key: &str, root: &str) -> bool {
    let one = format!("{}01", "00".repeat(31));
    [&key[..40], &root[12..52], &one].iter().any(|secret| text.contains(secret))
}
