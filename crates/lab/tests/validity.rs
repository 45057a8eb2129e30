//! Which broken blocks nodes accept.
//!
//! Bitcoin Core, the judge, gives each block the expected reason and ends on the valid chain; btcd refuses the blocks
//! that it is tested with; and small fakes that skip every check, die, hang or do not return to the valid branch are
//! reported as such.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test fails by panicking, keeps its own files, and says when it does not run"
)]

use lydian_chains::presets::validity::{Suite, TRUNK_HEIGHT, make};
use lydian_lab::LabError;
use lydian_lab::runs::Contender;
use lydian_lab::runs::adapter::{Adapter, Job};
use lydian_lab::runs::adapters::{Absent, Bitcoind, Btcd};
use lydian_lab::runs::rpc::Server;
use lydian_lab::validity::{Patience, Terms, examine};
use lydian_oracle::{Daemon, Scratch, or_skip};
use lydian_report::results::{Answer, Validity};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

static SUITE: LazyLock<Suite> = LazyLock::new(|| make(1));

fn asked(name: &str, adapter: Box<dyn Adapter>, patience: Patience, interrupted: bool) -> Validity {
    // The fakes share a name and run in parallel.
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let scratch = Scratch::new(&format!("validity-{name}-{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
    let contender = Contender { name: name.into(), adapter, more: Vec::new(), source: None };
    let folder = scratch.path().join("node");
    let interrupted = AtomicBool::new(interrupted);
    let terms = Terms { suite: &SUITE, folder: &folder, threads: 2, patience, interrupted: &interrupted };
    let validity = examine(&contender, &terms);
    assert!(!folder.exists(), "the folder of a node is removed");
    assert_eq!(validity.sha256, SUITE.sha256);
    validity
}

#[test]
fn core_refuses_each_block_for_the_expected_reason() {
    if or_skip("validity of Core", Daemon::start(&[])).is_none() {
        return;
    }
    let core = Box::new(Bitcoind::locate(None).unwrap());
    let validity = asked("bitcoind", core, Patience::default(), false);
    assert_eq!(validity.reason, None);
    assert_eq!(validity.cases.len(), SUITE.groups.len());
    for (case, group) in validity.cases.iter().zip(&SUITE.groups) {
        assert_eq!((case.said.as_str(), case.is_accepted), (group.case.reason.as_str(), false), "{}", case.name);
        assert!(case.height > TRUNK_HEIGHT, "{}", case.name);
    }
}

#[test]
fn btcd_refuses_all_but_what_its_regtest_never_enforces() {
    let Ok(btcd) = Btcd::locate(None) else {
        eprintln!("not run: validity of btcd: `make btcd` installs it");
        return;
    };
    let validity = asked("btcd", Box::new(btcd), Patience::default(), false);
    assert_eq!(validity.not_validated(), Vec::<&str>::new());
    assert_eq!(validity.cases.len(), SUITE.groups.len() - 1, "{:?}", validity.reason);
    let reason = validity.reason.unwrap();
    assert!(reason.starts_with("not asked for height in the coinbase (BIP-0034): its regtest never"), "{reason}");
}

/// How a fake treats the blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// Every block that makes the chain longer becomes the tip; no rule is checked.
    TakesAll,
    /// The same, but it keeps its branch: it never switches to another one.
    Stubborn,
    /// The same as the first until this number of blocks; then the process exits.
    Dies(usize),
    /// The same as the first until this number of blocks; then it accepts queries but does not answer.
    Hangs(usize),
}

/// A process that waits, and a server in the test that answers for it.
#[derive(Debug)]
struct Fake {
    port: u16,
}

const PASSWORD: &str = "fake:fake";

impl Fake {
    fn new(way: Way) -> Box<Fake> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || Chain::new(way).serve(&listener));
        Box::new(Fake { port })
    }
}

impl Adapter for Fake {
    fn program(&self) -> &Path {
        Path::new("sh")
    }

    fn version(&self) -> Result<String, LabError> {
        Ok("fake 1".into())
    }

    fn reindex(&self, job: &Job) -> Command {
        job.command("false")
    }

    fn sync(&self, job: &Job) -> Command {
        job.command("false")
    }

    /// Waits for a file named after its port: the server in the test ends it with that file.
    fn offline(&self, job: &Job) -> Option<Command> {
        let mut command = job.command("sh");
        let file = mark(self.port);
        command.args([
            "-c",
            "while [ ! -f \"$1\" ]; do sleep 0.02; done; rm \"$1\"; echo out of luck >&2; exit 3",
            "sh",
        ]);
        command.arg(file);
        Some(command)
    }

    fn rpc(&self, _: &Job) -> Option<Server> {
        Some(Server { port: self.port, credentials: PASSWORD.into() })
    }

    fn answer(&self, _: &Job) -> Result<Answer, LabError> {
        panic!("it was asked for an answer");
    }
}

fn mark(port: u16) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("lydian-fake-{}-{port}", std::process::id()))
}

/// A chain without rules.
struct Chain {
    way: Way,
    heights: HashMap<String, usize>,
    tip: String,
    blocks: usize,
}

impl Chain {
    fn new(way: Way) -> Chain {
        let genesis = lydian_chains::presets::validity::genesis_hash().to_string();
        Chain { way, heights: HashMap::from([(genesis.clone(), 0)]), tip: genesis, blocks: 0 }
    }

