//! Any bytes on a v1 connection: the received messages do not depend on how the bytes are split.
//!
//! Memory grows with the bytes received, and messages arrive as long as the bytes are frames. The first byte chooses
//! the split.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lydian_wire::{Received, Transport, TransportError};

const MAGIC: [u8; 4] = [0xfa, 0xbf, 0xb5, 0xda];

fn run(bytes: &[u8], step: usize) -> (Result<(), TransportError>, Vec<Received>) {
    let mut transport = Transport::v1(MAGIC);
    let mut received = 0;
    let result = bytes.chunks(step).try_for_each(|chunk| {
        received += chunk.len();
        let result = transport.receive(chunk);
        assert!(transport.buffered_size() <= 2 * received + 64);
        result
    });
    (result, std::iter::from_fn(|| transport.next_message()).collect())
}

fuzz_target!(|bytes: &[u8]| {
    let Some((step, rest)) = bytes.split_first() else { return };
    // Checksums are hard to find: each frame whose payload is complete gets a valid one.
    let mut frames = rest.to_vec();
    let mut at = 0;
    while let Some(header) = frames.get(at..at + 24) {
        let size = u32::from_le_bytes([header[16], header[17], header[18], header[19]]) as usize;
        let Some(payload) = frames.get(at + 24..(at + 24).saturating_add(size)) else { break };
        let checksum = lydian_wire::transport::checksum(payload);
        if header[20] & 1 == 0 {
            frames[at + 20..at + 24].copy_from_slice(&checksum);
        }
        frames[at..at + 4].copy_from_slice(&MAGIC);
        at += 24 + size;
    }
    let whole = run(&frames, frames.len().max(1));
    assert_eq!(run(&frames, usize::from(*step) + 1), whole);
    for message in &whole.1 {
        assert_eq!(message.raw_size, 24 + message.payload.len());
    }
});
