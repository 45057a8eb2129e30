//! `mempool.dat` with Core: each reads the other's file. Core's daemon has transactions in its mempool, with fee
//! deltas, also of transactions that it does not have.

use lydian_chains::presets::maker::{Maker, free_tx, output};
use lydian_disk::{Disk, RealDisk, read_whole};
use lydian_mempool::files::{Dump, DumpedTx, Key, Loader, Record};
use lydian_oracle::{Daemon, Scratch, or_skip};
use lydian_primitives::build::MutBlock;
use lydian_primitives::{OutPoint, Transaction, Txid, push_hex};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Blocks before the first transaction; coinbases of the first ones are mature.
const BLOCKS: usize = 110;

/// Scripts of the coins have no standard form. The times are kept although they are old.
const OPTIONS: &[&str] =
    &["-acceptnonstdtxn=1", "-mempoolexpiry=1000000", "-persistmempool=0", "-maxtipage=2000000000"];

fn hex(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    push_hex(&mut out, bytes);
    String::from_utf8(out).unwrap()
}

fn blocks(maker: &mut Maker) -> Vec<MutBlock> {
    (0..BLOCKS)
        .map(|_| {
            let block = maker.block(Vec::new());
            maker.advance(&block);
            block
        })
        .collect()
}

fn daemon(test: &str, extra: &[&str], blocks: &[MutBlock]) -> Option<Daemon> {
    let options: Vec<&str> = OPTIONS.iter().chain(extra).copied().collect();
    let mut core = or_skip(test, Daemon::start(&options))?;
    let bytes: Vec<Vec<u8>> = blocks.iter().map(MutBlock::encode).collect();
    core.submit_blocks(&bytes).unwrap();
    assert_eq!(core.height().unwrap(), BLOCKS as u64);
    Some(core)
}

fn call(core: &mut Daemon, method: &str, params: Value) -> Value {
    core.call(method, &params).unwrap_or_else(|error| panic!("{method}: {error}"))
}

/// Core with a mempool: a chain of two transactions, two single ones, one with a large witness-free script.
fn filled(test: &str, extra: &[&str]) -> Option<(Daemon, Vec<MutBlock>)> {
    let mut maker = Maker::new();
    let blocks = blocks(&mut maker);
    let mut core = daemon(test, extra, &blocks)?;
    let coins = maker.spendable();
    let mut sent = Vec::new();
    for (index, coin) in coins.iter().take(3).enumerate() {
        let fee = 10_000 * (i64::try_from(index).unwrap() + 1);
        let size = [1, 300, 3_000][index];
        let mut tx = free_tx(&[*coin], vec![output(coin.value - fee, &[0x51])]);
        tx.outputs.push(output(0, &[&[0x6a][..], &vec![0x51; size]].concat()));
        sent.push(tx);
    }
    let parent = &sent[0];
    let mut child = free_tx(&[coins[0]], vec![output(parent.outputs[0].value.0 - 20_000, &[0x51])]);
    child.outputs.push(output(0, &[0x6a, 0x51]));
    child.inputs[0].prevout = OutPoint { txid: parent.txid(), vout: 0 };
    sent.push(child);
    for (index, tx) in (0..).zip(&sent) {
        call(&mut core, "setmocktime", json!([1_700_000_000 + index]));
        call(&mut core, "sendrawtransaction", json!([hex(&tx.encode()), 0, 100]));
    }
    let unknown = "ab".repeat(32);
    call(&mut core, "prioritisetransaction", json!([sent[1].txid().to_string(), 0, 12_345]));
    call(&mut core, "prioritisetransaction", json!([unknown, 0, -777]));
    call(&mut core, "prioritisetransaction", json!(["cd".repeat(32), 0, 5]));
    Some((core, blocks))
}

/// What both programs state about a mempool.
fn state(core: &mut Daemon) -> (Value, Value) {
    let mut entries = call(core, "getrawmempool", json!([true]));
    for entry in entries.as_object_mut().unwrap().values_mut() {
        // The block at which it was accepted is not stored.
        entry.as_object_mut().unwrap().remove("height");
    }
    (entries, call(core, "getprioritisedtransactions", json!([])))
}

/// The content of a file.
struct Content {
    transactions: Vec<(Transaction, i64, i64)>,
    deltas: BTreeMap<Txid, i64>,
    unbroadcast: BTreeSet<Txid>,
}

