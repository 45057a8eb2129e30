//! What Bitcoin Core and its forks have in common: options, and the RPC queries afterwards.
//!
//! Input: a job and a command that starts the program. Output: arguments for a full validation; the answer of a second
//! start without network or new blocks and with an RPC server on loopback. Must never: run beside the measurement.

use crate::error::LabError;
use crate::runs::adapter::Job;
use crate::runs::{log, rpc};
use lydian_report::results::Answer;
use serde_json::{Value, json};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::Duration;

/// No wallet, no peer discovery, and none of regtest's self-checks, which walk the whole block index several times per
/// block and which no other network does.
const QUIET: &[&str] = &[
    "-dnsseed=0",
    "-fixedseeds=0",
    "-natpmp=0",
    "-listenonion=0",
    "-disablewallet=1",
    "-persistmempool=0",
    "-printtoconsole=0",
    "-checkblockindex=0",
    "-checkmempool=0",
    "-checkaddrman=0",
];
/// No block is assumed valid.
const CHECK_ALL: &str = "-assumevalid=0";
const OFFLINE: &[&str] = &["-listen=0", "-connect=0"];

const START_POLL: Duration = Duration::from_millis(100);
/// Loading a large chain takes a while; a process that has ended is noticed at once.
const START_POLLS_MAX: u32 = 6_000;
const LOG_END_BYTES: u64 = 2_000;

/// Checks every script, unless the job leaves that to the program's defaults; the log has microseconds.
pub(super) fn reindex(mut command: Command, job: &Job) -> Command {
    command.args(job.place()).args(OFFLINE).arg("-reindex=1");
    validate(command, job)
}

/// Goes on with the indexed blocks.
pub(super) fn go_on(mut command: Command, job: &Job) -> Command {
    command.args(job.place()).args(OFFLINE);
    validate(command, job)
}

/// The same from peers.
///
/// Core gets no `-mocktime`: with a clock that stands still, its timeouts for peers would never expire. Therefore, with
/// several peers it requests the headers of an old chain from only one of them.
pub(super) fn sync(mut command: Command, job: &Job) -> Command {
    command.args(job.place()).arg("-listen=0");
    command.args(job.peers.iter().map(|peer| format!("-connect={peer}")));
    validate(command, job)
}

fn validate(mut command: Command, job: &Job) -> Command {
    command.args(QUIET).args(job.any_work()).args(["-server=0", "-logtimemicros=1"]);
    command.args(job.if_full(CHECK_ALL));
    command.arg(format!("-stopatheight={}", job.height));
    command.arg(format!("-dbcache={}", job.cache_mib)).arg(format!("-par={}", job.threads));
    command.args(&job.more);
    command
}

/// Listens for peers on loopback and looks for none.
pub(super) fn serve(mut command: Command, job: &Job, port: u16) -> Command {
    command.args(job.place()).args(["-listen=1", "-connect=0"]).arg(format!("-bind=127.0.0.1:{port}"));
    command.args(QUIET).args(job.any_work()).args(["-checkblocks=1", "-checklevel=0"]);
    command.arg(format!("-dbcache={}", job.cache_mib)).arg(format!("-par={}", job.threads));
    command.args(asked(job)).args(&job.more);
    command
}

/// Without peers and blocks; blocks are submitted by RPC, and all their scripts are checked.
pub(super) fn offline(mut command: Command, job: &Job) -> Command {
    command.args(job.place()).args(OFFLINE).args(QUIET).args(job.any_work()).args(job.if_full(CHECK_ALL));
    command.arg(format!("-dbcache={}", job.cache_mib)).arg(format!("-par={}", job.threads));
    command.args(asked(job)).args(&job.more);
    command
}

/// Starts the program again and queries it. A Ctrl-C does not reach it.
pub(super) fn answer(mut command: Command, job: &Job) -> Result<Answer, LabError> {
    command.args(job.place()).args(OFFLINE).args(QUIET);
    command.args(["-checkblocks=1", "-checklevel=0"]).args(asked(job));
    command.args(&job.more);
    let program = command.get_program().to_string_lossy().into_owned();
    let child = command.process_group(0).spawn().map_err(|error| LabError::program(&program, error))?;
    let mut running = Running(child);
    for _ in 0..START_POLLS_MAX {
        std::thread::sleep(START_POLL);
        if running.0.try_wait().is_ok_and(|status| status.is_some()) {
            break;
        }
        // Until it is ready, it refuses the connection or answers -28.
        let Some(server) =
            rpc::Server::with_cookie(job).filter(|server| server.call("getblockcount", &json!([])).is_ok())
        else {
            continue;
        };
        if let Some(next) = &job.next_block {
            // It has the blocks after the last one and connects them as soon as it starts. If it does not know this
            // block, there is nothing to take back.
            let _ = server.call("invalidateblock", &json!([next]));
        }
        let answer = server.call("gettxoutsetinfo", &json!(["hash_serialized_3"])).and_then(|set| answer_of(&set));
        let _ = server.call("stop", &json!([]));
        let _ = running.0.wait();
        return answer;
    }
    let said = log::end_of(&job.log(), LOG_END_BYTES);
    Err(LabError::program(program, format!("started again, it does not answer; its log ends:\n{said}")))
}

/// Options for an RPC server on loopback that uses the job's cookie file.
fn asked(job: &Job) -> Vec<String> {
    vec![
        "-server=1".to_owned(),
        "-rpcbind=127.0.0.1".to_owned(),
        "-rpcallowip=127.0.0.1".to_owned(),
        "-rpcservertimeout=86400".to_owned(),
        format!("-rpcport={}", job.rpc_port),
        format!("-rpccookiefile={}", job.cookie().display()),
    ]
}

/// Killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Parses `gettxoutsetinfo hash_serialized_3`.
pub(in crate::runs) fn answer_of(set: &Value) -> Result<Answer, LabError> {
    let form = || LabError::program("RPC gettxoutsetinfo", format!("unexpected answer: {set}"));
    let text = |name: &str| set[name].as_str().map(str::to_owned).ok_or_else(form);
    let height = set["height"].as_u64().and_then(|height| u32::try_from(height).ok()).ok_or_else(form)?;
    let coins = Some(set["txouts"].as_u64().ok_or_else(form)?);
    Ok(Answer { height, tip: text("bestblock")?, coins, utxo_hash: Some(text("hash_serialized_3")?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_needs_every_field() {
        let set = json!({"height": 3, "bestblock": "aa", "txouts": 5, "hash_serialized_3": "bb", "total_amount": 1.5});
        let expected = Answer { height: 3, tip: "aa".into(), coins: Some(5), utxo_hash: Some("bb".into()) };
        assert_eq!(answer_of(&set).unwrap(), expected);
        for field in ["height", "bestblock", "txouts", "hash_serialized_3"] {
            let mut less = set.clone();
            less.as_object_mut().unwrap().remove(field);
            assert!(answer_of(&less).is_err(), "{field}");
        }
    }
}
