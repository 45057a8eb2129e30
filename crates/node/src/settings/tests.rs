//! The tables walked, Bitcoin Core's own cases by value, and files on a simulated disk.

use super::sources::{Origin, Setting, Sources, Value};
use super::table::{COMMANDS, Group, OPTIONS};
use super::*;
use crate::host::Host;
use crate::limits::CONF_SIZE_MAX;
use lydian_consensus::Chain;
use lydian_disk::{Disk, SimDisk};
use std::ffi::OsString;
use std::path::Path;

fn words(arguments: &[&str]) -> Result<Words, SettingsError> {
    split(arguments.iter().map(OsString::from))
}

fn host() -> Host {
    Host {
        home: Some("/u".into()),
        directory: "/cwd".into(),
        cores: 4,
        lookup: |name| (name == "here.example").then(|| [10, 0, 0, 7].into()),
        descriptors: |wanted| wanted.min(1024),
    }
}

/// A disk with a default data directory and this file in it.
fn disk(conf: &str) -> SimDisk {
    let disk = SimDisk::new(0);
    for path in ["/u/.lydian", "/cwd/d", "/cwd/b"] {
        disk.create_dir(Path::new(path)).unwrap();
    }
    if !conf.is_empty() {
        disk.write_whole(Path::new("/u/.lydian/lydian.conf"), conf.as_bytes()).unwrap();
    }
    disk
}

fn load_with(arguments: &[&str], conf: &str) -> Result<Settings, SettingsError> {
    load(&words(arguments)?, &host(), &disk(conf))
}

fn sentence(arguments: &[&str], conf: &str) -> String {
    load_with(arguments, conf).unwrap_err().to_string()
}

