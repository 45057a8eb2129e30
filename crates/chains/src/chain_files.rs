//! A chain as block files: what it is, where it ends, and what its UTXO set must be.
//!
//! Input: a folder with `blk?????.dat`, optionally `xor.dat`, optionally the lab's `stats.json`. Output: network, hash
//! of the data, height and tip; for chains of the lab also the answer that every node must give, computed here from
//! nothing but the blocks. Cost: one pass over the files; for the answer, a pass for each 25 million coins of the UTXO
//! set, and about 5 GB of memory. Must never: change the folder, or validate a block: an answer is computed only for
//! chains known to be valid.

use crate::answer::{Sum, UtxoSet, Walk, parts};
use crate::error::ChainsError;
use crate::limits::CHAIN_FILE_SIZE_MAX;
use lydian_consensus::params::{Chain, Params};
use lydian_disk::{Disk, PathKind, RealDisk, read_whole};
use lydian_hash::Sha256;
use lydian_primitives::{BlockHash, Header};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

const HEADER_SIZE: usize = 80;
/// The file with the key that masks the block files.
const XOR_KEY: &str = "xor.dat";
const XOR_KEY_SIZE: usize = 8;
/// For an answer, so many coins are in memory at a time: about 5 GB.
const COINS_AT_ONCE: u64 = 25_000_000;

/// The networks by the magic of their block files, with Core's options for them.
const NETWORKS: &[Network] = &[
    Network { magic: [0xfa, 0xbf, 0xb5, 0xda], name: "regtest", folder: "regtest" },
    Network { magic: [0xf9, 0xbe, 0xb4, 0xd9], name: "main", folder: "" },
    Network { magic: [0x0b, 0x11, 0x09, 0x07], name: "test", folder: "testnet3" },
    Network { magic: [0x1c, 0x16, 0x3f, 0x28], name: "testnet4", folder: "testnet4" },
    Network { magic: [0x0a, 0x03, 0xcf, 0x40], name: "signet", folder: "signet" },
];

#[derive(Debug, PartialEq, Eq)]
pub struct Network {
    magic: [u8; 4],
    /// The value of `-chain=`.
    pub name: &'static str,
    /// Subfolder of the data directory; empty for the main network.
    pub folder: &'static str,
}

impl Network {
    /// The bytes before each message of the network and before each block in its files.
    pub fn magic(&self) -> [u8; 4] {
        self.magic
    }

    pub fn genesis_hash(&self) -> BlockHash {
        let chain = Chain::ALL.into_iter().find(|chain| chain.name() == self.name).unwrap_or(Chain::Main);
        Params::new(chain).genesis_hash
    }
}

/// Names of the networks, for messages.
pub fn network_names() -> Vec<&'static str> {
    NETWORKS.iter().map(|network| network.name).collect()
}

/// Finds a network by its `-chain=` name.
pub fn network(name: &str) -> Option<&'static Network> {
    NETWORKS.iter().find(|network| network.name == name)
}

/// What is known about a chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// SHA-256 over the names, sizes and contents of the block files, in the order of their names.
    pub sha256: String,
    pub file_bytes: u64,
    pub height: u32,
    pub tip: String,
    /// Empty for files that the lab did not generate.
    pub stats: StatsFile,
}

/// The state that every node must reach with the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub height: u32,
    pub tip: String,
    pub coins: Option<u64>,
    /// Core's `hash_serialized_3`, as displayed.
    pub utxo_hash: Option<String>,
}

impl From<UtxoSet> for Answer {
    fn from(set: UtxoSet) -> Answer {
        let UtxoSet { height, tip, coins, hash } = set;
        Answer { height, tip: tip.to_string(), coins: Some(coins), utxo_hash: Some(hash.to_string()) }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "height {}, tip {}", self.height, self.tip)?;
        if let Some(hash) = &self.utxo_hash {
            write!(f, ", UTXO hash {hash}")?;
        }
        self.coins.map_or(Ok(()), |coins| write!(f, ", {coins} coins"))
    }
}

/// The numbers of a chain's checks, as Bitcoin Core makes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CheckCounts {
    pub ecdsa: u64,
    pub schnorr: u64,
    pub tweaks: u64,
}

