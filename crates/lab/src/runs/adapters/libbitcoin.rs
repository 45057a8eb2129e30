//! libbitcoin: `bs` of libbitcoin-server 4 by path; it is in no package registry.
//!
//! `bn` of libbitcoin-node takes the same settings. Input: a path. Output: an adapter. It reads its settings from a
//! file only, so the command first writes the file into the data directory and then executes the program. The program
//! knows only mainnet by default; everything that makes a regtest is a setting (`src/parser.cpp`, and the values of
//! `settings(selection::regtest)` in libbitcoin-system's `src/settings.cpp`). Full validation: the milestone, below
//! which scripts are not checked, is the genesis block. Soft forks are active from the first block on, as on Core's
//! regtest. Its Core-compatible RPC returns the tip, but its `stop` is not implemented yet
//! (`interfaces/bitcoind_control.hpp`), so a signal ends it. It cannot rebuild from block files. The sizes of its
//! tables are for chains of up to a few gigabytes; they grow. Written from the sources, and not tested with the
//! program.

use super::{asked, found};
use crate::error::LabError;
use crate::runs::adapter::{Adapter, Job, REGTEST, ask_version};
use crate::runs::rpc::Server;
use lydian_chains::chain_files::Network;
use lydian_report::results::{Answer, Experiment};
use lydian_report::systems;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;

const USER: &str = "lab";
const PASSWORD: &str = "lab";
/// Settings for regtest. The genesis block is that of every Bitcoin network except for time, target and nonce.
const NETWORK: &str = "\
[forks]
retarget = false
[bitcoin]
proof_of_work_limit = 545259519
subsidy_interval = 150
genesis_block = 0100000000000000000000000000000000000000000000000000000000000000000000003ba3edfd7a7b12b27ac72c3e67768f617fc81bc3888a51323a9fb8aa4b1e5e4adae5494dffff7f20020000000101000000010000000000000000000000000000000000000000000000000000000000000000ffffffff4d04ffff001d0104455468652054696d65732030332f4a616e2f32303039204368616e63656c6c6f72206f6e206272696e6b206f66207365636f6e64206261696c6f757420666f722062616e6b73ffffffff0100f2052a01000000434104678afdb0fe5548271967f1a67130b7105cd6a828e03909a67962e0ea1f61deb649f6bc3f4cef38c4f35504e51ec112de5c384df7ba0b8d578a4c702b6bf11d5fac00000000
checkpoint = 0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206:0
bip34_activation_threshold = 0
bip34_enforcement_threshold = 0
bip34_activation_sample = 0
bip34_freeze = 1
bip65_freeze = 1
bip66_freeze = 1
bip30_reactivate_height = 0
bip30_deactivate_checkpoint = 0000000000000000000000000000000000000000000000000000000000000000:0
bip9_bit0_active_checkpoint = 0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206:0
bip9_bit1_active_checkpoint = 0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206:0
bip9_bit2_active_checkpoint = 0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206:0
milestone = 0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206:0
minimum_work = 0000000000000000000000000000000000000000000000000000000000000000
";

/// No peer discovery; no priority over other processes; an old tip counts as current.
const QUIET: &str = "\
[outbound]
connections = 0
host_pool_capacity = 0
[inbound]
connections = 0
[node]
thread_priority = false
memory_priority = false
currency_window_minutes = 0
";

/// Smaller tables than mainnet's, which begin at 180 GB.
const SIZES: &str = "\
[database]
header_buckets = 100000
point_buckets = 4000000
tx_buckets = 1000000
txs_buckets = 100000
strong_tx_buckets = 1000000
validated_bk_buckets = 100000
header_size = 10000000
input_size = 500000000
output_size = 500000000
point_size = 500000000
ins_size = 100000000
outs_size = 100000000
tx_size = 100000000
txs_size = 100000000
strong_tx_size = 10000000
";

const KIND: &str = "libbitcoin";

#[derive(Debug)]
pub struct Libbitcoin {
    program: PathBuf,
}

impl Libbitcoin {
    pub fn locate(path: Option<&Path>) -> Result<Libbitcoin, LabError> {
        let hint = "libbitcoin: in no package registry; build github.com/libbitcoin/libbitcoin-server and give --node-path libbitcoin=PATH of its bs";
        Ok(Libbitcoin { program: found(path, &[], hint)? })
    }

    fn server(job: &Job) -> Server {
        Server { port: job.rpc_port, credentials: format!("{USER}:{PASSWORD}") }
    }

    /// The settings file: first what is the same in each run, then what is not. A section may occur twice.
    fn settings(job: &Job) -> String {
        let data = job.data.display();
        let peers: String = job.peers.iter().map(|peer| format!("peer = {peer}\n")).collect();
        let identifier = u32::from_le_bytes(job.network.magic());
        let (network, sizes) = match (job.network.name, job.if_full("milestone")) {
            (REGTEST, _) => (NETWORK.to_owned(), SIZES),
            (_, Some(milestone)) => {
                (format!("[bitcoin]\n{milestone} = {}:0\nminimum_work = 0\n", job.network.genesis_hash()), "")
            }
            (_, None) => (String::new(), ""),
        };
        format!(
            "{network}{sizes}{QUIET}threads = {}\n[peer]\nidentifier = {identifier}\nenable_address = false\npath = {data}\n[manual]\n{peers}\
             [bitcoind]\nbind = 127.0.0.1:{}\nconnections = 4\nusername = {USER}\npassword = {PASSWORD}\n\
             [log]\npath = {data}\n[database]\npath = {data}/store\n",
            job.threads, job.rpc_port
        )
    }
}

impl Adapter for Libbitcoin {
    fn program(&self) -> &Path {
        &self.program
    }

    fn version(&self) -> Result<String, LabError> {
        let said = ask_version(&self.program)?;
        Ok(format!("libbitcoin: {}", said.split_ascii_whitespace().collect::<Vec<_>>().join(" ")))
    }

    fn cannot(&self, experiment: Experiment) -> Option<&'static str> {
        systems::kept_from(KIND, experiment)
    }

    fn refuses(&self, network: &Network) -> Option<String> {
        let knows = [REGTEST, "main"].contains(&network.name);
        (!knows).then(|| format!("the lab writes its settings only for regtest and main, not for {}", network.name))
    }

    fn reindex(&self, job: &Job) -> Command {
        self.sync(job)
    }

    fn sync(&self, job: &Job) -> Command {
        let text = Libbitcoin::settings(job);
        let mut command = asked::with_file(&self.program, job, "lab.cfg", "--config", &text);
        command.args(&job.more);
        command
    }

    fn tip(&self, job: &Job) -> Option<Result<Answer, LabError>> {
        let info = Libbitcoin::server(job).call("getblockchaininfo", &json!([]));
        Some(info.and_then(|info| asked::tip_of(KIND, &info)))
    }

    fn stop(&self, job: &Job) -> Result<(), LabError> {
        asked::end_by_signal(KIND, job)
    }

    fn notes(&self) -> Vec<String> {
        systems::notes(KIND)
    }

    fn answer(&self, _: &Job) -> Result<Answer, LabError> {
        Err(LabError::program(KIND, "its tip is only queried while it runs"))
    }
}
