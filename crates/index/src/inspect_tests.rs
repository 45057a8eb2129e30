//! All indexes of a data directory, built by an engine with a reorganisation, against rebuilds by another one.

use super::*;
use crate::files::Difference;
use crate::tables::{Profile, TxIndex};
use lydian_chains::presets::maker::{Maker, free_tx, output, seal};
use lydian_consensus::Chain;
use lydian_disk::SimDisk;
use lydian_disk::record::{Records, encode_record};
use lydian_engine::{Engine, Follower, Layout, Settings, Standing, Unobserved};
use lydian_primitives::build::MutBlock;
use lydian_primitives::{Block, Height, RawBlock};

const DATADIR: &str = "data";

fn params() -> Params {
    Params::new(Chain::Regtest)
}

fn on(_: u64) -> bool {
    true
}

fn engine(disk: &SimDisk, followers: Vec<Box<dyn Follower>>) -> Engine {
    let layout =
        Layout { blocks: "data/blocks".into(), index: "data/blocks/index".into(), coins: "data/chainstate".into() };
    let settings = Settings { catch_up_blocks: 7, ..Settings::new(2) };
    Engine::open(Arc::new(disk.clone()), &layout, params(), settings, followers).unwrap().engine
}

fn indexes(disk: &SimDisk) -> Vec<Box<dyn Follower>> {
    let (datadir, params) = (Path::new(DATADIR), params());
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let dir = |kind: IndexKind| kind.dir(datadir);
    let profile = Profile { has_scripts: true, has_txids: true };
    let genesis = params.genesis_hash;
    let tables = TxIndex::open(Arc::clone(&shared), &dir(IndexKind::Tables), genesis, profile, || [3, 4]).unwrap().0;
    let filters = FilterIndex::open(Arc::clone(&shared), &dir(IndexKind::Filters), genesis).unwrap().0;
    let coinstats = CoinStatsIndex::open(shared, &dir(IndexKind::CoinStats), &params).unwrap().0;
    vec![Box::new(tables), Box::new(filters), Box::new(coinstats)]
}

fn parse(block: &MutBlock) -> Block {
    RawBlock::new(block.encode()).parse().unwrap()
}

/// A disk with all indexes, of which the last blocks were replaced by others twice.
fn base() -> SimDisk {
    let disk = SimDisk::new(1);
    let engine = engine(&disk, indexes(&disk));
    let mut maker = Maker::new();
    let accept = |block: &MutBlock| {
        engine.accept_block(parse(block), i64::from(u32::MAX), &Unobserved).unwrap().unwrap();
    };
    let take = |_: &Maker, block: &MutBlock| -> std::io::Result<()> {
        accept(block);
        Ok(())
    };
    maker.grow(110, take).unwrap();
    for round in 0..2 {
        let coin = maker.spendable().remove(0);
        let value = coin.value / 2;
        let spend = free_tx(&[coin], vec![output(value, &[0x51]), output(1, &[0x52, round])]);
        let mut block = maker.template(vec![spend]);
        seal(&mut block);
        accept(&block);
        engine.checkpoint(&Unobserved).unwrap();
        let id = engine.tip_info().id;
        engine.invalidate_block(id, &Unobserved).unwrap();
        maker.grow(3, take).unwrap();
    }
    engine.checkpoint(&Unobserved).unwrap();
    assert!(engine.followers().iter().all(|follower| follower.standing == Standing::InStep));
    drop(engine);
    disk.kill()
}

/// Builds all indexes again and compares them.
fn verify(disk: &SimDisk) -> Vec<(IndexKind, Comparison)> {
    let datadir = Path::new(DATADIR);
    remove_scratch(disk, datadir).unwrap();
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let rebuilds = IndexKind::ALL.map(|kind| rebuild(&shared, datadir, kind, &params()).unwrap().unwrap());
    let progress: Vec<_> =
        rebuilds.iter().map(|rebuild| (rebuild.until, rebuild.blocks(), rebuild.progress.clone())).collect();
    let engine = engine(disk, rebuilds.map(|rebuild| rebuild.follower).into());
    engine.finish_catch_up();
    for (until, blocks, progress) in progress {
        assert_eq!((engine.hash_at(until.height), progress.blocks()), (Some(until.hash), blocks));
    }
    drop(engine);
    let compare = |kind| (kind, compare(disk, datadir, kind, &params(), &mut on).unwrap());
    IndexKind::ALL.map(compare).into()
}

#[test]
fn every_index_is_equal_to_its_rebuild_and_can_be_removed() {
    let (disk, datadir) = (base(), Path::new(DATADIR));
    for kind in IndexKind::ALL {
        assert_eq!(IndexKind::of_name(kind.name()), Some(kind));
        let report = inspect(&disk, datadir, kind, &params()).unwrap().unwrap();
        assert_eq!(report.tip.unwrap().height.0, 116, "{kind:?}");
        assert_eq!(check(&disk, datadir, kind, &params(), &mut on), Ok(()));
        assert_eq!(check(&disk, datadir, kind, &params(), &mut |_| false), Err(IndexError::Ended));
    }
    assert_eq!(IndexKind::of_name("txindex"), None);
    for (kind, comparison) in verify(&disk) {
        assert_eq!(comparison.difference, None, "{kind:?}");
        // The statistics of the blocks that left the chain.
        assert_eq!(comparison.notes.len(), usize::from(kind == IndexKind::CoinStats), "{:?}", comparison.notes);
    }
    let (before, scratch) = (disk.files(), remove_scratch(&disk, datadir).unwrap());
    assert!(scratch > 10_000);
    assert_eq!(remove_scratch(&disk, datadir), Ok(0));
    for (number, kind) in IndexKind::ALL.into_iter().enumerate() {
        let report = inspect(&disk, datadir, kind, &params()).unwrap().unwrap();
        assert_eq!(remove(&disk, datadir, kind), Ok(report.bytes()));
        assert_eq!(inspect(&disk, datadir, kind, &params()), Ok(None));
        let left =
            IndexKind::ALL.iter().filter(|kind| disk.files().keys().any(|path| path.starts_with(kind.dir(datadir))));
        assert_eq!(left.count(), 2 - number, "only its own files");
    }
    assert!(before.len() > disk.files().len() && disk.files().keys().any(|path| path.starts_with("data/blocks")));
}

