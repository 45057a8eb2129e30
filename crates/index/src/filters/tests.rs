use super::*;
use crate::faults::{crash_everywhere, full_everywhere};
use lydian_chains::presets::maker::{Maker, free_tx, output};
use lydian_consensus::{Chain, Coin, Params};
use lydian_disk::{SimDisk, read_whole};
use lydian_engine::{Engine, EngineError, Layout, Settings, Standing, Unobserved};
use lydian_primitives::build::MutBlock;
use lydian_primitives::{Amount, Block, RawBlock, hex};
use lydian_stdx::SplitMix64;
use proptest::prelude::*;
use serde_json::Value;
use std::collections::HashMap;
use std::path::PathBuf;

#[allow(dead_code, reason = "each user takes its part")]
#[path = "../../../../testdata/locate.rs"]
mod locate;

const DIR: &str = "indexes/blockfilter/basic";

fn params() -> Params {
    Params::new(Chain::Regtest)
}

fn parse(block: &MutBlock) -> Block {
    RawBlock::new(block.encode()).parse().unwrap()
}

fn coin(script: Vec<u8>) -> Coin {
    Coin { value: Amount(1), script_pubkey: script.into(), height: Height(1), is_coinbase: false }
}

/// A row of a file of vectors.
struct Vector {
    block: Block,
    /// The scripts that it spent, if the file has them.
    spent: Option<Vec<Vec<u8>>>,
    header_before: [u8; 32],
    filter: Vec<u8>,
    header: [u8; 32],
}

fn vectors(path: &Path) -> Vec<Vector> {
    let rows: Vec<Vec<Value>> = serde_json::from_slice(&locate::read(path)).unwrap();
    let text = |value: &Value| hex(value.as_str().unwrap()).unwrap();
    let hash = |value: &Value| <[u8; 32]>::try_from(text(value).into_iter().rev().collect::<Vec<u8>>()).unwrap();
    let rows = rows.iter().filter(|row| row[0].is_number());
    rows.map(|row| {
        let block = RawBlock::new(text(&row[2])).parse().unwrap();
        assert_eq!(block.hash().to_string(), row[1].as_str().unwrap());
        let spent = row[3].as_array().map(|scripts| scripts.iter().map(text).collect());
        let next = if spent.is_some() { 4 } else { 3 };
        let (header_before, filter, header) = (hash(&row[next]), text(&row[next + 1]), hash(&row[next + 2]));
        Vector { block, spent, header_before, filter, header }
    })
    .collect()
}

/// Blocks of NBitcoin's file, which has 6, with filters of a draft of BIP-0158: they have outpoints too.
const DRAFT: [(usize, &str); 2] = [
    (6, "000000000000015d6077a411a8f5cc95caf775ccf11c54e27df75ce58d187313"),
    (6, "000000006f27ddfe1dd680044a34548f41bed47eba9e6f0b310da21423bc5f33"),
];

/// The vectors of BIP-0158, and the copies of other projects, which have fewer blocks.
#[test]
fn the_vectors_of_bip_0158() {
    let mut scripts: HashMap<BlockHash, Vec<Vec<u8>>> = HashMap::new();
    let bip = locate::testdata("vectors/bips/bip-0158/testnet-19.json");
    let others = ["core/blockfilters.json", "bcoin/filter-valid.json", "nbitcoin/bip158_vectors.json"];
    let others = others.into_iter().filter_map(|name| locate::shared(&format!("vectors/{name}")));
    for (path, count) in std::iter::once(bip).chain(others).zip([10, 10, 9, 6]) {
        let rows = vectors(&path);
        assert_eq!(rows.len(), count, "{}", path.display());
        for Vector { block, spent, header_before, filter: expected, header } in rows {
            // NBitcoin's file has no scripts.
            let spent = spent.unwrap_or_else(|| scripts[&block.hash()].clone());
            scripts.insert(block.hash(), spent.clone());
            let coins: Vec<Coin> = spent.iter().cloned().map(coin).collect();
            let filter = basic_filter(&BlockWithSpent { height: Height(1), block: &block, spent: &coins });
            if DRAFT.contains(&(count, block.hash().to_string().as_str())) {
                assert_ne!(filter, expected, "known-differences.md says that these are filters of a draft");
                continue;
            }
            assert_eq!(filter, expected, "{}", block.hash());
            assert_eq!(filter_header(&filter_hash(&filter), &header_before), header, "{}", block.hash());
            let created = block.txs().flat_map(|tx| tx.outputs()).map(|output| output.script_pubkey.to_vec());
            let in_it = |script: &Vec<u8>| !script.is_empty() && script[0] != 0x6a;
            for script in created.chain(spent).filter(in_it) {
                assert_eq!(match_any(&filter, &block.hash(), [&script[..]]), Ok(true));
            }
            assert_eq!(match_any(&filter, &block.hash(), []), Ok(false));
        }
    }
}

