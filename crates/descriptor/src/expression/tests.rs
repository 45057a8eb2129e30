//! Descriptors with published scripts, their properties and positions, and every error.

use super::*;
use crate::checksum::ChecksumError;
use crate::limits::MINISCRIPT_DEPTH_MAX;
use lydian_primitives::to_hex;
use std::collections::BTreeSet;

const KEY: &str = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";

/// The private key of [`KEY`].
const WIF: &str = "KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn";
const XPUB: &str =
    "xpub661MyMwAqRbcFW31YEwpkMuc5THy2PSt5bDMsktWQcFF8syAmRUapSCGu8ED9W6oDMSgv6Zz8idoc4a6mr8BDzTJY47LJhkJ8UB7WEGuduB";
/// The private key of [`XPUB`].
const XPRV: &str =
    "xprv9s21ZrQH143K31xYSDQpPDxsXRTUcvj2iNHm5NUtrGiGG5e2DtALGdso3pGz6ssrdK4PFmM8NSpSBHNqPqm55Qn3LqFtT2emdEXVYsCzC2U";

fn parse(text: &str) -> Result<Descriptors, DescriptorError> {
    Descriptors::parse(text, Chain::Main, false)
}

/// The scripts at a position; `None` if a private key is missing.
fn scripts_of(text: &str, position: u32) -> Option<Vec<String>> {
    let outputs = parse(text).unwrap().expand(0, position)?;
    Some(outputs.iter().map(|output| to_hex(&output.script)).collect())
}

/// From Core's descriptor tests and BIP-0386.
#[test]
fn scripts_of_expressions() {
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
        (format!("pkh({XPRV}/2147483647h/0)"), 0, "76a914ebdc90806a9c4356c1c88e42216611e1cb4c1c1788ac".to_owned()),
        (format!("wpkh([ffffffff/13h]{other}/1/2/*)"), 1, "0014af0bd98abc2f2cae66e36896a39ffe2d32984fb7".to_owned()),
        (
            format!("tr({internal})"),
            0,
            "512077aab6e066f8a7419c5ab714c12c67d25007ed55a43cadcacb4d7a970a093f11".to_owned(),
        ),
        (
            format!("tr({internal},pk(669b8afcec803a0d323e9a17f3ea8e68e8abe5a278020a929adbec52421adbd0))"),
            0,
            "512017cf18db381d836d8923b1bdb246cfcd818da1a9f0e6e7907f187f0b2f937754".to_owned(),
        ),
    ] {
        assert_eq!(scripts_of(&text, position).unwrap()[0], expected, "{text}");
    }
    assert_eq!(scripts_of(&format!("combo({KEY})"), 0).unwrap().len(), 4);
    assert_eq!(scripts_of(&format!("pk({XPUB}/0h)"), 0), None);
}

/// What Core's `getdescriptorinfo` reports.
#[test]
fn properties() {
    for (text, count, is_range, is_solvable, has_secrets) in [
        (format!("pk({KEY})"), 1, false, true, false),
        (format!("pkh({WIF})"), 1, false, true, true),
        (format!("wpkh({XPUB}/*)"), 1, true, true, false),
        (format!("wpkh({XPUB}/<0;1>/*)"), 2, true, true, false),
        (format!("tr({XPUB}/<0;1;2>,pk({XPRV}/*h))"), 3, true, true, true),
        (format!("wsh(and_v(v:pk({KEY}),older(144)))"), 1, false, true, false),
        ("raw(51)".to_owned(), 1, false, false, false),
        ("addr(1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa)".to_owned(), 1, false, false, false),
    ] {
        let found = parse(&text).unwrap();
        let properties = (found.count(), found.is_range(), found.is_solvable(), found.has_secrets());
        assert_eq!(properties, (count, is_range, is_solvable, has_secrets), "{text}");
        for written in found.texts() {
            assert!(!written.contains(XPRV) && !written.contains(WIF), "{written}");
            // What is written is read again, with its checksum, as the same descriptor.
            let read = Descriptors::parse(&written, Chain::Main, true).unwrap();
            assert_eq!(read.texts(), std::slice::from_ref(&written));
            assert_eq!(format!("#{}", read.checksum()), written[written.len() - 9..]);
        }
    }
}

