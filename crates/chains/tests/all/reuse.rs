//! The chain of the preset `reuse`: its scripts have the promised transactions and coins.
//!
//! The answers computed from the blocks are checked against a naive count and against Bitcoin Core.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and reads its own files"
)]

use lydian_chains::chain_files::ChainFiles;
use lydian_chains::expected::{Expected, Outspends};
use lydian_chains::limits::{REUSE_FAT_MAX, REUSE_FAT_MIN, REUSE_SCRIPTS_MAX};
use lydian_chains::plan::{PlannedBlock, PlannedTx};
use lydian_chains::presets::invalid::CASES_NOW;
use lydian_chains::presets::reuse::{self, Planner, ReuseSettings, Story};
use lydian_chains::regtest::VOTED_ACTIVATION_HEIGHT;
use lydian_chains::stats::Stats;
use lydian_chains::targets::{TARGETS_FILE, Target, Targets, scripthash};
use lydian_chains::wallet::Kind;
use lydian_consensus::{Chain, Params, PlainValidator};
use lydian_oracle::{Daemon, Scratch, or_skip};
use lydian_primitives::{Block, OutPoint, RawBlock, to_hex};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, Weak};

const SMALL: ReuseSettings = ReuseSettings { seed: 7, scripts: 60, fat_spent: 200, fat_kept: 470 };

/// The small chain in a folder.
struct Small {
    scratch: Scratch,
    stats: Stats,
    chain: ChainFiles,
    targets: Targets,
    blocks: Vec<Block>,
}

/// Generated once for all tests that run at the same time; the last of them removes the folder.
fn small() -> Arc<Small> {
    static SHARED: Mutex<Weak<Small>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap();
    shared.upgrade().unwrap_or_else(|| {
        let made = Arc::new(Small::made());
        *shared = Arc::downgrade(&made);
        made
    })
}

impl Small {
    fn made() -> Small {
        let scratch = Scratch::new("reuse");
        let stats = reuse::write(SMALL, 2, scratch.path()).unwrap();
        let chain = ChainFiles::open(scratch.path(), None).unwrap();
        let targets = Targets::of_chain(scratch.path()).unwrap();
        let mut blocks = Vec::new();
        let take = &mut |bytes: &[u8]| {
            blocks.push(RawBlock::new(bytes).parse().unwrap());
            Ok(())
        };
        chain.each_block(take).unwrap();
        Small { scratch, stats, chain, targets, blocks }
    }
}

/// The use of a script, counted without regard for speed: (height, txid) of the transactions that touch it, and
/// (height, txid, vout, value) of its unspent coins.
type Naive = (Vec<(usize, String)>, Vec<(usize, String, u32, i64)>);

fn naive(blocks: &[Block]) -> BTreeMap<Vec<u8>, Naive> {
    let mut outputs: BTreeMap<OutPoint, (Vec<u8>, i64)> = BTreeMap::new();
    let mut spent: BTreeSet<OutPoint> = BTreeSet::new();
    let mut order: Vec<(usize, OutPoint)> = Vec::new();
    let mut found: BTreeMap<Vec<u8>, Naive> = BTreeMap::new();
    for (height, block) in blocks.iter().enumerate().skip(1) {
        for tx in block.txs() {
            let mut touched = BTreeSet::new();
            for (vout, output) in (0..).zip(tx.outputs()) {
                let outpoint = OutPoint { txid: tx.txid(), vout };
                outputs.insert(outpoint, (output.script_pubkey.to_vec(), output.value.0));
                order.push((height, outpoint));
                touched.insert(output.script_pubkey.to_vec());
            }
            for input in tx.inputs().filter(|input| !input.prevout.is_null()) {
                touched.insert(outputs[&input.prevout].0.clone());
                assert!(spent.insert(input.prevout), "spent twice at height {height}");
            }
            touched.into_iter().for_each(|script| {
                found.entry(script).or_default().0.push((height, tx.txid().to_string()));
            });
        }
    }
    for (height, outpoint) in order.into_iter().filter(|(_, outpoint)| !spent.contains(outpoint)) {
        let (script, value) = outputs[&outpoint].clone();
        found.entry(script).or_default().1.push((height, outpoint.txid.to_string(), outpoint.vout, value));
    }
    found
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let mut one = Vec::new();
    let sink = |block: &[u8]| {
        one.push(block.to_vec());
        Ok(())
    };
    let (stats, targets) = reuse::generate(SMALL, 1, sink).unwrap();
    let small = small();
    let two: Vec<&[u8]> = small.blocks.iter().map(Block::as_bytes).collect();
    assert!(one == two, "threads changed the chain");
    assert_eq!((stats.tip, targets), (small.stats.tip.clone(), small.targets.clone()));
    let mut other = Planner::new(ReuseSettings { seed: 8, ..SMALL }).unwrap();
    assert!(other.next_block().unwrap().is_some());
    assert_ne!(other.stories()[0].lock.kind, Kind::P2trScript);
}