/// For each option a form that changes something, and one that is refused (none: every text is a path or a command).
const FORMS: &[(&str, &str, Option<&str>)] = &[
    ("datadir", "d", Some("-nodatadir")),
    ("dbcache", "1000", Some("-dbcache=many")),
    ("par", "3", Some("-par=1025")),
    ("prune", "550", Some("-prune=549")),
    ("fastprune", "1", Some("-fastprune=x")),
    ("reindex", "1", Some("-reindex=yes")),
    ("daemon", "1", Some("-daemon=true")),
    ("printtoconsole", "1", Some("-printtoconsole=on")),
    ("sigengine", "reference", Some("-sigengine=fast")),
    ("alertnotify", "echo %s", Some("-alertnotify=")),
    ("assumevalid", "0xab", Some("-assumevalid=xyz")),
    ("blocknotify", "echo %s", Some("-blocknotify=")),
    ("blocksdir", "b", Some("-blocksdir=nowhere")),
    ("blocksxor", "0", Some("-blocksxor=key")),
    ("conf", "/etc/none", Some("-conf=none.conf")),
    ("daemonwait", "1", Some("-daemonwait=x")),
    ("debuglogfile", "other.log", None),
    ("includeconf", "x", Some("-includeconf=x")),
    ("loadblock", "a.dat", Some("-loadblock=")),
    (
        "minimumchainwork",
        "10",
        Some("-minimumchainwork=0123456789012345678901234567890123456789012345678901234567890123g"),
    ),
    ("pid", "other.pid", None),
    ("reindex-chainstate", "1", Some("-reindex-chainstate=x")),
    ("shutdownnotify", "true", Some("-shutdownnotify=")),
    ("startupnotify", "true", Some("-startupnotify=")),
    ("chain", "signet", Some("-chain=mainnet")),
    ("regtest", "1", Some("-regtest=x")),
    ("signet", "1", Some("-signet=x")),
    ("testnet", "1", Some("-testnet=x")),
    ("testnet4", "1", Some("-testnet4=x")),
    ("checkblocks", "100", Some("-checkblocks=all")),
    ("checklevel", "4", Some("-checklevel=5")),
    ("debug", "bench", Some("-debug=noise")),
    ("debugexclude", "prune", Some("-debugexclude=noise")),
    ("loglevel", "trace", Some("-nologlevel")),
    ("logtimemicros", "1", Some("-logtimemicros=x")),
    ("shrinkdebugfile", "0", Some("-shrinkdebugfile=x")),
    ("stopafterblockimport", "1", Some("-stopafterblockimport=x")),
    ("stopatheight", "100", Some("-stopatheight=-1")),
    ("testactivationheight", "segwit@5", Some("-testactivationheight=segwit")),
    ("addnode", "10.0.0.1", Some("-addnode=")),
    ("bantime", "60", Some("-bantime=0")),
    ("bind", "127.0.0.1:1234", Some("-bind=host")),
    ("blocksonly", "1", Some("-blocksonly=x")),
    ("cjdnsreachable", "1", Some("-cjdnsreachable=x")),
    ("connect", "10.0.0.1:1234", Some("-connect=")),
    ("discover", "0", Some("-discover=x")),
    ("dns", "0", Some("-dns=x")),
    ("dnsseed", "0", Some("-dnsseed=x")),
    ("externalip", "8.8.8.8", Some("-externalip=nowhere.example")),
    ("fixedseeds", "0", Some("-fixedseeds=x")),
    ("forcednsseed", "1", Some("-forcednsseed=x")),
    ("listen", "0", Some("-listen=x")),
    ("maxconnections", "7", Some("-maxconnections=-1")),
    ("maxreceivebuffer", "7", Some("-maxreceivebuffer=x")),
    ("maxsendbuffer", "7", Some("-maxsendbuffer=x")),
    ("maxtipage", "7", Some("-maxtipage=x")),
    ("maxuploadtarget", "7G", Some("-maxuploadtarget=7x")),
    ("mocktime", "1700000000", Some("-mocktime=-1")),
    ("networkactive", "0", Some("-networkactive=x")),
    ("onion", "127.0.0.1:9150", Some("-onion=nowhere.example")),
    ("onlynet", "ipv4", Some("-onlynet=ipv5")),
    ("peertimeout", "7", Some("-peertimeout=0")),
    ("port", "1234", Some("-port=65536")),
    ("proxy", "127.0.0.1:9050", Some("-proxy")),
    ("proxyrandomize", "0", Some("-proxyrandomize=x")),
    ("seednode", "10.0.0.1", Some("-seednode=")),
    ("signetseednode", "seed.example", Some("-signetseednode=")),
    ("timeout", "7", Some("-timeout=x")),
    ("uacomment", "me", Some("-uacomment=me/")),
    ("v2transport", "0", Some("-v2transport=x")),
    ("whitebind", "127.0.0.1:1234", Some("-whitebind=127.0.0.1")),
    ("whitelist", "10.0.0.0/8", Some("-whitelist=host")),
    ("whitelistforcerelay", "1", Some("-whitelistforcerelay=x")),
    ("whitelistrelay", "0", Some("-whitelistrelay=x")),
    ("server", "0", Some("-server=x")),
    ("rpcallowip", "10.0.0.0/8", Some("-rpcallowip=host")),
    ("rpcauth", "a:b$c", Some("-rpcauth=a")),
    ("rpcbind", "127.0.0.1", Some("-rpcbind=")),
    ("rpccookiefile", "other", None),
    ("rpccookieperms", "group", Some("-rpccookieperms=world")),
    ("rpcpassword", "p", None),
    ("rpcport", "1234", Some("-rpcport=0")),
    ("rpcdoccheck", "1", Some("-rpcdoccheck=x")),
    ("deprecatedrpc", "warnings", Some("-deprecatedrpc=")),
    ("rpcservertimeout", "1", Some("-rpcservertimeout=x")),
    ("rpcthreads", "3", Some("-rpcthreads=x")),
    ("rpcuser", "u", None),
    ("rpcwhitelist", "u:help", Some("-rpcwhitelist=")),
    ("rpcwhitelistdefault", "1", Some("-rpcwhitelistdefault=x")),
    ("rpcworkqueue", "3", Some("-rpcworkqueue=x")),
    ("copy", "1", Some("-copy")),
    ("json", "1", Some("-json")),
];

/// Options that act before settings are made.
const EARLY: &[&str] = &["help", "h", "?", "help-debug", "help-config", "help-rpc", "version"];