#[test]
fn positions_of_range_descriptors() {
    let of = |text: &str, index: usize, position: u32| {
        let outputs = parse(text).unwrap().expand(index, position);
        outputs.map(|outputs| outputs.into_iter().map(|output| output.script).collect::<Vec<_>>())
    };
    for position in [0, 1, 1000, (1 << 31) - 1] {
        let single = of(&format!("wpkh({XPUB}/1/{position})"), 0, 0);
        assert!(single.is_some());
        assert_eq!(of(&format!("wpkh({XPUB}/1/*)"), 0, position), single);
        assert_eq!(of(&format!("wpkh({XPUB}/<0;1>/*)"), 1, position), single);
        assert_eq!(of(&format!("wpkh({XPRV}/1/*)"), 0, position), of(&format!("wpkh({XPRV}/1/{position})"), 0, 0));
        let hardened = of(&format!("tr({XPRV}/<3h;4h>/*h)"), 1, position);
        assert!(hardened.is_some());
        assert_eq!(hardened, of(&format!("tr({XPRV}/4'/{position}')"), 0, 0));
    }
    // All parts of a descriptor are at the same position, and of the same path.
    let several = of(&format!("wsh(sortedmulti(2,{XPUB}/<0;1>/*,{KEY}))"), 1, 5);
    assert_eq!(several, of(&format!("wsh(sortedmulti(2,{XPUB}/1/5,{KEY}))"), 0, 0));
    // Without a wildcard, the position does not matter. There is no other index.
    assert_eq!(of(&format!("combo({KEY})"), 0, 9), of(&format!("combo({KEY})"), 0, 0));
    assert_eq!(of(&format!("wpkh({XPUB}/<0;1>/*)"), 2, 0), None);
    // A hardened step needs the private key.
    assert_eq!(of(&format!("wpkh({XPUB}/*h)"), 0, 0), None);
}

/// An address, and a descriptor inferred from a script, describe that script.
#[test]
fn inferred_descriptors_describe_their_scripts() {
    for script in [
        format!("21{KEY}ac"),
        format!("5121{KEY}51ae"),
        "76a91462e907b15cbf27d5425399ebf6f0fb50ebb88f1888ac".to_owned(),
        "a914bcfeb728b584253d5f3f70bcb780e9ef218a68f487".to_owned(),
        "0014751e76e8199196d454941c45d1b3a323f1433bd6".to_owned(),
        format!("0020{}", &KEY[2..]),
        format!("5120{}", &KEY[2..]),
        // No point of the curve has this x.
        format!("5120{}", "ff".repeat(32)),
        "51024e73".to_owned(),
        "6002751e".to_owned(),
        "6a".to_owned(),
        String::new(),
    ] {
        let bytes = lydian_primitives::hex(&script).unwrap();
        let inferred = node::inferred(bytes.clone(), Chain::Signet);
        assert_eq!(inferred.script, bytes);
        // Core writes the empty script as `raw()`, and does not read that.
        if !script.is_empty() {
            let read = Descriptors::parse(&inferred.descriptor, Chain::Signet, true).unwrap();
            assert_eq!(to_hex(&read.expand(0, 0).unwrap()[0].script), script, "{}", inferred.descriptor);
        }
    }
}

