//! Tests of the precedence of values.

use super::*;

/// Returns the settings of a command line and a file.
fn given(arguments: &[&str], file: &str) -> Settings {
    let (mut settings, _) = split(arguments.iter().map(OsString::from).collect()).unwrap();
    for (key, value) in conf::parse(file).unwrap() {
        let (section, name, is_negated) = interpret(&key);
        let Some(option) = options::find(name) else { continue };
        let value = read(option, is_negated, Some(&value)).ok().unwrap();
        settings.file.entry((section.unwrap_or_default().to_owned(), option.name)).or_default().push(value);
    }
    settings.chain = Some(settings.find_chain().unwrap());
    settings
}

#[test]
fn which_value_counts() {
    let check = |arguments: &[&str], file: &str, expected: Option<&str>| {
        assert_eq!(given(arguments, file).text("rpcuser").as_deref(), expected, "{arguments:?} {file:?}");
    };
    check(&[], "", None);
    check(&["-rpcuser=a", "--rpcuser=b"], "rpcuser=c", Some("b"));
    check(&["-rpcuser"], "rpcuser=c", Some(""));
    check(&["-norpcuser"], "rpcuser=c", Some("0"));
    check(&["-norpcuser=0"], "", Some("1"));
    check(&["-norpcuser", "-rpcuser=a"], "", Some("a"));
    check(&[], "rpcuser=a\nrpcuser=b\nunknown=1", Some("a"));
    check(&["-regtest"], "rpcuser=a\n[regtest]\nrpcuser=b\n[test]\nrpcuser=c", Some("b"));
    check(&["-signet"], "rpcuser=a\nregtest.rpcuser=b", Some("a"));
    let port = |arguments: &[&str], file: &str| given(arguments, file).text("rpcport");
    assert_eq!(port(&[], "rpcport=1").as_deref(), Some("1"));
    assert_eq!(port(&["-regtest"], "rpcport=1"), None);
    assert_eq!(port(&["-regtest"], "norpcport=1").as_deref(), Some("0"));
    assert_eq!(port(&["-regtest"], "rpcport=1\nregtest.rpcport=2").as_deref(), Some("2"));
    let mut forced = given(&["-rpcpassword=a"], "");
    forced.force("rpcpassword", "b".to_owned());
    assert_eq!(forced.text("rpcpassword").as_deref(), Some("b"));
}

#[test]
fn chains() {
    let check = |arguments: &[&str], file: &str, expected: (&str, &str, u16)| {
        let chain = given(arguments, file).chain();
        assert_eq!((chain.name, chain.folder, chain.port), expected);
    };
    check(&[], "", ("main", "", 8332));
    check(&["-testnet"], "", ("test", "testnet3", 18332));
    check(&["-chain=testnet4"], "", ("testnet4", "testnet4", 48332));
    check(&[], "signet=1", ("signet", "signet", 38332));
    check(&["-noregtest"], "regtest=1", ("regtest", "regtest", 18443));
    check(&["-regtest=0"], "regtest=1", ("main", "", 8332));
    check(&[], "regtest=1\nregtest=0", ("main", "", 8332));
    let error = |arguments: &[&str]| {
        let (settings, _) = split(arguments.iter().map(OsString::from).collect()).unwrap();
        settings.find_chain().unwrap_err()
    };
    assert_eq!(error(&["-regtest", "-signet"]), SettingsError::ChainCombination);
    assert_eq!(error(&["-regtest", "-chain=regtest"]), SettingsError::ChainCombination);
    assert_eq!(error(&["-chain=moon"]), SettingsError::UnknownChain { name: "moon".to_owned() });
}

#[test]
fn options_end_at_the_first_word() {
    let split_of = |words: &[&str]| split(words.iter().map(OsString::from).collect());
    let (settings, rest) = split_of(&["-named", "getblock", "-regtest", "--"]).unwrap();
    assert!(settings.switch("named") && !settings.is_set("regtest"));
    assert_eq!(rest, ["getblock", "-regtest", "--"]);
    assert_eq!(split_of(&["-named", "-", "-bad", "help"]).unwrap().1, ["help"]);
    assert_eq!(split_of(&["", "-bad"]).unwrap().1, ["", "-bad"]);
    let error = |word: &str| split_of(&[word]).unwrap_err().to_string();
    let begin = "Error parsing command line arguments: ";
    assert_eq!(error("-bad=1"), format!("{begin}Invalid parameter -bad=1"));
    assert_eq!(error("-regtest.rpcport=1"), format!("{begin}Invalid parameter -regtest.rpcport=1"));
    assert_eq!(error("-nodatadir"), format!("{begin}Negating of -datadir is meaningless and therefore forbidden"));
    assert_eq!(
        error("-rpcid"),
        format!("{begin}Can not set -rpcid with no value. Please specify value with -rpcid=value.")
    );
    assert_eq!(error("--"), format!("{begin}Invalid parameter --"));
}

