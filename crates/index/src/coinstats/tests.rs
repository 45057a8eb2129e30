use super::*;
use crate::faults::{crash_everywhere, full_everywhere};
use lydian_chains::presets::maker::{Maker, free_tx, output};
use lydian_consensus::{Chain, Params};
use lydian_disk::{SimDisk, read_whole};
use lydian_engine::{Engine, EngineError, Layout, Settings, Standing, Unobserved, UtxoHash};
use lydian_primitives::build::MutBlock;
use lydian_primitives::{Block, RawBlock};
use lydian_stdx::SplitMix64;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

const DIR: &str = "indexes/coinstats";

fn params() -> Params {
    Params::new(Chain::Regtest)
}

struct Node {
    engine: Engine,
    reader: CoinStatsReader,
}

fn open(disk: &SimDisk) -> Node {
    open_with(disk, true)
}

fn open_with(disk: &SimDisk, followers_required: bool) -> Node {
    let (index, reader) = CoinStatsIndex::open(Arc::new(disk.clone()), Path::new(DIR), &params()).unwrap();
    let layout = Layout { blocks: "blocks".into(), index: "blocks/index".into(), coins: "chainstate".into() };
    let settings = Settings { catch_up_blocks: 7, followers_required, ..Settings::new(2) };
    let opened = Engine::open(Arc::new(disk.clone()), &layout, params(), settings, vec![Box::new(index)]).unwrap();
    opened.engine.finish_catch_up();
    Node { engine: opened.engine, reader }
}

fn parse(block: &MutBlock) -> Block {
    RawBlock::new(block.encode()).parse().unwrap()
}

impl Node {
    fn accept(&self, block: &MutBlock) {
        self.engine.accept_block(parse(block), i64::from(u32::MAX), &Unobserved).unwrap().unwrap();
    }

    /// Compares the statistics of the tip with the sums over all coins.
    fn compare(&self) -> CoinStats {
        let summary = self.engine.coins_summary(UtxoHash::Muhash).unwrap();
        let stats = self.reader.at(summary.tip.height, &summary.tip.hash).unwrap().unwrap();
        assert_eq!((stats.height, stats.hash), (summary.tip.height, summary.tip.hash));
        assert_eq!((stats.coins, stats.bogosize), (summary.coins, summary.bogosize));
        assert_eq!((stats.total, Some(stats.muhash)), (summary.total, summary.hash));
        let everything = i128::from(stats.total.0) + i128::from(stats.unspendable().0);
        assert_eq!(everything, i128::from(stats.subsidy.0), "every coin of the subsidy is somewhere");
        assert_eq!(self.engine.followers()[0].standing, Standing::InStep);
        stats
    }
}

/// A chain whose coinbases can be spent, and its disk.
fn base() -> (Maker, SimDisk) {
    let disk = SimDisk::new(1);
    let node = open(&disk);
    let mut maker = Maker::new();
    let take = |_: &Maker, block: &MutBlock| -> std::io::Result<()> {
        node.accept(block);
        Ok(())
    };
    maker.grow(104, take).unwrap();
    node.engine.checkpoint(&Unobserved).unwrap();
    drop(node);
    (maker, disk.kill())
}

/// A block that spends some coins, makes an output that nothing can spend, and leaves a part of the reward.
fn block(maker: &Maker, random: &mut SplitMix64) -> MutBlock {
    let mut txs = Vec::new();
    for coin in maker.spendable().into_iter().take(random.below(3)) {
        let value = coin.value / 2;
        txs.push(free_tx(&[coin], vec![output(value, &[0x51]), output(value / 3, &[0x6a, 1, 7]), output(0, &[0x51])]));
    }
    let mut block = maker.template(txs);
    block.txs[0].outputs[0].value.0 -= i64::try_from(random.below(5_000)).unwrap();
    lydian_chains::presets::maker::seal(&mut block);
    block
}

