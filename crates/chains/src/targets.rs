//! The scripts that Electrum servers are queried for, and how the chain uses each of them.
//!
//! Input: `targets.json` beside a chain of the preset `reuse`, or any chain; then its most used scripts are taken.
//! Output: [`Targets`]. Format: `docs/lab.md`. Cost: for a chain without the file one pass over its blocks, with every
//! script and every coin in memory.

use super::walk::walk;
use crate::chain_files::ChainFiles;
use crate::error::ChainsError;
use crate::limits::CHAIN_FILE_SIZE_MAX;
use crate::wallet::Kind;
use lydian_disk::{RealDisk, read_whole};
use lydian_hash::sha256;
use lydian_primitives::{hex, to_hex};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::Path;

/// In the folder of the block files.
pub const TARGETS_FILE: &str = "targets.json";

/// The scripts to query, in a fixed order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Targets {
    pub scripts: Vec<Target>,
}

/// A script and its use in the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The protocol's name for the script: SHA-256 of the output script, reversed.
    pub scripthash: String,
    /// Transactions that pay it or spend from it.
    pub transactions: u32,
    pub utxos: u32,
    #[serde(with = "hex_bytes")]
    pub script: Vec<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
}

impl Target {
    pub fn new(script: Vec<u8>, transactions: u32, utxos: u32) -> Target {
        Target { scripthash: scripthash(&script), transactions, utxos, script, kind: None }
    }
}

/// The protocol's name for a script.
pub fn scripthash(script: &[u8]) -> String {
    let mut hash = sha256(script);
    hash.reverse();
    to_hex(&hash)
}

impl Targets {
    /// Reads the scripts that were written beside the chain.
    pub fn of_chain(folder: &Path) -> Result<Targets, ChainsError> {
        let path = folder.join(TARGETS_FILE);
        let bytes = read_whole(&RealDisk, &path, CHAIN_FILE_SIZE_MAX)?;
        let foreign = |what: String| ChainsError::Usage(format!("{}: {what}", path.display()));
        let targets: Targets = serde_json::from_slice(&bytes).map_err(|error| foreign(error.to_string()))?;
        match targets.scripts.iter().find(|target| target.scripthash != scripthash(&target.script)) {
            Some(target) => Err(foreign(format!("{} is not the hash of its script", target.scripthash))),
            None => Ok(targets),
        }
    }

    /// The scripts of any chain with the most transactions, at most `count`; of equals, the one that occurred first.
    pub fn sample(folder: &Path, count: usize) -> Result<Targets, ChainsError> {
        let chain = ChainFiles::open(folder, None)?;
        let mut scripts: HashMap<Vec<u8>, u32> = HashMap::new();
        let mut used: Vec<Used> = Vec::new();
        let mut coins = HashMap::new();
        walk(&chain, &mut |block| {
            for (index, tx) in block.txs().enumerate() {
                let number = block.first_tx + index;
                for input in tx.inputs().filter(|_| index > 0) {
                    let Some(script) = coins.remove(&input.prevout) else { continue };
                    used[script as usize].touch(number).utxos -= 1;
                }
                for (outpoint, output) in block.coins(&tx) {
                    let next = u32::try_from(used.len()).unwrap_or(u32::MAX);
                    let script = *scripts.entry(output.script_pubkey.to_vec()).or_insert(next);
                    if script == next {
                        used.push(Used::default());
                    }
                    used[script as usize].touch(number).utxos += 1;
                    coins.insert(outpoint, script);
                }
            }
            Ok(())
        })?;
        let mut scripts: Vec<(Vec<u8>, u32)> = scripts.into_iter().collect();
        scripts.sort_by_key(|(_, at)| (std::cmp::Reverse(used[*at as usize].transactions), *at));
        scripts.truncate(count);
        let target =
            |(script, at): (Vec<u8>, u32)| Target::new(script, used[at as usize].transactions, used[at as usize].utxos);
        Ok(Targets { scripts: scripts.into_iter().map(target).collect() })
    }

    /// One line per script.
    pub fn to_json(&self) -> String {
        let line = |target: &Target| serde_json::to_string(target).unwrap_or_default();
        let lines: Vec<String> = self.scripts.iter().map(line).collect();
        format!("{{\"scripts\":[\n{}\n]}}\n", lines.join(",\n"))
    }
}

/// The use of a script in any chain.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    transactions: u32,
    utxos: u32,
    /// The last transaction that touched it.
    last: Option<usize>,
}

impl Used {
    fn touch(&mut self, number: usize) -> &mut Used {
        self.transactions += u32::from(self.last != Some(number));
        self.last = Some(number);
        self
    }
}

/// Bytes as lower-case hexadecimal digits.
mod hex_bytes {
    use super::{hex, to_hex};
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&to_hex(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        hex(&text).map_err(serde::de::Error::custom)
    }
}
