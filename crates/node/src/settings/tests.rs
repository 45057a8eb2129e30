//! Walks the tables, and tests Bitcoin Core's own cases and files on a simulated disk.

mod forms;
mod front;

use super::table::{COMMANDS, options};
use super::*;
use crate::host::Host;
use lydian_consensus::Chain;
use lydian_disk::{Disk, SimDisk, read_whole};
use lydian_options::{Group, Notice, Setting};
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
        memory_bytes: Some(8 << 30),
    }
}

/// A disk with a default data directory and this configuration file in it.
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
    load_from(arguments, &disk(conf))
}

fn load_from(arguments: &[&str], disk: &SimDisk) -> Result<Settings, SettingsError> {
    let words = words(arguments)?;
    load(&words, &host(), disk, &mut words.notices.clone())
}

/// The notices for stderr and the log, in this order.
fn notices(arguments: &[&str], conf: &str) -> Vec<Notice> {
    load_with(arguments, conf).unwrap_or_else(|error| panic!("{error}")).notices
}

fn sentence(arguments: &[&str], conf: &str) -> String {
    load_with(arguments, conf).unwrap_err().to_string()
}

#[test]
fn coins_that_are_not_on_disk_yet_are_a_part_of_dbcache() {
    for (mib, usual, low_memory) in [(4, 2, 4), (450, 225, 450), (2_048, 1_024, 1_024), (6_000, 1_024, 1_024)] {
        for (switch, is_low_memory, pending_mib) in [("-lowmem=0", false, usual), ("-lowmem", true, low_memory)] {
            let settings = load_with(&[&format!("-dbcache={mib}"), switch], "").unwrap();
            let expected =
                lydian_coins::Settings { cache_bytes: mib << 20, pending_bytes_max: pending_mib << 20, is_low_memory };
            assert_eq!(settings.coin_store(), expected);
        }
    }
}

/// `-lowmem`, or the memory that `-dbcache` leaves: of 8 GiB, less than 4 with a cache above 4 GiB.
#[test]
fn little_memory_is_an_option_or_follows_from_the_machine() {
    let is_low = |arguments: &[&str], memory_bytes: Option<u64>| {
        let words = words(arguments).unwrap();
        let host = Host { memory_bytes, ..host() };
        load(&words, &host, &disk(""), &mut words.notices.clone()).unwrap().is_low_memory
    };
    assert!(!is_low(&[], Some(8 << 30)) && !is_low(&["-dbcache=4096"], Some(8 << 30)));
    assert!(is_low(&["-dbcache=4097"], Some(8 << 30)) && is_low(&[], Some(4 << 30)));
    assert!(is_low(&["-lowmem"], Some(8 << 30)) && is_low(&["-lowmem=1"], None));
    assert!(!is_low(&["-nolowmem"], Some(1 << 30)) && !is_low(&["-lowmem=0"], Some(1 << 30)));
    assert!(!is_low(&[], None), "the memory of the machine is not known");
}

#[test]
fn the_tables_name_each_option_once() {
    let mut names: Vec<_> = options().map(|option| option.name).collect();
    names.extend(core::CORE_OPTIONS.iter().map(|option| option.name));
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(!names.iter().any(|name| name.starts_with("no")), "'no' before a name negates");
    assert!(core::CORE_OPTIONS.iter().all(|option| !option.reason.is_empty()));
    assert!(options().all(|option| !option.help.is_empty() && !option.default.is_empty()));
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

    let parsed = words(&["-par=1", "import", "-regtest", "dir", "--copy", "-par=2"]).unwrap();
    assert_eq!((parsed.command, &parsed.arguments[..]), (Some("import"), &["dir".to_owned()][..]));
    assert_eq!(parsed.sources.get("par").unwrap().setting.text(), "2");
    assert!(parsed.has_switch("copy") && parsed.has_switch("regtest") && !parsed.has_switch("json"));

    for (arguments, expected) in [
        (&["-dbcahe=1"][..], "Error parsing command line arguments: Invalid parameter -dbcahe=1"),
        (&["--qqq"], "Error parsing command line arguments: Invalid parameter --qqq"),
        (&["-regtest.par=1"], "Error parsing command line arguments: Invalid parameter -regtest.par=1"),
        (&["stop"], "Command line contains unexpected token 'stop', see lydian -h for a list of options."),
        (&["import"], "lydian import needs DIR"),
        (&["import", "a", "b"], "Command line contains unexpected token 'b' after lydian import"),
        (&["index"], "lydian index needs COMMAND"),
        (&["index", "drop", "tables", "b"], "Command line contains unexpected token 'b' after lydian index"),
        (&["info", "-copy"], "The -copy option cannot be used with 'lydian info', only with: import"),
        (&["-json"], "The -json option cannot be used with 'lydian', only with: doctor, index, info, utxohash"),
        (
            &["-includeconf=f"],
            "Error parsing command line arguments: -includeconf cannot be used from commandline; -includeconf=\"f\"",
        ),
        (
            &["-nodatadir"],
            "Error parsing command line arguments: Negating of -datadir is meaningless and therefore forbidden",
        ),
        (
            &["-proxy"],
            "Error parsing command line arguments: Can not set -proxy with no value. Please specify value with -proxy=value.",
        ),
    ] {
        assert_eq!(words(arguments).unwrap_err().to_string(), expected);
    }
    assert!(words(&["-noincludeconf"]).is_ok() && words(&["-includeconf=f", "-noincludeconf"]).is_ok());
    assert_eq!(words(&["-", "-qqq", "word"]).unwrap().arguments, [""; 0], "Core reads no further than a dash");
    let named = |words: &[&str]| command(&words.iter().map(OsString::from).collect::<Vec<_>>());
    assert_eq!(named(&["-x", "import", "-y"]), Some("import"));
    assert_eq!((named(&["-regtest"]), named(&["stop", "info"])), (None, None));
}