#[test]
fn scripts_and_answers_are_those_of_a_naive_count() {
    let small = small();
    let Small { targets, chain, blocks, .. } = &*small;
    let naive = naive(blocks);
    let expected = Expected::of(chain, targets).unwrap();
    assert_eq!(targets.scripts.len(), 62);
    for (at, target) in targets.scripts.iter().enumerate() {
        let (history, utxos) = &naive[&target.script];
        assert_eq!((target.transactions as usize, target.utxos as usize), (history.len(), utxos.len()), "{at}");
        assert_eq!(expected.counts(at), (history.len(), utxos.len()));
        let entry = |(height, txid): &(usize, String)| json!({ "height": height, "tx_hash": txid });
        assert_eq!(expected.history(at), history.iter().map(entry).collect::<Value>(), "{at}");
        let coin = |(height, txid, vout, value): &(usize, String, u32, i64)| json!({ "height": height, "tx_hash": txid, "tx_pos": vout, "value": value });
        assert_eq!(expected.utxos(at), utxos.iter().map(coin).collect::<Value>(), "{at}");
        let confirmed: i64 = utxos.iter().map(|coin| coin.3).sum();
        assert_eq!(expected.balance(at), json!({ "confirmed": confirmed, "unconfirmed": 0 }));
    }
    let fat: Vec<(u32, u32)> = targets.scripts[60..].iter().map(|target| (target.transactions, target.utxos)).collect();
    assert_eq!(fat, [(200, 1), (470, 484)]);
}

/// What Esplora's API must answer is derived again from all blocks, in another way.
#[test]
fn the_answers_of_esplora_are_those_of_a_naive_count() {
    let small = small();
    let Small { targets, chain, blocks, .. } = &*small;
    let naive = naive(blocks);
    let expected = Expected::of(chain, targets).unwrap();
    let outspends = Outspends::of(chain, &expected).unwrap();
    let status = |height: usize| {
        let (hash, time) = (blocks[height].hash().to_string(), blocks[height].header().time);
        json!({ "confirmed": true, "block_height": height, "block_hash": hash, "block_time": time })
    };
    let mut spent_by: BTreeMap<(String, u32), Value> = BTreeMap::new();
    for (height, block) in blocks.iter().enumerate() {
        for tx in block.txs().skip(1) {
            for (vin, input) in tx.inputs().enumerate() {
                let spend =
                    json!({ "spent": true, "txid": tx.txid().to_string(), "vin": vin, "status": status(height) });
                spent_by.insert((input.prevout.txid.to_string(), input.prevout.vout), spend);
            }
        }
    }
    let (mut spent, mut unspent) = (0, 0);
    for (at, target) in targets.scripts.iter().enumerate() {
        let (history, utxos) = &naive[&target.script];
        let entry = |(height, txid): &(usize, String)| json!({ "txid": txid, "status": status(*height) });
        assert_eq!(expected.esplora_txs(at), history.iter().rev().take(25).map(entry).collect::<Value>(), "{at}");
        let coin = |(height, txid, vout, value): &(usize, String, u32, i64)| json!({ "txid": txid, "vout": vout, "value": value, "status": status(*height) });
        assert_eq!(expected.esplora_utxo(at), utxos.iter().map(coin).collect::<Value>(), "{at}");

        let outputs = blocks.iter().flat_map(Block::txs).flat_map(|tx| {
            let txid = tx.txid().to_string();
            let paid = tx.outputs().zip(0u32..).filter(|(output, _)| output.script_pubkey == target.script);
            paid.map(|(output, vout)| ((txid.clone(), vout), output.value.0)).collect::<Vec<_>>()
        });
        let (mut funded, mut gone) = ((0, 0), (0, 0));
        for (outpoint, value) in outputs {
            funded = (funded.0 + 1, funded.1 + value);
            if spent_by.contains_key(&outpoint) {
                gone = (gone.0 + 1, gone.1 + value);
            }
        }
        let stats = |txs: usize, funded: (u32, i64), gone: (u32, i64)| json!({ "tx_count": txs, "funded_txo_count": funded.0, "funded_txo_sum": funded.1, "spent_txo_count": gone.0, "spent_txo_sum": gone.1 });
        let both =
            json!({ "chain_stats": stats(history.len(), funded, gone), "mempool_stats": stats(0, (0, 0), (0, 0)) });
        assert_eq!(expected.esplora_script(at), both, "{at}");

        let (height, txid) = &history[history.len() / 2];
        let tx = blocks[*height].txs().find(|tx| tx.txid().to_string() == *txid).unwrap();
        let spend = |vout: u32| spent_by.get(&(txid.clone(), vout)).cloned().unwrap_or(json!({ "spent": false }));
        let all: Vec<Value> = (0u32..).take(tx.outputs().count()).map(spend).collect();
        spent += all.iter().filter(|spend| spend["spent"] == true).count();
        unspent += all.iter().filter(|spend| spend["spent"] == false).count();
        assert_eq!(expected.esplora_outspends(at, &outspends), Some((txid.clone(), all.into())), "{at}");
    }
    assert!(spent > 20 && unspent > 20, "{spent} {unspent}");
}

