//! What the results of `lydian-lab scale` and of its command `cluster` have in common.
//!
//! Input: the chain, the program, the machine. Output: the beginning of a results file, and both forms of a report.

use crate::error::LabError;
use crate::runs::adapter::version_line;
use crate::runs::{chain, machine, machine_facts, program_facts, system, version_or_reason};
use lydian_chains::chain_files::ChainFiles;
use lydian_hash::sha256d;
use lydian_primitives::BlockHash;
use lydian_report::results::{ChainFacts, Lab, MachineFacts, NodeFacts};
use serde::Serialize;
use std::path::Path;

/// What was measured, when and where.
#[derive(Clone, Debug, Serialize)]
pub struct RunFacts {
    pub lab: Lab,
    pub started: f64,
    pub machine: MachineFacts,
    pub chain: ChainFacts,
    pub node: NodeFacts,
}

impl RunFacts {
    pub fn of(
        chain: &ChainFiles,
        program: &Path,
        arguments: &[String],
        work: &Path,
        command_line: &[String],
    ) -> RunFacts {
        let mut node = program_facts("lydian", program, version_or_reason(version_line(program)), Vec::new());
        node.arguments = arguments.to_vec();
        RunFacts {
            lab: Lab {
                version: env!("CARGO_PKG_VERSION").into(),
                commit: machine::commit(),
                command_line: command_line.to_vec(),
            },
            started: system::unix_seconds(),
            machine: machine_facts(work),
            chain: chain::facts(chain),
            node,
        }
    }
}

/// Results as JSON or Markdown.
pub trait ScaleReport: Serialize {
    fn to_markdown(&self) -> String;

    /// Whether everything was right.
    fn is_right(&self) -> bool;

    fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

/// The hash of the last block of the files.
pub fn tip(chain: &ChainFiles) -> Result<BlockHash, LabError> {
    let mut tip = BlockHash::ZERO;
    chain.each_block(&mut |block| {
        tip = BlockHash(sha256d(block.get(..80).unwrap_or_default()));
        Ok(())
    })?;
    Ok(tip)
}