#[test]
// tidy: long function: a table of faults and their messages
fn faults_are_named_in_cores_words() {
    for (arguments, conf, expected) in [
        (&["-prune=549"][..], "", "Prune configured below the minimum of 550 MiB.  Please use a higher number."),
        (&["-prune=-1"], "", "Prune cannot be configured with a negative value."),
        (
            &["-assumevalid=xyz"],
            "",
            "Invalid assumevalid block hash specified (xyz), must be up to 64 hex digits (or 0 to disable)",
        ),
        (&["-minimumchainwork=0xg"], "", "Invalid minimum work specified (0xg), must be up to 64 hex digits"),
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
        (&["-chain=x"], "", "Unknown chain x."),
        (&["-datadir=none"], "", "Specified data directory \"none\" does not exist."),
        (&[], "datadir=none", "Error reading configuration file: specified data directory \"none\" does not exist."),
        (&["-blocksdir=none"], "", "Specified blocks directory \"none\" does not exist."),
        (&["-debug=noise"], "", "Unsupported logging category -debug=noise."),
        (&["-loglevel=x"], "", "Unsupported global logging level -loglevel=x. Valid values: info, debug, trace."),
        (
            &["-loglevel=a:debug"],
            "",
            "Unsupported global logging level -loglevel=a:debug. Valid values: info, debug, trace.",
        ),
        (&["-testactivationheight=segwit@1"], "", "The -testactivationheight option may not be used on mainnet."),
        (&["-vbparams=testdummy:0:1"], "", "The -vbparams option may not be used on mainnet."),
        (
            &["-vbparams=testdummy"],
            "",
            "Version bits parameters malformed, expecting deployment:start:end[:min_activation_height]",
        ),
        (&["-signet", "-signetchallenge=51", "-signetchallenge=52"], "", "-signetchallenge cannot be multiple values."),
        (&["-signet", "-signetchallenge=x"], "", "-signetchallenge must be hex, not 'x'."),
        (&["-test=addrman"], "", "-test=<option> can only be used with regtest"),
        (
            &["-privatebroadcast"],
            "",
            "-privatebroadcast is an option of Bitcoin Core that Lydian does not have: your transactions would be announced to your peers",
        ),
        (&["-txindex", "-prune=550"], "", "Prune mode is incompatible with -txindex."),
        (&["-peerblockfilters"], "", "Cannot set -peerblockfilters without -blockfilterindex."),
        (&["-blockfilterindex=x"], "", "Unknown -blockfilterindex value x."),
        (
            &["-index=tikv://a/b"],
            "",
            "Invalid -index: \"tikv://a/b\": the address of a store must start with cassandra://; write \
             cassandra://HOST[:PORT],HOST/KEYSPACE.",
        ),
        (
            &["-index=cassandra://a/b", "-addressindex=0"],
            "",
            "-index needs the index that it writes: it cannot be combined with -addressindex=0.",
        ),
        (&["-addressindex=x"], "", "Unknown -addressindex value x: it must be compact or full, or 0 for no index."),
        (&["-electrum", "-txindex", "-prune=550"], "", "Prune mode is incompatible with -txindex."),
        (&["-electrum", "-txospenderindex", "-prune=550"], "", "Prune mode is incompatible with -txospenderindex."),
        (&["-electrumproxy=here"], "", "Invalid -electrumproxy: \"here\" is not an address or a subnet."),
        (
            &["-regtest", "-electrumdonation=1BoatSLRHtKNngkdXEeobR76b53LETtpyT"],
            "",
            "Invalid -electrumdonation: \"1BoatSLRHtKNngkdXEeobR76b53LETtpyT\" is not an address of this chain.",
        ),
        (
            &["-electrumhost=a.example"],
            "",
            "Invalid -electrumhost: \"a.example\" is not tcp, ssl, ws or wss, ://, a host and perhaps a port.",
        ),
        (&["-electrumcert=c.pem"], "", "-electrumcert and -electrumkey must be given together."),
        (&["-electrum", "-server=0"], "", "-electrum needs the RPC methods: it cannot be combined with -server=0."),
        (&["-esplora", "-server=0"], "", "-esplora needs the RPC methods: it cannot be combined with -server=0."),
        (
            &["-feedbind=127.0.0.1", "-server=0"],
            "",
            "-feedbind needs the RPC methods: it cannot be combined with -server=0.",
        ),
        (&["-feedbind"], "", "Invalid -feedbind: \"\" is not an address."),
        (&["-feedbind=127.0.0.1:x"], "", "Invalid port specified in -feedbind: '127.0.0.1:x'"),
        (
            &["-feedbind=[::1]", "-feedtoken=fifteen letters"],
            "",
            "Invalid -feedtoken: it must have at least 16 characters, which are letters, digits or signs of ASCII.",
        ),
        (
            &["-feedbind=::1", "-feedbind=0.0.0.0:7", "-feedtoken=0123456789abcdef"],
            "",
            "-feedbind: 0.0.0.0:7 is not on this machine, so that -feedtoken, -feedcert and -feedkey are needed.",
        ),
        (
            &["-feedbind=192.0.2.1", "-feedcert=c.pem", "-feedkey=k.pem"],
            "",
            "-feedbind: 192.0.2.1:3003 is not on this machine, so that -feedtoken, -feedcert and -feedkey are needed.",
        ),
        (&["-feedcert=c.pem"], "", "-feedcert and -feedkey must be given together."),
        (&["-page", "-server=0"], "", "-page needs the RPC methods: it cannot be combined with -server=0."),
        (&["-pagekey=k.pem"], "", "-pagecert and -pagekey must be given together."),
        (&["-esploracors=a\u{7}b"], "", "Invalid -esploracors: \"a\\u{7}b\" cannot be in an HTTP header."),
        (&["-electrumcors=a\u{7}b"], "", "Invalid -electrumcors: \"a\\u{7}b\" cannot be in an HTTP header."),
        (&["-esplorabind=[::1]:x"], "", "Invalid port specified in -esplorabind: '[::1]:x'"),
        (&["-electrumbind=[::1]:x"], "", "Invalid port specified in -electrumbind: '[::1]:x'"),
        (&["-listen=0", "-listenonion"], "", "Cannot set -listen=0 together with -listenonion=1"),
        (&["-minrelaytxfee=x"], "", "Invalid amount for -minrelaytxfee=<amount>: 'x'"),
        (
            &["-blockreservedweight=1999"],
            "",
            "-blockreservedweight (1999) is lower than minimum safety value of (2000)",
        ),
        (&["-blockmaxweight=7000"], "", "-blockreservedweight (8000) exceeds -blockmaxweight (7000)"),
        (
            &["-blockmaxweight=4000001"],
            "",
            "-blockmaxweight (4000001) exceeds consensus maximum block weight (4000000)",
        ),
        (&["-acceptnonstdtxn"], "", "acceptnonstdtxn is not currently supported for main chain"),
        (&["-acceptstalefeeestimates"], "", "acceptstalefeeestimates is not supported on main chain."),
        (&["-limitclustercount=65"], "", "limitclustercount must be less than or equal to 64"),
        (&["-maxmempool=4"], "", "-maxmempool must be at least 5 MB"),
        (
            &["-prevoutfetchthreads=-1"],
            "",
            "-prevoutfetchthreads must be non-negative (got -1). Use 0 to disable parallel input fetching.",
        ),
        (&["-i2psam=nowhere.example"], "", "Invalid -i2psam address or hostname: 'nowhere.example'"),
        (&["-zmqpubrawtx=127.0.0.1:x"], "", "Invalid port specified in -zmqpubrawtx: '127.0.0.1:x'"),
        (&["-rpcbind=127.0.0.1:0"], "", "Invalid port specified in -rpcbind: '127.0.0.1:0'"),
        (
            &["-regtest"],
            "port=1\naddnode=a\n",
            "Config setting for -addnode only applied on regtest network when in [regtest] section.\nConfig setting for -port only applied on \
             regtest network when in [regtest] section.\n",
        ),
        (
            &[],
            "[main]\nipcbind=1",
            "/u/.lydian/lydian.conf:2: -ipcbind is an option of Bitcoin Core that Lydian does not have: Lydian has no such server",
        ),
        (
            &[],
            "conf=x",
            "Error reading configuration file: conf cannot be set in the configuration file; use includeconf= if you want to include additional \
             config files",
        ),
        (
            &[],
            "nodatadir=1",
            "Error reading configuration file: Negating of -datadir is meaningless and therefore forbidden",
        ),
    ] {
        assert_eq!(sentence(arguments, conf), expected);
    }
    let level = sentence(&["-loglevel=noise:debug"], "");
    let expected = "Unsupported category-specific logging level -loglevel=noise:debug. Expected -loglevel=<category>:<loglevel>. Valid categories: \
                    addrman, bench, blockstorage,";
    assert!(level.starts_with(expected) && level.ends_with(". Valid loglevels: info, debug, trace."), "{level}");
}