/// Each variant of [`DescriptorError`] and [`MiniscriptFault`].
#[test]
fn every_error_has_cores_words() {
    let x = &KEY[2..];
    let many = |count: usize| vec![KEY; count].join(",");
    let (two, three) = (format!("{XPUB}/<0;1>"), format!("{XPUB}/<2;3;4>"));
    let is = |part: &str, words: &str| format!("{part} {words}");
    let locks = format!("and_v(v:older(1),and_v(v:older(4194305),pk({KEY})))");
    let twice = format!("and_v(v:pk({KEY}),pk({KEY}))");
    let ops = format!("{}:pk({KEY})", "n".repeat(201));
    let cases = [
        ("raw(51)#8lvh9jx".to_owned(), "Expected 8 character checksum, not 7 characters".to_owned()),
        ("raw(51),".to_owned(), String::new()),
        (format!("sh(pk({KEY}),x)"), String::new()),
        ("pk()".to_owned(), "pk(): No key provided".to_owned()),
        ("multi(1,)".to_owned(), "Multi: No key provided".to_owned()),
        ("unused(x)".to_owned(), "key 'x' is not valid".to_owned()),
        ("wsh(pk_k(x))".to_owned(), "key 'x' is not valid".to_owned()),
        (format!("sh(combo({KEY}))"), "Can only have combo() at top level".to_owned()),
        (format!("sh(sh(pk({KEY})))"), "Can only have sh() at top level".to_owned()),
        ("sh(addr(x))".to_owned(), "Can only have addr() at top level".to_owned()),
        ("sh(raw(51))".to_owned(), "Can only have raw() at top level".to_owned()),
        (format!("sh(tr({x}))"), "Can only have tr at top level".to_owned()),
        (format!("sh(rawtr({x}))"), "Can only have rawtr at top level".to_owned()),
        (format!("sh(unused({KEY}))"), "Can only have unused at top level".to_owned()),
        (format!("wsh(wpkh({KEY}))"), "Can only have wpkh() at top level or inside sh()".to_owned()),
        (format!("wsh(wsh(pk({KEY})))"), "Can only have wsh() at top level or inside sh()".to_owned()),
        (format!("multi_a(1,{KEY})"), "Can only have multi_a/sortedmulti_a inside tr()".to_owned()),
        (
            format!("tr({x},multi(1,{KEY}))"),
            "Can only have multi/sortedmulti at top level, in sh(), or in wsh()".to_owned(),
        ),
        ("sh(51)".to_owned(), "A function is needed within P2SH".to_owned()),
        ("wsh(51)".to_owned(), "A function is needed within P2WSH".to_owned()),
        ("nonsense".to_owned(), "'nonsense' is not a valid descriptor function".to_owned()),
        ("older(1)".to_owned(), "Miniscript expressions can only be used in wsh or tr.".to_owned()),
        (format!("wsh(and_v(0,pk({KEY})))"), is(&format!("and_v(0,pk({KEY}))"), "is invalid")),
        ("wsh(0)".to_owned(), is("0", "is not satisfiable")),
        (
            "wsh(or_i(older(1),older(2)))".to_owned(),
            is("or_i(older(1),older(2))", "is not sane: malleable witnesses exist"),
        ),
        ("wsh(older(1))".to_owned(), is("older(1)", "is not sane: witnesses without signature exist")),
        (
            format!("wsh({locks})"),
            is(&locks, "is not sane: contains mixes of timelocks expressed in blocks and seconds"),
        ),
        (format!("wsh({twice})"), is(&twice, "is not sane: contains duplicate public keys")),
        (format!("wsh({ops})"), is(&ops, "is not sane: needs witnesses that may exceed resource limits")),
        (format!("wsh(v:pk({KEY}))"), is(&format!("v:pk({KEY})"), "is not sane")),
        ("addr(x)".to_owned(), "Address is not valid".to_owned()),
        ("raw(5)".to_owned(), "Raw script is not hex".to_owned()),
        (format!("rawtr({x},x)"), "rawtr(): only one key expected.".to_owned()),
        (format!("unused({KEY},x)"), "unused(): only one key expected".to_owned()),
        (format!("unused({XPUB}/*)"), "unused(): key cannot be ranged".to_owned()),
        (format!("multi(+1,{KEY})"), "Multi threshold '+1' is not valid".to_owned()),
        (format!("multi(0,{KEY})"), "Multisig threshold cannot be 0, must be at least 1".to_owned()),
        (
            format!("multi(2,{KEY})"),
            "Multisig threshold cannot be larger than the number of keys; threshold is 2 but only 1 keys specified"
                .to_owned(),
        ),
        (
            format!("wsh(multi(1,{}))", many(21)),
            "Cannot have 21 keys in multisig; must have between 1 and 20 keys, inclusive".to_owned(),
        ),
        (
            format!("tr({x},multi_a(1))"),
            "Cannot have 0 keys in multi_a; must have between 1 and 999 keys, inclusive".to_owned(),
        ),
        (format!("multi(1,{})", many(4)), "Cannot have 4 pubkeys in bare multisig; only at most 3 pubkeys".to_owned()),
        (
            format!("sh(multi(1,{}))", many(16)),
            "P2SH script is too large, 547 bytes is larger than 520 bytes".to_owned(),
        ),
        ("multi(1)()".to_owned(), "Multi: expected ',', got ')'".to_owned()),
        (format!("tr({x})()"), "tr: expected ',', got ')'".to_owned()),
        (format!("tr({x},pk({x}),x)"), "tr(): expected ')' after script expression".to_owned()),
        (format!("tr({x},{{pk({x}),pk({x}),x}})"), "tr(): expected '}' after script expression".to_owned()),
        (format!("tr({x},{{pk({x})}})"), "tr(): expected ',' after script expression".to_owned()),
        (format!("tr({x},{}pk({x}))", "{".repeat(129)), "tr() supports at most 128 nesting levels".to_owned()),
        (format!("multi(1,{two},{three})"), "multi(): Multipath derivation paths have mismatched lengths".to_owned()),
        (
            format!("wsh(and_v(v:pk({two}),pk({three})))"),
            "Miniscript: Multipath derivation paths have mismatched lengths".to_owned(),
        ),
        (format!("tr({x},{{pk({two}),pk({three})}})"), "tr(): Multipath subscripts have mismatched lengths".to_owned()),
        (
            format!("tr({two},pk({three}))"),
            "tr(): Multipath internal key mismatches multipath subscripts lengths".to_owned(),
        ),
    ];
    let (mut variants, mut faults) = (BTreeSet::new(), BTreeSet::new());
    for (text, words) in cases {
        let error = parse(&text).unwrap_err();
        assert_eq!(error.to_string(), words, "{text}");
        if let DescriptorError::Miniscript { fault, .. } = error {
            faults.insert(name(&fault));
        }
        variants.insert(name(&error));
    }
    assert_eq!((variants.len(), faults.len()), (27, 8), "{variants:?} {faults:?}");
    let missing = Descriptors::parse("raw(51)", Chain::Main, true).unwrap_err();
    assert_eq!(missing, DescriptorError::Checksum(ChecksumError::Missing));
}

