//! The cost of accepting a header from its 80 bytes to the index log: hash, proof of work, target, median time past,
//! tree, log.
//!
//! Data: the 190,001 real mainnet headers from height 150,000 (part of the larger test data; reported if missing), and
//! 900,000 regtest headers made here, which go through the engine. The mainnet headers go into a tree that starts with
//! the first of them, and from height 151,200, whose retarget needs headers further below, into a second one. The first
//! eleven headers of a tree are entered unchecked, since the times before them are missing. Answer: the number of
//! headers accepted and the last hash. Output: criterion's table, in headers per second. `cargo bench -p lydian-engine
//! --bench headers`; `-- --test` runs each once.

#![allow(clippy::unwrap_used, reason = "a benchmark fails at once")]

#[allow(dead_code, reason = "each user takes its part")]
#[path = "../../../testdata/locate.rs"]
mod locate;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use locate::{read, shared};
use lydian_chain::{BlockStore, HeaderTree, IndexEntry, accept_headers};
use lydian_consensus::pow::is_proof_of_work;
use lydian_consensus::{Chain, Params};
use lydian_disk::{Disk, RealDisk};
use lydian_engine::{Engine, Layout, Settings};
use lydian_oracle::Scratch;
use lydian_primitives::{HashedHeader, Header, Height, Reader};
use std::path::Path;
use std::sync::Arc;

/// Headers per message.
const HEADERS_OF_MESSAGE: usize = 2000;

/// Headers whose median time past needs ancestors that are missing.
const UNCHECKED: usize = 11;

const FIRST_RETARGET: u32 = 151_200;
const FIRST_HEIGHT: u32 = 150_000;
const REGTEST_HEADERS: usize = 900_000;
const NOW: i64 = 4_000_000_000;

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = mainnet, regtest
}
criterion_main!(benches);

fn layout(root: &Path) -> Layout {
    Layout { blocks: root.join("blocks"), index: root.join("blocks/index"), coins: root.join("chainstate") }
}

/// Handles all headers as messages of a peer.
fn take(bytes: &[u8], mut accept: impl FnMut(&[Header])) {
    for message in bytes.chunks(HEADERS_OF_MESSAGE * 80) {
        let mut reader = Reader::new(message);
        let headers: Vec<_> = (0..message.len() / 80).map(|_| Header::read(&mut reader).unwrap()).collect();
        accept(&headers);
    }
}

fn mainnet(criterion: &mut Criterion) {
    let Some(path) = shared("headers/main_150000_340000.bin.zst") else { return };
    let bytes = read(&path);
    let params = Params::new(Chain::Main);
    let retarget = (FIRST_RETARGET - FIRST_HEIGHT) as usize * 80;
    let parts = [(FIRST_HEIGHT, &bytes[..retarget]), (FIRST_RETARGET, &bytes[retarget..])];
    let mut group = criterion.benchmark_group("headers");
    group.throughput(Throughput::Elements(bytes.len() as u64 / 80));
    group.bench_function("mainnet 150,000-340,000", |bencher| {
        let setup = || {
            let scratch = Scratch::new("headers-main");
            let disk: Arc<dyn Disk> = Arc::new(RealDisk);
            let stores = ["a", "b"].map(|name| {
                let root = scratch.path().join(name);
                let layout =
                    lydian_chain::Layout { blocks: root.join("blocks"), index: root.join("index"), new_key: [0; 8] };
                BlockStore::open(Arc::clone(&disk), &layout, &params).unwrap().store
            });
            (scratch, stores)
        };
        let run = |(_scratch, stores): (Scratch, [BlockStore; 2])| {
            let mut taken = 0;
            for ((height, bytes), store) in parts.iter().zip(stores) {
                let (first, rest) = bytes.split_at(UNCHECKED * 80);
                let mut first = first.as_chunks::<80>().0.iter().map(Header::parse);
                let mut tree = HeaderTree::rooted_at(&first.next().unwrap(), Height(*height));
                for header in first {
                    let id = tree.restore_header(&header).unwrap();
                    store.record(&[IndexEntry::Header { id, header }]);
                    taken += 1;
                }
                take(rest, |headers| {
                    let headers = HashedHeader::many(headers);
                    let (new, answer) = accept_headers(&mut tree, &store, &headers, NOW, &params);
                    assert_eq!(answer, Ok(()));
                    taken += new;
                });
                store.flush().unwrap();
                assert_eq!(tree.header(tree.best_header()).to_bytes(), bytes[bytes.len() - 80..]);
            }
            assert_eq!(taken + 2, 190_001);
        };
        bencher.iter_batched(setup, run, BatchSize::PerIteration);
    });
    group.finish();
}

/// A chain of regtest headers with proof of work.
fn mine(params: &Params) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(REGTEST_HEADERS * 80);
    let mut header = *params.genesis_block().parse().unwrap().header();
    for _ in 0..REGTEST_HEADERS {
        header = Header { prev_block: header.hash(), time: header.time + 600, version: 4, nonce: 0, ..header };
        while !is_proof_of_work(&header.hash(), header.bits, params) {
            header.nonce += 1;
        }
        bytes.extend_from_slice(&header.to_bytes());
    }
    bytes
}

fn regtest(criterion: &mut Criterion) {
    let params = Params::new(Chain::Regtest);
    let bytes = mine(&params);
    let mut group = criterion.benchmark_group("headers");
    group.throughput(Throughput::Elements(REGTEST_HEADERS as u64));
    group.bench_function("regtest 900,000 through the engine", |bencher| {
        let setup = || {
            let scratch = Scratch::new("headers-regtest");
            let layout = layout(scratch.path());
            let opened =
                Engine::open(Arc::new(RealDisk), &layout, params.clone(), Settings::new(1), Vec::new()).unwrap();
            (scratch, opened.engine)
        };
        let run = |(_scratch, engine): (Scratch, Engine)| {
            take(&bytes, |headers| {
                let answer = engine.accept_headers(headers, NOW).unwrap();
                assert_eq!((answer.new, answer.refused), (headers.len(), None));
            });
            assert_eq!(engine.best_header_height().0 as usize, REGTEST_HEADERS);
        };
        bencher.iter_batched(setup, run, BatchSize::PerIteration);
    });
    group.finish();
}
