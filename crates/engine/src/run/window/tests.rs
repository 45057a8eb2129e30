//! Random small chains, run through the window and compared with a plain map of coins that is fed one transaction at a
//! time.

use super::*;
use crate::chainstate::links::Links;
use crate::run::job::Coming;
use lydian_chain::{BlockPosition, HeaderId, HeaderTree};
use lydian_coins::{PARTITIONS, Settings, Tip};
use lydian_consensus::{Ancestor, Chain, CheckedBlock, HeaderView, Params, Parent};
use lydian_disk::SimDisk;
use lydian_primitives::build::{MutBlock, MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, BlockHash, Header, Height, OutPoint, RawBlock};
use lydian_script::is_unspendable;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Returns a random number below its argument.
pub(crate) type Random<'a> = &'a mut dyn FnMut(usize) -> usize;

/// The blocks of a chain, ready to be funded, and the expected result for each.
pub(crate) struct Story {
    pub(crate) coins: Coins,
    pub(crate) jobs: Vec<Arc<Job>>,
    pub(crate) expected: Vec<Expected>,
    /// Every outpoint that occurs anywhere in the chain.
    universe: Vec<OutPoint>,
    before: Map,
}

type Map = BTreeMap<OutPoint, Coin>;

/// The plain map's result for a block.
pub(crate) struct Expected {
    /// The coins of the inputs, up to the first transaction with a missing coin: the rules look no further.
    coins: Vec<Option<Coin>>,
    repeated_tx: Option<usize>,
    /// The coins after the block.
    after: Map,
}

impl Expected {
    fn is_good(&self) -> bool {
        self.repeated_tx.is_none() && self.coins.iter().all(Option::is_some)
    }
}

/// Ancestors of which only work and time are used.
struct Assumed;

impl HeaderView for Assumed {
    fn ancestor(&self, _: Height) -> Option<Ancestor> {
        let header = Header { version: 4, prev_block: PARENT, merkle_root: [0; 32], time: 0, bits: BITS, nonce: 0 };
        Some(Ancestor { hash: PARENT, header })
    }
}

const PARENT: BlockHash = BlockHash([7; 32]);
const BITS: u32 = 0x207f_ffff;

impl Story {
    /// A chain in which most blocks are good; the first bad one ends it.
    pub(crate) fn new(blocks: usize, random: Random<'_>) -> Story {
        let disk = Arc::new(SimDisk::new(1));
        let settings = Settings { cache_bytes: 1 << 20, pending_bytes_max: 1 << 20, is_low_memory: false };
        let coins = Coins::open(disk, Path::new("coins"), settings, [3; 16], 1).expect("an empty store opens");
        let before = coins_before(&coins);
        let pool = Pool::new(before.keys().copied().collect(), random);
        let mut story = Story { coins, jobs: Vec::new(), expected: Vec::new(), universe: pool.universe(), before };
        for index in 0..blocks {
            let height = Height(u32::try_from(index).unwrap() + 1);
            let is_bip30_checked = random(3) > 0;
            let (txs, expected) = pool.block(story.map(), height, is_bip30_checked, random);
            let checked = checked_block(txs, height);
            let links = Links::new(checked.block(), is_bip30_checked, &story.coins);
            let position = BlockPosition { file: 0, offset: 0, size: 0 };
            story.jobs.push(Arc::new(Job::new(index, any_node(), position, checked, links, true, Coming::default())));
            story.expected.push(expected);
        }
        story
    }

    /// The coins after all blocks so far, including bad ones.
    fn map(&self) -> &Map {
        self.expected.last().map_or(&self.before, |expected| &expected.after)
    }

    /// Whether the block is good; the coins found must be the expected ones.
    pub(crate) fn check_found(&self, index: usize) -> bool {
        let (found, expected) = (self.jobs[index].found(), &self.expected[index]);
        assert_eq!(found.repeated_tx, expected.repeated_tx, "the first transaction that repeats one");
        if expected.repeated_tx.is_none() {
            assert_eq!(found.coins[..expected.coins.len()], expected.coins, "the coin of each input");
            assert!(!expected.is_good() || found.coins.len() == expected.coins.len(), "one answer for each input");
        }
        expected.is_good()
    }

