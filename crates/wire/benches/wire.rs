//! Benchmarks of receiving: `headers` with 2,000 entries and a block of 1.5 MB, framed by v1 and v2, and the underlying
//! operations (double SHA-256, cipher, copy).
#![allow(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use chacha20poly1305::aead::AeadInOut;
use chacha20poly1305::{ChaCha20Poly1305, KeyInit};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use lydian_primitives::Header;
use lydian_wire::{Command, Message, Transport, V2Secrets};
use std::hint::black_box;

const MAGIC: [u8; 4] = [0xfa, 0xbf, 0xb5, 0xda];
/// Size of one read from a socket in bytes.
const READ: usize = 64 * 1024;

/// A new pair after its handshake.
fn v2_pair() -> (Transport, Transport) {
    let secrets = |byte| V2Secrets::from_parts([byte; 32], [byte; 32], Vec::new()).unwrap();
    let (mut a, mut b) = (Transport::v2_initiator(MAGIC, secrets(1)), Transport::v2_responder(MAGIC, secrets(2)));
    b.receive(&a.take_output()).unwrap();
    a.receive(&b.take_output()).unwrap();
    b.receive(&a.take_output()).unwrap();
    (a, b)
}

fn receive(transport: &mut Transport, bytes: &[u8]) -> Message {
    bytes.chunks(READ).for_each(|chunk| transport.receive(chunk).unwrap());
    let received = transport.next_message().unwrap();
    Message::decode_owned(&received.command, received.payload).unwrap()
}

fn bench(c: &mut Criterion) {
    let headers = Message::Headers(vec![Header::parse(&[7; 80]); 2000]).payload();
    let block: Vec<u8> = (0..1_500_000u32).map(|index| index.to_le_bytes()[0]).collect();
    for (name, command, payload) in [("headers", Command::HEADERS, headers), ("block", Command::BLOCK, block)] {
        let mut group = c.benchmark_group(name);
        group.throughput(Throughput::Bytes(payload.len() as u64)).sample_size(30);
        group.bench_function("sha256d", |b| b.iter(|| lydian_wire::transport::checksum(black_box(&payload))));
        group.bench_function("copy", |b| b.iter(|| black_box(&payload).to_vec()));
        group.bench_function("chacha20poly1305", |b| {
            let (cipher, mut buffer) = (ChaCha20Poly1305::new(&[1; 32].into()), payload.clone());
            b.iter(|| cipher.encrypt_inout_detached(&[2; 12].into(), &[], buffer.as_mut_slice().into()).unwrap());
        });
        let mut sender = Transport::v1(MAGIC);
        sender.send(command, &payload);
        let frame = sender.take_output();
        group.bench_function("receive_v1", |b| b.iter(|| receive(&mut Transport::v1(MAGIC), &frame)));
        group.bench_function("receive_v2", |b| {
            let setup = || {
                let (mut a, b) = v2_pair();
                a.send(command, &payload);
                (b, a.take_output())
            };
            b.iter_batched(setup, |(mut b, bytes)| (receive(&mut b, &bytes), b), BatchSize::LargeInput);
        });
        group.bench_function("send_v2", |b| {
            b.iter_batched(v2_pair, |(mut a, _)| (a.send(command, &payload), a.take_output()), BatchSize::LargeInput);
        });
        group.finish();
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