/// A chain in block files.
#[derive(Debug)]
pub struct ChainFiles {
    /// Block files in the order of their names, then `xor.dat` if it exists.
    pub files: Vec<PathBuf>,
    pub network: &'static Network,
    pub facts: Facts,
    /// The latest header time, in seconds since 1970.
    pub last_time: u32,
    /// Total bytes of the blocks up to each height of the highest branch: a better measure of progress than the height.
    pub bytes_at: Vec<u64>,
    /// `None` for files that the lab did not generate and for chains with branches.
    pub answer: Option<Answer>,
}

/// The fields used from `stats.json`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct StatsFile {
    pub preset: Option<String>,
    tip: Option<String>,
    height: Option<u32>,
    coins: Option<u64>,
    pub transactions: Option<u64>,
    pub inputs: Option<u64>,
    pub outputs: Option<u64>,
    pub ecdsa_verifications: Option<u64>,
    pub schnorr_verifications: Option<u64>,
    pub tweak_checks: Option<u64>,
}

impl ChainFiles {
    /// Reads all files. `known` is an answer computed earlier for the same files.
    pub fn open(folder: &Path, known: Option<Answer>) -> Result<ChainFiles, ChainsError> {
        ChainFiles::open_by(folder, known, COINS_AT_ONCE)
    }

    /// `at_once`: how many coins of the answer are in memory at a time.
    fn open_by(folder: &Path, known: Option<Answer>, at_once: u64) -> Result<ChainFiles, ChainsError> {
        let files = files_of(folder)?;
        let stats = stats_of(folder)?;
        let key = xor_key(folder)?;
        let asked = stats.as_ref().filter(|_| known.is_none());
        let mut later = asked.map_or(Vec::new(), |stats| parts(stats.coins.unwrap_or(0), at_once)).into_iter();
        let mut scan = Scan::new(later.next().map(Walk::new));
        for path in files.iter().filter(|path| !path.ends_with(XOR_KEY)) {
            scan.read(path, &key)?;
        }
        let network = scan.network.ok_or_else(|| not_a_chain(folder))?;
        let sha256 = lydian_primitives::to_hex(&scan.hasher.finalize());
        let mut sum = scan.walk.map(|walk| Sum::default().add(walk));
        for part in later {
            let Some(so_far) = sum else { break };
            let mut walk = Some(Walk::new(part));
            each_block(&files, &key, network.magic, &mut |block| {
                walk = walk.take().and_then(|walk| walk.connect(block));
                Ok(())
            })?;
            sum = walk.map(|walk| so_far.add(walk));
        }
        let computed = sum.and_then(Sum::finish).map(Answer::from);
        let (best_height, best_tip) = scan.tree.best().ok_or_else(|| not_a_chain(folder))?;
        let bytes_at = scan.tree.bytes_to(best_tip);
        let stats = stats.unwrap_or_default();
        let facts = Facts {
            sha256,
            file_bytes: scan.bytes,
            height: stats.height.unwrap_or(best_height),
            tip: stats.tip.clone().unwrap_or_else(|| best_tip.to_string()),
            stats,
        };
        let answer = known.or(computed);
        check_stats(folder, &facts, answer.as_ref())?;
        Ok(ChainFiles { files, network, facts, last_time: scan.last_time, bytes_at, answer })
    }

    /// Passes the bytes of every block to `visit`, in the order of the files.
    pub fn each_block(&self, visit: &mut dyn FnMut(&[u8]) -> Result<(), ChainsError>) -> Result<(), ChainsError> {
        let folder = self.files.first().and_then(|file| file.parent()).unwrap_or(Path::new("."));
        each_block(&self.files, &xor_key(folder)?, self.network.magic, visit)
    }
}

fn each_block(
    files: &[PathBuf],
    key: &[u8],
    magic: [u8; 4],
    visit: &mut dyn FnMut(&[u8]) -> Result<(), ChainsError>,
) -> Result<(), ChainsError> {
    for path in files.iter().filter(|path| !path.ends_with(XOR_KEY)) {
        let mut bytes = read_whole(&RealDisk, path, CHAIN_FILE_SIZE_MAX)?;
        unhide(&mut bytes, key);
        (Records { bytes: &bytes, magic }).try_for_each(&mut *visit)?;
    }
    Ok(())
}

/// The number of checks of the chain in this folder, from its `stats.json`.
pub fn check_counts(folder: &Path) -> Result<CheckCounts, ChainsError> {
    let stats = stats_of(folder)?.unwrap_or_default();
    match (stats.ecdsa_verifications, stats.schnorr_verifications, stats.tweak_checks) {
        (Some(ecdsa), Some(schnorr), Some(tweaks)) => Ok(CheckCounts { ecdsa, schnorr, tweaks }),
        _ => Err(ChainsError::Usage(format!("{}: no stats.json with the checks of a chain", folder.display()))),
    }
}