    /// The index of the first bad block, or the number of blocks.
    pub(crate) fn end(&self) -> usize {
        self.expected.iter().position(|expected| !expected.is_good()).unwrap_or(self.jobs.len())
    }

    /// Asserts that exactly `committed` blocks are applied.
    pub(crate) fn check_store(&self, committed: usize) {
        let map = if committed == 0 { &self.before } else { &self.expected[committed - 1].after };
        for outpoint in &self.universe {
            let key = self.coins.key(*outpoint);
            let mut found = Vec::new();
            self.coins.get(Coins::partition(&key), &[key], &mut found).unwrap();
            assert_eq!(found, [map.get(outpoint).cloned()], "{outpoint:?} after {committed} blocks");
        }
        assert_eq!(self.coins.len(), map.len() as u64);
    }
}

/// Coins that exist before the chain, made durable.
fn coins_before(coins: &Coins) -> Map {
    let map: Map = (0..8_u8)
        .map(|byte| {
            let outpoint = OutPoint { txid: lydian_primitives::Txid([byte + 1; 32]), vout: u32::from(byte % 3) };
            let script_pubkey = vec![byte; 3].into();
            (outpoint, Coin { value: Amount(77), script_pubkey, height: Height(0), is_coinbase: false })
        })
        .collect();
    for (outpoint, coin) in &map {
        let key = coins.key(*outpoint);
        coins.apply(Coins::partition(&key), std::iter::empty(), [(key, coin.as_ref())].into_iter()).unwrap();
    }
    coins.checkpoint(Tip { height: Height(0), hash: PARENT }, 1).unwrap();
    map
}

/// The transactions that blocks are made of. Each may be used often, so that outpoints are created, spent and created
/// again.
struct Pool {
    coinbases: Vec<MutTx>,
    txs: Vec<MutTx>,
}

impl Pool {
    fn new(mut outpoints: Vec<OutPoint>, random: Random<'_>) -> Pool {
        let coinbases: Vec<_> =
            (0..3_u8).map(|byte| tx(vec![OutPoint::NULL], vec![byte, byte, 1], 2, random)).collect();
        // The last vout may not exist.
        let of = |tx: &MutTx| (0..3).map(|vout| OutPoint { txid: tx.txid(), vout }).collect::<Vec<_>>();
        coinbases.iter().for_each(|coinbase| outpoints.extend(of(coinbase)));
        let mut txs = Vec::new();
        for byte in 0..16_u8 {
            let prevouts: BTreeSet<_> = (0..1 + random(2)).map(|_| outpoints[random(outpoints.len())]).collect();
            let outputs = 1 + random(3);
            let made = tx(prevouts.into_iter().collect(), vec![byte], outputs, random);
            outpoints.extend(of(&made));
            txs.push(made);
        }
        Pool { coinbases, txs }
    }

    fn universe(&self) -> Vec<OutPoint> {
        let made = self.coinbases.iter().chain(&self.txs);
        let made = made.flat_map(|tx| (0..4).map(|vout| OutPoint { txid: tx.txid(), vout }));
        made.chain(self.txs.iter().flat_map(|tx| tx.inputs.iter().map(|input| input.prevout))).collect()
    }