#[test]
fn every_option_is_read_and_refuses_what_it_cannot_take() {
    for option in OPTIONS.iter().filter(|option| !EARLY.contains(&option.name)) {
        let (name, good, bad) =
            FORMS.iter().find(|form| form.0 == option.name).unwrap_or_else(|| panic!("-{}", option.name));
        let command = option.commands.first().map(|command| vec![*command]).unwrap_or_default();
        let argument = if command == ["import"] { vec!["dir"] } else { Vec::new() };
        let context: Vec<&str> = match *name {
            "testactivationheight" => vec!["-regtest"],
            "debugexclude" => vec!["-debug"],
            "proxyrandomize" => vec!["-proxy=127.0.0.1"],
            "signetseednode" => vec!["-signet"],
            _ => Vec::new(),
        };
        let plain = [command, argument, context].concat();
        let before = load_with(&plain, "").unwrap();
        if !["conf", "includeconf"].contains(name) {
            for form in [format!("-{name}={good}"), format!("--{name}={good}")] {
                let mut after =
                    load_with(&[&plain[..], &[&form]].concat(), "").unwrap_or_else(|error| panic!("{error}"));
                assert!(after.arguments.iter().any(|line| line.contains(name)), "{:?}", after.arguments);
                after.arguments.clone_from(&before.arguments);
                assert_ne!(format!("{after:?}"), format!("{before:?}"), "{form} changes nothing");
            }
        }
        let Some(bad) = bad else { continue };
        let plain = if option.commands.is_empty() { plain } else { Vec::new() };
        let error = load_with(&[&plain[..], &[bad]].concat(), "").map(|_| ()).expect_err(bad).to_string();
        assert!(!error.is_empty());
    }
    assert_eq!(FORMS.len() + EARLY.len(), OPTIONS.len(), "a form for an option that is not there");
}

#[test]
fn the_tables_name_each_option_once() {
    let mut names: Vec<_> = OPTIONS.iter().map(|option| option.name).collect();
    names.extend(core::CORE_OPTIONS.iter().map(|option| option.name));
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(!names.iter().any(|name| name.starts_with("no")), "'no' before a name negates");
    assert!(core::CORE_OPTIONS.iter().all(|option| !option.reason.is_empty()));
    assert!(OPTIONS.iter().all(|option| !option.help.is_empty() && !option.default.is_empty()));
}

/// Every `AddArg` and hidden option in the source that the judge was made from.
#[test]
fn every_option_of_core_is_in_a_table() {
    let name = "every_option_of_core_is_in_a_table";
    let Some(source) = lydian_oracle::or_skip(name, lydian_oracle::build::locate()).map(|built| built.source) else {
        return;
    };
    let mut found = 0;
    for file in
        ["src/init.cpp", "src/init/common.cpp", "src/chainparamsbase.cpp", "src/common/args.cpp", "src/dummywallet.cpp"]
    {
        #[allow(clippy::disallowed_methods, reason = "a test reads the judge's source")]
        let text = std::fs::read_to_string(source.join(file)).unwrap();
        let text = match text.split_once("void SetupServerArgs") {
            Some((_, body)) => body.split("\n}\n").next().unwrap().to_owned(),
            None => text,
        };
        let calls = ["AddArg(", "AddHiddenArgs({", "hidden_args = {", "emplace_back("];
        for call in calls {
            for part in text.split(call).skip(1) {
                let end = if call.ends_with('{') { part.find('}').unwrap() } else { part.find([',', ')']).unwrap() };
                for name in part[..end].split("\"-").skip(1) {
                    let name: String = name
                        .chars()
                        .take_while(|letter| letter.is_ascii_alphanumeric() || "-?".contains(*letter))
                        .collect();
                    let is_ours = table::find(&name).is_some();
                    assert!(is_ours || core::CORE_OPTIONS.iter().any(|option| option.name == name), "-{name} ({file})");
                    found += 1;
                }
            }
        }
    }
    assert!(found > 180, "only {found} options were found");
}

