//! How large the indexes of Lydian are: built over generated chains, divided by what they are made of, and extrapolated
//! to mainnet.
//!
//! Input: chains whose blocks are deep enough to be sealed, and the program `lydian`. Output: [`IndexSizes`]: bytes by
//! table and unit, and bounds at a height of mainnet ([`extrapolate`]). The program validates the chain with all
//! indexes switched on, runs until its threads have nothing left to do, and stops; the sizes are those of its files.
//! What the chains have of each unit is counted in their blocks alone ([`count`]). Must never: read the content of an
//! index.

pub mod count;
pub mod extrapolate;

use crate::electrum::process::Process;
use crate::error::LabError;
use crate::runs::adapter::{Adapter, version_line};
use crate::runs::adapters::Lydian;
use crate::runs::{Folder, rpc, system};
use count::{Units, units};
use extrapolate::Extrapolation;
use lydian_chains::chain_files::ChainFiles;
use rustix::process::Signal;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Every index with every table.
const OPTIONS: &[&str] =
    &["-txindex", "-txospenderindex", "-addressindex=full", "-blockfilterindex", "-coinstatsindex"];

const POLL: Duration = Duration::from_millis(500);
/// Looks in a row at which the program used no CPU time: then its index is finished.
const IDLE_LOOKS: u32 = 6;
/// CPU seconds between two looks that an idle node uses at most.
const IDLE_CPU_SECONDS: f64 = 0.015;
const PATIENCE: Duration = Duration::from_secs(600);

/// What was measured on a chain.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    pub chain: String,
    pub height: u32,
    /// The blocks of the largest segment, from the genesis block on.
    pub segment_blocks: u32,
    /// What these blocks have.
    pub segment: Units,
    /// What the whole chain has.
    pub all: Units,
    /// Bytes of the segment by table.
    pub tables: BTreeMap<String, u64>,
    /// Bytes of the other files by name or kind: logs, filters, statistics.
    pub others: BTreeMap<String, u64>,
    /// Bytes of the tables for blocks that are not sealed, logs and segments of single groups, and their transactions.
    pub unsealed_bytes: u64,
    pub unsealed_transactions: u64,
}

/// The measurements with what follows from them.
#[derive(Clone, Debug, Serialize)]
pub struct IndexSizes {
    pub lydian: String,
    pub chains: Vec<Measured>,
    pub mainnet: Extrapolation,
}

/// Builds the indexes over a chain.
pub fn measure(
    name: &str,
    folder: &Path,
    chain: &ChainFiles,
    program: &Path,
    work: &Path,
    interrupted: &AtomicBool,
) -> Result<Measured, LabError> {
    let place = Folder::new(&work.join("index-size"))?;
    let data = place.0.join("data");
    system::create_dir(&data)?;
    let datadir = format!("-datadir={}", data.display());
    let network = format!("-chain={}", chain.network.name);
    let node = |more: &[&str]| {
        let mut command = Command::new(program);
        command.arg(&datadir).arg(&network).args(["-listen=0", "-noconnect", "-printtoconsole=0"]).args(more);
        command
    };
    let output = place.0.join("output.txt");
    let mut import = node(&["import"]);
    import.arg(folder).args(OPTIONS).arg("-server=0");
    wait_for(Process::start(import, &output)?, "import", interrupted)?;
    // Blocks that were validated last may wait to be sealed.
    let port = rpc::free_port()?;
    let mut stay = node(OPTIONS);
    stay.args(["-server=1".to_owned(), format!("-rpcport={port}"), "-maxtipage=1000000000".to_owned()]);
    until_idle(Process::start(stay, &output)?, interrupted)?;
    let status = status(node(&["index", "status", "--json"]))?;
    let tables = status["indexes"].as_array().and_then(|all| all.iter().find(|index| index["name"] == "tables"));
    let sealed = tables.and_then(|index| index["sealed_blocks"].as_u64()).unwrap_or(0);
    let indexes = data.join(chain.network.folder).join("indexes");
    let files = Files::of(&indexes)?;
    let Some((segment_blocks, tables)) = files.largest() else {
        let text = format!("no block is sealed; {name} must be longer: {sealed} sealed blocks");
        return Err(LabError::Usage(text));
    };
    let counted = units(chain, segment_blocks, u32::try_from(sealed).unwrap_or(u32::MAX))?;
    Ok(Measured {
        chain: name.to_owned(),
        height: chain.facts.height,
        segment_blocks,
        segment: counted.below,
        all: counted.all,
        tables,
        unsealed_bytes: files.unsealed(sealed),
        others: files.others,
        unsealed_transactions: counted.all.transactions - counted.sealed_transactions,
    })
}

