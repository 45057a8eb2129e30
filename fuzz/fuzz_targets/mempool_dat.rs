//! `mempool.dat` with any content: records, or an error of one sentence with an offset inside the file.
//!
//! What was read is written with another key and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lydian_disk::{Disk, SimDisk};
use lydian_mempool::files::{Dump, DumpedTx, Key, LoadError, Loader, Record};
use lydian_primitives::{Transaction, Txid};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

#[derive(Debug, Default)]
struct Content {
    transactions: Vec<(Transaction, i64, i64)>,
    deltas: BTreeMap<Txid, i64>,
    unbroadcast: BTreeSet<Txid>,
}

impl Content {
    fn dump(&self) -> Dump<'_> {
        let transactions = self.transactions.iter();
        Dump {
            transactions: transactions
                .map(|(one, time, fee_delta)| DumpedTx { tx: one.view(), time: *time, fee_delta: *fee_delta })
                .collect(),
            deltas: self.deltas.clone(),
            unbroadcast: self.unbroadcast.clone(),
        }
    }
}

fn read(bytes: &[u8]) -> (Content, Result<(), LoadError>) {
    let (disk, path) = (SimDisk::new(0), Path::new("/mempool.dat"));
    disk.write_whole(path, bytes).expect("the simulated disk has room");
    let mut content = Content::default();
    let mut go = || {
        let mut loader = Loader::open(&disk, path)?;
        while let Some(record) = loader.next_record()? {
            match record {
                Record::Transaction { transaction, time, fee_delta } => {
                    content.transactions.push((transaction, time, fee_delta));
                }
                Record::Delta { txid, delta } => drop(content.deltas.entry(txid).or_insert(delta)),
                Record::Unbroadcast(txid) => drop(content.unbroadcast.insert(txid)),
            }
        }
        Ok(())
    };
    let end = go();
    (content, end)
}

fuzz_target!(|bytes: &[u8]| {
    let (content, end) = read(bytes);
    if let Err(error) = end {
        assert!(!error.to_string().contains('\n') && error.offset <= bytes.len() as u64);
    }
    let written = content.dump().encode(Some(Key(*b"\x01fuzzkey")));
    let (again, end) = read(&written);
    assert_eq!(end, Ok(()));
    assert_eq!(again.dump().encode(None), content.dump().encode(None));
});