fn given(line: &[&str], files: &[(&str, &str)]) -> Sources {
    let mut sources = Sources::default();
    let setting = |text: &str| match text {
        "false" => Setting::Negated,
        "true" => Setting::DoubleNegated,
        text => Setting::Text(text.to_owned()),
    };
    for text in line {
        sources.add("", "a", Value { setting: setting(text), origin: Origin::CommandLine });
    }
    for (index, (section, text)) in files.iter().enumerate() {
        let origin = Origin::File { path: "f".into(), line: index + 1 };
        sources.add(section, "a", Value { setting: setting(text), origin });
    }
    sources
}

/// Values of Core's argsman_tests: `util_GetArg` (priorities), `util_GetBoolArgEdgeCases`, `util_ReadConfigStream`.
#[test]
fn precedence_is_cores() {
    let one = |line: &[&str], files: &[(&str, &str)], network: &str| {
        let mut sources = given(line, files);
        sources.select_network(network);
        let list: Vec<_> = sources.list("a").iter().map(|value| value.setting.text().to_owned()).collect();
        (sources.get("a").map(|value| value.setting.text().to_owned()).unwrap_or_default(), list.join(","))
    };
    let is = |value: &str, list: &str| (value.to_owned(), list.to_owned());
    assert_eq!(one(&["x", "y"], &[], "main"), is("y", "x,y"));
    assert_eq!(one(&[], &[("", "x"), ("", "y")], "main"), is("x", "x,y"));
    assert_eq!(one(&["x", "y"], &[("", "u"), ("", "v")], "main"), is("y", "x,y,u,v"));
    assert_eq!(one(&["false", ""], &[], "main"), is("", ""), "a later value overrides a negation");
    assert_eq!(one(&[], &[("", "false"), ("", "1")], "main"), is("1", "1"));
    assert_eq!(one(&[], &[("", "1"), ("", "false")], "main"), is("0", ""), "a negation is the last word");
    assert_eq!(one(&["false"], &[("", "1")], "main"), is("0", ""));
    assert_eq!(one(&["false", "x"], &[("", "u")], "main"), is("x", "x,u"), "Core's zombies");
    let sections = [("", "argument"), ("", "multiple"), ("sec1", "extend1"), ("sec1", "extend2"), ("sec2", "extend3")];
    assert_eq!(one(&[], &sections, "main"), is("argument", "argument,multiple"));
    assert_eq!(one(&[], &sections, "sec1"), is("extend1", "extend1,extend2,argument,multiple"));
    assert_eq!(one(&[], &sections, "sec2"), is("extend3", "extend3,argument,multiple"));
    assert_eq!(one(&[], &[("sec1", "false"), ("", "u")], "sec1"), is("0", ""));
    let chain = |line: &[&str], files: &[(&str, &str)]| {
        given(line, files).get_for_chain("a").map(|value| value.setting.text().to_owned()).unwrap_or_default()
    };
    assert_eq!(chain(&[], &[("", "0"), ("", "1")]), "1", "of chains in a file the last counts");
    assert_eq!(chain(&["false"], &[("", "1")]), "1", "a negated chain on the command line is passed over");
    assert_eq!(chain(&[], &[("regtest", "1")]), "", "a section does not choose itself");
}

