//! Errors at the start, provoked in both programs: stderr and exit code are Core's, byte for byte except for the name
//! of the program.

use lydian_oracle::Scratch;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than a start that fails takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Opens nothing that an error does not need; a start without an error ends by itself.
const QUIET: &[&str] = &["-regtest", "-server=0", "-listen=0", "-noconnect", "-dnsseed=0", "-stopafterblockimport"];

/// Errors of the command line alone. DIR stands for the data directory.
const LINES: &[&[&str]] = &[
    &["-nosuchoption=1"],
    &["--nosuchoption"],
    &["-regtest.par=1"],
    &["word"],
    &["-nodatadir"],
    &["-proxy"],
    &["-includeconf=more.conf"],
    &["-includeconf"],
    &["-nosuch", "word"],
    &["-conf=none.conf"],
    &["-conf=DIR"],
    &["-datadir=/nowhere/at/all"],
    &["-blocksdir=/nowhere/at/all"],
    &["-chain=nosuchchain"],
    &["-testnet"],
    &["-chain=main"],
    &["-debug=nosuchcategory"],
    &["-debugexclude=nosuchcategory"],
    &["-loglevel=loud"],
    &["-loglevel=net:loud"],
    &["-loglevel=nosuchcategory:debug"],
    &["-loglevel=ab:debug"],
    &["-nologlevel"],
    &["-loglevel"],
    &["-assumevalid=xyz"],
    &["-minimumchainwork=0x1g"],
    &["-prune=-1"],
    &["-prune=2"],
    &["-prune=550", "-txindex"],
    &["-prune=550", "-txospenderindex"],
    &["-prune=550", "-reindex-chainstate"],
    &["-testactivationheight=segwit"],
    &["-testactivationheight=segwit@-1"],
    &["-testactivationheight=taproot@1"],
    &["-vbparams=testdummy:0"],
    &["-vbparams=testdummy:x:0"],
    &["-vbparams=testdummy:0:x"],
    &["-vbparams=testdummy:0:0:x"],
    &["-vbparams=taproot:0:0"],
    &["-test=nosuchoption"],
    &["-peerblockfilters"],
    &["-blockfilterindex=nosuchfilter"],
    &["-forcednsseed", "-dnsseed=0"],
    &["-bind=127.0.0.1", "-listen=0"],
    &["-listenonion"],
    &["-maxconnections=-1"],
    &["-peertimeout=0"],
    &["-maxuploadtarget=1x"],
    &["-blockmintxfee=x"],
    &["-minrelaytxfee=1.123456789"],
    &["-incrementalrelayfee="],
    &["-dustrelayfee=-1"],
    &["-blockreservedweight=1999"],
    &["-blockreservedweight=4000001"],
    &["-blockmaxweight=4000001"],
    &["-blockmaxweight=7999"],
    &["-limitclustercount=65"],
    &["-maxmempool=4"],
    &["-prevoutfetchthreads=-1"],
    &["-port=0"],
    &["-port=65536"],
    &["-rpcport=x"],
    &["-rpcbind=127.0.0.1:x"],
    &["-torcontrol=127.0.0.1:x"],
    &["-zmqpubrawblock=127.0.0.1:x"],
    &["-onlynet=nosuchnet"],
    &["-onlynet=cjdns"],
    &["-onlynet=i2p"],
    &["-onlynet=onion", "-onion=0"],
    &["-onlynet=onion", "-dnsseed=1"],
    &["-uacomment=a/b"],
    &["-proxy=127.0.0.1:9050="],
    &["-proxy=127.0.0.1:9050=nosuchnet"],
    &["-proxy=127.0.0.1:x"],
    &["-proxy=256.0.0.1", "-dns=0"],
    &["-onion=256.0.0.1", "-dns=0"],
    &["-i2psam=256.0.0.1", "-dns=0"],
    &["-externalip=256.0.0.1", "-dns=0"],
    &["-pid=/nowhere/at/all/pid"],
    &["-debuglogfile=/nowhere/at/all/log"],
    &["-server=1", "-rpcauth=nocolon"],
    &["-server=1", "-rpccookieperms=everyone"],
    &["-server=1", "-rpcallowip=nosuchaddress"],
    // Not errors: options that Core only warns about, and options that it silently accepts.
    &["-checkpoints=1", "-limitancestorsize=1", "-limitdescendantsize=1"],
    &["-par=many", "-dbcache=", "-rpcthreads=x", "-checklevel=7", "-checkblocks=all", "-maxtipage=x"],
    &[
        "-disablewallet",
        "-wallet=w",
        "-walletnotify=x",
        "-fallbackfee=0.0002",
        "-keypool=1",
        "-zmqpubrawtx=unix:DIR/zmq",
    ],
    &["-nodebuglogfile", "-nopid", "-nosettings", "-noconf"],
];