/// Core reads a text that is not a number as 0, and a start script may rely on it.
#[test]
fn values_are_read_as_core_reads_them() {
    let settings = load_with(&["-par=many", "-daemon=true", "-reindex=yes", "-listen=false", "-dbcache"], "").unwrap();
    assert_eq!((settings.threads, settings.daemon, settings.reindex), (4, false, false));
    assert_eq!((settings.net.listens, settings.dbcache_bytes), (false, 4 << 20));
    let work = |arguments: &[&str]| load_with(arguments, "").unwrap().minimum_chain_work.to_string();
    assert_eq!(work(&[]), "0000000000000000000000000000000000000001128750f82f4c366153a3a030");
    assert_eq!(work(&["-testnet"]), "0000000000000000000000000000000000000000000017dde1c649f3708d14b6");
    assert_eq!(work(&["-minimumchainwork=0x1f"]), format!("{}1f", "0".repeat(62)));
    assert_eq!(work(&["-nominimumchainwork"]), "0".repeat(64));
    let settings = load_with(&["-nopar", "-nodbcache", "-nopid", "-nodebuglogfile"], "").unwrap();
    assert_eq!((settings.threads, settings.dbcache_bytes), (4, 4 << 20));
    assert_eq!((settings.pid, settings.log.file), (None, None));
}

