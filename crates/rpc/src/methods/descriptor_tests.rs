//! Compares descriptors with Core's daemon: every quoted string in Core's own tests of descriptors and of miniscript,
//! and some that they lack. The properties, addresses and errors of each must be Core's.

use super::*;
use crate::result::Answer;
use lydian_oracle::Daemon;
use lydian_stdx::SplitMix64;
use serde_json::{Value, json};

/// Core's answer, or its error code and message.
fn theirs(daemon: &mut Daemon, method: &str, params: &Value) -> Result<Value, (i64, String)> {
    daemon.call(method, params).map_err(|error| match error {
        lydian_oracle::RpcError::Core { code, message } => (code, message),
        other => panic!("{method} {params}: {other}"),
    })
}

fn ours(answer: Result<impl Answer, RpcError>) -> Result<Value, (i64, String)> {
    let answer = answer.map(|answer| {
        let mut out = Vec::new();
        answer.write(&mut out);
        serde_json::from_slice(&out).unwrap()
    });
    answer.map_err(|error| (i64::from(error.code), error.message))
}

/// The quoted strings of a C++ source.
fn quoted(source: &str) -> Vec<String> {
    let texts = source.lines().flat_map(|line| line.split('"').skip(1).step_by(2));
    texts.filter(|text| text.contains('(') && !text.contains('\\')).map(str::to_owned).collect()
}

#[test]
fn descriptor_info_is_as_in_core() {
    let name = "descriptor_info_is_as_in_core";
    let Some(built) = lydian_oracle::or_skip(name, lydian_oracle::build::locate()) else { return };
    let Some(mut daemon) = lydian_oracle::or_skip(name, Daemon::start_on("main", &[])) else { return };
    #[allow(clippy::disallowed_methods, reason = "reads Core's source, which is no file of a node")]
    let source = std::fs::read_to_string(built.source.join("src/test/descriptor_tests.cpp")).unwrap();
    let mut texts = quoted(&source);
    #[allow(clippy::disallowed_methods, reason = "reads Core's source, which is no file of a node")]
    let source = std::fs::read_to_string(built.source.join("src/test/miniscript_tests.cpp")).unwrap();
    let internal = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
    for expression in quoted(&source) {
        texts.push(format!("wsh({expression})"));
        texts.push(format!("tr({internal},{expression})"));
        texts.push(format!("sh({expression})"));
        // Many only lack a signature.
        texts.push(format!("wsh(and_v(v:pk(02{internal}),{expression}))"));
        texts.push(format!("tr({internal},and_v(v:pk({internal}),{expression}))"));
    }
    texts.extend(OF_OUR_OWN.iter().map(|text| (*text).to_owned()));
    texts.sort();
    texts.dedup();
    let mut random = SplitMix64::new(390);
    texts.extend((0..MUSIG_COUNT).map(|_| random_musig(&mut random)));
    let (mut good, mut bad, mut good_musig) = (0, 0, 0);
    let mut differences = Vec::new();
    for text in &texts {
        let expected = theirs(&mut daemon, "getdescriptorinfo", &json!([text]));
        let found = ours(info(text, Chain::Main));
        if found != expected {
            differences.push(format!("{text}\n  core {expected:?}\n  ours {found:?}"));
            continue;
        }
        let Ok(told) = expected else {
            bad += 1;
            continue;
        };
        good += 1;
        good_musig += usize::from(text.contains("musig("));
        // With the private keys that the text may contain, and without.
        let payload = text.split('#').next().unwrap();
        let with_secrets = format!("{payload}#{}", told["checksum"].as_str().unwrap());
        for whole in [with_secrets.as_str(), told["descriptor"].as_str().unwrap()] {
            for range in [None, Some(json!([0, 2])), Some(json!(1)), Some(json!([2_147_483_647, 2_147_483_647]))] {
                let params = range.as_ref().map_or_else(|| json!([whole]), |range| json!([whole, range]));
                let expected = theirs(&mut daemon, "deriveaddresses", &params);
                let range = range.map(|range| Json::read(range.to_string().as_bytes()).unwrap());
                let found = ours(addresses(whole, range.as_ref(), Chain::Main));
                if found != expected {
                    differences.push(format!("{params}\n  core {expected:?}\n  ours {found:?}"));
                }
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(good > 230 && bad > 500 && good_musig > 150, "{good} {bad} {good_musig}");
}

/// Random descriptors with musig().
const MUSIG_COUNT: usize = 1_200;

/// A descriptor with musig(); a third of them with a mistake somewhere.
fn random_musig(random: &mut SplitMix64) -> String {
    fn pick<'a>(random: &mut SplitMix64, from: &[&'a str]) -> &'a str {
        from[random.below(from.len())]
    }
    let path = |random: &mut SplitMix64, ends: &[&str]| {
        let middle = pick(random, &["", "", "/0", "/7/2147483647", "/<0;1>", "/<2;3>/4", "/<5;6;7>"]);
        format!("{middle}{}", pick(random, ends))
    };
    let musig = |random: &mut SplitMix64| {
        let is_derived = random.below(2) == 0;
        let ends: &[&str] = if is_derived { &[""] } else { &["", "/*", "/*", "/3h"] };
        let count = 1 + random.below(4);
        let keys: Vec<String> = (0..count)
            .map(|_| {
                let from: &[&str] = if is_derived && random.below(8) > 0 { &EXTENDED } else { &KEYS };
                let key = pick(random, from);
                let origin = pick(random, &["", "", "[d34db33f/1h/2]"]);
                let is_extended = key.starts_with("xp");
                let path = if is_extended { path(random, ends) } else { String::new() };
                format!("{origin}{key}{path}")
            })
            .collect();
        let after = if is_derived { path(random, &["", "/*", "/*", "/*h", "/1h"]) } else { String::new() };
        format!("musig({}){after}", keys.join(","))
    };
    let (first, second) = (musig(random), musig(random));
    let x = &KEYS[0][2..];
    let mut text = match random.below(7) {
        0 => format!("rawtr({first})"),
        1 => format!("tr({first},pk({second}))"),
        2 => format!("tr({x},{{pk({first}),and_v(v:pk({second}),older(5))}})"),
        3 => format!("tr({x},sortedmulti_a(2,{first},{second},{x}))"),
        4 => format!("tr({x},and_v(v:pkh({first}),multi_a(1,{x})))"),
        5 => format!("{}({first})", pick(random, &["pk", "wpkh", "sh", "unused", "combo", "addr"])),
        _ => format!("tr({first})"),
    };
    for _ in 0..[0, 0, 1, 2][random.below(4)] {
        let at = random.below(text.len());
        let letter = pick(random, &["(", ")", "{", "}", "<", ">", ",", ";", "/", "*", "h", "0", " ", "musig(", "]"]);
        match random.below(3) {
            0 => text.insert_str(at, letter),
            1 => text.truncate(at),
            _ => text.replace_range(at..=at, letter),
        }
    }
    text
}