/// Blocks, reorganisations, checkpoints, kills and losses of power in any order: the statistics of the tip are those of
/// its coins, and those of the blocks below stay what they were.
/// checklist: 97
#[test]
fn the_sums_of_every_block_stay_right() {
    let (maker, disk) = base();
    for seed in 0..6 {
        let mut random = SplitMix64::new(seed);
        let mut disk = disk.kill();
        let mut node = open(&disk);
        let mut maker = maker.clone();
        // By the tip that each one builds on.
        let mut makers = HashMap::from([(node.engine.tip().hash, maker.clone())]);
        let mut seen: HashMap<BlockHash, CoinStats> = HashMap::new();
        for step in 0..40 {
            match random.below(12) {
                0 => node.engine.checkpoint(&Unobserved).unwrap(),
                1 | 2 => {
                    let is_power = random.below(2) == 0;
                    drop(node);
                    disk = if is_power { disk.power_loss(random.next_u64()) } else { disk.kill() };
                    node = open(&disk);
                    node.engine.advance(&lydian_engine::Cancel::new(), &Unobserved).unwrap();
                }
                3 if node.engine.tip().height.0 > 106 => {
                    let height = Height(node.engine.tip().height.0 - u32::from(random.below(2) == 0));
                    let id = node.engine.header_info_at(height).unwrap().id;
                    node.engine.invalidate_block(id, &Unobserved).unwrap();
                }
                _ => {
                    let block = block(&maker, &mut random);
                    node.accept(&block);
                    maker.advance(&block);
                    makers.insert(block.header.hash(), maker.clone());
                }
            }
            maker = makers[&node.engine.tip().hash].clone();
            let stats = node.compare();
            assert_eq!(*seen.entry(stats.hash).or_insert(stats), stats, "seed {seed}, step {step}");
            for height in 104..=stats.height.0 {
                let hash = node.engine.hash_at(Height(height)).unwrap();
                let found = node.reader.at(Height(height), &hash).unwrap().unwrap();
                assert_eq!(found, *seen.entry(hash).or_insert(found), "seed {seed}, step {step}, height {height}");
            }
        }
        assert!(node.reader.at(Height(0), &params().genesis_hash).unwrap().is_some());
        assert_eq!(node.reader.at(Height(1), &BlockHash([7; 32])).unwrap(), None);
    }
}

/// A block that left the chain still has its statistics, also after a restart.
#[test]
fn a_stale_block_keeps_its_statistics() {
    let (mut maker, disk) = base();
    let node = open(&disk);
    let mut random = SplitMix64::new(5);
    let stale = block(&maker, &mut random);
    node.accept(&stale);
    let before = node.compare();
    let id = node.engine.tip_info().id;
    node.engine.invalidate_block(id, &Unobserved).unwrap();
    let other = block(&maker, &mut random);
    node.accept(&other);
    maker.advance(&other);
    assert_eq!(node.reader.at(before.height, &before.hash).unwrap(), Some(before));
    node.engine.checkpoint(&Unobserved).unwrap();
    drop(node);
    let node = open(&disk);
    assert_eq!(node.reader.at(before.height, &before.hash).unwrap(), Some(before));
    assert_ne!(node.compare(), before);
}

/// An index that is new in an old directory is made from the files, in legs of seven blocks, and is the same.
#[test]
fn it_catches_up_from_files() {
    let (mut maker, disk) = base();
    let node = open(&disk);
    let mut random = SplitMix64::new(9);
    for _ in 0..30 {
        let block = block(&maker, &mut random);
        node.accept(&block);
        maker.advance(&block);
    }
    node.engine.checkpoint(&Unobserved).unwrap();
    let before = node.compare();
    drop(node);
    for name in [LOG_FILE, TIP_FILE] {
        disk.remove_file(&Path::new(DIR).join(name)).unwrap();
    }
    assert_eq!(open(&disk).compare(), before);
    // The follower that was made in the background is durable after the next checkpoint.
    let node = open(&disk);
    node.engine.checkpoint(&Unobserved).unwrap();
    drop(node);
    let (index, _) = CoinStatsIndex::open(Arc::new(disk), Path::new(DIR), &params()).unwrap();
    assert_eq!(index.durable_tip(), Some(Tip { height: before.height, hash: before.hash }));
}

