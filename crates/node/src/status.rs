//! `chainstate/status.json`: the state of the node, for `lydian info`, which reads it without a lock. Input: the last
//! tip and the figures of the run. Output: a small file, replaced as a whole every few seconds and at the end. The node
//! itself reads only the figures of the last run, when it starts.

use crate::clock::now;
use crate::display::Figures;
use crate::limits::STATUS_SIZE_MAX;
use crate::screen::commas;
use lydian_curve::{Engine, Refereed, Reference};
use lydian_disk::format::{Format, MOVE_AWAY, NewerFormat, NumberPlace};
use lydian_disk::{Disk, DiskError, DiskErrorKind, OwnDir, OwnFile, Proof, read_whole};
use lydian_engine::{FollowerInfo, ReviewCounts, Stage, Standing, TipUpdate};
use lydian_mempool::Mempool;
use lydian_mempool::policy::FeeRate;
use lydian_second_opinion::Counts;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

pub(crate) const FILE: &str = "status.json";

/// The file, in `chainstate`.
pub(crate) const STATUS_FILES: &[OwnFile] = &[OwnFile { name: FILE, proof: Proof::Directory }];

/// Version of the file format: changes when a field changes its meaning or is removed.
/// The format of the file.
pub(crate) const STATUS_FORMAT: Format =
    Format { number: 1, oldest: 1, place: NumberPlace::Json, otherwise: MOVE_AWAY };

const FORMAT: u32 = STATUS_FORMAT.number;

/// The contents of the file, and part of what `lydian info --json` prints (docs/formats/info-json.md).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Status {
    pub(crate) format: u32,
    /// Version of the program that wrote it.
    pub(crate) lydian: String,
    pub(crate) chain: String,
    pub(crate) tip: String,
    pub(crate) height: u32,
    /// Height of the best header.
    pub(crate) headers: u32,
    /// Of the tip's header, in seconds since 1970.
    pub(crate) time: u32,
    /// Work of the chain up to the tip, 64 hexadecimal digits.
    pub(crate) chain_work: String,
    pub(crate) transactions: Option<u64>,
    pub(crate) coins: u64,
    /// Memory used by coins.
    pub(crate) cache_bytes: u64,
    pub(crate) verification_progress: f64,
    /// The height up to which everything is durable on disk.
    pub(crate) durable_height: Option<u32>,
    /// When it was written, in seconds since 1970.
    pub(crate) updated: u32,
    /// Figures of the last run that validated something.
    pub(crate) run: Option<Run>,
    /// The signature engine of the process that wrote the file.
    #[serde(default)]
    pub(crate) signature_engine: Option<SignatureEngine>,
    /// The indexes of the process that wrote the file.
    #[serde(default)]
    pub(crate) indexes: Vec<IndexStatus>,
    /// The counts of `-secondopinion` of the process that wrote the file; `None` without it.
    #[serde(default)]
    pub(crate) second_opinion: Option<SecondOpinionStatus>,
    /// The mempool of the process that wrote the file.
    #[serde(default)]
    pub(crate) mempool: Option<MempoolStatus>,
}

/// The mempool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MempoolStatus {
    pub(crate) transactions: u64,
    /// The sum of virtual sizes.
    pub(crate) vbytes: u64,
    /// What `-maxmempool` limits.
    pub(crate) usage_bytes: u64,
    /// What a transaction must pay now, in satoshi per 1,000 virtual bytes.
    pub(crate) min_fee: i64,
}

impl MempoolStatus {
    pub(crate) fn of(mempool: &Mempool) -> MempoolStatus {
        let snapshot = mempool.snapshot();
        let info = snapshot.info();
        MempoolStatus {
            transactions: snapshot.len() as u64,
            vbytes: info.vsize,
            usage_bytes: info.usage,
            min_fee: info.min_fee.max(mempool.settings().min_relay_fee).fee_per_kvb(),
        }
    }

    /// Such as `12 transactions, 0.1 MvB, minimum fee 0.100 sat/vB`.
    pub(crate) fn sentence(&self) -> String {
        let (count, fee) = (commas(self.transactions), FeeRate::per_kvb(self.min_fee).to_sat_per_vb());
        let transactions = if self.transactions == 1 { "transaction" } else { "transactions" };
        let size = match self.vbytes {
            vbytes if vbytes < 1_000_000 => format!("{:.1} kvB", vbytes as f64 / 1e3),
            vbytes => format!("{:.1} MvB", vbytes as f64 / 1e6),
        };
        format!("{count} {transactions}, {size}, minimum fee {fee}")
    }
}