/// Core's `util_CheckValue`, `util_ParseParameters` and `util_ParseInvalidParameters`.
#[test]
fn words_are_split_as_cores() {
    let last = |argument: &str| {
        let words = words(&[argument]).unwrap();
        words.sources.get("pid").map(|value| value.setting.clone())
    };
    let text = |text: &str| Some(Setting::Text(text.to_owned()));
    assert_eq!(last("-nopid"), Some(Setting::Negated));
    assert_eq!(last("-nopid="), Some(Setting::Negated));
    assert_eq!(last("-nopid=0"), Some(Setting::DoubleNegated));
    assert_eq!(last("-nopid=1"), Some(Setting::Negated));
    assert_eq!(last("-nopid=2"), Some(Setting::Negated));
    assert_eq!(last("-nopid=abc"), Some(Setting::DoubleNegated));
    assert_eq!((last("-pid"), last("-pid=")), (text(""), text("")));
    assert_eq!((last("--pid=0"), last("-pid=a=b")), (text("0"), text("a=b")));
    let doubled = words(&["-nopid=0"]).unwrap();
    assert_eq!(doubled.warnings, ["Parsed potentially confusing double-negative -nopid=0"]);

    let parsed = words(&["-par=1", "import", "-regtest", "dir", "--copy", "-par=2"]).unwrap();
    assert_eq!((parsed.command, &parsed.arguments[..]), (Some("import"), &["dir".to_owned()][..]));
    assert_eq!(parsed.sources.get("par").unwrap().setting.text(), "2");
    assert!(parsed.has_switch("copy") && parsed.has_switch("regtest") && !parsed.has_switch("json"));

    for (arguments, expected) in [
        (&["-dbcahe=1"][..], "Invalid parameter -dbcahe=1; the nearest is -dbcache. See lydian -help."),
        (&["-qqqqqqqqqqq"], "Invalid parameter -qqqqqqqqqqq. See lydian -help."),
        (
            &["-regtest.par=1"],
            "Invalid parameter -regtest.par=1: a chain before an option is for the configuration file",
        ),
        (&["-"], "Invalid parameter -. See lydian -help."),
        (&["imprt"], "There is no command 'imprt'; the nearest is import. See lydian -help."),
        (&["stop"], "There is no command 'stop'. See lydian -help."),
        (&["import"], "lydian import needs DIR"),
        (&["import", "a", "b"], "Command line contains unexpected token 'b' after lydian import"),
        (&["info", "-copy"], "The -copy option cannot be used with 'lydian info', only with: import"),
        (&["-json"], "The -json option cannot be used with 'lydian', only with: info, utxohash"),
        (&["-includeconf=f"], "-includeconf cannot be used from commandline; -includeconf=\"f\""),
        (&["-nodatadir"], "Negating of -datadir is meaningless and therefore forbidden"),
    ] {
        assert_eq!(words(arguments).unwrap_err().to_string(), expected);
    }
    assert!(words(&["-noincludeconf"]).is_ok());
}

#[test]
fn values_are_checked_and_the_place_is_named() {
    for (arguments, conf, expected) in [
        (&["-par"][..], "", "Can not set -par with no value. Please specify value with -par=value."),
        (&["-par=x"], "", "-par=x: it must be a whole number from -1024 to 1024"),
        (&[], "\npar=x", "/u/.lydian/lydian.conf:2: -par=x: it must be a whole number from -1024 to 1024"),
        (&["-prune=549"], "", "Prune configured below the minimum of 550 MiB. Please use a higher number."),
        (&["-prune=-1"], "", "Prune cannot be configured with a negative value."),
        (
            &["-prune=550", "-reindex-chainstate"],
            "",
            "Prune mode is incompatible with -reindex-chainstate. Use full -reindex instead.",
        ),
        (
            &["-regtest", "-testnet"],
            "",
            "Invalid combination of -regtest, -signet, -testnet, -testnet4 and -chain. Can use at most one.",
        ),
        (&["-chain=x"], "", "-chain=x: it must be main, test, testnet4, signet or regtest"),
        (&["-datadir=none"], "", "Specified data directory \"none\" does not exist."),
        (
            &["-testactivationheight=segwit@1"],
            "",
            "-testactivationheight=segwit@1: activation heights can be set on regtest only",
        ),
        (
            &["-txindex"],
            "",
            "-txindex is an option of Bitcoin Core that Lydian does not have: there would be no such index",
        ),
        (
            &[],
            "[main]\nrest=1",
            "/u/.lydian/lydian.conf:2: -rest is an option of Bitcoin Core that Lydian does not have: nothing would answer",
        ),
        (
            &[],
            "conf=x",
            "/u/.lydian/lydian.conf:1: -conf=x: it must be given on the command line; use includeconf= to include additional config files",
        ),
    ] {
        assert_eq!(sentence(arguments, conf), expected);
    }
    let work = |arguments: &[&str]| load_with(arguments, "").unwrap().minimum_chain_work.to_string();
    assert_eq!(work(&[]), "0000000000000000000000000000000000000001128750f82f4c366153a3a030");
    assert_eq!(work(&["-testnet"]), "0000000000000000000000000000000000000000000017dde1c649f3708d14b6");
    assert_eq!(work(&["-minimumchainwork=0x1f"]), format!("{}1f", "0".repeat(62)));
    assert_eq!(work(&["-nominimumchainwork"]), "0".repeat(64));
    let settings = load_with(&["-nopar", "-nodbcache", "-nopid", "-nodebuglogfile"], "").unwrap();
    assert_eq!((settings.threads, settings.dbcache_bytes), (4, 4 << 20));
    assert_eq!((settings.pid, settings.log.file), (None, None));
}