/// Errors in the configuration file.
const CONFS: &[(&[&str], &str)] = &[
    (&[], "-par=1\n"),
    (&[], "\npar\n"),
    (&[], "nopar\n"),
    (&[], "rpcpassword=a#b\n"),
    (&[], "conf=other.conf\n"),
    (&[], "nodatadir=1\n"),
    (&[], "datadir=/nowhere/at/all\n"),
    (&[], "includeconf=missing.conf\n"),
    (&[], "includeconf=wallets\n"),
    (&[], "includeconf=bitcoin.conf\n"),
    (&[], "[nosuchchain]\npar=1\n[main]\n[other]\n"),
    (&[], "nosuchoption=1\nreindex=0\n"),
    (&[], "testnet=1\n"),
    (&[], "port=18555\naddnode=127.0.0.1\n"),
    (&["-conf=DIR/../other.conf"], "par=1\n"),
];

/// Errors in files of the data directory.
const FILES: &[(&str, &[u8])] = &[
    ("regtest/settings.json", b""),
    ("regtest/settings.json", b"{"),
    ("regtest/settings.json", b"[1, 2]"),
    ("regtest/settings.json", b"{\"a\": 1, \"a\": 2}"),
];

/// Errors in the file of addresses, which Lydian reads when the network starts.
const PEERS: &[&[u8]] = &[b"abc", b"this does not begin with the magic of the chain, and is long enough to be a file"];

/// A program on a data directory of its own.
struct Place<'a> {
    program: &'a Path,
    folder: Scratch,
}

impl<'a> Place<'a> {
    fn new(program: &'a Path, name: &str) -> Place<'a> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // The same length for both programs.
        let folder = Scratch::new(&format!("{name}-{:04}", COUNT.fetch_add(1, Ordering::Relaxed)));
        let place = Place { program, folder };
        fs::create_dir_all(place.folder.path().join("data/wallets")).unwrap();
        fs::create_dir_all(place.folder.path().join("data/regtest/wallets")).unwrap();
        fs::write(place.folder.path().join("other.conf"), "par=1\n").unwrap();
        place
    }

    fn write(&self, path: &str, bytes: &[u8]) {
        fs::write(self.folder.path().join("data").join(path), bytes).unwrap();
    }

    fn start(&self, arguments: &[&str]) -> Child {
        let data = self.folder.path().join("data").display().to_string();
        let mut command = Command::new(self.program);
        if !arguments.iter().any(|argument| argument.starts_with("-datadir")) {
            command.arg(format!("-datadir={data}"));
        }
        command.args(arguments.iter().map(|argument| argument.replace("DIR", &data)));
        command.env("HOME", self.folder.path()).current_dir(self.folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Returns stderr, with differing names made equal, and the exit code.
    fn run(&self, arguments: &[&str]) -> (String, Option<i32>) {
        let mut child = self.start(arguments);
        let start = Instant::now();
        while child.try_wait().unwrap().is_none() && start.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(5));
        }
        let _ = child.kill();
        let Output { status, stderr, .. } = child.wait_with_output().unwrap();
        let text = String::from_utf8(stderr).unwrap().replace(&self.folder.path().display().to_string(), "PLACE");
        let names = [
            ("Bitcoin Core", "Lydian"),
            ("bitcoind -h", "lydian -h"),
            ("<https://github.com/bitcoin/bitcoin/issues>", "the developers of Lydian"),
            ("https://github.com/bitcoin/bitcoin/issues", "the developers of Lydian"),
        ];
        (names.iter().fold(text, |text, (theirs, ours)| text.replace(theirs, ours)), status.code())
    }
}

