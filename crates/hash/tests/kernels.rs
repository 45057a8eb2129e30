//! Compares the result of every kernel that this CPU can run with that of the plain kernel.
//!
//! The unit tests compare the plain kernel with published digests. A kernel that this CPU cannot run is not tested; the
//! first test prints which kernels were.
#![allow(clippy::print_stdout, reason = "the list of kernels that were tested belongs in the test's output")]

use lydian_hash::{
    BatchKernel, Message, MuHashKernel, Ripemd160Kernel, Sha256, StreamKernel, hash160, hash160_many,
    hash160_many_with, kernels, merkle_root_with, ripemd160, ripemd160_many_with, sha256, sha256_many_with,
    sha256d_64_with, sha256d_many_with,
};
use proptest::prelude::*;

const PLAIN: BatchKernel = BatchKernel::Stream(StreamKernel::Plain);

#[test]
fn the_kernels_of_this_cpu() {
    let kernels = kernels();
    assert_eq!(kernels.streams_available[0], StreamKernel::Plain);
    assert_eq!(kernels.batches_available[0], PLAIN);
    assert!(kernels.streams_available.contains(&kernels.stream));
    for chosen in [kernels.pairs, kernels.many] {
        assert!(kernels.batches_available.contains(&chosen));
    }
    let names: Vec<_> = kernels.batches_available.iter().map(|kernel| kernel.name()).collect();
    println!("kernels tested: {names:?}; chosen: {} and {}", kernels.stream.name(), kernels.many.name());
    let mut unique = names.clone();
    unique.dedup();
    assert_eq!(names, unique, "two kernels of one name cannot be told apart in a report");
    assert_eq!(kernels.muhash_available[0], MuHashKernel::Plain);
    assert!(kernels.muhash_available.contains(&kernels.muhash));
    let names: Vec<_> = kernels.muhash_available.iter().map(|kernel| kernel.name()).collect();
    println!("MuHash kernels tested: {names:?}; chosen: {}", kernels.muhash.name());
    assert_eq!(kernels.ripemd160_available[0], Ripemd160Kernel::Plain);
    assert_eq!(kernels.ripemd160_available.last(), Some(&kernels.ripemd160));
    let names: Vec<_> = kernels.ripemd160_available.iter().map(|kernel| kernel.name()).collect();
    println!("RIPEMD-160 kernels tested: {names:?}; chosen: {}", kernels.ripemd160.name());
}

/// The first known answer is that of BIP-0173 for the generator; every lane of every group size is compared with it.
#[test]
fn hash160_of_a_known_key_in_every_lane() {
    let hex = |text: &str| -> Vec<u8> {
        text.as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("hex"))
            .collect()
    };
    let known = [
        (
            "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798",
            "751e76e8199196d454941c45d1b3a323f1433bd6",
        ),
        ("", "b472a266d0bd89c13706a4132ccfb16f7c3b9fcb"),
    ]
    .map(|(message, hash)| (hex(message), hex(hash)));
    for &kernel in &kernels().ripemd160_available {
        for count in 0..=40 {
            for lane in 0..count {
                let of = |i: usize| &known[usize::from(i == lane)];
                let messages: Vec<Message<'_>> = (0..count).map(|i| Message::from(&of(i).0[..])).collect();
                let mut out = vec![[0; 20]; count];
                hash160_many_with(kernel, &messages, &mut out);
                for (i, hash) in out.iter().enumerate() {
                    assert_eq!(hash[..], of(i).1, "{}: message {i} of {count}", kernel.name());
                }
            }
        }
    }
}

/// Digests in which a single bit is set, and those with all bits set: each bit of each word reaches the hash.
#[test]
fn ripemd160_of_single_bits() {
    let mut digests = vec![[0; 32], [0xff; 32]];
    for bit in 0..256 {
        let mut digest = [0; 32];
        digest[bit / 8] = 1 << (bit % 8);
        digests.push(digest);
        digests.push(digest.map(|byte| !byte));
    }
    let expected: Vec<[u8; 20]> = digests.iter().map(|digest| ripemd160(digest)).collect();
    for &kernel in &kernels().ripemd160_available {
        let mut out = vec![[0; 20]; digests.len()];
        ripemd160_many_with(kernel, &digests, &mut out);
        assert_eq!(out, expected, "{}", kernel.name());
    }
}

/// Every length around the block boundaries, different splits into parts, at every alignment, in one call.
#[test]
fn every_short_length_in_one_call() {
    let data = noise(1, 1024);
    let messages: Vec<Message<'_>> = (0..=300)
        .flat_map(|length| {
            let bytes = &data[length % 64..length % 64 + length];
            let (first, second) = bytes.split_at(length.min(4));
            let (third, fourth) = second.split_at(second.len().saturating_sub(length % 70));
            [Message::from(bytes), Message::new([first, third, fourth]), Message::new([&[], bytes, &[]])]
        })
        .collect();
    check_many(&messages);
    for count in 0..40 {
        check_many(&messages[messages.len() - count..]);
    }
}