/// What options of the mempool do to each other.
#[test]
fn options_of_the_mempool_depend_on_each_other_as_in_core() {
    let mempool = |arguments: &[&str]| load_with(arguments, "").unwrap().mempool;
    let fees = |arguments: &[&str]| {
        let policy = mempool(arguments);
        (policy.min_relay_fee.fee_per_kvb(), policy.incremental_relay_fee.fee_per_kvb())
    };
    assert_eq!(fees(&[]), (100, 100));
    assert_eq!(fees(&["-incrementalrelayfee=0.00001"]), (1000, 1000));
    assert_eq!(fees(&["-incrementalrelayfee=0.00001", "-minrelaytxfee=0.0000001"]), (10, 1000));
    assert_eq!(
        notices(&["-incrementalrelayfee=0.00001"], ""),
        [Notice::LogInfo("Increasing minrelaytxfee to 0.00001000 BTC/kvB to match incrementalrelayfee".to_owned())]
    );
    let bytes = |arguments: &[&str]| mempool(arguments).mempool_bytes_max;
    assert_eq!(bytes(&["-blocksonly"]), 5_000_000);
    assert_eq!(bytes(&["-blocksonly", "-maxmempool=20"]), 20_000_000);
    assert_eq!(bytes(&["-maxmempool=0"]), 0);
    assert_eq!(bytes(&["-maxmempool=4", "-limitclustersize=100"]), 4_000_000);
    assert_eq!(mempool(&["-datacarriersize=7", "-nodatacarrier"]).datacarrier_bytes_max, None);
    assert_eq!([&[][..], &["-regtest"]].map(|chain| mempool(chain).check_interval), [0, 1]);
    assert_eq!(mempool(&["-regtest", "-checkmempool=0"]).check_interval, 0);
    assert_eq!(mempool(&["-checkmempool=2000000"]).check_interval, 1_000_000);
    assert_eq!(mempool(&["-checkmempool=2147483648"]).check_interval, 0);
    // Core assigns some numbers to unsigned ones, and limits others to their range.
    assert_eq!(mempool(&["-datacarriersize=-1"]).datacarrier_bytes_max, Some(u32::MAX));
    assert_eq!(mempool(&["-datacarriersize=4294967379"]).datacarrier_bytes_max, Some(83));
    assert_eq!(mempool(&["-bytespersigop=-1"]).bytes_per_sigop, u32::MAX);
    assert_eq!(mempool(&["-bytespersigop=4294967296"]).bytes_per_sigop, 0);
    assert_eq!(mempool(&["-limitclustercount=4294967297"]).cluster_count_max, 1);
    assert_eq!(mempool(&["-blockreconstructionextratxn=-1"]).extra_txs_max, 0);
    assert_eq!(mempool(&["-blockreconstructionextratxn=4294967296"]).extra_txs_max, u32::MAX);
    let text = |arguments: &[&str]| load_with(arguments, "").map(|_| ()).unwrap_err().to_string();
    assert_eq!(text(&["-limitclustercount=-1"]), "limitclustercount must be less than or equal to 64");
    assert_eq!(text(&["-maxmempool=-1"]), "-maxmempool must be at least 5 MB");
    assert_eq!(text(&["-blocksonly", "-limitclustersize=200"]), "-maxmempool must be at least 8 MB");
}