    /// A block, mostly of transactions whose coins exist.
    fn block(
        &self,
        before: &Map,
        height: Height,
        is_bip30_checked: bool,
        random: Random<'_>,
    ) -> (Vec<MutTx>, Expected) {
        let mut after = before.clone();
        let coinbases: Vec<_> = self.coinbases.iter().filter(|tx| random(8) == 0 || !has_any(before, tx)).collect();
        let coinbase = match coinbases.len() {
            0 => &self.coinbases[0],
            count => coinbases[random(count)],
        };
        let is_overwrite = has_any(before, coinbase);
        let mut txs = vec![coinbase.clone()];
        let mut coins = Some(Vec::new());
        connect(&mut after, coinbase, height, true);
        for _ in 0..random(7) {
            let good = |tx: &&MutTx| tx.inputs.iter().all(|input| after.contains_key(&input.prevout));
            let good: Vec<_> = self.txs.iter().filter(good).collect();
            let chosen = match good.len() {
                _ if random(40) == 0 => &self.txs[random(16)],
                _ if random(10) == 0 => match self.double_spend(&txs, &after) {
                    Some(tx) => tx,
                    None => continue,
                },
                0 => continue,
                count => good[random(count)],
            };
            // Next to itself it would make a malleated block. Without the BIP-0030 check only coinbases ever repeated
            // an unspent transaction, and those are not mature in their own block.
            let is_repeat = has_any(&after, chosen) && (!is_bip30_checked || !has_any(before, chosen));
            let is_immature = is_overwrite && chosen.inputs.iter().any(|input| input.prevout.txid == coinbase.txid());
            if txs.last() == Some(chosen) || is_repeat || is_immature {
                continue;
            }
            txs.push(chosen.clone());
            if let Some(found) = &mut coins {
                let spent: Vec<_> = chosen.inputs.iter().map(|input| after.remove(&input.prevout)).collect();
                found.push(spent.clone());
                if spent.iter().any(Option::is_none) {
                    let all = coins.take().into_iter().flatten().flatten().collect();
                    return self.bad(txs, before, is_bip30_checked, all, after, random);
                }
                connect(&mut after, chosen, height, false);
            }
        }
        let repeated_tx = is_bip30_checked.then(|| txs.iter().position(|tx| has_any(before, tx))).flatten();
        let coins = coins.into_iter().flatten().flatten().collect();
        (txs, Expected { coins, repeated_tx, after })
    }

    /// A transaction that spends an output that the block has created and spent.
    fn double_spend(&self, txs: &[MutTx], after: &Map) -> Option<&MutTx> {
        let made = |input: &&MutInput| {
            let maker = txs.iter().find(|tx| tx.txid() == input.prevout.txid);
            let output = maker.and_then(|tx| tx.outputs.get(input.prevout.vout as usize));
            output.is_some_and(|output| !is_unspendable(&output.script_pubkey))
        };
        let is_gone = |input: &MutInput| !after.contains_key(&input.prevout);
        self.txs.iter().find(|tx| !txs.contains(tx) && tx.inputs.iter().filter(made).any(is_gone))
    }

    /// A block in which one transaction misses a coin; others may follow it.
    fn bad(
        &self,
        mut txs: Vec<MutTx>,
        before: &Map,
        is_bip30_checked: bool,
        coins: Vec<Option<Coin>>,
        after: Map,
        random: Random<'_>,
    ) -> (Vec<MutTx>, Expected) {
        for _ in 0..random(3) {
            let tx = &self.txs[random(16)];
            if !txs.contains(tx) {
                txs.push(tx.clone());
            }
        }
        let repeated_tx = is_bip30_checked.then(|| txs.iter().position(|tx| has_any(before, tx))).flatten();
        (txs, Expected { coins, repeated_tx, after })
    }
}

fn tx(prevouts: Vec<OutPoint>, script_sig: Vec<u8>, outputs: usize, random: Random<'_>) -> MutTx {
    let input = |prevout| MutInput { prevout, script_sig: script_sig.clone(), sequence: u32::MAX, witness: Vec::new() };
    let mut output = |vout: usize| {
        // Short scripts are copied, longer ones stay in the block.
        let size = [vout + 1, 0, 40, 41, 300][random(5)];
        let script = if vout > 0 && random(4) == 0 { vec![0x6a, 1] } else { vec![0x51; size] };
        MutOutput { value: Amount(1000), script_pubkey: script }
    };
    let outputs = (0..outputs).map(&mut output).collect();
    MutTx { version: 1, inputs: prevouts.into_iter().map(input).collect(), outputs, lock_time: 0 }
}

fn has_any(map: &Map, tx: &MutTx) -> bool {
    let txid = tx.txid();
    (0..4).any(|vout| map.contains_key(&OutPoint { txid, vout }))
}

fn connect(map: &mut Map, tx: &MutTx, height: Height, is_coinbase: bool) {
    for (vout, output) in (0_u32..).zip(&tx.outputs).filter(|(_, output)| !is_unspendable(&output.script_pubkey)) {
        let script_pubkey = output.script_pubkey.clone().into();
        let coin = Coin { value: output.value, script_pubkey, height, is_coinbase };
        map.insert(OutPoint { txid: tx.txid(), vout }, coin);
    }
}