/// The numbers of blocks that the code of Bitcoin Core verified again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SecondOpinionStatus {
    pub(crate) blocks_at_tip: u64,
    pub(crate) blocks_sampled: u64,
    /// Blocks of both that it rejects.
    pub(crate) rejected: u64,
    /// Blocks that it could not verify.
    pub(crate) failed: u64,
    /// Blocks at the tip that were not verified.
    pub(crate) left_out: u64,
}

impl From<Counts> for SecondOpinionStatus {
    fn from(counts: Counts) -> SecondOpinionStatus {
        SecondOpinionStatus {
            blocks_at_tip: counts.tip,
            blocks_sampled: counts.sampled,
            rejected: counts.rejected,
            failed: counts.failed,
            left_out: counts.left_out,
        }
    }
}

impl SecondOpinionStatus {
    /// A description that fits into a table.
    pub(crate) fn sentence(&self) -> String {
        let (tip, sampled) = (commas(self.blocks_at_tip), commas(self.blocks_sampled));
        let mut sentence = format!("{tip} blocks at the tip and {sampled} of the sync verified by the code of Core");
        let others = [(self.rejected, "REJECTED"), (self.failed, "failed"), (self.left_out, "left out")];
        for (count, word) in others.into_iter().filter(|(count, _)| *count > 0) {
            sentence += &format!(", {} {word}", commas(count));
        }
        sentence
    }
}

/// An index, as in `getindexinfo`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct IndexStatus {
    pub(crate) name: String,
    /// The last block that it has; `None` before the genesis block.
    pub(crate) height: Option<u32>,
    #[serde(default)]
    pub(crate) hash: Option<String>,
    pub(crate) is_synced: bool,
    /// Why it is stopped.
    pub(crate) error: Option<String>,
}

impl From<FollowerInfo> for IndexStatus {
    fn from(info: FollowerInfo) -> IndexStatus {
        IndexStatus {
            name: info.name,
            height: info.tip.map(|tip| tip.height.0),
            hash: info.tip.map(|tip| tip.hash.to_string()),
            is_synced: info.standing == Standing::InStep,
            error: info.error,
        }
    }
}

impl IndexStatus {
    /// One for each of the names that share a follower, or itself.
    pub(crate) fn by_names(self, shared: Option<&(&'static str, Vec<&'static str>)>) -> Vec<IndexStatus> {
        match shared {
            Some((follower, names)) if *follower == self.name => {
                names.iter().map(|name| IndexStatus { name: (*name).to_owned(), ..self.clone() }).collect()
            }
            _ => vec![self],
        }
    }

    pub(crate) fn unopened(name: &str, reason: &str) -> IndexStatus {
        IndexStatus {
            name: name.to_owned(),
            height: None,
            hash: None,
            is_synced: false,
            error: Some(reason.to_owned()),
        }
    }

    /// A description that fits into a table.
    pub(crate) fn sentence(&self) -> String {
        format!("{}: {}", self.name, self.state())
    }

    /// The same without the name.
    pub(crate) fn state(&self) -> String {
        let height =
            self.height.map_or_else(|| "no block".to_owned(), |height| format!("height {}", commas(height.into())));
        match &self.error {
            Some(error) => format!("stopped at {height}: {error}"),
            None if self.is_synced => format!("at {height}"),
            None => format!("being built, at {height}"),
        }
    }
}

/// A kernel and the results of its referee.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SignatureEngine {
    pub(crate) kernel: String,
    /// Whether its verdicts still count.
    pub(crate) is_trusted: bool,
    /// Checks that the reference made again.
    pub(crate) sampled: u64,
    pub(crate) reviewed: u64,
    pub(crate) disagreements: u64,
    /// Blocks at the tip that the reference verified in full, and those of which it verified only the sample.
    pub(crate) blocks_reviewed: u64,
    pub(crate) blocks_sampled: u64,
}