/// Fails if the statistics beside a chain contradict its blocks.
fn check_stats(folder: &Path, facts: &Facts, answer: Option<&Answer>) -> Result<(), ChainsError> {
    let Some(answer) = answer else { return Ok(()) };
    let coins = facts.stats.coins;
    let is_same =
        (answer.height, &answer.tip) == (facts.height, &facts.tip) && (coins.is_none() || coins == answer.coins);
    if is_same {
        return Ok(());
    }
    let text = format!("{}: stats.json does not belong to these blocks, which end with {answer}", folder.display());
    Err(ChainsError::Usage(text))
}

fn not_a_chain(folder: &Path) -> ChainsError {
    ChainsError::Usage(format!("{} holds no block files of a network we know", folder.display()))
}

fn block_files(folder: &Path) -> Result<Vec<PathBuf>, ChainsError> {
    let is_block_file = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        let number = name.strip_prefix("blk").and_then(|rest| rest.strip_suffix(".dat")).unwrap_or("");
        number.len() >= 5 && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    let entries = RealDisk.list(folder)?;
    let mut files: Vec<PathBuf> = entries
        .into_iter()
        .filter(|(path, kind)| *kind == PathKind::File && is_block_file(path))
        .map(|(path, _)| path)
        .collect();
    files.sort();
    if files.is_empty() { Err(not_a_chain(folder)) } else { Ok(files) }
}

fn stats_of(folder: &Path) -> Result<Option<StatsFile>, ChainsError> {
    let path = folder.join("stats.json");
    if RealDisk.kind(&path).is_err() {
        return Ok(None);
    }
    let bytes = read_whole(&RealDisk, &path, CHAIN_FILE_SIZE_MAX)?;
    let parsed = serde_json::from_slice(&bytes);
    parsed.map(Some).map_err(|error| ChainsError::Usage(format!("{}: {error}", path.display())))
}

/// The block files of a folder in the order of their names, then `xor.dat` if it exists.
pub fn files_of(folder: &Path) -> Result<Vec<PathBuf>, ChainsError> {
    let mut files = block_files(folder)?;
    files.extend(Some(folder.join(XOR_KEY)).filter(|path| RealDisk.kind(path).is_ok()));
    Ok(files)
}

/// Empty if the files are not obfuscated.
fn xor_key(folder: &Path) -> Result<Vec<u8>, ChainsError> {
    let path = folder.join(XOR_KEY);
    if RealDisk.kind(&path).is_err() {
        return Ok(Vec::new());
    }
    let key = read_whole(&RealDisk, &path, CHAIN_FILE_SIZE_MAX)?;
    if key.len() == XOR_KEY_SIZE {
        return Ok(key);
    }
    Err(ChainsError::Usage(format!("{} has {} bytes, not {XOR_KEY_SIZE}", path.display(), key.len())))
}

fn unhide(bytes: &mut [u8], key: &[u8]) {
    bytes.iter_mut().zip(key.iter().cycle()).for_each(|(byte, key)| *byte ^= key);
}

/// One pass over the files.
struct Scan {
    network: Option<&'static Network>,
    hasher: Sha256,
    bytes: u64,
    last_time: u32,
    tree: Tree,
    walk: Option<Walk>,
}

impl Scan {
    fn new(walk: Option<Walk>) -> Scan {
        Scan { network: None, hasher: Sha256::new(), bytes: 0, last_time: 0, tree: Tree::default(), walk }
    }

    fn read(&mut self, path: &Path, key: &[u8]) -> Result<(), ChainsError> {
        let mut bytes = read_whole(&RealDisk, path, CHAIN_FILE_SIZE_MAX)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        self.hasher.update(name.as_bytes()).update(&[0]).update(&(bytes.len() as u64).to_le_bytes()).update(&bytes);
        self.bytes += bytes.len() as u64;
        unhide(&mut bytes, key);
        let magic = bytes.first_chunk::<4>().copied().unwrap_or_default();
        let found = NETWORKS.iter().find(|network| network.magic == magic);
        self.network = self.network.or(found);
        let Some(network) = self.network else { return Ok(()) };
        for block in (Records { bytes: &bytes, magic: network.magic }) {
            self.take(block);
        }
        Ok(())
    }