/// Files that are damaged, of a later version or of another chain are refused by name; the end of the log that no tip
/// file names is cut off.
#[test]
fn bad_files_are_named() {
    let (_, disk) = base();
    let (log, tip) = (Path::new(DIR).join(LOG_FILE), Path::new(DIR).join(TIP_FILE));
    let (log_bytes, tip_bytes) =
        (read_whole(&disk, &log, u64::MAX).unwrap(), read_whole(&disk, &tip, u64::MAX).unwrap());
    let open = |disk: &SimDisk| {
        CoinStatsIndex::open(Arc::new(disk.clone()), Path::new(DIR), &params()).map(|(index, _)| index.durable_tip())
    };
    let with = |path: &Path, bytes: &[u8]| {
        let disk = disk.kill();
        disk.write_whole(path, bytes).unwrap();
        open(&disk).map_err(|error| error.to_string())
    };
    let good = open(&disk).unwrap();
    assert_eq!(with(&log, &[&log_bytes[..], &[1; 100]].concat()), Ok(good));
    let delete = "delete indexes/coinstats to build the index anew";
    let mut flipped = log_bytes.clone();
    flipped[12_345] ^= 1;
    let place = 12_345 / 240 * 240;
    let text =
        format!("indexes/coinstats/stats.log:{place}: damaged: the checksum of a record does not match; {delete}");
    assert_eq!((log_bytes.len() % 240, with(&log, &flipped)), (0, Err(text)));
    let short = log_bytes.len() - 1;
    let text = format!("indexes/coinstats/stats.log:{short}: damaged: it is shorter than its tip file says; {delete}");
    assert_eq!(with(&log, &log_bytes[..short]), Err(text));
    let mut flipped = tip_bytes.clone();
    flipped[30] ^= 1;
    let text = format!("indexes/coinstats/stats.tip:0: damaged: its checksum does not match; {delete}");
    assert_eq!(with(&tip, &flipped), Err(text));
    let again = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut payload = tip_bytes[lydian_disk::record::RECORD_HEAD_SIZE..].to_vec();
        change(&mut payload);
        let mut bytes = Vec::new();
        lydian_disk::record::encode_record(&payload, 0, &mut bytes);
        with(&tip, &bytes)
    };
    assert_eq!(
        again(&|payload| payload[16] = 2),
        Err(COINSTATS_FORMAT.newer("indexes/coinstats/stats.tip", 2_u32).unwrap().to_string())
    );
    assert_eq!(
        again(&|payload| payload[20] ^= 1),
        Err("indexes/coinstats/stats.tip: the statistics of another chain".into())
    );
    assert_eq!(
        again(&|payload| payload[0] ^= 1),
        Err("indexes/coinstats/stats.tip: not a file of the coin statistics".into())
    );
    assert_eq!(
        again(&|payload| payload.truncate(60)),
        Err(format!("indexes/coinstats/stats.tip:0: damaged: it ends too early; {delete}"))
    );
    assert_eq!(
        again(&|payload| payload[60] ^= 1),
        Err(format!(
            "indexes/coinstats/stats.log:{}: damaged: the tip file names a block that has no record; {delete}",
            log_bytes.len()
        ))
    );
}

/// Blocks with a checkpoint after each.
fn work(node: &Node, maker: &mut Maker, random: &mut SplitMix64) -> Result<(), EngineError> {
    for _ in 0..3 {
        let block = block(maker, random);
        node.engine.accept_block(parse(&block), i64::from(u32::MAX), &Unobserved)?.unwrap();
        maker.advance(&block);
        node.engine.checkpoint(&Unobserved)?;
    }
    Ok(())
}