impl SignatureEngine {
    pub(crate) fn new(referee: &Refereed, reviews: ReviewCounts) -> SignatureEngine {
        let counts = referee.counts();
        SignatureEngine {
            kernel: referee.kernel().name().to_owned(),
            is_trusted: referee.is_trusted(),
            sampled: counts.sampled,
            reviewed: counts.reviewed,
            disagreements: counts.disagreements,
            blocks_reviewed: reviews.blocks,
            blocks_sampled: reviews.demoted,
        }
    }

    /// A description that fits into a table.
    pub(crate) fn sentence(&self) -> String {
        let name = &self.kernel;
        if name == Reference.name() {
            return "libsecp256k1".to_owned();
        }
        if !self.is_trusted {
            return format!("{name} WAS WRONG {} times; libsecp256k1 decides", commas(self.disagreements));
        }
        format!("{name}; libsecp256k1 agrees on {} of its checks", commas(self.sampled + self.reviewed))
    }
}

/// The work of a run and its cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) wall_seconds: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) workers: usize,
    pub(crate) blocks: u64,
    pub(crate) inputs: u64,
    pub(crate) signatures: u64,
    pub(crate) stages: Vec<StageSeconds>,
}

/// Of all workers together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StageSeconds {
    pub(crate) stage: String,
    pub(crate) wall_seconds: f64,
    pub(crate) cpu_seconds: f64,
}

impl Status {
    pub(crate) fn new(chain: &str, tip: &TipUpdate, headers: u32, verification_progress: f64) -> Status {
        Status {
            format: FORMAT,
            lydian: env!("CARGO_PKG_VERSION").to_owned(),
            chain: chain.to_owned(),
            tip: tip.hash.to_string(),
            height: tip.height.0,
            headers: headers.max(tip.height.0),
            time: tip.header.time,
            chain_work: tip.chain_work.to_string(),
            transactions: Some(tip.transactions),
            coins: tip.coins,
            cache_bytes: tip.cache_bytes,
            verification_progress,
            durable_height: None,
            updated: now(),
            run: None,
            signature_engine: None,
            indexes: Vec::new(),
            second_opinion: None,
            mempool: None,
        }
    }

    pub(crate) fn read(disk: &dyn Disk, directory: &Path) -> Result<Status, StatusError> {
        let (mut path, old_path) = (path(directory), directory.join(FILE));
        let mut bytes = read_whole(disk, &path, STATUS_SIZE_MAX);
        // Until a node of this version has run, the file of Lydian before 0.1.0 is still at its old place.
        if matches!(&bytes, Err(error) if error.kind == DiskErrorKind::NotFound) && disk.kind(&old_path).is_ok() {
            bytes = read_whole(disk, &old_path, STATUS_SIZE_MAX);
            path = old_path;
        }
        let bytes = bytes.map_err(StatusError::Disk)?;
        let status: Status = match serde_json::from_slice(&bytes) {
            Ok(status) => status,
            Err(error) => return Err(StatusError::Damaged { path, reason: error.to_string() }),
        };
        match STATUS_FORMAT.newer(path, status.format) {
            None => Ok(status),
            Some(error) => Err(StatusError::Newer(error)),
        }
    }

    pub(crate) fn write(&self, disk: &dyn Disk, directory: &Path) -> Result<(), DiskError> {
        let mut text = match serde_json::to_string_pretty(self) {
            Ok(text) => text,
            Err(error) => unreachable!("structures of numbers and texts are JSON: {error}"),
        };
        text.push('\n');
        let path = path(directory);
        OwnDir::of(&path, STATUS_FILES).replace(disk, &path, text.as_bytes())
    }
}

/// Why the status cannot be read.
#[derive(Debug)]
pub(crate) enum StatusError {
    Disk(DiskError),
    /// `reason` is the message of the JSON parser.
    Damaged {
        path: PathBuf,
        reason: String,
    },
    Newer(NewerFormat),
}

impl fmt::Display for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(error) => error.fmt(f),
            Self::Damaged { path, reason } => {
                write!(f, "{}: {reason}; it is rewritten when a node runs", path.display())
            }
            Self::Newer(error) => error.fmt(f),
        }
    }
}

fn path(directory: &Path) -> PathBuf {
    directory.join("chainstate").join(FILE)
}