/// The name of the variant of an error.
fn name(error: &impl std::fmt::Debug) -> String {
    format!("{error:?}").chars().take_while(char::is_ascii_alphanumeric).collect()
}

/// Each variant of [`KeyError`].
#[test]
fn every_error_of_a_key_has_cores_words() {
    let x = &KEY[2..];
    let y = "483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8";
    let cases = [
        (format!("pk([00000000]]{KEY})"), "pk(): Multiple ']' characters found for a single pubkey".to_owned()),
        (
            format!("pk(00000000]{KEY})"),
            "pk(): Key origin start '[ character expected but not found, got '0' instead".to_owned(),
        ),
        (
            format!("pkh([0000000]{KEY})"),
            "pkh(): Fingerprint is not 4 bytes (7 characters instead of 8 characters)".to_owned(),
        ),
        (format!("pkh([0000000g]{KEY})"), "pkh(): Fingerprint '0000000g' is not hex".to_owned()),
        ("combo()".to_owned(), "combo(): No key provided".to_owned()),
        (format!("pk( {KEY})"), format!("pk(): Key ' {KEY}' is invalid due to whitespace")),
        (format!("wpkh(04{x}{y})"), "wpkh(): Uncompressed keys are not allowed".to_owned()),
        (format!("pk(06{x}{y})"), "pk(): Hybrid public keys are not allowed".to_owned()),
        ("pk(02)".to_owned(), "pk(): Pubkey '02' is invalid".to_owned()),
        (format!("wpkh({x})"), format!("wpkh(): Pubkey '{x}' is invalid")),
        // A private key of another chain.
        (
            "pk(cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87JcbXMTcA)".to_owned(),
            "pk(): key 'cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87JcbXMTcA' is not valid".to_owned(),
        ),
        (format!("pk({XPUB}/a)"), "pk(): Key path value 'a' is not a valid uint32".to_owned()),
        (format!("pk({XPUB}/*/1)"), "pk(): Key path value '*' is not a valid uint32".to_owned()),
        (format!("pk({XPUB}/2147483648)"), "pk(): Key path value 2147483648 is out of range".to_owned()),
        (
            format!("pk([00000000/<0;1>]{KEY})"),
            "pk(): Key path value '<0;1>' specifies multipath in a section where multipath is not allowed".to_owned(),
        ),
        (format!("pk({XPUB}/<0;1>/<0;1>)"), "pk(): Multiple multipath key path specifiers found".to_owned()),
        (format!("pk({XPUB}/<0>)"), "pk(): Multipath key path specifiers must have at least two items".to_owned()),
        (format!("pk({XPUB}/<0;0>)"), "pk(): Duplicated key path value 0 in multipath specifier".to_owned()),
    ];
    let mut variants = BTreeSet::new();
    for (text, words) in cases {
        let error = parse(&text).unwrap_err();
        assert_eq!(error.to_string(), words, "{text}");
        let DescriptorError::Key { error, .. } = error else { panic!("{error:?}") };
        variants.insert(name(&error));
    }
    assert_eq!(variants.len(), 16, "{variants:?}");
}

