//! Records: written records are read back, and nothing else is.

use lydian_disk::limits::RECORD_PAYLOAD_SIZE_MAX;
use lydian_disk::record::{RECORD_HEAD_SIZE, Records, Torn, encode_record};

fn log(payloads: &[&[u8]], sequence: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (payload, number) in payloads.iter().zip(sequence..) {
        encode_record(payload, number, &mut bytes);
    }
    bytes
}

fn read(bytes: &[u8], sequence: u64) -> (Vec<&[u8]>, Option<u64>) {
    let mut torn = None;
    let mut payloads = Vec::new();
    for item in Records::read(bytes, sequence) {
        assert!(torn.is_none(), "nothing follows a torn record");
        match item {
            Ok(payload) => payloads.push(payload),
            Err(Torn { offset }) => torn = Some(offset),
        }
    }
    (payloads, torn)
}

const PAYLOADS: [&[u8]; 4] = [b"first", b"", b"the third one", b"4"];

#[test]
fn a_log_cut_anywhere_gives_the_records_before_the_cut() {
    let whole = log(&PAYLOADS, 7);
    assert_eq!(read(&whole, 7), (PAYLOADS.to_vec(), None));
    let ends: Vec<usize> = (0..=PAYLOADS.len()).map(|count| log(&PAYLOADS[..count], 7).len()).collect();
    for cut in 0..whole.len() {
        let count = ends.iter().filter(|end| **end <= cut).count() - 1;
        let torn = (ends[count] != cut).then_some(ends[count] as u64);
        assert_eq!(read(&whole[..cut], 7), (PAYLOADS[..count].to_vec(), torn), "cut at {cut}");
    }
}

/// checklist: 94
#[test]
fn every_flipped_bit_ends_the_log_before_its_record() {
    let whole = log(&PAYLOADS, 0);
    let ends: Vec<usize> = (0..=PAYLOADS.len()).map(|count| log(&PAYLOADS[..count], 0).len()).collect();
    for bit in 0..whole.len() * 8 {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let count = ends.iter().filter(|end| **end <= bit / 8).count() - 1;
        assert_eq!(read(&damaged, 0), (PAYLOADS[..count].to_vec(), Some(ends[count] as u64)), "bit {bit}");
    }
}

/// Regression: a log that was truncated and written again ended exactly where a record of its old content began.
#[test]
fn a_record_in_another_place_is_not_taken() {
    assert_eq!(read(&log(&PAYLOADS, 1), 0), (vec![], Some(0)));
    let twice = [log(&PAYLOADS[..1], 0), log(&PAYLOADS[..1], 0)].concat();
    assert_eq!(read(&twice, 0).0.len(), 1);
    for sequence in 0..1000 {
        assert_eq!(read(&[0; 64], sequence), (vec![], Some(0)), "zeros are not a record");
    }
}

/// limit: RECORD_PAYLOAD_SIZE_MAX at
#[test]
fn the_longest_record_is_read() {
    let payload = vec![0xa5; RECORD_PAYLOAD_SIZE_MAX];
    let bytes = log(&[&payload], 3);
    assert_eq!(bytes.len(), RECORD_HEAD_SIZE + RECORD_PAYLOAD_SIZE_MAX);
    let mut records = Records::read(&bytes, 3);
    assert!(records.next().unwrap().unwrap() == payload);
    assert_eq!((records.offset(), records.sequence()), (bytes.len() as u64, 4));
}

/// limit: RECORD_PAYLOAD_SIZE_MAX above
#[test]
#[should_panic(expected = "a record of")]
fn a_longer_record_is_not_written() {
    encode_record(&vec![0; RECORD_PAYLOAD_SIZE_MAX + 1], 0, &mut Vec::new());
}

/// The example in `docs/formats/disk.md`.
#[test]
fn the_example_of_the_document_is_what_is_written() {
    let document = include_str!("../../../../docs/formats/disk.md");
    let (_, rest) = document.split_once("```hex records\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    let payloads: [&[u8]; 3] = [b"lydian", b"", &[0x00, 0xff]];
    let bytes = log(&payloads, 5);
    let ends = [0, 18, 30, 44];
    let lines = ends.windows(2).map(|end| bytes[end[0]..end[1]].iter().map(|byte| format!("{byte:02x}")).collect());
    assert_eq!(lines.collect::<Vec<String>>(), example.lines().collect::<Vec<_>>());
    assert_eq!(read(&bytes, 5), (payloads.to_vec(), None));
    // XXH3's own test vector: empty input, seed 0.
    assert_eq!(log(&[b""], 0)[4..], 0x2d06_8005_38d3_94c2_u64.to_le_bytes());
}