fn checked_block(txs: Vec<MutTx>, height: Height) -> CheckedBlock {
    let params = Params::new(Chain::Regtest).with_activation_height("bip34@1000").unwrap();
    let header =
        Header { version: 4, prev_block: PARENT, merkle_root: [0; 32], time: 1_600_000_000, bits: BITS, nonce: 0 };
    let mut block = MutBlock { header, txs };
    block.seal_merkle_root();
    assert!(block.seal_proof_of_work(&params.pow_limit.to_le_bytes()));
    let block = RawBlock::new(block.encode()).parse().unwrap();
    let parent = Parent::At(Height(height.0 - 1), &Assumed);
    CheckedBlock::check(block, parent, 1_600_000_000, &params).expect("nothing is wrong but the coins")
}

fn any_node() -> HeaderId {
    HeaderTree::new(&Params::new(Chain::Regtest)).tip()
}

/// Runs a story on one thread, with the tasks of the partitions in a random order and in random portions.
fn run(story: &Story, random: Random<'_>) {
    let mut windows: Vec<_> = (0..PARTITIONS).map(Window::new).collect();
    let (mut funded, mut applied) = ([0; PARTITIONS], [0; PARTITIONS]);
    let (mut committed, mut end) = (0, story.jobs.len());
    while applied.iter().any(|applied| *applied < end) {
        let partition = random(PARTITIONS);
        let window = &mut windows[partition];
        if random(2) == 0 {
            let count = random(committed - applied[partition] + 1);
            window.apply(count, &story.coins).unwrap();
            applied[partition] += count;
        }
        // Blocks above the end may have been funded before the failure was known.
        let to = funded[partition] + random(3).min(story.jobs.len() - funded[partition]);
        window.fund(&story.jobs[funded[partition]..to], &story.coins).unwrap();
        funded[partition] = to;
        while committed < end && funded.iter().all(|funded| *funded > committed) && random(4) > 0 {
            if story.check_found(committed) {
                committed += 1;
            } else {
                end = committed;
            }
        }
    }
    assert_eq!(end, story.end());
    story.check_store(end);
    let counts = |window: &Window| window.entries.iter().any(|entry| entry.job >= window.first);
    let is_left = windows.iter().any(|window| counts(window) == window.jobs.iter().all(|job| is_mute(job, window)));
    assert!(!is_left, "an entry counts as long as the block that made it is not applied");
}

/// Whether a block makes no entries in a window.
fn is_mute(job: &Job, window: &Window) -> bool {
    let kept = job.links.creates(window.partition).iter().filter(|create| create.is_kept);
    job.links.spends(window.partition).is_empty() && kept.count() == 0
}

/// A random number generator with a seed.
fn generator(mut seed: u64) -> impl FnMut(usize) -> usize {
    move |below| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % below
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn every_input_finds_the_coin_of_the_plain_map(seed in any::<u64>(), blocks in 0_usize..9) {
        let random = &mut generator(seed);
        let story = Story::new(blocks, random);
        run(&story, random);
    }
}

/// A block with a coinbase of this many outputs that spends the first half of those of the block before.
fn wide_job(index: usize, outputs: u32, before: Option<&Job>, coins: &Coins) -> Arc<Job> {
    let output = MutOutput { value: Amount(1000), script_pubkey: vec![0x51] };
    let input = |prevout, script_sig| MutInput { prevout, script_sig, sequence: u32::MAX, witness: Vec::new() };
    let tx = |inputs, outputs| MutTx { version: 1, inputs, outputs, lock_time: 0 };
    let coinbase =
        tx(vec![input(OutPoint::NULL, index.to_le_bytes().to_vec())], vec![output.clone(); outputs as usize]);
    let mut txs = vec![coinbase];
    if let Some(before) = before {
        let txid = before.checked.block().tx(0).txid();
        let inputs = (0..outputs / 2).map(|vout| input(OutPoint { txid, vout }, Vec::new())).collect();
        txs.push(tx(inputs, vec![output]));
    }
    let checked = checked_block(txs, Height(u32::try_from(index).unwrap() + 1));
    let links = Links::new(checked.block(), false, coins);
    let position = BlockPosition { file: 0, offset: 0, size: 0 };
    Arc::new(Job::new(index, any_node(), position, checked, links, true, Coming::default()))
}