/// Each variant of [`KeyError`] about musig().
#[test]
fn every_error_of_musig_has_cores_words() {
    let derivation = "musig(): derivation requires all participants to be xpubs or xprvs";
    let cases = [
        (format!("pk(musig({KEY}))"), "pk", "musig() is only allowed in tr() and rawtr()"),
        (format!("tr(musig(musig({KEY})))"), "tr", "Too many ')' in musig() expression"),
        (format!("tr(musig(pk({KEY})))"), "tr", "Too many ')' in musig() expression"),
        (format!("tr(musig({KEY}/0)"), "tr", "Invalid musig() expression"),
        ("rawtr(musig())".to_owned(), "rawtr", "musig(): Must contain key expressions"),
        (format!("tr(musig({KEY}}}{{))"), "tr", "musig(): expected ',', got '}'"),
        (format!("tr(musig({KEY},))"), "tr", "musig(): No key provided"),
        (format!("tr(musig(,{KEY}))"), "tr", "musig(): No key provided"),
        (format!("tr(musig({KEY},{KEY})/0)"), "tr", derivation),
        (format!("tr(musig({XPUB},{KEY})/*)"), "tr", derivation),
        (
            format!("tr(musig({XPUB}/*)/0)"),
            "tr",
            "musig(): Cannot have ranged participant keys if musig() also has derivation",
        ),
        (format!("tr(musig({XPUB})/*')"), "tr", "musig(): Cannot have hardened child derivation"),
        (format!("tr(musig({XPUB})/<0;1h>/*)"), "tr", "musig(): cannot have hardened derivation steps"),
        (format!("tr(musig({XPUB})/)"), "tr", "musig(): Key path value '' is not a valid uint32"),
        (
            format!("tr(musig({XPUB}/<0;1>)/<0;1>)"),
            "tr",
            "musig(): Cannot have multipath participant keys if musig() is also multipath",
        ),
        (
            format!("tr(musig({XPUB}/<0;1>,{XPUB}/<0;1;2>))"),
            "tr",
            "musig(): Multipath derivation paths have mismatched lengths",
        ),
    ];
    let mut variants = BTreeSet::new();
    for (text, function, words) in cases {
        let error = parse(&text).unwrap_err();
        assert_eq!(error.to_string(), format!("{function}(): {words}"), "{text}");
        let DescriptorError::Key { error, .. } = error else { panic!("{error:?}") };
        variants.insert(name(&error));
    }
    assert_eq!(variants.len(), 12, "{variants:?}");
    // A key inside is named by neither function.
    let error = parse(&format!("tr({},pk(musig([0])))", &KEY[2..])).unwrap_err().to_string();
    assert!(error.starts_with("pk(): musig(): "), "{error}");
}