impl Run {
    pub(crate) fn new(figures: &Figures) -> Run {
        let stage = |stage: &crate::display::StageFigures| StageSeconds {
            stage: Stage::name(stage.stage).to_owned(),
            wall_seconds: stage.wall_seconds,
            cpu_seconds: stage.cpu_seconds,
        };
        Run {
            wall_seconds: figures.wall_seconds,
            cpu_seconds: figures.cpu_seconds,
            workers: figures.workers,
            blocks: figures.blocks,
            inputs: figures.inputs,
            signatures: figures.signatures(),
            stages: figures.stages.iter().filter(|stage| stage.wall_seconds > 0.0).map(stage).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_disk::SimDisk;

    #[test]
    fn a_mempool_is_a_sentence() {
        let sentence =
            |transactions, vbytes| MempoolStatus { transactions, vbytes, usage_bytes: 0, min_fee: 1_234 }.sentence();
        assert_eq!(sentence(1, 141), "1 transaction, 0.1 kvB, minimum fee 1.234 sat/vB");
        assert_eq!(sentence(12_345, 4_321_000), "12,345 transactions, 4.3 MvB, minimum fee 1.234 sat/vB");
    }

    #[test]
    fn a_second_opinion_is_a_sentence() {
        let good = SecondOpinionStatus { blocks_at_tip: 1_234, blocks_sampled: 5, ..SecondOpinionStatus::default() };
        assert_eq!(good.sentence(), "1,234 blocks at the tip and 5 of the sync verified by the code of Core");
        let bad = SecondOpinionStatus { rejected: 1, failed: 2, left_out: 3, ..good };
        assert_eq!(bad.sentence(), good.sentence() + ", 1 REJECTED, 2 failed, 3 left out");
    }

    /// limit: STATUS_SIZE_MAX at
    /// limit: STATUS_SIZE_MAX above
    #[test]
    fn a_status_has_a_greatest_size_and_a_format() {
        let disk = SimDisk::new(0);
        let status = |format| Status {
            format,
            lydian: String::new(),
            chain: "regtest".into(),
            tip: String::new(),
            height: 7,
            headers: 8,
            time: 0,
            chain_work: String::new(),
            transactions: None,
            coins: 1,
            cache_bytes: 0,
            verification_progress: 0.5,
            durable_height: Some(3),
            updated: 9,
            run: None,
            signature_engine: Some(SignatureEngine { kernel: "avx2".into(), is_trusted: true, ..Default::default() }),
            indexes: Vec::new(),
            second_opinion: Some(SecondOpinionStatus { rejected: 2, ..SecondOpinionStatus::default() }),
            mempool: Some(MempoolStatus { transactions: 1, vbytes: 141, usage_bytes: 1_000, min_fee: 100 }),
        };
        let root = Path::new("/");
        disk.create_dir(&root.join("chainstate")).unwrap();
        status(FORMAT).write(&disk, root).unwrap();
        assert_eq!(Status::read(&disk, root).unwrap(), status(FORMAT));
        status(FORMAT + 1).write(&disk, root).unwrap();
        assert!(matches!(Status::read(&disk, root), Err(StatusError::Newer(NewerFormat { found: 2, .. }))));
        let text = serde_json::to_string(&status(FORMAT)).unwrap();
        let earlier = text.replace(&text[text.find(",\"signature_engine\"").unwrap()..], "}");
        disk.write_whole(&path(root), earlier.as_bytes()).unwrap();
        let earlier = Status::read(&disk, root).unwrap();
        assert_eq!((earlier.signature_engine, earlier.second_opinion), (None, None), "a status of an earlier version");
        assert_eq!(earlier.mempool, None);
        for (size, is_read) in [(STATUS_SIZE_MAX, true), (STATUS_SIZE_MAX + 1, false)] {
            let padded = text.clone() + &" ".repeat(usize::try_from(size).unwrap() - text.len());
            disk.write_whole(&path(root), padded.as_bytes()).unwrap();
            assert_eq!(Status::read(&disk, root).is_ok(), is_read);
        }
        disk.write_whole(&path(root), b"{}").unwrap();
        assert!(matches!(Status::read(&disk, root), Err(StatusError::Damaged { .. })));
    }
}
