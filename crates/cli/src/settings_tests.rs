//! Tests of the precedence of values.

use super::*;
use lydian_disk::{Disk, SimDisk};

/// Returns the settings of a command line and a file, and of other files in the data directory.
fn read(arguments: &[&str], files: &[(&str, &str)]) -> Result<Settings, SettingsError> {
    let (mut settings, _) = split(arguments.iter().map(OsString::from).collect())?;
    let disk = SimDisk::new(0);
    disk.create_dir(Path::new("/d")).unwrap();
    for (name, text) in files {
        disk.write_whole(&Path::new("/d").join(name), text.as_bytes()).unwrap();
    }
    let datadir = Some(Path::new("/d"));
    settings.read(&ConfigFiles {
        disk: &disk,
        directory: Path::new("/"),
        default_datadir: datadir,
        is_lenient: true,
    })?;
    Ok(settings)
}

fn given(arguments: &[&str], file: &str) -> Settings {
    read(arguments, &[("lydian.conf", file)]).unwrap()
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
        assert_eq!((chain.name, chain.folder, chain.rpc_port), expected);
    };
    check(&[], "", ("main", "", 8332));
    check(&["-testnet"], "", ("test", "testnet3", 18332));
    check(&["-chain=testnet4"], "", ("testnet4", "testnet4", 48332));
    check(&[], "signet=1", ("signet", "signet", 38332));
    check(&["-noregtest"], "regtest=1", ("regtest", "regtest", 18443));
    check(&["-regtest=0"], "regtest=1", ("main", "", 8332));
    check(&[], "regtest=1\nregtest=0", ("main", "", 8332));
    let error = |arguments: &[&str]| read(arguments, &[]).unwrap_err();
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
    assert!(given(&["-stdin"], "").switch("stdin") && given(&["-stdin=2"], "").switch("stdin"));
    assert!(!given(&["-stdin=true"], "").switch("stdin") && !given(&["-nostdin"], "").switch("stdin"));
    assert_eq!(given(&["-rpcclienttimeout=7s"], "").integer("rpcclienttimeout", 900), 7);
}

/// `bitcoin-cli` has no option `-includeconf`. It ignores the line in a file, even if the named file is missing, and
/// refuses the option on the command line. The test in `tests/beside` compares this with `bitcoin-cli`.
#[test]
fn files_are_not_included() {
    let files =
        [("lydian.conf", "includeconf=more.conf\nincludeconf=none.conf\nrpcuser=a"), ("more.conf", "rpcport=1\n-")];
    let settings = read(&[], &files).unwrap();
    assert_eq!((settings.text("rpcuser").as_deref(), settings.text("rpcport")), (Some("a"), None));
    let error = |word: &str| split(vec![word.into()]).unwrap_err().to_string();
    let begin = "Error parsing command line arguments: Invalid parameter ";
    assert_eq!(error("-includeconf=more.conf"), format!("{begin}-includeconf=more.conf"));
    assert_eq!(error("-noincludeconf"), format!("{begin}-noincludeconf"));
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

/// limit: COOKIE_BYTES_MAX at
/// limit: COOKIE_BYTES_MAX above
#[test]
#[allow(clippy::disallowed_methods, reason = "a test makes its own files")]
fn a_cookie_file_has_a_greatest_size() {
    let scratch = lydian_oracle::Scratch::new("cli-limits");
    std::fs::create_dir_all(scratch.path()).unwrap();
    let datadir = format!("-datadir={}", scratch.path().display());
    let cookie = |size: u64| {
        let mut bytes = b"a:b".to_vec();
        bytes.resize(usize::try_from(size).unwrap(), b'\n');
        std::fs::write(scratch.path().join(".cookie"), bytes).unwrap();
        let (mut settings, _) = split(vec![datadir.clone().into()]).unwrap();
        settings.load().unwrap();
        settings.cookie()
    };
    assert_eq!(cookie(COOKIE_BYTES_MAX), Ok(Some("a:b".to_owned())));
    assert_eq!(cookie(COOKIE_BYTES_MAX + 1), Err(()));
}

/// A file that is named and cannot be read, because it is too large, is reported as in Core.
#[test]
fn a_named_file_that_cannot_be_read() {
    let named = |size: usize| read(&["-conf=big.conf"], &[("big.conf", &"\n".repeat(size))]).map(|_| ());
    assert_eq!(named(1 << 20), Ok(()));
    let problem = ConfProblem::NotOpened { path: "/d/big.conf".into() };
    assert_eq!(named((1 << 20) + 1), Err(SettingsError::Conf(problem)));
}
