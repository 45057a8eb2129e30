//! Kills during a sync from a peer, and during the change to a peer's chain with more work. See the parent.
//!
//! The peer is the same program, with the chain of the lab. It is first asked to make another chain: its last blocks,
//! the full ones among them, are disconnected and replaced by a larger number of blocks.

use crate::process::{Killed, disturb, lydian, setting, utxohash, words};
use lydian_chains::plan::MixSettings;
use lydian_chains::presets::mainnet_mix;
use lydian_chains::rng::Random;
use lydian_oracle::{Scratch, copy_folder, free_port};
use lydian_primitives::{Header, hex};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Default number of kills of each kind.
const KILLS: u64 = 3;

/// Blocks of the chain, and the height where the other one forks off.
const BLOCKS: u32 = 440;
const FORK: u32 = 380;
const OTHER_BLOCKS: u32 = 450;

/// Starts of one piece of work after which the test fails.
const STARTS_MAX: u32 = 100;

/// Longer than a peer takes to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// An address without a known key.
pub const ADDRESS: &str = "bcrt1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqdku202";

/// `user:password`.
const CREDENTIALS: &str = "dXNlcjpwYXNzd29yZA==";

/// A peer that is killed with the test.
pub struct Peer {
    child: Child,
    pub port: u16,
    rpc_port: u16,
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Peer {
    pub fn start(datadir: &Path) -> Peer {
        Peer::start_with(datadir, &[])
    }

    pub fn start_with(datadir: &Path, options: &[&str]) -> Peer {
        let (port, rpc_port) = (free_port().unwrap(), free_port().unwrap());
        let arguments = [
            "-server=1".to_owned(),
            format!("-bind=127.0.0.1:{port}"),
            format!("-rpcport={rpc_port}"),
            "-rpcuser=user".to_owned(),
            "-rpcpassword=password".to_owned(),
        ];
        let mut peer = Peer {
            child: lydian(datadir, &[&arguments[..], &words(options)].concat()).spawn().unwrap(),
            port,
            rpc_port,
        };
        peer.await_height();
        peer
    }

    #[allow(clippy::disallowed_methods, reason = "a test measures its own time")]
    fn await_height(&mut self) {
        let began = Instant::now();
        while self.call("getblockcount", "[]").is_none() || TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(began.elapsed() < PATIENCE && self.child.try_wait().unwrap().is_none(), "the peer answers");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The id of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The result of a call, if there is one.
    pub fn call(&self, method: &str, params: &str) -> Option<serde_json::Value> {
        let body = format!("{{\"method\":\"{method}\",\"params\":{params}}}");
        let head = format!("POST / HTTP/1.1\r\nAuthorization: Basic {CREDENTIALS}\r\nConnection: close\r\n");
        let mut stream = TcpStream::connect(("127.0.0.1", self.rpc_port)).ok()?;
        stream.write_all(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        head.contains(" 200 ").then(|| serde_json::from_str::<serde_json::Value>(body).unwrap()["result"].clone())
    }

    /// The headers of these heights.
    pub fn headers(&self, heights: Range<u32>) -> Vec<Header> {
        let text = |value: serde_json::Value| value.as_str().unwrap().to_owned();
        let header = |height| {
            let hash = text(self.call("getblockhash", &format!("[{height}]")).unwrap());
            let header = text(self.call("getblockheader", &format!("[\"{hash}\", false]")).unwrap());
            Header::parse(&hex(&header).unwrap().try_into().unwrap())
        };
        heights.map(header).collect()
    }

    #[allow(clippy::disallowed_methods, reason = "a test waits for a process")]
    pub fn stop(mut self) {
        self.call("stop", "[]").unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

/// The state that a client must reach.
pub struct Goal {
    peer: Peer,
    height: u32,
    hashes: String,
    /// Further options of the client.
    options: Vec<String>,
    /// Called with the directory of the client when it ended, and whether it was killed.
    check: fn(&Path, bool),
}

impl Goal {
    pub fn of(datadir: &Path, height: u32) -> Goal {
        let hashes = utxohash(datadir);
        assert!(hashes.contains(&format!("\"height\": {height},")), "{hashes}");
        Goal { peer: Peer::start(datadir), height, hashes, options: Vec::new(), check: |_, _| {} }
    }

    pub fn with(self, options: Vec<String>, check: fn(&Path, bool)) -> Goal {
        Goal { options, check, ..self }
    }

    fn client(&self, datadir: &Path) -> Command {
        let connect = format!("-connect=127.0.0.1:{}", self.peer.port);
        lydian(datadir, &[vec![connect, format!("-stopatheight={}", self.height)], self.options.clone()].concat())
    }

    /// How long an undisturbed client takes with this directory.
    #[allow(clippy::disallowed_methods, reason = "a test measures its own time")]
    fn undisturbed(&self, datadir: &Path) -> Duration {
        let start = Instant::now();
        let output = self.client(datadir).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "undisturbed: {output:?}");
        let duration = start.elapsed();
        assert_eq!(utxohash(datadir), self.hashes);
        duration
    }

    /// Goes from what `prepare` creates to the goal, with this many kills on the way; `reached` looks at the result.
    #[allow(clippy::disallowed_methods, reason = "a test measures its own time")]
    pub fn reach(&self, prepare: &dyn Fn() -> PathBuf, reached: &dyn Fn(&Path), kills: u64, random: &mut Random) {
        let mut longest = self.undisturbed(&prepare());
        let (mut killed, mut pieces, mut datadir) = (0, 0, prepare());
        for _ in 0..STARTS_MAX * (1 + u32::try_from(kills).unwrap()) {
            let began = Instant::now();
            let child = self.client(&datadir).spawn().unwrap();
            let Killed { output, was_killed } = match killed < kills {
                true => disturb(child, longest, random),
                false => Killed { output: child.wait_with_output().unwrap(), was_killed: false },
            };
            killed += u64::from(was_killed);
            match output.status.code() {
                Some(0) if !was_killed => {
                    // The load of the machine varies, and a kill after the end does not count.
                    longest = longest.min(began.elapsed());
                    assert_eq!(utxohash(&datadir), self.hashes, "after {killed} kills");
                    (self.check)(&datadir, false);
                    reached(&datadir);
                    pieces += 1;
                    if killed == kills {
                        eprintln!("to height {}: {killed} kills in {pieces} pieces of work", self.height);
                        return;
                    }
                    datadir = prepare();
                }
                None | Some(0) if was_killed => (self.check)(&datadir, true),
                _ => panic!("after {killed} kills: {output:?}"),
            }
        }
        panic!("not done after {killed} kills");
    }
}

#[allow(clippy::disallowed_methods, reason = "a test makes and removes its own folders")]
pub fn fresh(path: &Path) -> PathBuf {
    let _ = std::fs::remove_dir_all(path);
    std::fs::create_dir_all(path).unwrap();
    path.to_path_buf()
}

/// Copies a data directory that is not in use.
pub fn copy(from: &Path, to: &Path) -> PathBuf {
    copy_folder(from, to).unwrap();
    to.to_path_buf()
}

/// A stop right after the blocks on disk were loaded skipped the last checkpoint: blocks that RPC had added meanwhile
/// were validated again at the next start, and `utxohash` showed the chain without them.
#[test]
fn blocks_added_during_the_start_are_durable_after_a_stop() {
    let scratch = Scratch::new("crash-early-stop");
    for _ in 0..5 {
        let datadir = fresh(&scratch.path().join("node"));
        let peer = Peer::start(&datadir);
        peer.call("generatetoaddress", &format!("[3, \"{ADDRESS}\"]")).unwrap();
        peer.stop();
        let hashes = utxohash(&datadir);
        assert!(hashes.contains("\"height\": 3,"), "{hashes}");
    }
}

/// checklist: 86, 91
#[test]
fn killed_among_peers() {
    let scratch = Scratch::new("crash-peers");
    let place = |name: &str| scratch.path().join(name);
    let chain = place("chain");
    mainnet_mix::write(MixSettings { blocks: BLOCKS, full: 3, seed: 6, reuse_per_mille: 50 }, 2, &chain).unwrap();
    let first = fresh(&place("first"));
    let output = lydian(&first, &words(&["-copy", "import", &chain.display().to_string()])).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let runs = setting("LYDIAN_CRASH_RUNS").map_or(KILLS, |runs| runs / 20);
    let mut random = Random::new(setting("LYDIAN_CRASH_SEED").unwrap_or(1), "crash-peers");

    // The other chain, made from the first.
    let other = copy(&first, &place("other"));
    let maker = Peer::start(&other);
    let fork = maker.call("getblockhash", &format!("[{}]", FORK + 1)).unwrap();
    maker.call("invalidateblock", &format!("[{fork}]")).unwrap();
    maker.call("generatetoaddress", &format!("[{}, \"{ADDRESS}\"]", OTHER_BLOCKS - FORK)).unwrap();
    maker.stop();

    let goal = Goal::of(&first, BLOCKS);
    goal.reach(&|| fresh(&place("client")), &|_| {}, runs, &mut random);
    drop(goal);
    let goal = Goal::of(&other, OTHER_BLOCKS);
    goal.reach(&|| copy(&first, &place("client")), &|_| {}, runs, &mut random);
}