/// The files of the index, without one that was about to replace another.
fn files(disk: &SimDisk) -> BTreeMap<PathBuf, Vec<u8>> {
    let is_whole = |path: &Path| path.starts_with(DIR) && path.extension().is_some_and(|end| end != "new");
    disk.files().into_iter().filter(|(path, _)| is_whole(path)).collect()
}

/// After whatever happened, the statistics are right, and the files are those of an index that is built at once.
fn compare_with_rebuild(disk: &SimDisk) {
    let build = || {
        let node = open(disk);
        node.engine.advance(&lydian_engine::Cancel::new(), &Unobserved).unwrap();
        node.compare();
        node.engine.checkpoint(&Unobserved).unwrap();
        drop(node);
        files(disk)
    };
    let found = build();
    assert_eq!(found.len(), 2);
    found.keys().for_each(|path| disk.remove_file(path).unwrap());
    assert!(build() == found);
}

/// Every disk operation may be the last: what is found afterwards is a state of a checkpoint.
#[test]
fn a_crash_leaves_a_checkpoint() {
    let (maker, disk) = base();
    let mut random = SplitMix64::new(3);
    let work = |disk: &SimDisk, plan: &dyn Fn()| {
        let node = open(disk);
        plan();
        work(&node, &mut maker.clone(), &mut random).is_ok()
    };
    crash_everywhere(&disk, 20, work, compare_with_rebuild);
}

/// The disk is full at any operation: the engine ends with the name of the file, also if it could go on without the
/// index. With space again it goes on, and the files are those of an index that is built at once.
#[test]
fn a_full_disk_ends_the_engine_and_loses_nothing() {
    let (maker, disk) = base();
    let mut random = SplitMix64::new(4);
    let work = |disk: &SimDisk, plan: &dyn Fn()| {
        let node = open_with(disk, false);
        plan();
        work(&node, &mut maker.clone(), &mut random)
    };
    assert_eq!(full_everywhere(&disk, (COINSTATS_NAME, DIR), work, compare_with_rebuild), 0);
}

proptest! {
    /// Any bytes with matching checksums: the index opens and answers, or the error names a file of it.
    #[test]
    fn any_files_give_an_index_or_an_error(
        has_head in any::<bool>(),
        tip in prop::collection::vec(any::<u8>(), 0..1_200),
        records in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 228)), 0..4),
        count in 0_u8..5,
    ) {
        let disk = SimDisk::new(1);
        disk.create_dir(Path::new(DIR)).unwrap();
        let mut log = Vec::new();
        for (number, (height, mut payload)) in (0..).zip(records) {
            payload[..4].copy_from_slice(&[height % 4, 0, 0, 0]);
            lydian_disk::record::encode_record(&payload, number, &mut log);
        }
        let mut payload = tip;
        if has_head {
            let head = [&b"lydian coinstats"[..], &[1, 0, 0, 0], &params().genesis_hash.0].concat();
            payload.splice(0..0, head);
            if payload.len() > 92 {
                // The number of records, and a height that they may have.
                payload[52..56].copy_from_slice(&[count, 0, 0, 0]);
                payload[88..92].copy_from_slice(&[count, 0, 0, 0]);
            }
        }
        let mut bytes = Vec::new();
        lydian_disk::record::encode_record(&payload, 0, &mut bytes);
        disk.write_whole(&Path::new(DIR).join(LOG_FILE), &log).unwrap();
        disk.write_whole(&Path::new(DIR).join(TIP_FILE), &bytes).unwrap();
        match CoinStatsIndex::open(Arc::new(disk), Path::new(DIR), &params()) {
            Ok((index, reader)) => {
                let tip = index.durable_tip().unwrap();
                let stats = reader.at(tip.height, &tip.hash).unwrap().unwrap();
                let _ = stats.unspendable();
            }
            Err(error) => prop_assert!(error.to_string().starts_with(DIR), "{error}"),
        }
    }
}