/// Of blocks in segments and in logs, while a node uses the files.
#[test]
fn the_hash_of_every_block_of_the_last_checkpoint_is_found() {
    let (disk, datadir) = (SimDisk::new(2), Path::new(DATADIR));
    let hash_at = |height| hash_at(&disk, datadir, &params(), height).unwrap();
    assert_eq!(hash_at(0), None);
    let mut maker = Maker::new();
    for blocks in [300, 330] {
        // The second start writes the first groups as segments.
        let engine = engine(&disk, indexes(&disk));
        let take = |_: &Maker, block: &MutBlock| -> std::io::Result<()> {
            engine.accept_block(parse(block), i64::from(u32::MAX), &Unobserved).unwrap().unwrap();
            Ok(())
        };
        maker.grow(blocks, take).unwrap();
        engine.checkpoint(&Unobserved).unwrap();
        engine.finish_catch_up();
        engine.checkpoint(&Unobserved).unwrap();
        let tip = engine.tip().height.0;
        for height in 0..=tip + 1 {
            assert_eq!(hash_at(height), engine.hash_at(Height(height)), "{height}");
        }
        assert!(hash_at(tip).is_some() && hash_at(tip + 1).is_none());
    }
    let dir = IndexKind::Tables.dir(datadir);
    let has = |end: &str| {
        disk.files().keys().any(|path| path.starts_with(&dir) && path.extension().is_some_and(|e| e == end))
    };
    assert!(has("blocks") && has("log"));
}

/// The check names a file that is missing; the report, which is also read before the first checkpoint, names logs.
#[test]
fn a_missing_file_is_named() {
    let (disk, datadir) = (base(), Path::new(DATADIR));
    for (kind, file, is_reported) in [
        (IndexKind::Filters, "data/indexes/blockfilter/basic/filters.log", true),
        (IndexKind::Filters, "data/indexes/blockfilter/basic/headers.log", true),
        (IndexKind::Filters, "data/indexes/blockfilter/basic/filters.tip", false),
        (IndexKind::CoinStats, "data/indexes/coinstats/stats.log", true),
        (IndexKind::CoinStats, "data/indexes/coinstats/stats.tip", false),
    ] {
        let own = disk.files()[Path::new(file)].clone();
        disk.remove_file(Path::new(file)).unwrap();
        let error = check(&disk, datadir, kind, &params(), &mut on).unwrap_err();
        assert!(
            error.is_damage() && error.to_string().starts_with(&format!("{file}: there is no such file")),
            "{error}"
        );
        assert_eq!(inspect(&disk, datadir, kind, &params()).is_err(), is_reported, "{file}");
        disk.write_whole(Path::new(file), &own).unwrap();
        assert_eq!(check(&disk, datadir, kind, &params(), &mut on), Ok(()));
    }
    // An index that has no block yet.
    for kind in IndexKind::ALL {
        remove(&disk, datadir, kind).unwrap();
    }
    drop(indexes(&disk));
    for kind in IndexKind::ALL {
        assert_eq!(inspect(&disk, datadir, kind, &params()).unwrap().unwrap().tip, None);
        assert_eq!(check(&disk, datadir, kind, &params(), &mut on), Ok(()), "{kind:?}");
    }
}

/// A record with other content and the right checksum: the check does not notice it, the comparison does.
#[test]
fn a_record_with_other_content_is_a_difference() {
    let (disk, datadir) = (base(), Path::new(DATADIR));
    for (kind, file, at) in [
        (IndexKind::Filters, "data/indexes/blockfilter/basic/filters.log", 33),
        (IndexKind::Filters, "data/indexes/blockfilter/basic/headers.log", 70),
        (IndexKind::CoinStats, "data/indexes/coinstats/stats.log", 40),
    ] {
        let file = Path::new(file);
        let own = disk.files()[file].clone();
        let (mut changed, mut offset) = (Vec::new(), 0);
        for (number, payload) in (0..).zip(Records::read(&own, 0)) {
            let mut payload = payload.unwrap().to_vec();
            if number == 50 {
                payload[at] ^= 1;
                offset = changed.len() as u64;
            }
            encode_record(&payload, number, &mut changed);
        }
        disk.write_whole(file, &changed).unwrap();
        assert_eq!(check(&disk, datadir, kind, &params(), &mut on), Ok(()));
        let (_, compared) = verify(&disk).into_iter().find(|(compared, _)| *compared == kind).unwrap();
        let Difference { path, offset: Some(found) } = compared.difference.unwrap() else { panic!("{kind:?}") };
        assert_eq!(path, file);
        // In this record.
        assert!((offset..offset + 300).contains(&found), "{kind:?}: {found}, {offset}");
        changed[own.len() / 2] ^= 1;
        disk.write_whole(file, &changed).unwrap();
        let error = check(&disk, datadir, kind, &params(), &mut on).unwrap_err().to_string();
        assert!(error.starts_with(&file.display().to_string()), "{error}");
        disk.write_whole(file, &own).unwrap();
    }
}