/// Coins spent in the block that creates them, several scripts in one transaction, blocks of very different sizes,
/// transactions over the whole chain.
#[test]
fn the_small_chain_is_as_mixed_as_the_large_one() {
    let small = small();
    let Small { stats, blocks, targets, chain, .. } = &*small;
    assert_eq!((stats.height, chain.facts.height), (SMALL.blocks(), SMALL.blocks()));
    assert!(stats.same_block_spends > 0 && stats.tweak_checks > 0, "{stats:?}");
    let counts: Vec<usize> = blocks[433..].iter().map(Block::tx_count).collect();
    assert!(counts.iter().min() < Some(&20) && counts.iter().max() > Some(&500), "{counts:?}");
    assert!(blocks.iter().all(|block| block.weight() <= 4_000_000));
    let kinds: BTreeSet<&str> = targets.scripts.iter().filter_map(|target| target.kind).map(Kind::name).collect();
    assert!(kinds.len() > 5, "{kinds:?}");
    let left: Vec<u32> = targets.scripts.iter().map(|target| target.utxos * 100 / target.transactions).collect();
    assert!(left.contains(&0) && left.iter().any(|&per_cent| per_cent >= 100), "{left:?}");
    // Below the activation height the only transactions are coinbases without witness.
    let has_witness = |block: &Block| block.txs().any(|tx| tx.has_witness());
    assert!(!blocks[..VOTED_ACTIVATION_HEIGHT as usize].iter().any(has_witness));
    let naive = naive(blocks);
    let histories: Vec<_> = targets.scripts.iter().map(|target| &naive[&target.script].0).collect();
    let mut scripts_of: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, txid) in histories.iter().copied().flatten() {
        *scripts_of.entry(txid.as_str()).or_default() += 1;
    }
    let shared: BTreeSet<usize> = scripts_of.into_values().collect();
    assert_eq!(shared.into_iter().collect::<Vec<_>>(), [1, 2, 3, 4]);
    let span = |history: &[(usize, String)]| history[history.len() - 1].0 - history[0].0;
    let spans = histories.iter().filter(|history| span(history) >= 10).count();
    assert!(spans > 50, "{spans} of 62 scripts live for ten blocks");
}

/// The full chain is only planned here; nothing is signed.
#[test]
fn the_full_chain_has_the_shape_promised() {
    let mut planner = Planner::new(ReuseSettings::default()).unwrap();
    let mut blocks: Vec<PlannedBlock> = Vec::new();
    while let Some(block) = planner.next_block().unwrap() {
        blocks.push(block);
    }
    assert_eq!(blocks.len(), 2_190);
    let sizes: Vec<usize> = blocks[432..].iter().map(|block| block.txs.len() + 1).collect();
    assert!(sizes[1_758 * 3 / 5] == 2_900 && sizes.iter().min() < Some(&6), "{sizes:?}");
    assert!((300_000..340_000).contains(&sizes.iter().sum::<usize>()), "{} transactions", sizes.iter().sum::<usize>());
    let weights = blocks.iter().map(|block| block.txs.iter().map(PlannedTx::weight_x2).sum::<u64>() / 2);
    assert!(weights.max() < Some(3_800_000));
    let heaviest = blocks.iter().flat_map(|block| &block.txs).map(|tx| tx.weight_x2() / 2).max();
    assert!(heaviest < Some(200_000), "{heaviest:?}");

    let (stories, fat) = planner.stories().split_at(3_000);
    let counts = |story: &Story| (story.transactions(), story.coin_count());
    assert_eq!(fat.iter().map(counts).collect::<Vec<_>>(), [(20_000, 1), (47_000, 48_410)]);
    let mut thirds = [0u32; 3];
    let mut shares = [0u32; 6];
    for (transactions, coins) in stories.iter().map(counts) {
        assert!((10..=999).contains(&transactions));
        thirds[[47, 216].iter().filter(|&&end| transactions >= end).count()] += 1;
        shares[if coins == 0 { 0 } else { 1 + (4 * coins / transactions).min(4) as usize }] += 1;
    }
    // A third each of the logarithm of 99.9; no coins, four quarters, all.
    assert!(thirds.iter().all(|count| count.abs_diff(1_000) < 100), "{thirds:?}");
    assert!(shares.iter().all(|&count| count > 100), "{shares:?}");
}