/// Options that Core silently accepts are silently accepted here; the log names those without effect.
#[test]
fn options_of_core_are_passed_over_in_silence() {
    let info = |text: &str| Notice::LogInfo(text.to_owned());
    assert_eq!(
        notices(&["-disablewallet", "-fallbackfee=0.1"], ""),
        [
            info("-disablewallet has no effect: Lydian has no wallet"),
            info("-fallbackfee has no effect: Lydian has no wallet")
        ]
    );
    for option in core::CORE_OPTIONS.iter().filter(|option| option.given == core::Given::Accepted) {
        // Core warns about these three, and accepts only certain texts for some options.
        let removed = ["checkpoints", "limitancestorsize", "limitdescendantsize"].contains(&option.name);
        let value = match option.name {
            "i2psam" | "torcontrol" => "127.0.0.1:9051",
            _ => "1",
        };
        let said = notices(&[&format!("-{}={value}", option.name)], "");
        assert_eq!(said.iter().filter_map(Notice::stderr).count(), usize::from(removed), "-{}: {said:?}", option.name);
    }
    assert_eq!(notices(&["-txindex=0", "-noserver", "-nolisten"], ""), []);
    assert_eq!(notices(&["-txindex=0"], "txindex=1"), [], "the command line switches it off");
    assert_eq!(notices(&[], "[regtest]\ntxindex=1"), [], "of another chain");
    assert_eq!(
        notices(&[], "dbcahe=1\n[nochain]\nfoo=1\nreindex=1\nsignet.x.par=1\n"),
        [
            Notice::LogWarning("Ignoring unknown configuration value dbcahe".to_owned()),
            Notice::LogWarning("Ignoring unknown configuration value nochain.foo".to_owned()),
            Notice::LogWarning(
                "reindex=1 is set in the configuration file, which will significantly slow down startup. Consider removing or commenting out \
                 this option for better performance, unless there is currently a condition which makes rebuilding the indexes necessary"
                    .to_owned()
            ),
            Notice::LogWarning("Ignoring unknown configuration value nochain.signet.x.par".to_owned()),
            Notice::Warning(
                "/u/.lydian/lydian.conf:2 Section [nochain] is not recognized.\n/u/.lydian/lydian.conf:5 Section [nochain.signet.x] is not \
                 recognized.\n"
                    .to_owned()
            ),
        ]
    );
    assert_eq!(
        notices(&["-checkpoints=0", "-dbcache=100000"], "").iter().filter_map(Notice::stderr).collect::<Vec<_>>(),
        [
            "Warning: Option '-checkpoints' is set but checkpoints were removed. This option has no effect.",
            "Warning: A 100000 MiB dbcache may be too large for a system memory of only 8192 MiB."
        ]
    );
    assert_eq!(
        notices(&["-nopid=0"], ""),
        [Notice::LogWarning("Parsed potentially confusing double-negative -pid=0".to_owned())]
    );
    assert_eq!(
        notices(&["-regtest", "-test=foo"], ""),
        [Notice::Warning("Unrecognised option \"foo\" provided in -test=<option>.".to_owned())]
    );
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
    let load = |arguments: &[&str]| load_from(arguments, &disk);
    let settings = load(&[]).unwrap();
    assert_eq!(settings.threads, 2);
    let warning = "warning: -includeconf cannot be used from included files; ignoring -includeconf=three";
    assert_eq!(
        settings.notices,
        [Notice::LogInfo("Included configuration file one".to_owned()), Notice::Stderr(warning.to_owned())]
    );
    assert_eq!(load(&["-signet"]).unwrap().threads, 3, "the section's file comes first");
    assert_eq!(load(&["-noincludeconf"]).unwrap().threads, 4);
    write("one", "par");
    assert_eq!(load(&[]).unwrap_err().to_string(), "Error reading configuration file: parse error on line 1: par");
    disk.remove_file(Path::new("/u/.lydian/one")).unwrap();
    let sentence = load(&[]).unwrap_err().to_string();
    assert_eq!(sentence, "Error reading configuration file: Failed to include configuration file one");
    disk.create_dir(Path::new("/u/.lydian/one")).unwrap();
    let sentence = load(&[]).unwrap_err().to_string();
    assert_eq!(sentence, "Error reading configuration file: Included config file \"/u/.lydian/one\" is a directory.");
}