    fn serve(&mut self, listener: &TcpListener) {
        let mut held = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let body = question(&mut stream);
            match self.way {
                Way::Hangs(blocks) if self.blocks >= blocks => {
                    held.push(stream);
                    continue;
                }
                Way::Dies(blocks) if self.blocks >= blocks => {
                    std::fs::write(mark(listener.local_addr().unwrap().port()), "").unwrap();
                    return;
                }
                _ => {}
            }
            let result = match body["method"].as_str().unwrap() {
                "submitblock" => self.block(body["params"][0].as_str().unwrap()),
                _ => serde_json::Value::from(self.tip.clone()),
            };
            let text = serde_json::json!({ "result": result, "error": null, "id": 0 }).to_string();
            let head = format!("HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n", text.len());
            stream.write_all((head + &text).as_bytes()).unwrap();
        }
    }

    fn block(&mut self, hex: &str) -> serde_json::Value {
        let bytes: Vec<u8> = (0..80).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect();
        let shown = |bytes: &[u8]| bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect::<String>();
        let (hash, parent) = (shown(&lydian_hash::sha256d(&bytes)), shown(&bytes[4..36]));
        self.blocks += 1;
        let height = self.heights[&parent] + 1;
        self.heights.insert(hash.clone(), height);
        let is_on_tip = parent == self.tip;
        if height > self.heights[&self.tip] && (is_on_tip || self.way != Way::Stubborn) {
            self.tip = hash;
        }
        serde_json::Value::Null
    }
}

/// The body of a request.
fn question(stream: &mut TcpStream) -> serde_json::Value {
    let (mut text, mut piece) = (Vec::new(), [0; 65_536]);
    loop {
        let size = stream.read(&mut piece).unwrap();
        assert!(size > 0, "the client went away");
        text.extend_from_slice(&piece[..size]);
        let Some(head) = text.windows(4).position(|end| end == b"\r\n\r\n") else { continue };
        let fields = String::from_utf8_lossy(&text[..head]).into_owned();
        let length = fields.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
        if text.len() - head - 4 >= length.parse::<usize>().unwrap() {
            return serde_json::from_slice(&text[head + 4..]).unwrap();
        }
    }
}

/// Nothing that answers is given up, however busy the computer is. A fake has its new tip when it answers.
fn hasty() -> Patience {
    let long = Duration::from_secs(60);
    Patience { start: long, answer: long, settle: Duration::from_millis(100), total: Duration::from_secs(600) }
}

/// The right tip, but no script checked: every rule is reported as missing.
#[test]
fn a_node_that_checks_nothing_is_found_out() {
    let validity = asked("fake", Fake::new(Way::TakesAll), Patience::default(), false);
    assert_eq!((&validity.reason, validity.unasked), (&None, 0));
    assert_eq!(validity.not_validated().len(), SUITE.groups.len());
    assert!(validity.cases.iter().all(|case| case.said == "accepted"));
}

#[test]
fn a_node_that_does_not_switch_branches_is_reported() {
    let validity = asked("fake", Fake::new(Way::Stubborn), hasty(), false);
    assert_eq!(validity.cases.len(), 1, "the next group does not begin on the same tip");
    assert!(validity.cases[0].is_accepted);
    let reason = validity.reason.unwrap();
    assert!(
        reason.starts_with(&format!("after {}, whose valid branch it answered with", SUITE.groups[0].case.rule.name))
    );
}

#[test]
fn a_node_that_dies_is_reported_with_its_last_words() {
    let blocks = SUITE.trunk.len() + 4;
    let validity = asked("fake", Fake::new(Way::Dies(blocks)), hasty(), false);
    assert_eq!((validity.cases.len(), validity.unasked), (1, SUITE.groups.len() - 1));
    let reason = validity.reason.unwrap();
    assert!(reason.contains(SUITE.groups[1].case.rule.name), "{reason}");
    assert!(reason.ends_with("the process has ended, its last words: out of luck"), "{reason}");
}

#[test]
fn a_node_that_hangs_is_not_waited_for() {
    // The blocks before it are answered in this time even if the computer stops for a moment.
    let patience = Patience { answer: Duration::from_secs(6), ..hasty() };
    let validity = asked("fake", Fake::new(Way::Hangs(SUITE.trunk.len() + 4)), patience, false);
    assert_eq!(validity.cases.len(), 1);
    let reason = validity.reason.unwrap();
    assert!(reason.starts_with(&format!("after {} it tells no tip", SUITE.groups[1].case.rule.name)), "{reason}");
    assert!(reason.ends_with("no answer within 6s"), "{reason}");
    let (start, answer) = (Duration::from_millis(100), Duration::from_millis(500));
    let mute = asked("fake", Fake::new(Way::Hangs(0)), Patience { start, answer, ..hasty() }, false);
    assert_eq!((mute.cases.len(), mute.reason.unwrap().as_str()), (0, "it does not answer within 100ms"));
    let late = asked("fake", Fake::new(Way::TakesAll), Patience { total: Duration::ZERO, ..hasty() }, false);
    assert_eq!(late.reason.unwrap(), "it did not get through within 0ns");
}

#[test]
fn a_missing_or_interrupted_node_is_reported() {
    let absent = asked("btcd", Box::new(Absent::new("not installed".into())), hasty(), false);
    assert_eq!(absent.reason.as_deref(), Some("not installed"));
    let interrupted = asked("fake", Fake::new(Way::TakesAll), hasty(), true);
    assert_eq!(interrupted.reason.as_deref(), Some("it was interrupted"));
}