    fn take(&mut self, block: &[u8]) {
        let Some(header) = block.first_chunk::<HEADER_SIZE>() else { return };
        let header = Header::parse(header);
        self.last_time = self.last_time.max(header.time);
        self.tree.add(&header, block.len() as u64);
        if let Some(walk) = self.walk.take() {
            self.walk = walk.connect(block);
        }
    }
}

/// Iterates over the blocks of a file: magic, length, block. Anything else in between is skipped.
struct Records<'a> {
    bytes: &'a [u8],
    magic: [u8; 4],
}

impl<'a> Iterator for Records<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            let (magic, rest) = self.bytes.split_first_chunk::<4>()?;
            if *magic != self.magic {
                let skip = self.bytes.iter().skip(1).position(|&byte| byte == self.magic[0])? + 1;
                self.bytes = self.bytes.get(skip..)?;
                continue;
            }
            let (size, rest) = rest.split_first_chunk::<4>()?;
            let size = usize::try_from(u32::from_le_bytes(*size)).ok()?;
            let Some((block, after)) = rest.split_at_checked(size) else {
                self.bytes = rest;
                continue;
            };
            self.bytes = after;
            return Some(block);
        }
    }
}

/// Headers by hash. The tip is the highest block, the first seen if several are equally high. (Work is not added up:
/// chains of others on one network hardly differ in it.)
#[derive(Default)]
struct Tree {
    /// The parent and the size of each block in bytes.
    blocks: HashMap<BlockHash, (BlockHash, u64)>,
    order: Vec<BlockHash>,
}

impl Tree {
    fn add(&mut self, header: &Header, bytes: u64) {
        let hash = header.hash();
        if self.blocks.insert(hash, (header.prev_block, bytes)).is_none() {
            self.order.push(hash);
        }
    }

    /// The cumulative block sizes of the branch that ends at `tip`, from the genesis block on.
    fn bytes_to(&self, tip: BlockHash) -> Vec<u64> {
        let mut sizes = Vec::new();
        let mut at = tip;
        while let Some(&(parent, bytes)) = self.blocks.get(&at) {
            sizes.push(bytes);
            at = parent;
        }
        let mut sum = 0;
        let mut sums: Vec<u64> = sizes.into_iter().rev().collect();
        sums.iter_mut().for_each(|bytes| {
            sum += *bytes;
            *bytes = sum;
        });
        sums
    }

    /// Height and hash; heights count from the genesis block, the one with an all-zero parent.
    fn best(&self) -> Option<(u32, BlockHash)> {
        let mut heights: HashMap<BlockHash, Option<u32>> = HashMap::new();
        let mut best: Option<(u32, BlockHash)> = None;
        for &hash in &self.order {
            let mut path = Vec::new();
            let mut at = hash;
            let base = loop {
                if let Some(&known) = heights.get(&at) {
                    break known;
                }
                path.push(at);
                match self.blocks.get(&at) {
                    Some((parent, _)) if parent.0 == [0; 32] => break Some(u32::MAX),
                    Some(&(parent, _)) => at = parent,
                    None => break None,
                }
            };
            // One below the genesis block, so that adding one yields its height.
            let mut height = base;
            for &hash in path.iter().rev() {
                height = height.map(|height| height.wrapping_add(1));
                heights.insert(hash, height);
            }
            if let Some(height) = heights.get(&hash).copied().flatten()
                && best.is_none_or(|(highest, _)| height > highest)
            {
                best = Some((height, hash));
            }
        }
        best
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests read and write their own files")]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_the_magic_and_the_genesis_block_of_its_parameters() {
        for chain in Chain::ALL {
            let (params, network) = (Params::new(chain), network(chain.name()).unwrap());
            assert_eq!((network.magic(), network.genesis_hash()), (params.magic, params.genesis_hash));
        }
        assert_eq!(network_names().len(), Chain::ALL.len());
    }

    use crate::presets::{empty, mainnet_mix, reorg};

    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("lydian-chains-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        folder
    }