fn read(path: &Path) -> Content {
    let mut loader = Loader::open(&RealDisk, path).unwrap_or_else(|error| panic!("{error}"));
    let mut content = Content { transactions: Vec::new(), deltas: BTreeMap::new(), unbroadcast: BTreeSet::new() };
    let count = loader.transaction_count();
    while let Some(record) = loader.next_record().unwrap_or_else(|error| panic!("{error}")) {
        match record {
            Record::Transaction { transaction, time, fee_delta } => {
                content.transactions.push((transaction, time, fee_delta));
            }
            Record::Delta { txid, delta } => assert_eq!(content.deltas.insert(txid, delta), None),
            Record::Unbroadcast(txid) => assert!(content.unbroadcast.insert(txid)),
        }
    }
    assert_eq!(content.transactions.len() as u64, count);
    content
}

impl Content {
    fn dump(&self) -> Dump<'_> {
        Dump {
            transactions: self
                .transactions
                .iter()
                .map(|(one, time, fee_delta)| DumpedTx { tx: one.view(), time: *time, fee_delta: *fee_delta })
                .collect(),
            deltas: self.deltas.clone(),
            unbroadcast: self.unbroadcast.clone(),
        }
    }
}

/// Core's file has what Core's RPC states, and ours of the same content and key is the same to the byte.
#[test]
fn cores_file_is_read_and_written_to_the_byte() {
    for (version, option) in [(1, "-persistmempoolv1=1"), (2, "-persistmempoolv1=0")] {
        let Some((mut core, _)) = filled("cores_file_is_read_and_written_to_the_byte", &[option]) else { return };
        let saved = call(&mut core, "savemempool", json!([]));
        let path = Path::new(saved["filename"].as_str().unwrap());
        let bytes = read_whole(&RealDisk, path, 1 << 20).unwrap();
        let content = read(path);
        let (entries, prioritised) = state(&mut core);
        assert_eq!(content.transactions.len(), 4);
        assert_eq!(entries.as_object().unwrap().len(), 4);
        for (transaction, time, fee_delta) in &content.transactions {
            let txid = transaction.view().txid();
            let entry = &entries[txid.to_string()];
            assert_eq!(
                (entry["time"].as_i64(), entry["wtxid"].as_str().unwrap()),
                (Some(*time), &*transaction.view().wtxid().to_string())
            );
            let stated = prioritised[txid.to_string()]["fee_delta"].as_i64().unwrap_or(0);
            assert_eq!(stated, *fee_delta);
            assert_eq!(entry["unbroadcast"].as_bool(), Some(content.unbroadcast.contains(&txid)));
        }
        assert_eq!(content.deltas.values().copied().collect::<BTreeSet<i64>>(), BTreeSet::from([-777, 5]));
        assert_eq!(content.unbroadcast.len(), 4, "no peer has asked for them");
        let key = (version == 2).then(|| Key(bytes[9..17].try_into().unwrap()));
        assert_ne!(key, Some(Key([0; 8])));
        assert_eq!(u64::from_le_bytes(bytes[..8].try_into().unwrap()), version);
        assert!(content.dump().encode(key) == bytes, "version {version}");
    }
}

/// Core takes from our file what it had, in both versions.
#[test]
fn our_file_is_read_by_core() {
    let test = "our_file_is_read_by_core";
    let Some((mut first, blocks)) = filled(test, &[]) else { return };
    let saved = call(&mut first, "savemempool", json!([]));
    let content = read(Path::new(saved["filename"].as_str().unwrap()));
    let expected = state(&mut first);
    let folder = Scratch::new("mempool-file");
    for key in [None, Some(Key([0; 8])), Some(Key(*b"\xffsecret\x80"))] {
        let path = folder.path().join("mempool.dat");
        RealDisk.create_dir(folder.path()).unwrap();
        let size = content.dump().save(&RealDisk, &path, key).unwrap();
        assert_eq!(RealDisk.open(&path).unwrap().size(), size);
        let Some(mut second) = daemon(test, &[], &blocks) else { return };
        call(&mut second, "setmocktime", json!([1_700_000_009]));
        let options = json!({
            "use_current_time": false, "apply_fee_delta_priority": true, "apply_unbroadcast_set": true
        });
        call(&mut second, "importmempool", json!([path.to_str().unwrap(), options]));
        assert_eq!(state(&mut second), expected);
    }
    assert!(expected.0.as_object().unwrap().values().any(|entry| entry["ancestorcount"] == json!(2)));
}
