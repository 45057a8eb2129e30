//! A log from any bytes: framing the returned payloads again gives the bytes up to where the log ends.
//!
//! A log that was written is read completely, or up to the record in which a byte was changed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lydian_disk::record::{Records, encode_record};

fuzz_target!(|input: &[u8]| {
    let Some((sequence, bytes)) = input.split_first_chunk::<8>() else { return };
    let sequence = u64::from_le_bytes(*sequence);
    assert_framed_again(bytes, sequence);

    // The same bytes as payloads of up to 31 bytes.
    let (mut log, mut ends, mut rest, mut number) = (Vec::new(), vec![0], bytes, sequence);
    while let Some((&size, payloads)) = rest.split_first() {
        let (payload, next) = payloads.split_at(usize::from(size % 32).min(payloads.len()));
        encode_record(payload, number, &mut log);
        number = number.wrapping_add(1);
        ends.push(log.len());
        rest = next;
    }
    assert_eq!(assert_framed_again(&log, sequence), ends.len() - 1);
    let place = (sequence >> 8) as usize % log.len().max(1);
    if let Some(byte) = log.get_mut(place) {
        *byte ^= 1 << (sequence % 8);
        let whole = ends.iter().filter(|end| **end <= place).count() - 1;
        assert_eq!(assert_framed_again(&log, sequence), whole);
    }
});

/// Returns the number of records.
fn assert_framed_again(bytes: &[u8], sequence: u64) -> usize {
    let mut records = Records::read(bytes, sequence);
    let (mut again, mut torn, mut count) = (Vec::new(), None, 0);
    for record in &mut records {
        match record {
            Ok(payload) => {
                encode_record(payload, sequence.wrapping_add(count as u64), &mut again);
                count += 1;
            }
            Err(end) => torn = Some(end.offset),
        }
    }
    assert_eq!(again, bytes[..again.len()]);
    assert_eq!(records.offset(), again.len() as u64);
    assert_eq!(torn, (again.len() < bytes.len()).then_some(again.len() as u64));
    count
}