#[test]
fn any_chain_gives_its_most_used_scripts() {
    let small = small();
    let Small { scratch, targets, .. } = &*small;
    let mut most = targets.scripts.clone();
    most.sort_by_key(|target| std::cmp::Reverse((target.transactions, target.scripthash.clone())));
    most.truncate(20);
    let mut sample = Targets::sample(scratch.path(), 20).unwrap().scripts;
    sample.sort_by_key(|target| std::cmp::Reverse((target.transactions, target.scripthash.clone())));
    let counts = |targets: &[Target]| -> Vec<(u32, u32, String)> {
        targets.iter().map(|target| (target.transactions, target.utxos, target.scripthash.clone())).collect()
    };
    assert_eq!(counts(&sample), counts(&most));
}

#[test]
fn a_target_has_the_hash_of_its_script() {
    // The example in the Electrum protocol's documentation: the script of the genesis block's address.
    let script = lydian_primitives::hex("76a91462e907b15cbf27d5425399ebf6f0fb50ebb88f1888ac").unwrap();
    assert_eq!(scripthash(&script), "8b01df4e368ea28f8dc0423bcf7a4923e3a12d307c875e47a0cfbf90b5c39161");
    let folder = Scratch::new("reuse-targets");
    std::fs::create_dir_all(folder.path()).unwrap();
    let small = small();
    let text = std::fs::read_to_string(small.scratch.path().join(TARGETS_FILE)).unwrap();
    let of = |text: &str| {
        std::fs::write(folder.path().join(TARGETS_FILE), text).unwrap();
        Targets::of_chain(folder.path())
    };
    assert_eq!(of(&text).unwrap(), small.targets);
    let first = &small.targets.scripts[0];
    assert!(
        of(&text.replace(&first.scripthash, &"0".repeat(64))).unwrap_err().to_string().contains("hash of its script")
    );
    assert!(of(&text[..text.len() / 2]).is_err());
    std::fs::remove_file(folder.path().join(TARGETS_FILE)).unwrap();
    assert!(Targets::of_chain(folder.path()).is_err());
}

/// Every branch leads to the merkle root in the header, and the headers are those of the blocks.
#[test]
fn merkle_branches_lead_to_the_root() {
    let small = small();
    let Small { chain, blocks, .. } = &*small;
    let expected = Expected::of(chain, &Targets::default()).unwrap();
    let largest = expected.largest_block() as usize;
    assert_eq!(Some(blocks[largest].tx_count()), blocks.iter().map(Block::tx_count).max());
    for height in [0, 1, 200, 433, 434, largest, 467] {
        let block = &blocks[height];
        let at = u32::try_from(height).unwrap();
        assert_eq!(expected.block_txids(at).len(), block.tx_count());
        for (pos, tx) in block.txs().enumerate() {
            let answer = expected.merkle(&tx.txid().to_string(), at).unwrap();
            assert_eq!((&answer["block_height"], &answer["pos"]), (&json!(height), &json!(pos)));
            let branch = answer["merkle"].as_array().unwrap();
            let mut hash = tx.txid().0;
            for (depth, beside) in branch.iter().enumerate() {
                let mut beside = lydian_primitives::hex(beside.as_str().unwrap()).unwrap();
                beside.reverse();
                let is_right = pos >> depth & 1 == 1;
                let pair = if is_right { [&beside[..], &hash[..]] } else { [&hash[..], &beside[..]] };
                hash = lydian_hash::sha256d(&pair.concat());
            }
            assert_eq!(hash, block.header().merkle_root, "height {height} transaction {pos}");
        }
        assert_eq!(expected.header(at), Some(to_hex(&block.as_bytes()[..80])));
    }
    assert_eq!(expected.merkle(&blocks[1].tx(0).txid().to_string(), 2), None);
    assert_eq!((expected.header(468), expected.tip_height()), (None, 467));
    let last: String = blocks[466..].iter().map(|block| to_hex(&block.as_bytes()[..80])).collect();
    assert_eq!((expected.headers(466, 2_016), expected.headers(468, 1)), (last, String::new()));
}