/// The vectors of BIP-0328, and scripts of BIP-0390 from Core's descriptor tests.
#[test]
fn aggregate_keys() {
    let vectors: Vec<serde_json::Value> = serde_json::from_str(BIP_0328).unwrap();
    assert_eq!(vectors.len(), 3);
    for vector in vectors {
        let bytes = |text: &serde_json::Value| lydian_primitives::hex(text.as_str().unwrap()).unwrap();
        let mut keys: Vec<Vec<u8>> = vector["keys"].as_array().unwrap().iter().map(bytes).collect();
        let aggregate = musig::aggregate(&keys).unwrap();
        assert_eq!(aggregate.to_vec(), bytes(&vector["aggregate_pubkey"]));
        let extended = bip32::Extended::of_aggregate(aggregate);
        assert_eq!(extended.encode(Chain::Main), vector["xpub"].as_str().unwrap());
        // The vectors are not sorted, and musig() sorts.
        let texts: Vec<String> = keys.iter().map(|key| to_hex(key)).collect();
        keys.sort_unstable();
        let sorted = musig::aggregate(&keys).unwrap();
        assert_ne!(sorted, aggregate);
        let scripts = scripts_of(&format!("rawtr(musig({}))", texts.join(",")), 0).unwrap();
        assert_eq!(scripts, [format!("5120{}", to_hex(&sorted[1..]))]);
    }
    assert_eq!(musig::aggregate(&[]), None);
    let keys = "02f9308a019258c31049344f85f89d5229b531c845836f99b08601f113bce036f9,03dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659,023590a94e768f8e1815c2f24b4d80a8e3149316c3518ce7b7ad338368d038ca66";
    let first = "xpub6ERApfZwUNrhLCkDtcHTcxd75RbzS1ed54G1LkBUHQVHQKqhMkhgbmJbZRkrgZw4koxb5JaHWkY4ALHY2grBGRjaDMzQLcgJvLJuZZvRcEL";
    let second = "xpub68NZiKmJWnxxS6aaHmn81bvJeTESw724CRDs6HbuccFQN9Ku14VQrADWgqbhhTHBaohPX4CjNLf9fq9MYo6oDaPPLPxSb7gwQN3ih19Zm4Y";
    for (text, expected) in [
        (format!("rawtr(musig({keys}))"), "5120789d937bade6673538f3e28d8368dda4d0512f94da44cf477a505716d26a1575"),
        (format!("tr(musig({keys}))"), "512079e6c3e628c9bfbce91de6b7fb28e2aec7713d377cf260ab599dcbc40e542312"),
        (
            format!("rawtr(musig({first}/0/*,{second}/0/*))"),
            "5120754ccfd18ed4051de3b1144b6145cad4b2999387338dfb85ec392f2963ceaa3a",
        ),
        (
            format!("rawtr(musig({first},{second})/0/*)"),
            "51209508c08832f3bb9d5e8baf8cb5cfa3669902e2f2da19acea63ff47b93faa9bfc",
        ),
        (
            format!("rawtr(musig({first}/0,{second})/1)"),
            "51200e355f2bc9e754268e12bbd337499c2f7ffafc3101c41792709007b25a862532",
        ),
    ] {
        assert_eq!(scripts_of(&text, 0).unwrap(), [expected], "{text}");
    }
}

const BIP_0328: &str = include_str!("../../../../testdata/vectors/bips/bip-0328/vectors.json");

/// Alternatives and wildcards before and after the bracket, and private keys of participants.
#[test]
fn positions_of_musig() {
    let of = |text: &str, index: usize, position: u32| {
        let outputs = parse(text).unwrap().expand(index, position)?;
        Some(outputs.into_iter().map(|output| output.script).collect::<Vec<_>>())
    };
    let single = of(&format!("tr(musig({XPUB}/1/7,{KEY}))"), 0, 0);
    assert!(single.is_some());
    assert_eq!(of(&format!("tr(musig({KEY},{XPUB}/<0;1>/*))"), 1, 7), single, "sorted, multipath, ranged");
    let after = of(&format!("tr(musig({XPUB}/5,{XPUB}/6)/1/7)"), 0, 0);
    assert!(after.is_some() && after != single);
    for position in [7, 0, 7] {
        let found = of(&format!("tr(musig({XPUB}/5,{XPUB}/6)/<0;1>/*)"), 1, position);
        assert_eq!(found == after, position == 7);
    }
    let descriptor = parse(&format!("tr(musig({XPUB}/5,{XPUB}/6)/<0;1;2>/*)")).unwrap();
    assert_eq!((descriptor.count(), descriptor.is_range(), descriptor.has_secrets()), (3, true, false));
    // The aggregate key is computed once, and derived from for every position.
    assert_ne!(descriptor.expand(1, 0), descriptor.expand(1, 1));
    assert_eq!(descriptor.expand(1, 7).unwrap()[0].script, after.unwrap()[0]);
    // A hardened participant needs its private key.
    assert_eq!(of(&format!("tr(musig({XPUB}/5h,{KEY}))"), 0, 0), None);
    let hardened = parse(&format!("tr(musig({XPRV}/5h,{WIF}))")).unwrap();
    assert!(hardened.has_secrets() && hardened.expand(0, 0).is_some());
    assert_eq!(hardened.texts()[0].split('#').next(), Some(format!("tr(musig({XPUB}/5h,{KEY}))").as_str()));
    // Core ignores what follows the bracket without a slash.
    assert_eq!(of(&format!("tr(musig({KEY})x)"), 0, 0), of(&format!("tr(musig({KEY}))"), 0, 0));
}