/// The last is a private key.
const KEYS: [&str; 5] = [
    "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798",
    "03dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659",
    EXTENDED[0],
    EXTENDED[1],
    "KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn",
];

const EXTENDED: [&str; 3] = [
    "xpub661MyMwAqRbcFW31YEwpkMuc5THy2PSt5bDMsktWQcFF8syAmRUapSCGu8ED9W6oDMSgv6Zz8idoc4a6mr8BDzTJY47LJhkJ8UB7WEGuduB",
    "xprvA1RpRA33e1JQ7ifknakTFpgNXPmW2YvmhqLQYMmrj4xJXXWYpDPS3xz7iAxn8L39njGVyuoseXzU6rcxFLJ8HFsTjSyQbLYnMpCqE2VbFWc",
    "xpub68NZiKmJWnxxS6aaHmn81bvJeTESw724CRDs6HbuccFQN9Ku14VQrADWgqbhhTHBaohPX4CjNLf9fq9MYo6oDaPPLPxSb7gwQN3ih19Zm4Y",
];

/// Cases that Core's tests lack.
const OF_OUR_OWN: &[&str] = &[
    "",
    "pk",
    "pk(",
    "raw(51)x",
    "raw(51),x",
    "sh(pk(0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798),x)",
    "sh(raw(51))",
    "sh(51)",
    "wsh(51)",
    "sh()",
    "tr()",
    "tr(79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798,)",
    "tr(79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798,{pk(79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798)})",
    "tr(79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798,{pk(79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798),{pk(79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798),pk(f9308a019258c31049344f85f89d5229b531c845836f99b08601f113bce036f9)}})",
    "tr(79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798,multi(1,0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798))",
    "tr(0479be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8)",
    "wsh(pk(0479be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8))",
    "rawtr(79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798,x)",
    "unused(xpub661MyMwAqRbcFW31YEwpkMuc5THy2PSt5bDMsktWQcFF8syAmRUapSCGu8ED9W6oDMSgv6Zz8idoc4a6mr8BDzTJY47LJhkJ8UB7WEGuduB)",
    "pk(+79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798)",
    "multi(+1,0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798)",
    "multi(1;0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798)",
    "multi(01,0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798)",
    "multi(4294967296,0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798)",
    "pkh([0000000]0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798)",
    "pkh([0000000g]0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798)",
    "pkh([00000000/1/2h/3']0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798)",
    "pkh(00000000]0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798)",
    "pkh(]0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798)",
    "pkh([00000000]]0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798)",
    "pkh([00000000/<0;1>]0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798)",
    "wpkh(xpub661MyMwAqRbcFW31YEwpkMuc5THy2PSt5bDMsktWQcFF8syAmRUapSCGu8ED9W6oDMSgv6Zz8idoc4a6mr8BDzTJY47LJhkJ8UB7WEGuduB/<0;1;2>/*)",
    "wpkh(xpub661MyMwAqRbcFW31YEwpkMuc5THy2PSt5bDMsktWQcFF8syAmRUapSCGu8ED9W6oDMSgv6Zz8idoc4a6mr8BDzTJY47LJhkJ8UB7WEGuduB/<0;1>/<0;1>)",
    "wpkh(xpub661MyMwAqRbcFW31YEwpkMuc5THy2PSt5bDMsktWQcFF8syAmRUapSCGu8ED9W6oDMSgv6Zz8idoc4a6mr8BDzTJY47LJhkJ8UB7WEGuduB/<0>)",
    "wpkh(xpub661MyMwAqRbcFW31YEwpkMuc5THy2PSt5bDMsktWQcFF8syAmRUapSCGu8ED9W6oDMSgv6Zz8idoc4a6mr8BDzTJY47LJhkJ8UB7WEGuduB/<0;0>)",
    "wpkh(xpub661MyMwAqRbcFW31YEwpkMuc5THy2PSt5bDMsktWQcFF8syAmRUapSCGu8ED9W6oDMSgv6Zz8idoc4a6mr8BDzTJY47LJhkJ8UB7WEGuduB/*/1)",
    "wpkh(xpub661MyMwAqRbcFW31YEwpkMuc5THy2PSt5bDMsktWQcFF8syAmRUapSCGu8ED9W6oDMSgv6Zz8idoc4a6mr8BDzTJY47LJhkJ8UB7WEGuduB/)",
    "sh(wsh(sortedmulti(1,xprv9s21ZrQH143K31xYSDQpPDxsXRTUcvj2iNHm5NUtrGiGG5e2DtALGdso3pGz6ssrdK4PFmM8NSpSBHNqPqm55Qn3LqFtT2emdEXVYsCzC2U/1h/*',xpub661MyMwAqRbcFW31YEwpkMuc5THy2PSt5bDMsktWQcFF8syAmRUapSCGu8ED9W6oDMSgv6Zz8idoc4a6mr8BDzTJY47LJhkJ8UB7WEGuduB/2h)))",
    "tr(xprv9s21ZrQH143K31xYSDQpPDxsXRTUcvj2iNHm5NUtrGiGG5e2DtALGdso3pGz6ssrdK4PFmM8NSpSBHNqPqm55Qn3LqFtT2emdEXVYsCzC2U/<0;1>/*h,{sortedmulti_a(2,79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798,xpub661MyMwAqRbcFW31YEwpkMuc5THy2PSt5bDMsktWQcFF8syAmRUapSCGu8ED9W6oDMSgv6Zz8idoc4a6mr8BDzTJY47LJhkJ8UB7WEGuduB/<5;6>/*),pk(KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn)})",
    "tr(79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798,sortedmulti_a(2,79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798))",
];
