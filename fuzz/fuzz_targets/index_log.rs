//! The index log of a block store, with any payloads.
//!
//! The store opens, and opens again with the same result, or the error is one sentence that names a file. The input is
//! a list of payloads, each preceded by its size in 2 bytes. They are framed here, so that the fuzzer does not have to
//! find checksums. The rest of the input is appended unchanged.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lydian_chain::{BlockStore, ChainError, INDEX_VERSION, Layout};
use lydian_consensus::{Chain, Params};
use lydian_disk::record::encode_record;
use lydian_disk::{Disk, SimDisk};
use std::sync::Arc;

fuzz_target!(|input: &[u8]| {
    let params = Params::new(Chain::Regtest);
    let head = [&b"lydian index"[..], &INDEX_VERSION.to_le_bytes(), &params.magic, &params.genesis_hash.0].concat();
    let mut log = Vec::new();
    encode_record(&head, 0, &mut log);
    let (mut rest, mut sequence) = (input, 1);
    while let Some((size, tail)) = rest.split_first_chunk::<2>()
        && let Some((payload, tail)) = tail.split_at_checked(usize::from(u16::from_le_bytes(*size)))
    {
        encode_record(payload, sequence, &mut log);
        (rest, sequence) = (tail, sequence + 1);
    }
    log.extend_from_slice(rest);
    let layout = Layout { blocks: "b".into(), index: "b/index".into(), new_key: [0; 8] };
    let disk = SimDisk::new(1);
    disk.create_dir(&layout.index).expect("an empty disk");
    disk.write_whole(&layout.index.join("index.log"), &log).expect("there is room");
    match open(&disk, &layout, &params) {
        Ok(known) => assert_eq!(open(&disk, &layout, &params), Ok(known)),
        Err(error) => {
            let text = error.to_string();
            assert!(text.starts_with("b/") && !text.contains('\n'), "{text}");
        }
    }
});

/// Opens the store and reads everything. Returns the number of headers and the hash of the best header.
fn open(disk: &SimDisk, layout: &Layout, params: &Params) -> Result<(usize, Vec<u8>), ChainError> {
    let opened = BlockStore::open(Arc::new(disk.clone()), layout, params)?;
    let tree = opened.tree;
    for id in tree.ids() {
        let node = tree.node(id);
        if let Some(position) = node.block {
            opened.store.prefetch(position);
        }
        if let Some(position) = node.undo {
            let _ = opened.store.read_undo(position, &node.header.prev_block);
        }
        assert_eq!(tree.ancestor(id, node.height), Some(id));
    }
    Ok((tree.len(), tree.hash(tree.best_header()).0.to_vec()))
}
