//! The v2 handshake and packets: two sides exchange garbage, decoys and messages chosen by the input.
//!
//! The wire splits the bytes as the input says and may change one byte. If nothing was changed, everything arrives in
//! order; otherwise nothing arrives that was not sent. In another mode, one side receives arbitrary bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lydian_wire::{Command, Received, Transport, TransportKind, V2Secrets};

const MAGIC: [u8; 4] = [0xfa, 0xbf, 0xb5, 0xda];

fn secrets(byte: u8, garbage: usize) -> V2Secrets {
    V2Secrets::from_parts([byte; 32], [byte; 32], vec![byte; garbage]).expect("a secret key")
}

fn inbox(transport: &mut Transport) -> Vec<(Command, Vec<u8>)> {
    let one = |Received { command, payload, .. }| (command, payload);
    std::iter::from_fn(|| transport.next_message()).map(one).collect()
}

fuzz_target!(|bytes: &[u8]| {
    let Some(([a, b, step, change, flags], rest)) = bytes.split_first_chunk::<5>() else { return };
    if flags & 1 == 1 {
        // Arbitrary bytes, which cannot complete a handshake.
        let mut transport = match flags & 2 {
            0 => Transport::v2_responder(MAGIC, secrets(2, usize::from(*b))),
            _ => Transport::v2_initiator(MAGIC, secrets(1, usize::from(*a))),
        };
        let _ = rest.chunks(usize::from(*step) + 1).try_for_each(|chunk| transport.receive(chunk));
        assert!(transport.buffered_size() <= 2 * rest.len() + 10_000);
        assert_ne!(transport.kind(), TransportKind::V2, "the sender has no keys");
        return;
    }
    let mut initiator = Transport::v2_initiator(MAGIC, secrets(1, 16 * usize::from(*a)));
    let mut responder = Transport::v2_responder(MAGIC, secrets(2, 16 * usize::from(*b)));
    let key = initiator.take_output();
    responder.receive(&key).expect("key and garbage");
    initiator.receive(&responder.take_output()).expect("the answer");
    let mut sent = Vec::new();
    let mut rest = rest;
    while let Some(([kind, size], after)) = rest.split_first_chunk::<2>() {
        let (payload, after) = after.split_at(usize::from(*size).min(after.len()));
        rest = after;
        match Command::ALL.get(usize::from(*kind)) {
            Some(command) => {
                initiator.send(*command, payload);
                sent.push((*command, payload.to_vec()));
            }
            None => initiator.send_decoy(payload),
        }
    }
    let mut wire = initiator.take_output();
    let at = usize::from(*change) * 7;
    let changed = flags & 4 != 0 && at < wire.len();
    if changed {
        wire[at] ^= 1;
    }
    let result = wire.chunks(usize::from(*step) + 1).try_for_each(|chunk| responder.receive(chunk));
    let arrived = inbox(&mut responder);
    if changed {
        assert!(sent.starts_with(&arrived));
    } else {
        assert_eq!(result, Ok(()));
        assert_eq!(arrived, sent);
        assert_eq!(responder.session_id(), initiator.session_id());
        assert_eq!(responder.kind(), TransportKind::V2);
    }
});
