//! Descriptors with published scripts.

use super::*;
use crate::limits::MINISCRIPT_DEPTH_MAX;
use lydian_primitives::to_hex;

const KEY: &str = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";

fn scripts_of(text: &str, position: u32) -> Result<Vec<String>, String> {
    let descriptors = parse(text, Chain::Main, false)?;
    let outputs = descriptors.expand(0, position).ok_or("a private key is missing")?;
    Ok(outputs.iter().map(|output| to_hex(&output.script)).collect())
}

/// From Core's descriptor tests and BIP-0386.
#[test]
fn scripts_of_expressions() {
    let xpub = "xpub661MyMwAqRbcFW31YEwpkMuc5THy2PSt5bDMsktWQcFF8syAmRUapSCGu8ED9W6oDMSgv6Zz8idoc4a6mr8BDzTJY47LJhkJ8UB7WEGuduB";
    let other = "xpub69H7F5d8KSRgmmdJg2KhpAK8SR3DjMwAdkxj3ZuxV27CprR9LgpeyGmXUbC6wb7ERfvrnKZjXoUmmDznezpbZb7ap6r1D3tgFxHmwMkQTPH";
    let internal = "a34b99f22c790c4e36b2b3c2c35a36db06226e41c692fc82b8b56ac1c540c5bd";
    for (text, position, expected) in [
        (format!("pk({KEY})"), 0, format!("21{KEY}ac")),
        (format!("pkh({KEY})"), 0, "76a914751e76e8199196d454941c45d1b3a323f1433bd688ac".to_owned()),
        (format!("wpkh({KEY})"), 0, "0014751e76e8199196d454941c45d1b3a323f1433bd6".to_owned()),
        (format!("sh(wpkh({KEY}))"), 0, "a914bcfeb728b584253d5f3f70bcb780e9ef218a68f487".to_owned()),
        (format!("multi(1,{KEY})"), 0, format!("5121{KEY}51ae")),
        ("raw(51)#8lvh9jxk".to_owned(), 0, "51".to_owned()),
        (format!("rawtr({})", &KEY[2..]), 0, format!("5120{}", &KEY[2..])),
        (
            "pkh(xprv9s21ZrQH143K31xYSDQpPDxsXRTUcvj2iNHm5NUtrGiGG5e2DtALGdso3pGz6ssrdK4PFmM8NSpSBHNqPqm55Qn3LqFtT2emdEXVYsCzC2U/2147483647h/0)"
                .to_owned(),
            0,
            "76a914ebdc90806a9c4356c1c88e42216611e1cb4c1c1788ac".to_owned(),
        ),
        (format!("wpkh([ffffffff/13h]{other}/1/2/*)"), 1, "0014af0bd98abc2f2cae66e36896a39ffe2d32984fb7".to_owned()),
        (format!("tr({internal})"), 0, "512077aab6e066f8a7419c5ab714c12c67d25007ed55a43cadcacb4d7a970a093f11".to_owned()),
        (
            format!("tr({internal},pk(669b8afcec803a0d323e9a17f3ea8e68e8abe5a278020a929adbec52421adbd0))"),
            0,
            "512017cf18db381d836d8923b1bdb246cfcd818da1a9f0e6e7907f187f0b2f937754".to_owned(),
        ),
    ] {
        let scripts = scripts_of(&text, position);
        assert_eq!(scripts.map(|scripts| scripts[0].clone()), Ok(expected), "{text}");
    }
    assert_eq!(scripts_of(&format!("combo({KEY})"), 0).unwrap().len(), 4);
    assert_eq!(scripts_of(&format!("pk({xpub}/0h)"), 0), Err("a private key is missing".to_owned()));
}

#[test]
fn errors_have_cores_words() {
    for (text, words) in [
        ("nonsense", "'nonsense' is not a valid descriptor function"),
        ("raw(51)#8lvh9jx", "Expected 8 character checksum, not 7 characters"),
        ("raw(51)#8lvh9jxx", "Provided checksum '8lvh9jxx' does not match computed checksum '8lvh9jxk'"),
        ("raw(5)", "Raw script is not hex"),
        ("pk()", "pk(): No key provided"),
        ("addr(x)", "Address is not valid"),
        ("sh(addr(x))", "Can only have addr() at top level"),
        ("multi(0)", "Cannot have 0 keys in multisig; must have between 1 and 20 keys, inclusive"),
        ("raw(51),", ""),
    ] {
        assert_eq!(parse(text, Chain::Regtest, false).map(|_| ()), Err(words.to_owned()));
    }
    assert_eq!(parse("raw(51)", Chain::Regtest, true).map(|_| ()), Err("Missing checksum".to_owned()));
}

/// limit: MINISCRIPT_DEPTH_MAX at
/// limit: MINISCRIPT_DEPTH_MAX above
#[test]
fn miniscript_so_deep_and_no_deeper() {
    // The expression itself is one level.
    let nested = |depth: usize| format!("wsh({}:pk({KEY}))", "n".repeat(depth - 1));
    assert!(parse(&nested(MINISCRIPT_DEPTH_MAX), Chain::Main, false).is_err_and(|words| words.contains("not sane")));
    let above = parse(&nested(MINISCRIPT_DEPTH_MAX + 1), Chain::Main, false).map(|_| ());
    assert_eq!(above, Err("A function is needed within P2WSH".to_owned()));
    let nested =
        |depth: usize| format!("tr({0},{1}pk({0}){2})", &KEY[2..], "and_v(v:1,".repeat(depth), ")".repeat(depth));
    assert!(parse(&nested(100_000), Chain::Main, false).is_err());
}