/// One message much longer than the rest, at every position: it is finished after the other lanes are empty.
#[test]
fn one_long_message_among_short_ones() {
    let data = noise(2, 10_000);
    for count in [1, 2, 7, 8, 9, 15, 16, 17, 33] {
        for place in 0..count {
            let messages: Vec<Message<'_>> = (0..count)
                .map(|i| {
                    if i == place {
                        Message::new([&data[..3], &data[3..9000], &data[9000..]])
                    } else {
                        Message::from(&data[i..3 * i])
                    }
                })
                .collect();
            check_many(&messages);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn many_messages(
        seed: u64,
        parts in prop::collection::vec((0_usize..130, 0_usize..300, 0_usize..130, 0_usize..64), 0..70),
    ) {
        let data = noise(seed, 130 + 300 + 130 + 64);
        let messages: Vec<Message<'_>> = parts
            .iter()
            .map(|&(first, second, third, skip)| {
                let (first_part, rest) = data[skip..].split_at(first);
                let (second_part, rest) = rest.split_at(second);
                Message::new([first_part, second_part, &rest[..third]])
            })
            .collect();
        check_many(&messages);
    }

    #[test]
    fn pairs(seed: u64, count in 0_usize..70, skip in 0_usize..64) {
        let data = noise(seed, 64 * 71);
        let pairs = data[skip..].as_chunks::<64>().0;
        let mut expected = vec![[0; 32]; count];
        sha256d_64_with(PLAIN, &pairs[..count], &mut expected);
        for &kernel in &kernels().batches_available {
            let mut actual = vec![[0; 32]; count];
            sha256d_64_with(kernel, &pairs[..count], &mut actual);
            prop_assert_eq!(&actual, &expected, "{}", kernel.name());
        }
    }

    #[test]
    fn hash160s(seed: u64, lengths in prop::collection::vec((0_usize..600, 0_usize..64), 0..150)) {
        let data = noise(seed, 664);
        let bytes: Vec<&[u8]> = lengths.iter().map(|&(length, skip)| &data[skip..skip + length]).collect();
        let messages: Vec<Message<'_>> = bytes.iter().map(|bytes| Message::from(*bytes)).collect();
        let expected: Vec<[u8; 20]> = bytes.iter().map(|bytes| hash160(bytes)).collect();
        let mut actual = vec![[0; 20]; messages.len()];
        hash160_many(&messages, &mut actual);
        prop_assert_eq!(&actual, &expected);
        for &kernel in &kernels().ripemd160_available {
            actual.fill([0; 20]);
            hash160_many_with(kernel, &messages, &mut actual);
            prop_assert_eq!(&actual, &expected, "{}", kernel.name());
        }
    }

    #[test]
    fn ripemd160s(seed: u64, count in 0_usize..70, skip in 0_usize..32) {
        let data = noise(seed, 32 * 71);
        let digests = &data[skip..].as_chunks::<32>().0[..count];
        let expected: Vec<[u8; 20]> = digests.iter().map(|digest| ripemd160(digest)).collect();
        for &kernel in &kernels().ripemd160_available {
            let mut actual = vec![[0; 20]; count];
            ripemd160_many_with(kernel, digests, &mut actual);
            prop_assert_eq!(&actual, &expected, "{}", kernel.name());
        }
    }

    #[test]
    fn streams(seed: u64, length in 0_usize..2000, skip in 0_usize..64, cut in 0_usize..2000) {
        let data = noise(seed, 2064);
        let bytes = &data[skip..skip + length];
        let expected = Sha256::with_kernel(StreamKernel::Plain).update(bytes).finalize_double();
        let (head, tail) = bytes.split_at(cut.min(length));
        for &kernel in &kernels().streams_available {
            prop_assert_eq!(Sha256::with_kernel(kernel).update(head).update(tail).finalize_double(), expected);
        }
    }

    #[test]
    fn merkle_roots(seed: u64, count in 0_usize..300, repeated: bool) {
        let data = noise(seed, 32 * 300);
        let mut leaves = data.as_chunks::<32>().0[..count].to_vec();
        if repeated && count > 1 {
            leaves[1] = leaves[0];
        }
        for &kernel in &kernels().batches_available {
            let actual = merkle_root_with(kernel, &mut leaves.clone());
            prop_assert_eq!(actual, merkle_root_with(PLAIN, &mut leaves.clone()));
            prop_assert_eq!(actual.1, repeated && count > 1);
        }
    }
}

fn check_many(messages: &[Message<'_>]) {
    let expected: Vec<[u8; 32]> = messages
        .iter()
        .map(|message| Sha256::with_kernel(StreamKernel::Plain).update(&joined(message)).finalize_double())
        .collect();
    for &kernel in &kernels().batches_available {
        let mut actual = vec![[0; 32]; messages.len()];
        sha256d_many_with(kernel, messages, &mut actual);
        assert_eq!(actual, expected, "{} on {} messages", kernel.name(), messages.len());
        sha256_many_with(kernel, messages, &mut actual);
        let twice: Vec<[u8; 32]> = actual.iter().map(|digest| sha256(digest)).collect();
        assert_eq!(twice, expected, "{} on {} messages, hashed once", kernel.name(), messages.len());
    }
}

fn joined(message: &Message<'_>) -> Vec<u8> {
    message.parts().concat()
}

/// Pseudorandom bytes.
fn noise(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed;
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    })
    .take(count)
    .collect()
}