    #[test]
    fn our_chains_contain_their_expected_answer() {
        let folder = scratch("chain-mix");
        let settings = crate::plan::MixSettings { blocks: 434, full: 1, seed: 3, reuse_per_mille: 0 };
        let stats = mainnet_mix::write(settings, 2, &folder).unwrap();
        let chain = ChainFiles::open(&folder, None).unwrap();
        let answer = chain.answer.clone().unwrap();
        assert_eq!((answer.height, &answer.tip, answer.coins), (stats.height, &stats.tip, Some(stats.coins)));
        for at_once in [1, stats.coins / 3] {
            let in_parts = ChainFiles::open_by(&folder, None, at_once).unwrap();
            assert_eq!(in_parts.answer.as_ref(), Some(&answer), "{at_once} at once");
        }
        assert_eq!((chain.network.name, chain.facts.stats.inputs), ("regtest", Some(stats.inputs)));
        assert_eq!(chain.facts.file_bytes, stats.file_bytes);
        // The same blocks obfuscated and without statistics: the tip is found, but no answer is computed.
        let path = folder.join("blk00000.dat");
        let mut bytes = std::fs::read(&path).unwrap();
        let key = [1, 2, 3, 4, 5, 6, 7, 8];
        bytes.iter_mut().zip(key.iter().cycle()).for_each(|(byte, key)| *byte ^= key);
        std::fs::write(&path, bytes).unwrap();
        std::fs::write(folder.join("xor.dat"), key).unwrap();
        std::fs::remove_file(folder.join("stats.json")).unwrap();
        let hidden = ChainFiles::open(&folder, None).unwrap();
        assert_eq!((hidden.facts.height, hidden.facts.tip), (stats.height, stats.tip));
        assert_eq!((hidden.answer, hidden.facts.stats.inputs), (None, None));
        assert_ne!(hidden.facts.sha256, chain.facts.sha256);
        assert_eq!(hidden.files.len(), 2);
        std::fs::write(folder.join("xor.dat"), [1]).unwrap();
        assert!(ChainFiles::open(&folder, None).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_chain_with_branches_has_its_tip_from_the_statistics() {
        let folder = scratch("chain-reorg");
        reorg::write(&folder).unwrap();
        let chain = ChainFiles::open(&folder, None).unwrap();
        let stats = stats_of(&folder).unwrap().unwrap();
        assert_eq!((Some(chain.facts.tip), Some(chain.facts.height)), (stats.tip, stats.height));
        assert_eq!(chain.answer, None);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn statistics_of_another_chain_are_noticed() {
        let (folder, other) = (scratch("chain-a"), scratch("chain-b"));
        empty::write(3, &folder).unwrap();
        empty::write(4, &other).unwrap();
        std::fs::copy(other.join("stats.json"), folder.join("stats.json")).unwrap();
        assert!(ChainFiles::open(&folder, None).unwrap_err().to_string().contains("does not belong"));
        std::fs::write(folder.join("blk00000.dat"), b"something else entirely").unwrap();
        assert!(ChainFiles::open(&folder, None).unwrap_err().to_string().contains("no block files"));
        std::fs::remove_file(folder.join("blk00000.dat")).unwrap();
        assert!(ChainFiles::open(&folder, None).unwrap_err().to_string().contains("no block files"));
        std::fs::remove_dir_all(&folder).unwrap();
        std::fs::remove_dir_all(&other).unwrap();
    }

    /// limit: CHAIN_FILE_SIZE_MAX at
    /// limit: CHAIN_FILE_SIZE_MAX above
    #[test]
    fn a_block_file_has_a_limit() {
        let folder = scratch("chain-size");
        empty::write(2, &folder).unwrap();
        let file = std::fs::OpenOptions::new().append(true).open(folder.join("blk00000.dat")).unwrap();
        // As Core preallocates: nothing after the last block.
        file.set_len(CHAIN_FILE_SIZE_MAX).unwrap();
        assert_eq!(ChainFiles::open(&folder, None).unwrap().answer.unwrap().height, 2);
        file.set_len(CHAIN_FILE_SIZE_MAX + 1).unwrap();
        assert!(matches!(ChainFiles::open(&folder, None), Err(ChainsError::Disk(_))));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn records_are_found_behind_rubbish_and_never_beyond_the_end() {
        let magic = NETWORKS[0].magic;
        let record = |size: u32, bytes: &[u8]| [&magic, &size.to_le_bytes()[..], bytes].concat();
        let bytes = [&record(3, b"one")[..], &[0xfa, 0xbf, 0], &record(3, b"two"), &record(9, b"short")].concat();
        let found: Vec<&[u8]> = Records { bytes: &bytes, magic }.collect();
        assert_eq!(found, [b"one", b"two"]);
        assert_eq!(Records { bytes: &[], magic }.count(), 0);
    }
}