#[test]
fn the_file_may_name_another_directory_but_not_be_ignored_there() {
    let disk = disk("datadir=/cwd/d\n");
    let load = |arguments: &[&str]| load_from(arguments, &disk);
    assert_eq!(load(&[]).unwrap().datadir, Path::new("/cwd/d"));
    disk.write_whole(Path::new("/cwd/d/lydian.conf"), b"par=1").unwrap();
    let text = "Data directory \"/cwd/d\" contains a \"lydian.conf\" file which is ignored, because a different configuration file \
                \"/u/.lydian/lydian.conf\" from data directory \"/u/.lydian\" is being used instead. Possible ways to address this would be \
                to:\n- Delete or rename the \"lydian.conf\" file in data directory \"/cwd/d\".\n- Change datadir= or conf= options to specify one \
                configuration file, not two, and use includeconf= to include any other configuration files.";
    let hint = "\n- Set allowignoredconf=1 option to treat this condition as a warning, not an error.";
    assert_eq!(load(&[]).unwrap_err().to_string(), format!("{text}{hint}"));
    let allowed = load(&["-allowignoredconf"]).unwrap();
    assert_eq!((allowed.datadir, allowed.notices), ("/cwd/d".into(), vec![Notice::LogWarning(text.to_owned())]));
    assert_eq!(load(&["-datadir=d"]).unwrap().threads, 1);
    let none = load(&["-noconf"]).unwrap();
    let ignored =
        "Data directory \"/u/.lydian\" contains a \"lydian.conf\" file which is explicitly ignored using -noconf.";
    assert_eq!((none.datadir, none.notices), ("/u/.lydian".into(), vec![Notice::LogInfo(ignored.to_owned())]));
    assert_eq!(
        load(&["-conf=none"]).unwrap_err().to_string(),
        "Error reading configuration file: specified config file \"/u/.lydian/none\" could not be opened."
    );
    assert_eq!(
        load(&["-conf=/cwd/d"]).unwrap_err().to_string(),
        "Error reading configuration file: Config file \"/cwd/d\" is a directory."
    );
}

/// The options of a start script that writes `bitcoin.conf` take effect; if both files exist, only `lydian.conf` is
/// read.
#[test]
fn the_file_of_core_is_read_where_ours_is_missing() {
    let disk = disk("");
    disk.write_whole(Path::new("/u/.lydian/bitcoin.conf"), b"par=2\n").unwrap();
    let settings = load_from(&[], &disk).unwrap();
    assert_eq!((settings.threads, settings.has_conf), (2, true));
    assert_eq!(settings.conf.as_deref(), Some(Path::new("/u/.lydian/bitcoin.conf")));
    disk.write_whole(Path::new("/u/.lydian/lydian.conf"), b"par=3\n").unwrap();
    assert_eq!(load_from(&[], &disk).unwrap().threads, 3);
}

/// Core's order: the command line, `settings.json`, the section of the chain, the top of the file.
#[test]
fn the_file_of_settings_counts_behind_the_command_line() {
    let disk = disk("par=2\n[main]\npar=3\naddnode=c\n");
    let write = |text: &str| disk.write_whole(Path::new("/u/.lydian/settings.json"), text.as_bytes()).unwrap();
    write("{\"par\": \"1\", \"addnode\": [\"a\", \"b\"], \"wallet\": [\"w\"], \"nosuch\": 1, \"listen\": false}");
    let settings = load_from(&[], &disk).unwrap();
    assert_eq!((settings.threads, settings.net.listens), (1, false));
    assert_eq!(settings.net.added, ["a", "b", "c"]);
    assert!(settings.arguments.contains(&"Setting file arg: addnode = [\"a\",\"b\"]".to_owned()));
    assert!(settings.notices.contains(&Notice::LogWarning("Ignoring unknown rw_settings value nosuch".to_owned())));
    settings.file.unwrap().write(&disk).unwrap();
    let kept = read_whole(&disk, Path::new("/u/.lydian/settings.json"), 1000).unwrap();
    let kept = String::from_utf8(kept).unwrap();
    assert!(kept.contains("\"nosuch\": 1") && kept.contains("\"par\": \"1\""), "unknown values are kept: {kept}");
    assert_eq!(load_from(&["-par=4"], &disk).unwrap().threads, 4);
    let without = load_from(&["-nosettings"], &disk).unwrap();
    assert_eq!((without.threads, without.file), (3, None));
    assert_eq!(load_from(&["-settings=other.json"], &disk).unwrap().threads, 3);
    write("{");
    assert!(
        load_from(&[], &disk).unwrap_err().to_string().starts_with("Settings file could not be read:\n- Settings file")
    );
}

