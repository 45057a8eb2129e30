//! Nodes as processes with an RPC server and a port, killed with the test.

use lydian_chains::chain_files::network;
use lydian_lab::runs::adapter::Job;
use lydian_lab::runs::rpc::{Server, free_port};
use lydian_oracle::Scratch;
use lydian_report::results::Validation;
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Addresses without a known key.
pub(crate) const ADDRESS: &str = "bcrt1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqdku202";
pub(crate) const OTHER_ADDRESS: &str = "bcrt1qqyqszqgpqyqszqgpqyqszqgpqyqszqgpvxat9t";

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running node.
pub(crate) struct Running {
    process: Child,
    server: Server,
    /// The port on which it listens for peers.
    pub(crate) port: u16,
    job: Job,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Running {
    /// Starts a node and waits until it answers.
    pub(crate) fn start(job: Job, port: u16, mut command: Command, server: impl Fn(&Job) -> Option<Server>) -> Running {
        let mut process = command.spawn().unwrap();
        let began = Instant::now();
        let server = loop {
            if let Some(status) = process.try_wait().unwrap() {
                panic!("{command:?} ended: {status}");
            }
            match server(&job).filter(|server| server.call("getblockcount", &json!([])).is_ok()) {
                Some(server) => break server,
                None if began.elapsed() > PATIENCE => {
                    let _ = process.kill();
                    panic!("{command:?} does not answer");
                }
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        Running { process, server, port, job }
    }

    pub(crate) fn call(&self, method: &str, params: &Value) -> Value {
        self.server.call(method, params).unwrap()
    }

    pub(crate) fn tip(&self) -> String {
        self.call("getbestblockhash", &json!([])).as_str().unwrap().to_owned()
    }

    pub(crate) fn height(&self) -> u64 {
        self.call("getblockcount", &json!([])).as_u64().unwrap()
    }

    pub(crate) fn utxo_hash(&self) -> String {
        let set = self.call("gettxoutsetinfo", &json!(["hash_serialized_3"]));
        set["hash_serialized_3"].as_str().unwrap().to_owned()
    }

    pub(crate) fn mine(&self, blocks: u64, address: &str) {
        self.call("generatetoaddress", &json!([blocks, address]));
    }

    /// Invalidates the last `depth` blocks.
    pub(crate) fn forget(&self, depth: u64) {
        let fork = self.call("getblockhash", &json!([self.height() - depth + 1]));
        self.call("invalidateblock", &json!([fork]));
    }

    pub(crate) fn address(&self) -> String {
        format!("{}:{}", Ipv4Addr::LOCALHOST, self.port)
    }
}

/// Waits until both nodes have the same tip.
pub(crate) fn agree(what: &str, one: &Running, other: &Running) {
    let began = Instant::now();
    while one.tip() != other.tip() {
        let heights = (one.height(), other.height());
        assert!(began.elapsed() < PATIENCE, "{what}: heights {heights:?}; {:?} and {:?}", one.job.data, other.job.data);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The parameters of a node in a folder of its own.
pub(crate) fn job(scratch: &Scratch, name: &str, more: &[&str]) -> Job {
    let data = scratch.path().join(name);
    std::fs::create_dir_all(&data).unwrap();
    Job {
        data,
        network: network("regtest").unwrap(),
        height: 0,
        threads: 2,
        cache_mib: 100,
        peers: Vec::new(),
        time: None,
        validation: Validation::Full,
        next_block: None,
        rpc_port: free_port().unwrap(),
        more: more.iter().map(|&argument| argument.to_owned()).collect(),
    }
}

/// The program `lydian` beside `lydian-lab`. `cargo test --workspace` builds both; before `-p lydian-lab`, build it.
pub(crate) fn program() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_lydian-lab")).with_file_name("lydian");
    assert!(
        program.is_file(),
        "{} is missing: run `cargo build --profile test -p lydian-node --bin lydian`",
        program.display()
    );
    program
}

/// Lydian on a port, connected to these peers only.
pub(crate) fn lydian(scratch: &Scratch, name: &str, peers: &[&Running], more: &[&str]) -> Running {
    let (job, port) = (job(scratch, name, more), free_port().unwrap());
    let mut command = job.command(program());
    command.args(job.place()).arg("-listen=1").arg(format!("-bind=127.0.0.1:{port}"));
    match peers {
        [] => command.arg("-connect=0"),
        peers => command.args(peers.iter().map(|peer| format!("-connect={}", peer.address()))),
    };
    command.args(["-server=1", "-printtoconsole=0"]).arg(format!("-rpcport={}", job.rpc_port));
    command.arg(format!("-rpccookiefile={}", job.cookie().display())).args(&job.more);
    Running::start(job, port, command, Server::with_cookie)
}

/// A folder for the nodes of a test.
pub(crate) fn scratch(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    std::fs::create_dir_all::<PathBuf>(scratch.path().into()).unwrap();
    scratch
}