/// Entries of applied blocks are not found, and make room for others before the table grows.
#[test]
fn the_table_is_bounded_by_the_blocks_that_are_not_applied() {
    let coins = Story::new(0, &mut generator(1)).coins;
    let mut window = Window::new(0);
    let (mut jobs, mut most): (Vec<Arc<Job>>, _) = (Vec::new(), 0);
    for index in 0..400 {
        let job = wide_job(index, 200, jobs.last().map(|job| &**job), &coins);
        most = most.max(job.links.creates(0).len() + job.links.spends(0).len());
        window.fund(std::slice::from_ref(&job), &coins).unwrap();
        jobs.push(job);
        window.apply(usize::from(index >= 4), &coins).unwrap();
        let first = index.saturating_sub(3);
        assert_eq!(window.first as usize, first);
        let change = |key| window.find(&key).map(|entry| (entry.job as usize, entry.change.created()));
        let created = |job: &Job| job.links.creates(0).iter().map(|create| change(create.key())).collect::<Vec<_>>();
        let spent = |job: &Job| job.links.spends(0).iter().map(|spend| change(spend.key())).collect::<Vec<_>>();
        for (at, change) in created(&jobs[index]).into_iter().enumerate() {
            assert_eq!(change, Some((index, Some(at))));
        }
        let spends = spent(&jobs[first]);
        assert!(spends.iter().all(|change| *change == Some((first, None))), "{spends:?}");
        if let Some(gone) = first.checked_sub(1) {
            // What the next block has spent counts as long as that is not applied.
            let left = created(&jobs[gone]).into_iter().flatten().collect::<Vec<_>>();
            assert!(left.iter().all(|change| *change == (first, None)) && left.len() == spends.len(), "{left:?}");
            assert!(spent(&jobs[gone]).iter().all(Option::is_none), "a change of an applied block is in the store");
        }
        assert!(window.entries.capacity() <= 32 * most, "{index}: {}", window.entries.capacity());
    }
    assert!(most > 10);
    assert_eq!(size_of::<Entry>(), 16);
}

/// The random stories contain every interesting case.
#[test]
fn stories_have_everything() {
    let (mut own, mut repeats, mut missing, mut overwrites, mut again, mut good) = (0, 0, 0, 0, 0, 0);
    let mut double = 0;
    for seed in 0..300 {
        let story = Story::new(8, &mut generator(seed));
        let mut seen: BTreeSet<OutPoint> = story.before.keys().copied().collect();
        let mut before = &story.before;
        for (job, expected) in story.jobs.iter().zip(&story.expected).take(story.end() + 1) {
            let block = job.checked.block();
            let txids: BTreeSet<_> = block.txs().map(|tx| tx.txid()).collect();
            own += block
                .txs()
                .skip(1)
                .flat_map(|tx| tx.inputs())
                .filter(|input| txids.contains(&input.prevout.txid))
                .count();
            repeats += usize::from(expected.repeated_tx.is_some());
            missing += usize::from(expected.repeated_tx.is_none() && !expected.is_good());
            good += usize::from(expected.is_good());
            let inputs = block.txs().skip(1).flat_map(|tx| tx.inputs().map(|input| input.prevout)).zip(&expected.coins);
            let mut spent = BTreeSet::new();
            for (prevout, coin) in inputs.filter(|(prevout, _)| txids.contains(&prevout.txid)) {
                double += usize::from(coin.is_none() && spent.contains(&prevout));
                spent.insert(prevout);
            }
            let coinbase = OutPoint { txid: block.tx(0).txid(), vout: 0 };
            overwrites += usize::from(expected.is_good() && before.contains_key(&coinbase));
            again += expected.after.keys().filter(|key| !before.contains_key(key) && seen.contains(key)).count();
            seen.extend(expected.after.keys());
            before = &expected.after;
        }
    }
    let counts = [own, repeats, missing, overwrites, again, good, double];
    assert!(counts.iter().all(|count| *count >= 20), "{counts:?}");
}