/// A filter without elements, one whose scripts are repeated, and bytes that are none.
#[test]
fn sets_of_any_size() {
    let block = BlockHash([7; 32]);
    assert_eq!(gcs::encode(&block, std::iter::empty()), [0]);
    assert_eq!(match_any(&[0], &block, [&b"a"[..]]), Ok(false));
    let twice = gcs::encode(&block, [&b"a"[..], b"b", b"a", b"b"].into_iter());
    assert_eq!(twice, gcs::encode(&block, [&b"b"[..], b"a"].into_iter()));
    assert_eq!(twice[0], 2);
    assert_eq!(match_any(&[], &block, [&b"a"[..]]), Err(FilterError::Count));
    assert_eq!(match_any(&[0xfd, 1, 0, 0], &block, [&b"a"[..]]), Err(FilterError::Count));
    assert_eq!(match_any(&[0, 0], &block, [&b"a"[..]]), Err(FilterError::TooLong));
    assert_eq!(match_any(&twice[..twice.len() - 1], &block, [&b"c"[..]]), Err(FilterError::TooShort));
    // The whole filter twice.
    assert_eq!(match_any(&[&twice[..], &twice].concat(), &block, [&b"c"[..]]), Err(FilterError::TooLong));
    assert_eq!(match_any(&[254, 255, 255, 255, 255, 0, 0], &block, [&b"c"[..]]), Err(FilterError::Count));
}

proptest! {
    /// Every script of a set matches, alone and among others; few others do.
    #[test]
    fn scripts_match(scripts in prop::collection::hash_set(prop::collection::vec(any::<u8>(), 1..40), 0..300), key in any::<[u8; 32]>()) {
        let block = BlockHash(key);
        let filter = gcs::encode(&block, scripts.iter().map(|script| &script[..]));
        for script in &scripts {
            prop_assert_eq!(match_any(&filter, &block, [&b"none"[..], script, b"other"]), Ok(true));
        }
        let strange: Vec<Vec<u8>> = (0_u32..50).map(|number| [&[0; 50], &number.to_le_bytes()[..]].concat()).collect();
        let hits = strange.iter().filter(|script| match_any(&filter, &block, [&script[..]]) == Ok(true)).count();
        prop_assert!(hits < 3, "{hits} false matches of 50, at a rate of 1 in 784,931");
    }

    /// Any bytes give an answer or an error.
    #[test]
    fn any_bytes_are_decoded(bytes in prop::collection::vec(any::<u8>(), 0..100), script in any::<[u8; 5]>()) {
        let _ = match_any(&bytes, &BlockHash([1; 32]), [&script[..]]);
    }
}

struct Node {
    engine: Engine,
    reader: FilterReader,
}

fn open(disk: &SimDisk) -> Node {
    open_with(disk, true)
}

fn open_with(disk: &SimDisk, followers_required: bool) -> Node {
    let genesis = params().genesis_hash;
    let (index, reader) = FilterIndex::open(Arc::new(disk.clone()), Path::new(DIR), genesis).unwrap();
    let layout = Layout { blocks: "blocks".into(), index: "blocks/index".into(), coins: "chainstate".into() };
    let settings = Settings { catch_up_blocks: 7, followers_required, ..Settings::new(2) };
    let opened = Engine::open(Arc::new(disk.clone()), &layout, params(), settings, vec![Box::new(index)]).unwrap();
    opened.engine.finish_catch_up();
    Node { engine: opened.engine, reader }
}

