//! Properties of reading arbitrary bytes: no panic, every byte accounted for, and a sentence for every problem.

use crate::common::{MAIN, MemoryDisk, TEST, chain, record, scan};
use lydian_chain::{BlockFile, BlockFiles, Obfuscation, Prevout, parse_prevouts, write_prevouts};
use lydian_primitives::{Amount, Height};
use proptest::collection::vec;
use proptest::prelude::*;

/// The building blocks of noise: the more it resembles a real file, the deeper the code under test is reached.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let blocks: Vec<_> = chain(1, 6).into_iter().map(|(_, bytes)| record(MAIN, &bytes)).collect();
    prop_oneof![
        4 => proptest::sample::select(blocks),
        1 => vec(any::<u8>(), 0..40),
        1 => vec(Just(0u8), 0..40),
        1 => Just(MAIN.to_vec()),
        1 => any::<u32>().prop_map(|length| [&MAIN[..], &length.to_le_bytes()].concat()),
        1 => (0u32..300).prop_map(|length| [&MAIN[..], &length.to_le_bytes()].concat()),
        1 => vec(any::<u8>(), 80..90).prop_map(|bytes| record(TEST, &bytes)),
    ]
}

/// A file of such pieces, with flipped bits and possibly a truncated end.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let bytes = vec(piece(), 0..12).prop_map(|pieces| pieces.concat());
    (bytes, vec((any::<prop::sample::Index>(), 0u8..8), 0..4), any::<prop::sample::Index>(), any::<bool>()).prop_map(
        |(mut bytes, flips, cut, is_cut)| {
            for (at, bit) in flips {
                if !bytes.is_empty() {
                    let at = at.index(bytes.len());
                    bytes[at] ^= 1 << bit;
                }
            }
            if is_cut && !bytes.is_empty() {
                bytes.truncate(cut.index(bytes.len()));
            }
            bytes
        },
    )
}

/// The offsets of the records that Core's `LoadExternalBlockFile` finds, by a direct translation of its byte-by-byte
/// loop.
fn plain_twin(bytes: &[u8]) -> Vec<u64> {
    let mut found = Vec::new();
    let mut at = 0;
    while at + 8 <= bytes.len() {
        if bytes[at..at + 4] != MAIN {
            at += 1;
            continue;
        }
        let length = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap()) as usize;
        if !(80..=4_000_000).contains(&length) {
            at += 1;
            continue;
        }
        if at + 8 + length > bytes.len() {
            break;
        }
        found.push(at as u64 + 8);
        at += 8 + length;
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_file_gives_the_records_core_finds_and_sentences(bytes in damaged()) {
        let genesis = chain(1, 1)[0].0;
        let (index, ordered) = scan(&[&bytes], genesis);
        prop_assert_eq!(index.records.iter().map(|record| record.offset).collect::<Vec<_>>(), plain_twin(&bytes));
        for remark in &index.remarks {
            let text = remark.to_string();
            prop_assert!(text.starts_with("a:") && !text.contains('\n'), "{}", text);
            prop_assert!(remark.offset < bytes.len() as u64);
        }
        // Every record is ordered or waits for a parent, and parents come first.
        let waiting: usize = ordered.missing_parents.iter().map(|missing| 1 + missing.descendants).sum();
        let copies = index.remarks.iter().filter(|remark| remark.to_string().contains("a duplicate of")).count();
        prop_assert!(ordered.blocks.len() + waiting <= index.records.len());
        prop_assert!(ordered.blocks.len() + waiting + copies >= index.records.len());
        for (at, placed) in ordered.blocks.iter().enumerate() {
            let parent = placed.record.header.prev_block;
            let is_root = placed.record.hash == genesis || parent == genesis;
            prop_assert!(is_root || ordered.blocks[..at].iter().any(|earlier| earlier.record.hash == parent));
        }
    }

    #[test]
    fn any_record_is_read_or_refused_in_a_sentence(bytes in damaged(), key in any::<[u8; 8]>()) {
        let key = Obfuscation::new(key);
        let mut hidden = bytes.clone();
        key.apply(0, &mut hidden);
        let disk = MemoryDisk::with(&[("a", &hidden)]);
        let mut files = BlockFiles::new(&disk, vec![BlockFile { path: "a".into(), key }]);
        let index = files.scan(MAIN, &mut |_, _| {}).unwrap();
        prop_assert_eq!(index.records.iter().map(|record| record.offset).collect::<Vec<_>>(), plain_twin(&bytes));
        for record in &index.records {
            match files.read(record) {
                Ok(read) => prop_assert_eq!(read.block.hash(), record.hash),
                Err(error) => {
                    let (text, begin) = (error.to_string(), format!("a:{}: block", record.offset));
                    prop_assert!(text.starts_with(&begin), "{}", text);
                }
            }
        }
        if let Err(error) = files.detect_magic(0) {
            prop_assert!(error.to_string().starts_with("a:"));
        }
    }

    #[test]
    fn any_bytes_are_prevouts_or_an_error(bytes in vec(any::<u8>(), 0..200)) {
        if let Ok(prevouts) = parse_prevouts(&bytes) {
            prop_assert_eq!(write_prevouts(&prevouts), bytes);
        }
    }

    #[test]
    fn prevouts_read_back_and_no_prefix_does(
        values in vec((any::<i64>(), proptest::option::of((0u32..(1 << 31) - 1, any::<bool>())), vec(any::<u8>(), 0..300)), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let prevouts: Vec<_> = values.iter().map(|(value, origin, script)| Prevout {
            value: Amount(*value),
            origin: origin.map(|(height, is_coinbase)| (Height(height), is_coinbase)),
            script_pubkey: script,
        }).collect();
        let bytes = write_prevouts(&prevouts);
        prop_assert_eq!(parse_prevouts(&bytes).unwrap(), prevouts.clone());
        let cut = cut.index(bytes.len());
        match parse_prevouts(&bytes[..cut]) {
            Ok(fewer) => prop_assert!(fewer.len() < prevouts.len() && prevouts.starts_with(&fewer)),
            Err(error) => prop_assert!(error.offset <= cut),
        }
    }
}