#[test]
fn the_plain_validator_takes_the_chain() {
    let small = small();
    let Small { stats, blocks, .. } = &*small;
    let mut validator = PlainValidator::new(Params::new(Chain::Regtest));
    for block in &blocks[1..] {
        let accepted = validator.accept_block(block.clone(), CASES_NOW).unwrap();
        assert!(accepted.is_active, "{:?}", accepted.invalid);
    }
    let (height, hash) = validator.tip();
    assert_eq!((height.0, hash.to_string()), (stats.height, stats.tip.clone()));
    assert_eq!(validator.coin_count() as u64, stats.coins);
}

/// Core reaches the tip and the UTXO set that the lab computes, and finds the same coins for scripts.
#[test]
fn core_takes_the_chain_and_finds_the_same_coins() {
    let small = small();
    let Small { scratch, stats, chain, targets, .. } = &*small;
    let load = format!("-loadblock={}", scratch.path().join("blk00000.dat").display());
    let Some(mut daemon) = or_skip("reuse preset", Daemon::start(&["-par=2", &load])) else { return };
    for _ in 0..600 {
        if daemon.height().unwrap() == u64::from(stats.height) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let set = daemon.txoutset("hash_serialized_3").unwrap();
    let answer = chain.answer.clone().unwrap();
    assert_eq!((set.best_block, Some(set.txouts), set.hash), (stats.tip.clone(), answer.coins, answer.utxo_hash));

    let expected = Expected::of(chain, targets).unwrap();
    for at in [0, 1, 2, 30, 59, 60, 61] {
        let descriptor = format!("raw({})", to_hex(&targets.scripts[at].script));
        let found = daemon.call("scantxoutset", &json!(["start", [descriptor]])).unwrap();
        let satoshi =
            |amount: &Value| format!("{:.8}", amount.as_f64().unwrap()).replace('.', "").parse::<i64>().unwrap();
        let coin = |coin: &Value| {
            (coin["height"].as_u64(), coin["txid"].clone(), coin["vout"].as_u64(), satoshi(&coin["amount"]))
        };
        let ours = |coin: &Value| {
            (coin["height"].as_u64(), coin["tx_hash"].clone(), coin["tx_pos"].as_u64(), coin["value"].as_i64().unwrap())
        };
        let mut theirs: Vec<_> = found["unspents"].as_array().unwrap().iter().map(coin).collect();
        let utxos = expected.utxos(at);
        let mut ours: Vec<_> = utxos.as_array().unwrap().iter().map(ours).collect();
        theirs.sort_by_key(|coin| format!("{coin:?}"));
        ours.sort_by_key(|coin| format!("{coin:?}"));
        assert_eq!(ours, theirs, "{at}");
        assert_eq!(expected.balance(at)["confirmed"], json!(satoshi(&found["total_amount"])));
    }
}

/// limit: REUSE_SCRIPTS_MAX at
/// limit: REUSE_SCRIPTS_MAX above
/// limit: REUSE_FAT_MIN at
/// limit: REUSE_FAT_MIN below
/// limit: REUSE_FAT_MAX at
/// limit: REUSE_FAT_MAX above
#[test]
fn settings_that_no_chain_can_keep_are_refused() {
    let check = |scripts, fat_spent, fat_kept| ReuseSettings { seed: 1, scripts, fat_spent, fat_kept }.check();
    assert!(check(REUSE_SCRIPTS_MAX, REUSE_FAT_MIN, REUSE_FAT_MAX).is_ok());
    assert!(check(1, 0, 0).is_ok());
    for (scripts, spent, kept) in [
        (0, 0, 0),
        (REUSE_SCRIPTS_MAX + 1, 0, 0),
        (1, REUSE_FAT_MIN - 1, 0),
        (1, 0, REUSE_FAT_MIN - 1),
        (1, REUSE_FAT_MAX + 1, 0),
        (1, 0, REUSE_FAT_MAX + 1),
    ] {
        assert!(check(scripts, spent, kept).is_err(), "{scripts} {spent} {kept}");
    }
    let folder = Scratch::new("reuse-refused");
    let chain = folder.path().join("chain");
    assert!(reuse::write(ReuseSettings { scripts: 0, ..SMALL }, 1, &chain).is_err());
    assert!(!chain.exists(), "refused settings leave no folder behind");
}