impl Node {
    fn accept(&self, block: &MutBlock) {
        self.engine.accept_block(parse(block), i64::from(u32::MAX), &Unobserved).unwrap().unwrap();
    }

    /// Compares the index with the filters of the chain's blocks, from their files.
    fn compare(&self) {
        let tip = self.engine.tip();
        assert_eq!((self.reader.tip(), self.engine.followers()[0].standing), (Some(tip), Standing::InStep));
        let mut header = [0; 32];
        let mut scanned = Vec::new();
        while scanned.len() <= tip.height.0 as usize {
            let from = Height(u32::try_from(scanned.len()).unwrap());
            let piece = self.reader.filters(from, 10).unwrap();
            assert!((1..=10).contains(&piece.len()));
            scanned.extend(piece);
        }
        let entries = self.reader.entries(Height(0), u32::MAX).unwrap();
        assert_eq!((scanned.len(), entries.len()), (tip.height.0 as usize + 1, tip.height.0 as usize + 1));
        for (height, ((block, filter), entry)) in (0..).zip(scanned.into_iter().zip(entries)) {
            let info = self.engine.header_info_at(Height(height)).unwrap();
            let of = self.engine.block(&info).unwrap().unwrap();
            let spent = self.engine.spent_coins(&info, &of).unwrap().unwrap();
            let expected = basic_filter(&BlockWithSpent { height: Height(height), block: &of, spent: &spent });
            let hash = filter_hash(&expected);
            header = filter_header(&hash, &header);
            assert_eq!((block, &filter), (info.node.hash, &expected));
            assert_eq!(entry, FilterEntry { block, hash, header });
            assert_eq!(self.reader.filter(Height(height), &block).unwrap(), Some((filter, entry)));
            assert_eq!(self.reader.entry(Height(height)).unwrap(), Some(entry));
        }
        assert_eq!(self.reader.entry(Height(tip.height.0 + 1)).unwrap(), None);
        assert_eq!(self.reader.filter(tip.height, &BlockHash([7; 32])).unwrap(), None);
        assert_eq!(self.reader.filters(Height(tip.height.0 + 1), 5).unwrap(), []);
    }

