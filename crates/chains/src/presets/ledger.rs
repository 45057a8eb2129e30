//! Blocks with Core's expected answer to each: `cases00000.dat` in the order of submission, one line for each block in
//! `expectations.jsonl`, and only the accepted ones in `blk00000.dat`.
//!
//! Invariant: the line of a block is all a reader needs besides the file. Format: `docs/lab.md`.

use super::maker::Maker;
use crate::assemble::regtest_genesis;
use crate::error::ChainsError;
use crate::files::{BlockWriter, write_text};
use lydian_disk::limits::WHOLE_FILE_SIZE_MAX;
use lydian_disk::{RealDisk, read_whole};
use lydian_primitives::BlockHash;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Stands for Core's answer to `submitblock` for an accepted block.
pub const ACCEPT: &str = "accept";
/// The answer for a block that is stored but not connected.
pub const INCONCLUSIVE: &str = "inconclusive";

/// One line of `expectations.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expectation {
    /// Unique among the lines that break a rule; `chain` for the blocks below them.
    pub name: String,
    /// Name of the rule, as listed by `lydian explain`.
    pub rule: String,
    pub height: u32,
    pub hash: String,
    /// `accept`, `inconclusive` (stored, but not on the best chain), `duplicate`, `duplicate-invalid`, or Core's reject
    /// reason.
    pub expect: String,
    /// Time of the node, in seconds since 1970.
    pub now: u32,
    pub file: String,
    /// Offset of the block's first byte.
    pub offset: u64,
    pub size: usize,
}

/// Collects blocks and expectations.
#[derive(Debug)]
pub struct Ledger {
    folder: PathBuf,
    cases: BlockWriter,
    chain: BlockWriter,
    lines: Vec<Expectation>,
    pub now: u32,
}

impl Ledger {
    /// Starts with the genesis block in the chain file.
    pub fn new(folder: &Path, now: u32) -> Result<Ledger, ChainsError> {
        let cases = BlockWriter::new(folder, "cases")?;
        let mut chain = BlockWriter::new(folder, "blk")?;
        chain.write(&regtest_genesis())?;
        Ok(Ledger { folder: folder.to_path_buf(), cases, chain, lines: Vec::new(), now })
    }

    pub fn record(
        &mut self,
        name: &str,
        rule: &str,
        height: u32,
        block: &[u8],
        expect: &str,
    ) -> Result<(), ChainsError> {
        let position = self.cases.write(block)?;
        if expect == ACCEPT || expect == INCONCLUSIVE {
            self.chain.write(block)?;
        }
        let hash = BlockHash(lydian_hash::sha256d(&block[..80])).to_string();
        self.lines.push(Expectation {
            name: name.into(),
            rule: rule.into(),
            height,
            hash,
            expect: expect.into(),
            now: self.now,
            file: position.file,
            offset: position.offset,
            size: position.size,
        });
        Ok(())
    }

    pub fn lines(&self) -> &[Expectation] {
        &self.lines
    }

    /// Writes the expectations.
    pub fn finish(self) -> Result<Vec<Expectation>, ChainsError> {
        let mut text = String::new();
        for line in &self.lines {
            text.push_str(&serde_json::to_string(line).unwrap_or_default());
            text.push('\n');
        }
        write_text(&self.folder.join("expectations.jsonl"), &text)?;
        Ok(self.lines)
    }
}

/// The blocks of a directory with their expectations, in the order of submission.
pub fn read_cases(folder: &Path) -> Result<Vec<(Expectation, Vec<u8>)>, ChainsError> {
    let read = |name: &str| read_whole(&RealDisk, &folder.join(name), WHOLE_FILE_SIZE_MAX);
    let text = String::from_utf8_lossy(&read("expectations.jsonl")?).into_owned();
    let mut files: HashMap<String, Vec<u8>> = HashMap::new();
    let mut cases = Vec::new();
    for (number, text) in text.lines().enumerate() {
        let foreign = |what: &str| ChainsError::Usage(format!("expectations.jsonl, line {}: {what}", number + 1));
        let line: Expectation = serde_json::from_str(text).map_err(|error| foreign(&error.to_string()))?;
        if !files.contains_key(&line.file) {
            files.insert(line.file.clone(), read(&line.file)?);
        }
        let block = usize::try_from(line.offset)
            .ok()
            .and_then(|start| files[&line.file].get(start..start.checked_add(line.size)?))
            .ok_or_else(|| foreign("the file ends before the block"))?
            .to_vec();
        cases.push((line, block));
    }
    Ok(cases)
}

/// The contents of `stats.json` for a directory of cases.
#[derive(Clone, Debug, Serialize)]
struct Summary<'a> {
    preset: &'a str,
    seed: u64,
    /// The final tip of a node.
    tip: String,
    height: u32,
    /// Entries of the UTXO set at the tip.
    coins: usize,
    submitted: usize,
    accepted: usize,
    inconclusive: usize,
    refused: usize,
}

/// Writes `stats.json` and returns its text.
pub fn write_summary(
    folder: &Path,
    preset: &str,
    seed: u64,
    tip: &Maker,
    lines: &[Expectation],
) -> Result<String, ChainsError> {
    let count = |expect: &str| lines.iter().filter(|line| line.expect == expect).count();
    let (accepted, inconclusive) = (count(ACCEPT), count(INCONCLUSIVE));
    let summary = Summary {
        preset,
        seed,
        tip: tip.tip.to_string(),
        height: tip.height,
        coins: tip.coin_count,
        submitted: lines.len(),
        accepted,
        inconclusive,
        refused: lines.len() - accepted - inconclusive,
    };
    let text = serde_json::to_string_pretty(&summary).unwrap_or_default() + "\n";
    write_text(&folder.join("stats.json"), &text)?;
    Ok(text)
}