#[test]
fn truth_and_numbers() {
    for (text, expected) in [
        ("", 0),
        ("x", 0),
        ("12x", 12),
        (" -3", -3),
        ("+4", 4),
        ("+-4", 0),
        ("99999999999999999999", i64::MAX),
        ("-99999999999999999999", i64::MIN),
    ] {
        assert_eq!(integer(text), expected, "{text}");
    }
    assert!(given(&["-stdin"], "").switch("stdin") && given(&["-stdin=2"], "").switch("stdin"));
    assert!(!given(&["-stdin=true"], "").switch("stdin") && !given(&["-nostdin"], "").switch("stdin"));
    assert_eq!(given(&["-rpcclienttimeout=7s"], "").integer("rpcclienttimeout", 900), 7);
}

/// The node reads `bitcoin.conf` if there is no `lydian.conf`, and its client did not: with an `rpcport` there, the
/// client did not find the node.
#[test]
#[allow(clippy::disallowed_methods, reason = "a test makes its own files")]
fn the_file_is_the_one_that_the_node_reads() {
    let scratch = lydian_oracle::Scratch::new("cli-conf");
    std::fs::create_dir_all(scratch.path()).unwrap();
    let datadir = OsString::from(format!("-datadir={}", scratch.path().display()));
    let user = || {
        let (mut settings, _) = split(vec![datadir.clone()]).unwrap();
        settings.load().unwrap();
        (settings.text("rpcuser"), settings.conf().unwrap().file_name().unwrap().to_owned())
    };
    assert_eq!(user(), (None, "lydian.conf".into()));
    std::fs::write(scratch.path().join("bitcoin.conf"), "rpcuser=core").unwrap();
    assert_eq!(user(), (Some("core".to_owned()), "bitcoin.conf".into()));
    std::fs::write(scratch.path().join("lydian.conf"), "rpcuser=own").unwrap();
    assert_eq!(user(), (Some("own".to_owned()), "lydian.conf".into()));
}

/// limit: CONF_BYTES_MAX at
/// limit: CONF_BYTES_MAX above
/// limit: COOKIE_BYTES_MAX at
/// limit: COOKIE_BYTES_MAX above
#[test]
#[allow(clippy::disallowed_methods, reason = "a test makes its own files")]
fn files_of_that_size_and_no_more() {
    let scratch = lydian_oracle::Scratch::new("cli-limits");
    std::fs::create_dir_all(scratch.path()).unwrap();
    let datadir = format!("-datadir={}", scratch.path().display());
    let load = |conf_size: u64, cookie_size: u64| {
        let fill = |begin: &str, size: u64| {
            let mut bytes = begin.as_bytes().to_vec();
            bytes.resize(usize::try_from(size).unwrap(), b'\n');
            bytes
        };
        std::fs::write(scratch.path().join("lydian.conf"), fill("rpcuser=me", conf_size)).unwrap();
        std::fs::write(scratch.path().join(".cookie"), fill("a:b", cookie_size)).unwrap();
        let words = [datadir.as_str(), "-conf=lydian.conf"];
        let (mut settings, _) = split(words.iter().map(OsString::from).collect()).unwrap();
        settings.load().map(|()| (settings.text("rpcuser").unwrap(), settings.cookie()))
    };
    let good = Some("a:b".to_owned());
    assert_eq!(load(CONF_BYTES_MAX, COOKIE_BYTES_MAX).unwrap(), ("me".to_owned(), Ok(good)));
    assert_eq!(load(CONF_BYTES_MAX, COOKIE_BYTES_MAX + 1).unwrap(), ("me".to_owned(), Err(())));
    assert!(matches!(load(CONF_BYTES_MAX + 1, 1), Err(SettingsError::Conf(ConfError::Unreadable { .. }))));
}