    /// The files of the index at a checkpoint.
    fn files(&self, disk: &SimDisk) -> Vec<(PathBuf, Vec<u8>)> {
        self.engine.checkpoint(&Unobserved).unwrap();
        disk.files().into_iter().filter(|(path, _)| path.starts_with(DIR)).collect()
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

/// A block that spends some coins, with outputs of its own, and some that are not in the filter.
fn block(maker: &Maker, random: &mut SplitMix64) -> MutBlock {
    let mut txs = Vec::new();
    for coin in maker.spendable().into_iter().take(random.below(3)) {
        let value = coin.value / 2;
        let own = random.next_u64().to_le_bytes();
        let script = [&[8][..], &own].concat();
        txs.push(free_tx(
            &[coin],
            vec![output(value, &[0x51]), output(0, &script), output(0, &[0x6a, 1, 7]), output(0, &[])],
        ));
    }
    let mut block = maker.template(txs);
    block.txs[0].outputs[0].value.0 -= i64::try_from(random.below(5_000)).unwrap();
    lydian_chains::presets::maker::seal(&mut block);
    block
}

/// Blocks, reorganisations, checkpoints, kills and losses of power in any order: the index has the filters of the
/// chain, and its files are those of an index that was built at once.
#[test]
fn the_files_follow_from_the_chain() {
    let (maker, disk) = base();
    for seed in 0..6 {
        let mut random = SplitMix64::new(seed);
        let mut disk = disk.kill();
        let mut node = open(&disk);
        let mut maker = maker.clone();
        // By the tip that each one builds on.
        let mut makers = HashMap::from([(node.engine.tip().hash, maker.clone())]);
        for _ in 0..40 {
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
        }
        node.compare();
        let files = node.files(&disk);
        assert_eq!(files.len(), 3);
        drop(node);
        for (path, _) in &files {
            disk.remove_file(path).unwrap();
        }
        let node = open(&disk);
        node.compare();
        assert!(node.files(&disk) == files, "seed {seed}");
    }
}

/// Blocks of branches that left the chain have their filters, with headers that go on from the fork; ranges end at
/// them.
#[test]
fn branches_have_filters() {
    let (mut maker, disk) = base();
    let node = open(&disk);
    let mut random = SplitMix64::new(8);
    let fork = maker.clone();
    let mut stale = Vec::new();
    for _ in 0..3 {
        let block = block(&maker, &mut random);
        node.accept(&block);
        maker.advance(&block);
        let hash = block.header.hash();
        let found = node.reader.filter_of(&node.engine, &hash).unwrap().unwrap();
        stale.push((hash, found));
    }
    let stop = stale[2].0;
    let range = |from: u32, stop: &BlockHash| node.reader.entries_to(&node.engine, Height(from), stop).unwrap();
    let headers = |heights: &[u32], stop: &BlockHash| {
        node.reader.headers_at(&node.engine, heights.iter().copied().map(Height), stop).unwrap()
    };
    let (before, above, points) = (range(100, &stop).unwrap(), range(106, &stop), headers(&[0, 104, 105, 107], &stop));
    assert_eq!((before.len(), before.last()), (8, Some(&stale[2].1.1)));
    assert_eq!(above.as_ref().map(Vec::len), Some(2));
    node.engine.invalidate_block(node.engine.header_info(&stale[0].0).unwrap().id, &Unobserved).unwrap();
    maker = fork;
    for _ in 0..4 {
        let block = block(&maker, &mut random);
        node.accept(&block);
        maker.advance(&block);
    }
    for (hash, found) in &stale {
        assert_eq!(node.reader.filter_of(&node.engine, hash).unwrap().as_ref(), Some(found));
    }
    assert_eq!((range(100, &stop), range(106, &stop)), (Some(before), above));
    assert_eq!(headers(&[0, 104, 105, 107], &stop), points);
    assert_eq!(range(105, &node.engine.tip().hash).unwrap().len(), 4);
    assert_ne!(headers(&[105], &node.engine.tip().hash), headers(&[105], &stop));
    assert_eq!(node.reader.filter_of(&node.engine, &BlockHash([7; 32])).unwrap(), None);
    assert_eq!(range(0, &BlockHash([7; 32])), None);
    node.compare();
}

/// Blocks and reorganisations, with checkpoints in between.
fn work(node: &Node, maker: &mut Maker, random: &mut SplitMix64) -> Result<(), EngineError> {
    for round in 0..3 {
        let stale = block(maker, random);
        node.engine.accept_block(parse(&stale), i64::from(u32::MAX), &Unobserved)?.unwrap();
        if round != 1 {
            node.engine.checkpoint(&Unobserved)?;
        }
        node.engine.invalidate_block(node.engine.tip_info().id, &Unobserved)?;
        if round == 2 {
            node.engine.checkpoint(&Unobserved)?;
        }
        let block = block(maker, random);
        node.engine.accept_block(parse(&block), i64::from(u32::MAX), &Unobserved)?.unwrap();
        maker.advance(&block);
    }
    node.engine.checkpoint(&Unobserved)
}

/// After whatever happened, the filters are right, and the files are those of an index that is built at once.
fn compare_with_rebuild(disk: &SimDisk) {
    let build = || {
        let node = open(disk);
        node.engine.advance(&lydian_engine::Cancel::new(), &Unobserved).unwrap();
        node.compare();
        let mut files = node.files(disk);
        // One that was about to replace another.
        files.retain(|(path, _)| path.extension().is_some_and(|end| end != "new"));
        files
    };
    let found = build();
    assert_eq!(found.len(), 3);
    found.iter().for_each(|(path, _)| disk.remove_file(path).unwrap());
    assert!(build() == found);
}

/// Every disk operation of a reorganisation may be the last: what is found afterwards is a state of a checkpoint, or of
/// one that was lowered.
#[test]
fn a_crash_leaves_a_checkpoint() {
    let (maker, disk) = base();
    let mut random = SplitMix64::new(3);
    let work = |disk: &SimDisk, plan: &dyn Fn()| {
        let node = open(disk);
        plan();
        work(&node, &mut maker.clone(), &mut random).is_ok()
    };
    crash_everywhere(&disk, 40, work, compare_with_rebuild);
}

/// The disk is full at any operation: the engine ends with the name of the file, also if it could go on without the
/// index. With space again it goes on, and the files are those of an index that is built at once. The engine also goes
/// on if it cannot remove an old file of the coins.
#[test]
fn a_full_disk_ends_the_engine_and_loses_nothing() {
    let (maker, disk) = base();
    let mut random = SplitMix64::new(4);
    let work = |disk: &SimDisk, plan: &dyn Fn()| {
        let node = open_with(disk, false);
        plan();
        work(&node, &mut maker.clone(), &mut random)
    };
    full_everywhere(&disk, (FILTERS_NAME, DIR), work, compare_with_rebuild);
}

/// Files that are damaged, of a later version or of another chain are refused by name; the ends of logs that no tip
/// file names are cut off. Damage below the tip is found when it is read.
#[test]
fn bad_files_are_named() {
    let (_, disk) = base();
    let [filters, entries, tip] = [FILTERS_FILE, ENTRIES_FILE, TIP_FILE].map(|name| Path::new(DIR).join(name));
    let read = |path: &Path| read_whole(&disk, path, u64::MAX).unwrap();
    let (filter_bytes, entry_bytes, tip_bytes) = (read(&filters), read(&entries), read(&tip));
    let open = |disk: &SimDisk| {
        let opened = FilterIndex::open(Arc::new(disk.clone()), Path::new(DIR), params().genesis_hash);
        opened.and_then(|(index, reader)| {
            reader.filters(Height(0), u32::MAX)?;
            Ok(index.durable_tip())
        })
    };
    let with = |path: &Path, bytes: &[u8]| {
        let disk = disk.kill();
        disk.write_whole(path, bytes).unwrap();
        open(&disk).map_err(|error| error.to_string())
    };
    let good = open(&disk).unwrap();
    assert_eq!(good.map(|tip| tip.height), Some(Height(104)));
    assert_eq!(with(&filters, &[&filter_bytes[..], &[1; 100]].concat()), Ok(good));
    assert_eq!(with(&entries, &[&entry_bytes[..], &[1; 100]].concat()), Ok(good));
    let delete = format!("delete {DIR} to build the index anew");
    let flipped = |bytes: &[u8], at: usize| {
        let mut bytes = bytes.to_vec();
        bytes[at] ^= 1;
        bytes
    };
    let checksum = "damaged: the checksum of a record does not match";
    assert_eq!(entry_bytes.len(), 105 * 120);
    for number in [0, 50, 104] {
        let text = format!("{}:{}: {checksum}; {delete}", entries.display(), number * 120);
        assert_eq!(with(&entries, &flipped(&entry_bytes, number * 120 + 70)), Err(text));
    }
    let text = format!("{}:0: {checksum}; {delete}", filters.display());
    assert_eq!(with(&filters, &flipped(&filter_bytes, 40)), Err(text));
    for (path, bytes) in [(&filters, &filter_bytes), (&entries, &entry_bytes)] {
        let short = bytes.len() - 1;
        let text = format!("{}:{short}: damaged: it is shorter than its tip file says; {delete}", path.display());
        assert_eq!(with(path, &bytes[..short]), Err(text));
    }
    let named = |what: &str| Err(format!("{}{what}", tip.display()));
    assert_eq!(
        with(&tip, &flipped(&tip_bytes, 30)),
        named(&format!(":0: damaged: its checksum does not match; {delete}"))
    );
    let again = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut payload = tip_bytes[lydian_disk::record::RECORD_HEAD_SIZE..].to_vec();
        change(&mut payload);
        let mut bytes = Vec::new();
        lydian_disk::record::encode_record(&payload, 0, &mut bytes);
        with(&tip, &bytes)
    };
    let newer = FILTERS_FORMAT.newer(&tip, 2_u32).unwrap().to_string();
    assert_eq!(again(&|payload| payload[16] = 2), Err(newer));
    assert_eq!(again(&|payload| payload[20] ^= 1), named(": the block filters of another chain"));
    assert_eq!(again(&|payload| payload[0] ^= 1), named(": not a file of the block filters"));
    let early = format!(":0: damaged: it ends too early; {delete}");
    assert_eq!(again(&|payload| payload.truncate(60)), named(&early));
    let no_record = format!(":0: damaged: the tip file names a block that has no record; {delete}");
    assert_eq!(again(&|payload| payload[60] ^= 1), named(&no_record));
    let no_height = format!(":0: damaged: a height that no block has; {delete}");
    assert_eq!(again(&|payload| payload[52..56].fill(0xff)), named(&no_height));
}

/// More filters than wait in memory, in blocks of one run, and a checkpoint at the end.
#[test]
fn filters_are_written_in_pieces() {
    let (mut maker, disk) = base();
    let node = open(&disk);
    for number in 0..3_u32 {
        let coin = maker.rich_coin().unwrap();
        let outputs =
            (0..16_000_u32).map(|index| output(0, &[&[8][..], &number.to_le_bytes(), &index.to_le_bytes()].concat()));
        let block = maker.block(vec![free_tx(&[coin], outputs.collect())]);
        node.accept(&block);
        maker.advance(&block);
    }
    node.compare();
}

proptest! {
    /// Any bytes with matching checksums: the index opens and answers, or the error names a file of it.
    #[test]
    fn any_files_give_an_index_or_an_error(
        height in 0_u8..4,
        tip in prop::collection::vec(any::<u8>(), 0..60),
        has_head in any::<bool>(),
        records in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 108)), 0..4),
        filters in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..4),
    ) {
        let disk = SimDisk::new(1);
        disk.create_dir(Path::new(DIR)).unwrap();
        let (mut entries, mut log, mut payload) = (Vec::new(), Vec::new(), tip);
        for (number, filter) in (0..).zip(filters) {
            lydian_disk::record::encode_record(&filter, number, &mut log);
        }
        for (number, (is_small, mut entry)) in (0..).zip(records) {
            if is_small {
                entry[97..104].fill(0);
                entry[105..].fill(0);
            }
            if number == u64::from(height) {
                payload.splice(0..0, entry[..32].iter().copied());
            }
            lydian_disk::record::encode_record(&entry, number, &mut entries);
        }
        if has_head {
            let head = [&b"lydian filters\0\0"[..], &[1, 0, 0, 0], &params().genesis_hash.0, &[height, 0, 0, 0]].concat();
            payload.splice(0..0, head);
        }
        let mut bytes = Vec::new();
        lydian_disk::record::encode_record(&payload, 0, &mut bytes);
        for (name, bytes) in [(FILTERS_FILE, &log), (ENTRIES_FILE, &entries), (TIP_FILE, &bytes)] {
            disk.write_whole(&Path::new(DIR).join(name), bytes).unwrap();
        }
        match FilterIndex::open(Arc::new(disk), Path::new(DIR), params().genesis_hash) {
            Ok((index, reader)) => {
                let tip = index.durable_tip().unwrap();
                prop_assert_eq!(reader.entry(tip.height).unwrap().map(|entry| entry.block), Some(tip.hash));
                for answer in [reader.filter(tip.height, &tip.hash).map(|_| ()), reader.filters(Height(0), 9).map(|_| ())] {
                    if let Err(error) = answer {
                        prop_assert!(error.to_string().starts_with(DIR), "{error}");
                    }
                }
            }
            Err(error) => prop_assert!(error.to_string().starts_with(DIR), "{error}"),
        }
    }
}