#[test]
fn a_signet_of_ones_own_has_its_own_rules_and_no_seeds() {
    let settings = load_with(&["-signet", "-signetchallenge=51"], "").unwrap();
    assert_eq!(settings.params.signet_challenge.as_deref(), Some(&[0x51][..]));
    assert_eq!(settings.params.magic, [0x54, 0xd2, 0x6f, 0xbd]);
    assert_eq!(settings.minimum_chain_work.to_string(), "0".repeat(64));
    assert_eq!((settings.net.signet_seeds, settings.net.fixed_seeds), (Some(Vec::new()), false));
    let seeds = load_with(&["-signet", "-signetchallenge=51", "-signetseednode=a", "-signetseednode=b"], "").unwrap();
    assert_eq!(seeds.net.signet_seeds, Some(vec!["a".to_owned(), "b".to_owned()]));
    let global = load_with(&["-signet"], "").unwrap();
    assert_eq!((global.net.signet_seeds, global.net.fixed_seeds), (None, true));
    let other = load_with(&["-signetchallenge=x"], "").unwrap();
    assert_eq!(other.params.signet_challenge, None, "of another chain");
}

#[test]
fn options_of_tests_reach_the_rules() {
    let settings = load_with(&["-regtest", "-test=bip94", "-vbparams=testdummy:5:9:144"], "").unwrap();
    assert!(settings.params.enforce_bip94);
    let bits = settings.params.testdummy;
    assert_eq!((bits.start_time, bits.timeout, bits.min_activation_height), (5, 9, 144));
    let plain = load_with(&["-regtest"], "").unwrap();
    assert_eq!((plain.params.enforce_bip94, plain.checkblockindex, plain.checkaddrman), (false, 0, 0));
    assert_eq!(load_with(&["-checkblockindex"], "").unwrap().checkblockindex, 1);
    let deprecated = load_with(&["-deprecatedrpc=", "-deprecatedrpc=warnings"], "").unwrap().rpc.deprecated;
    assert_eq!(deprecated, ["warnings"], "as in Core, an empty value is no error and enables nothing");
    let both = load_with(&["-regtest", "-test=addrman", "-test=reindex_after_failure_noninteractive_yes"], "").unwrap();
    assert!(both.test.deterministic_addrman && both.test.reindex_after_failure && !both.test.second_opinion_lies);
    let lies = load_with(&["-regtest", "-test=secondopinion_lies"], "").unwrap();
    assert!(lies.test.second_opinion_lies && !lies.has_second_opinion);
}

