//! What the nodes that do not exit by themselves have in common.
//!
//! These are the answer that contains their tip, and the signal for those that RPC cannot stop. Input: an answer; a
//! job. Output: a tip; a process that has been asked to exit. Must never: signal a process that this program did not
//! start.

use crate::error::LabError;
use crate::runs::adapter::Job;
use crate::runs::system;
use lydian_report::results::Answer;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Parses `getblockchaininfo`, which returns height and hash of the same moment.
pub(super) fn tip_of(node: &str, info: &Value) -> Result<Answer, LabError> {
    let height = info["blocks"].as_u64().and_then(|height| u32::try_from(height).ok());
    let known = height.zip(info["bestblockhash"].as_str());
    let (height, tip) = known.ok_or_else(|| LabError::program(node, format!("unexpected answer: {info}")))?;
    Ok(Answer { height, tip: tip.to_owned(), coins: None, utxo_hash: None })
}

/// Arguments: program, folder, name of the file, option that takes its path, text.
const WRITE_AND_START: &str =
    r#"printf '%s' "$4" > "$1/$2" && f=$1/$2 o=$3 p=$0 && shift 4 && exec "$p" "$o" "$f" "$@""#;

/// A command that first writes a file of settings into the data directory and then becomes the program.
pub(super) fn with_file(program: &Path, job: &Job, name: &str, option: &str, text: &str) -> Command {
    let mut command = job.command("sh");
    command.args(["-c", WRITE_AND_START]).arg(program).arg(&job.data).args([name, option, text]);
    command
}

/// Sends SIGTERM to the descendant of this process whose command line contains the data directory of the job; no other
/// process has it.
pub(super) fn end_by_signal(node: &str, job: &Job) -> Result<(), LabError> {
    let data = job.data.display().to_string();
    let is_its = |pid: &u32| system::command_line(*pid).is_some_and(|line| line.contains(&data));
    let family = system::family(std::process::id());
    let pid = family.into_iter().filter(|pid| *pid != std::process::id()).find(is_its);
    match pid {
        Some(pid) => {
            system::terminate(pid);
            Ok(())
        }
        None => Err(LabError::program(node, "no process of the lab has its data directory")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_chains::chain_files::network;
    use lydian_report::results::Validation;
    use serde_json::json;

    #[test]
    fn a_tip_needs_both_fields() {
        let answer = tip_of("it", &json!({"bestblockhash": "aa", "blocks": 7, "headers": 9})).unwrap();
        assert_eq!((answer.height, answer.tip.as_str(), answer.utxo_hash), (7, "aa", None));
        let one = [json!({"bestblockhash": "aa"}), json!({"blocks": 7}), json!({"blocks": -1, "bestblockhash": "aa"})];
        assert!(one.iter().all(|info| tip_of("it", info).is_err()));
    }

    #[test]
    fn the_signal_meets_the_process_of_the_job_alone() {
        // Until it has executed the program, the child still has the command line of the test.
        let start = |data: &str| {
            let child = Command::new("sh").args(["-c", "while :; do sleep 0.1; done", data]).spawn().unwrap();
            let has_begun =
                || system::read_proc(&format!("/proc/{}/cmdline", child.id())).is_some_and(|line| line.contains(data));
            while !has_begun() {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            child
        };
        let (mut other, mut its) = (start("/nowhere/of-another"), start("/nowhere/of-this-job"));
        let job = Job {
            data: "/nowhere/of-this-job".into(),
            network: network("regtest").unwrap(),
            height: 1,
            threads: 1,
            cache_mib: 1,
            peers: Vec::new(),
            time: None,
            validation: Validation::Full,
            next_block: None,
            rpc_port: 0,
            more: Vec::new(),
        };
        end_by_signal("it", &job).unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&its.wait().unwrap()), Some(15));
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(end_by_signal("it", &job).unwrap_err().to_string().contains("data directory"));
    }
}