/// Runs both programs, prepared in the same way; returns the difference, if any.
fn both(name: &str, core: &Path, arguments: &[&str], prepare: impl Fn(&Place<'_>)) -> Option<String> {
    let ours = Path::new(env!("CARGO_BIN_EXE_lydian"));
    let run = |program: &Path| {
        let place = Place::new(program, name);
        prepare(&place);
        place.run(arguments)
    };
    let (mut theirs, ours) = (run(core), run(ours));
    // Core checks for some errors after its import thread has begun, and -stopafterblockimport may end it before that.
    for _ in 0..20 {
        if theirs == ours || theirs != (String::new(), Some(0)) {
            break;
        }
        theirs = run(core);
    }
    (theirs != ours).then(|| format!("{arguments:?}:\nCore   {theirs:?}\nLydian {ours:?}"))
}

fn core(test: &str) -> Option<PathBuf> {
    lydian_oracle::or_skip(test, lydian_oracle::build::locate()).map(|built| built.bitcoind)
}

/// Runs the cases on a few threads, since a start mostly waits.
fn check<T: Sync>(cases: &[T], case: impl Fn(&T) -> Option<String> + Sync) {
    const THREADS: usize = 4;
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..THREADS.min(cases.len()) {
            scope.spawn(|| {
                while let Some(one) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    found.lock().unwrap().extend(case(one));
                }
            });
        }
    });
    let found = found.into_inner().unwrap();
    assert!(found.is_empty(), "{} of {} differ:\n{}", found.len(), cases.len(), found.join("\n"));
}

/// Regression test. Start scripts check stderr and the exit code of `bitcoind`. Lydian had messages and codes of its
/// own for most of these, refused values that Core accepts, and warned on stderr about options that Core silently
/// accepts.
#[test]
fn faults_of_the_command_line_are_cores() {
    let Some(core) = core("faults_of_the_command_line_are_cores") else { return };
    check(LINES, |line| both("lines", &core, &[QUIET, *line].concat(), |_| {}));
    check(
        &["-blockfilterindex=nosuchfilter", "-test=addrman", "-acceptnonstdtxn", "-acceptstalefeeestimates"],
        |option| {
            both(
                "main",
                &core,
                &["-chain=main", "-server=0", "-listen=0", "-noconnect", "-stopafterblockimport", option],
                |_| {},
            )
        },
    );
    check(
        &[&["-signetchallenge=5"][..], &["-signetchallenge=51", "-signetchallenge=52"], &["-nosignetchallenge"]],
        |options| {
            both("signet", &core, &[&["-signet", "-server=0", "-listen=0", "-noconnect"], *options].concat(), |_| {})
        },
    );
}

#[test]
fn faults_of_files_are_cores() {
    let Some(core) = core("faults_of_files_are_cores") else { return };
    check(CONFS, |(arguments, text)| {
        both("confs", &core, &[QUIET, arguments].concat(), |place| place.write("bitcoin.conf", text.as_bytes()))
    });
    check(FILES, |(path, bytes)| both("files", &core, QUIET, |place| place.write(path, bytes)));
    check(PEERS, |bytes| {
        let port = lydian_oracle::free_port().unwrap();
        let bind = format!("-bind=127.0.0.1:{port}");
        let arguments = ["-regtest", "-server=0", "-noconnect", "-dnsseed=0", &bind];
        both("peers", &core, &arguments, |place| {
            // A directory with only such a file is another program's.
            place.run(QUIET);
            place.write("regtest/peers.dat", bytes);
        })
    });
}

/// Another process uses the directory or the port.
#[test]
fn what_is_in_use_is_named_as_core_names_it() {
    let Some(core) = core("what_is_in_use_is_named_as_core_names_it") else { return };
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let (p2p, rpc) =
        (format!("-bind={}", taken.local_addr().unwrap()), format!("-rpcbind={}", taken.local_addr().unwrap()));
    let duplicate = ["-regtest", "-server=0", "-noconnect", "-bind=127.0.0.1:18999", "-whitebind=127.0.0.1:18999"];
    let cases = [
        &["-regtest", "-server=0", "-noconnect", &p2p][..],
        &["-regtest", "-noconnect", "-listen=0", "-rpcallowip=127.0.0.1", &rpc],
        &duplicate,
    ];
    check(&cases, |arguments| both("taken", &core, arguments, |_| {}));

    let running = &QUIET[..QUIET.len() - 1];
    let ours = Path::new(env!("CARGO_BIN_EXE_lydian"));
    let found = [core.as_path(), ours].map(|program| {
        let place = Place::new(program, "locked");
        let mut first = place.start(running);
        let start = Instant::now();
        let log = place.folder.path().join("data/regtest/debug.log");
        while !log.exists() && start.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(5));
        }
        let second = [QUIET, &[QUIET, &["-daemon"][..]].concat()].map(|arguments| place.run(arguments));
        first.kill().unwrap();
        first.wait().unwrap();
        second
    });
    assert_eq!(found[0], found[1]);
}