/// Mutated descriptors give a descriptor that is written and read again, or an error.
#[test]
fn mangled_text_is_total() {
    let texts = [
        format!("sh(wsh(sortedmulti(2,[00000000/1h/2]{XPUB}/<0;1>/*,{KEY})))"),
        format!("tr({XPUB}/*,{{pk({}),and_v(v:pkh({KEY}),older(144))}})#xxxxxxxx", &KEY[2..]),
        format!("wsh(thresh(2,pk({KEY}),s:pk({WIF}),sln:after(5)))"),
        "addr(bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4)#8lvh9jxk".to_owned(),
        format!("tr(musig({XPUB}/<0;1>/*,{KEY}),pk(musig({XPUB},{XPRV})/1/*))"),
    ];
    // A linear congruential generator by Knuth; any generator would do.
    let mut state: u64 = 1;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    for round in 0..5_000 {
        let mut letters: Vec<char> = texts[round % texts.len()].chars().collect();
        for _ in 0..=next(3) {
            let at = next(letters.len());
            let letter =
                ['(', ')', '{', '}', '<', '>', '[', ']', ',', ';', '#', '*', 'h', ':', '0', ' ', 'é'][next(17)];
            match next(4) {
                0 => letters[at] = letter,
                1 => letters.insert(at, letter),
                2 => letters.truncate(at.max(1)),
                _ => {
                    let end = at + next(letters.len() - at);
                    let part = letters[at..end].to_vec();
                    letters.splice(at..at, part);
                }
            }
        }
        let text: String = letters.into_iter().collect();
        let Ok(read) = parse(&text) else { continue };
        for (index, written) in read.texts().into_iter().enumerate() {
            let again = Descriptors::parse(&written, Chain::Main, true).unwrap();
            for output in read.expand(index, 7).unwrap_or_default() {
                let described = Descriptors::parse(&output.descriptor, Chain::Main, true).unwrap();
                assert_eq!(described.expand(0, 0).unwrap()[0].script, output.script, "{text}");
            }
            assert_eq!(again.texts(), [written], "{text}");
        }
    }
}

/// limit: MINISCRIPT_DEPTH_MAX at
/// limit: MINISCRIPT_DEPTH_MAX above
#[test]
fn miniscript_so_deep_and_no_deeper() {
    // The expression itself is one level.
    let nested = |depth: usize| format!("wsh({}:pk({KEY}))", "n".repeat(depth - 1));
    let at = parse(&nested(MINISCRIPT_DEPTH_MAX)).unwrap_err();
    assert!(matches!(at, DescriptorError::Miniscript { fault: MiniscriptFault::ResourceLimits, .. }), "{at}");
    let above = parse(&nested(MINISCRIPT_DEPTH_MAX + 1)).unwrap_err();
    assert_eq!(above, DescriptorError::NoFunction { within: "P2WSH" });
    let nested =
        |depth: usize| format!("tr({0},{1}pk({0}){2})", &KEY[2..], "and_v(v:1,".repeat(depth), ")".repeat(depth));
    assert!(parse(&nested(100_000)).is_err());
}