/// Waits for the end of a process, which must be a good one.
fn wait_for(process: Process, what: &str, interrupted: &AtomicBool) -> Result<(), LabError> {
    let start = system::now();
    while !process.has_ended() {
        check_interrupted(interrupted)?;
        if start.elapsed() > PATIENCE {
            return Err(LabError::program("lydian", format!("{what} takes longer than {} s", PATIENCE.as_secs())));
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

/// Lets a node run until it has nothing to do, and stops it.
fn until_idle(mut process: Process, interrupted: &AtomicBool) -> Result<(), LabError> {
    let start = system::now();
    let (mut used, mut idle) = (process.used().cpu_seconds, 0);
    while idle < IDLE_LOOKS {
        check_interrupted(interrupted)?;
        if process.has_ended() || start.elapsed() > PATIENCE {
            return Err(LabError::program("lydian", "the node does not run until its indexes are finished"));
        }
        std::thread::sleep(POLL);
        let now = process.used().cpu_seconds;
        idle = if now - used < IDLE_CPU_SECONDS { idle + 1 } else { 0 };
        used = now;
    }
    process.stop(Signal::TERM, PATIENCE)
}

fn check_interrupted(interrupted: &AtomicBool) -> Result<(), LabError> {
    match interrupted.load(Ordering::Relaxed) {
        true => Err(LabError::Usage("interrupted".to_owned())),
        false => Ok(()),
    }
}

fn status(mut command: Command) -> Result<Value, LabError> {
    let failed = |reason: String| LabError::program("lydian index status", reason);
    let output = command.output().map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))
}

/// The files of the indexes by what they are.
#[derive(Debug, Default)]
struct Files {
    /// Bytes by range of heights and table.
    segments: BTreeMap<(u32, u32), BTreeMap<String, u64>>,
    others: BTreeMap<String, u64>,
}

impl Files {
    fn of(indexes: &Path) -> Result<Files, LabError> {
        let mut files = Files::default();
        for path in system::files_below(indexes) {
            let bytes = std::fs::metadata(&path).map_err(|error| LabError::io("read", &path, error))?.len();
            files.add(&path, bytes);
        }
        Ok(files)
    }

    fn add(&mut self, path: &Path, bytes: u64) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let (stem, end) = name.rsplit_once('.').unwrap_or((&name, ""));
        let range = stem.split_once('-').and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
        match range {
            Some(range) => *self.segments.entry(range).or_default().entry(end.to_owned()).or_default() += bytes,
            // The logs of groups have their heights in the name.
            None if stem.parse::<u32>().is_ok() => *self.others.entry(end.to_owned()).or_default() += bytes,
            None => *self.others.entry(name.into_owned()).or_default() += bytes,
        }
    }

    /// The blocks of the first segment, which is the largest, and its tables.
    fn largest(&self) -> Option<(u32, BTreeMap<String, u64>)> {
        let ((from, to), tables) = self.segments.first_key_value()?;
        (*from == 0).then(|| (*to, tables.clone()))
    }

    fn unsealed(&self, sealed: u64) -> u64 {
        let above = self.segments.iter().filter(|((from, _), _)| u64::from(*from) >= sealed);
        let segments: u64 = above.flat_map(|(_, tables)| tables.values()).sum();
        segments + self.others.get("log").copied().unwrap_or(0)
    }
}

impl IndexSizes {
    pub fn new(program: &Path, chains: Vec<Measured>, height: u32) -> Result<IndexSizes, LabError> {
        let lydian = version_line(program)?;
        let mainnet = Extrapolation::new(&chains, height)?;
        Ok(IndexSizes { lydian, chains, mainnet })
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// As Markdown.
    pub fn to_text(&self) -> String {
        let mut text = format!("# Sizes of indexes\n\n{}\n\n", self.lydian);
        let names: Vec<&str> = self.chains.iter().map(|chain| chain.chain.as_str()).collect();
        let _ = writeln!(text, "| the largest segment | {} |\n|---|{}", names.join(" | "), "---|".repeat(names.len()));
        let mut row = |label: &str, value: &dyn Fn(&Measured) -> u64| {
            let cells: Vec<String> = self.chains.iter().map(|chain| value(chain).to_string()).collect();
            let _ = writeln!(text, "| {label} | {} |", cells.join(" | "));
        };
        row("blocks", &|chain| u64::from(chain.segment_blocks));
        row("transactions", &|chain| chain.segment.transactions);
        row("outputs that can be spent", &|chain| chain.segment.outputs);
        row("inputs", &|chain| chain.segment.inputs);
        row("distinct scripts", &|chain| chain.segment.scripts);
        row("(script, transaction) pairs", &|chain| chain.segment.pairs);
        for table in self.chains.iter().flat_map(|chain| chain.tables.keys()).collect::<std::collections::BTreeSet<_>>()
        {
            row(&format!("bytes of .{table}"), &|chain| chain.tables.get(table).copied().unwrap_or(0));
        }
        row("bytes of tables for blocks that are not sealed", &|chain| chain.unsealed_bytes);
        row("transactions of these blocks", &|chain| chain.unsealed_transactions);
        text + "\n" + &self.mainnet.to_text(&names)
    }
}

/// The program beside this one, or a given one.
pub fn program(path: Option<&Path>) -> Result<PathBuf, LabError> {
    Ok(Lydian::locate(path)?.program().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart_by_their_names() {
        let mut files = Files::default();
        for (name, bytes) in [
            ("tables/0000000-0002048.numbers", 5),
            ("tables/0000000-0002048.events", 7),
            ("tables/0002048-0002304.numbers", 11),
            ("tables/0002048.log", 13),
            ("tables/0002304.log", 17),
            ("tables/commit", 19),
            ("coinstats/stats.log", 23),
        ] {
            files.add(Path::new(name), bytes);
        }
        let (blocks, tables) = files.largest().unwrap();
        assert_eq!((blocks, tables["numbers"], tables["events"]), (2_048, 5, 7));
        assert_eq!((files.unsealed(2_048), files.unsealed(2_304)), (41, 30));
        assert_eq!((files.others["stats.log"], files.others["commit"]), (23, 19));
    }
}