#[test]
fn options_of_core_are_warned_of_or_passed_over() {
    let warnings = |arguments: &[&str], conf: &str| load_with(arguments, conf).unwrap().warnings;
    assert_eq!(warnings(&["-resetguisettings"], ""), ["-resetguisettings has no effect: Lydian has no window"]);
    assert_eq!(warnings(&["-txindex=0", "-noserver", "-nolisten"], ""), [""; 0]);
    assert_eq!(warnings(&["-txindex=0"], "txindex=1"), [""; 0], "the command line switches it off");
    assert_eq!(warnings(&[], "[regtest]\ntxindex=1"), [""; 0], "of another chain");
    assert_eq!(
        warnings(&[], "dbcahe=1\n[nochain]\nfoo=1\nreindex=1"),
        [
            "/u/.lydian/lydian.conf:2: Section [nochain] is not recognized.",
            "/u/.lydian/lydian.conf:1: Ignoring unknown configuration value dbcahe; the nearest is dbcache",
            "/u/.lydian/lydian.conf:3: Ignoring unknown configuration value nochain.foo",
            "/u/.lydian/lydian.conf:4: reindex=1 is set in the configuration file, which makes every start validate everything again",
        ]
    );
}

#[test]
fn files_have_cores_syntax() {
    let path = Path::new("f");
    let parsed = conf::parse("a=1 # x\n  b = \"two\" \r\n\n[s]\nc==3\nt.d=4\n#e=5\n", path).unwrap();
    let entries: Vec<_> = parsed.entries.iter().map(|entry| (&entry.key[..], &entry.value[..], entry.line)).collect();
    assert_eq!(entries, [("a", "1", 1), ("b", "\"two\"", 2), ("s.c", "=3", 5), ("s.t.d", "4", 6)]);
    assert_eq!(parsed.sections, [("s".to_owned(), 4), ("s.t".to_owned(), 6)]);
    for (text, expected) in [
        ("a=1\n-b=1", "f:2: parse error: -b=1, options in configuration file must be specified without leading -"),
        ("listen", "f:1: parse error: listen"),
        ("nolisten", "f:1: parse error: nolisten, if you intended to specify a negated option, use nolisten=1 instead"),
        (
            "rpcpassword=a#b",
            "f:1: parse error: rpcpassword=a, using # in rpcpassword can be ambiguous and should be avoided",
        ),
    ] {
        assert_eq!(
            conf::parse(text, path).unwrap_err().to_string(),
            format!("Error reading configuration file: {expected}")
        );
    }
}

#[test]
fn sections_and_chains_of_a_file_count() {
    let conf = "regtest=1\npar=1\nregtest.par=2\n[signet]\npar=3\n[main]\npar=4\n";
    let settings = load_with(&[], conf).unwrap();
    assert_eq!((settings.params.chain, settings.threads), (Chain::Regtest, 2));
    assert_eq!(settings.datadir, Path::new("/u/.lydian/regtest"));
    assert_eq!(settings.blocks, Path::new("/u/.lydian/regtest/blocks"));
    assert_eq!(settings.log.file.as_deref(), Some(Path::new("/u/.lydian/regtest/debug.log")));
    assert!(
        settings.arguments.contains(&"Config file arg: [regtest] par=\"2\"".to_owned()),
        "{:?}",
        settings.arguments
    );
    let signet = load_with(&["-chain=signet", "-noregtest"], "par=1\n[signet]\npar=3\n").unwrap();
    assert_eq!((signet.params.chain, signet.threads), (Chain::Signet, 3));
    assert_eq!(sentence(&["-chain=main"], conf), SettingsError::ChainCombination.to_string());
    let both = load_with(&["-blocksdir=b", "-testnet"], "").unwrap();
    assert_eq!(both.blocks, Path::new("/cwd/b/testnet3/blocks"));
}