#[test]
fn help_fits_a_screen_and_names_everything() {
    let short = help::help(80, false);
    assert!(short.lines().count() <= 113, "{} lines", short.lines().count());
    assert!(short.lines().all(|line| line.chars().count() <= 80), "{short}");
    let full = help::help(100, true);
    for option in options().filter(|option| option.group != Group::HIDDEN) {
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

/// What the page shows is in effect, and names where it was given.
#[test]
fn options_are_shown_with_value_source_default_and_help() {
    let conf =
        "par=3\nwhitelist=1.2.3.4\nwhitelist=1.2.3.5\ntxindex=yes\nuacomment=x\nwalletdir=w\n[regtest]\ndbcache=50\n";
    let arguments = ["-regtest", "-par=2", "-nolisten", "-rpcthreads=0", "-uacomment=y", "-pid="];
    let settings = load_with(&arguments, conf).unwrap();
    let of = |name: &str| {
        let row = settings.shown.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("no {name}"));
        (row.values.join(" "), row.source.clone().unwrap_or("default".to_owned()))
    };
    let at = |line: usize| format!("/u/.lydian/lydian.conf:{line}");
    for (name, value, source) in [
        ("par", "2", "command line".to_owned()),
        ("listen", "0", "command line".to_owned()),
        ("rpcthreads", "0", "command line".to_owned()),
        ("uacomment", "y x", "command line".to_owned()),
        ("whitelist", "1.2.3.4 1.2.3.5", at(2)),
        ("txindex", "0", at(4)),
        ("walletdir", "w", at(6)),
        ("dbcache", "50", at(8)),
        ("pid", "", "command line".to_owned()),
        ("maxmempool", "", "default".to_owned()),
    ] {
        assert_eq!(of(name), (value.to_owned(), source), "{name}");
    }
    let names: Vec<&str> = settings.shown.iter().map(|row| row.name).collect();
    let ours = options().filter(|option| option.commands.is_empty()).map(|option| option.name);
    assert_eq!(names, ours.chain(["walletdir"]).collect::<Vec<_>>());
    let cache = settings.shown.iter().find(|row| row.name == "dbcache").unwrap();
    let option = super::table::find("dbcache").unwrap();
    assert_eq!((cache.default, cache.help, cache.group), (option.default, option.help, option.group.0));
}

/// An option that is negated is shown as such, wherever that is, and not as its default. Regression test: `-noconnect`
/// and other negated lists were shown as the default.
#[test]
fn a_negated_option_is_shown_as_0() {
    let try_row = |arguments: &[&str], conf: &str, name: &str| {
        let row = load_with(arguments, conf).ok()?.shown.into_iter().find(|row| row.name == name).unwrap();
        Some((row.values, row.source.unwrap_or_else(|| panic!("-no{name} is shown as the default"))))
    };
    let row = |arguments: &[&str], conf: &str, name: &str| try_row(arguments, conf, name).unwrap();
    let (mut lists, mut refused) = (0, Vec::new());
    for option in options().filter(|option| option.commands.is_empty() && option.may_negate) {
        let name = option.name;
        // The least that the option accepts is in effect.
        let least = match option.kind {
            lydian_options::Kind::Integer { .. } => option.clamped("0").to_string(),
            _ => "0".to_owned(),
        };
        let (argument, line) = (format!("-no{name}"), format!("no{name}=1\n"));
        let (Some(argument), Some(line)) = (try_row(&[&argument], "", name), try_row(&[], &line, name)) else {
            refused.push(name);
            continue;
        };
        lists += u32::from(option.is_list);
        assert_eq!(argument, (vec![least.clone()], "command line".to_owned()), "{name}");
        assert_eq!(line, (vec![least], "/u/.lydian/lydian.conf:1".to_owned()), "{name}");
    }
    // 0 is none of their values, or a file cannot have them.
    let expected = [
        "conf",
        "chain",
        "blockmaxweight",
        "blockreservedweight",
        "rpcport",
        "electrumdonation",
        "peertimeout",
        "port",
    ];
    assert_eq!(refused, expected);
    assert!(lists > 30, "{lists}");
    // A value after the negation counts again, and one of a file does not count against the command line.
    let command_line = || "command line".to_owned();
    let connect = |arguments: &[&str], conf: &str| row(arguments, conf, "connect");
    assert_eq!(connect(&["-noconnect", "-connect=a"], ""), (vec!["a".to_owned()], command_line()));
    assert_eq!(connect(&["-connect=a", "-noconnect"], ""), (vec!["0".to_owned()], command_line()));
    assert_eq!(connect(&["-noconnect"], "connect=a\n"), (vec!["0".to_owned()], command_line()));
    assert_eq!(connect(&["-noconnect=0"], ""), (vec!["1".to_owned()], command_line()));
    // Of a secret, it is no secret that there is none.
    assert_eq!(row(&["-norpcauth"], "", "rpcauth"), (vec!["0".to_owned()], command_line()));
}

/// A secret of any option, wherever it is given, is shown as "set".
#[test]
fn no_secret_is_shown() {
    let of_core = super::core::CORE_OPTIONS.iter().map(|option| option.name);
    let is_secret = |name: &&str| super::table::rules(name).is_some_and(|rules| rules.is_secret);
    let commands = options().filter(|option| option.is_command).map(|option| option.name);
    let names: Vec<&str> =
        options().map(|option| option.name).chain(of_core).filter(is_secret).chain(commands).collect();
    for name in ["feedtoken", "rpcauth", "rpcuser", "rpcpassword", "torpassword", "blocknotify"] {
        assert!(names.contains(&name), "{name}");
    }
    for name in names {
        let value = format!("-{name}=PLANTED:1$2");
        let line = format!("{name}=PLANTED:1$2\n");
        for (arguments, conf) in [(vec![value.as_str()], ""), (vec![], line.as_str())] {
            let settings = load_with(&arguments, conf).unwrap();
            let row = settings.shown.iter().find(|row| row.name == name).unwrap();
            assert_eq!((&row.values[..], row.is_secret), (&["set".to_owned()][..], true), "{name}");
            assert!(!format!("{:?}", settings.shown).contains("PLANTED"), "{name}");
        }
    }
}