#[test]
fn files_are_included_one_level_deep() {
    let disk = disk("includeconf=one\n[signet]\nincludeconf=two\n");
    let write =
        |name: &str, text: &str| disk.write_whole(&Path::new("/u/.lydian").join(name), text.as_bytes()).unwrap();
    write("one", "par=2\nincludeconf=three\n");
    write("two", "par=3\n");
    let load = |arguments: &[&str]| load(&words(arguments).unwrap(), &host(), &disk);
    let settings = load(&[]).unwrap();
    assert_eq!(settings.threads, 2);
    assert_eq!(
        settings.warnings,
        ["/u/.lydian/one:2: -includeconf cannot be used from included files; ignoring -includeconf=three"]
    );
    assert_eq!(load(&["-signet"]).unwrap().threads, 3, "the section's file comes first");
    assert_eq!(load(&["-noincludeconf"]).unwrap().threads, 4);
    write("one", "par");
    assert_eq!(
        load(&[]).unwrap_err().to_string(),
        "Error reading configuration file: /u/.lydian/one:1: parse error: par"
    );
    disk.remove_file(Path::new("/u/.lydian/one")).unwrap();
    let sentence = load(&[]).unwrap_err().to_string();
    assert!(sentence.contains("/u/.lydian/one: it could not be opened"), "{sentence}");
}

#[test]
fn the_file_may_name_another_directory_but_not_be_ignored_there() {
    let disk = disk("datadir=/cwd/d\n");
    let load = |arguments: &[&str]| load(&words(arguments).unwrap(), &host(), &disk);
    assert_eq!(load(&[]).unwrap().datadir, Path::new("/cwd/d"));
    disk.write_whole(Path::new("/cwd/d/lydian.conf"), b"par=1").unwrap();
    let sentence = load(&[]).unwrap_err().to_string();
    assert!(sentence.starts_with("/cwd/d/lydian.conf is ignored, because /u/.lydian/lydian.conf"), "{sentence}");
    assert_eq!(load(&["-datadir=d"]).unwrap().threads, 1);
    assert_eq!(load(&["-noconf"]).unwrap().datadir, Path::new("/u/.lydian"));
    let sentence = load(&["-conf=none"]).unwrap_err().to_string();
    assert!(sentence.contains("/u/.lydian/none: it could not be opened"), "{sentence}");
}

/// limit: CONF_SIZE_MAX at
/// limit: CONF_SIZE_MAX above
#[test]
fn a_file_has_a_greatest_size_and_is_text() {
    let size = usize::try_from(CONF_SIZE_MAX).unwrap();
    assert_eq!(load_with(&[], &"\n".repeat(size)).unwrap().threads, 4);
    assert!(sentence(&[], &"\n".repeat(size + 1)).contains("it could not be opened"));
    let disk = disk("");
    disk.write_whole(Path::new("/u/.lydian/lydian.conf"), b"par=1\n# \xff").unwrap();
    let error = load(&words(&[]).unwrap(), &host(), &disk).unwrap_err();
    assert!(error.to_string().ends_with("line 2 is not UTF-8"), "{error}");
}

#[test]
fn help_fits_a_screen_and_names_everything() {
    let short = help::help(80, false);
    assert!(short.lines().count() <= 64, "{} lines", short.lines().count());
    assert!(short.lines().all(|line| line.chars().count() <= 80), "{short}");
    let full = help::help(100, true);
    for option in OPTIONS.iter().filter(|option| option.group != Group::Hidden) {
        assert!(full.contains(&format!("-{}", option.name)) && short.contains(&format!("-{}", option.name)));
    }
    assert!(COMMANDS.iter().all(|command| short.contains(command.name) && document().contains(command.name)));
    assert!(help::help(1, true).lines().count() > full.lines().count(), "a narrow terminal gets shorter lines");
}

#[test]
fn the_document_is_the_generated_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/config.md");
    #[allow(clippy::disallowed_methods, reason = "a test reads the checkout")]
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text == document(), "docs/config.md differs from the tables: run `make generate`");
}
