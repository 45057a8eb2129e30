//! Core's test vectors, the algebraic properties of a set hash, and every kernel against the plain one.

use super::*;

/// Core's `FromInt`: the element for number i is 32 bytes, the first of which is i.
fn element(number: u64) -> [u8; 32] {
    let mut out = [0; 32];
    out[0] = u8::try_from(number).expect("a small number");
    out
}

fn vectors() -> serde_json::Value {
    let text = include_str!("../../../../testdata/vectors/core/muhash.json");
    serde_json::from_str(text).expect("muhash.json is JSON")
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("hex")).collect()
}

fn numbers(value: &serde_json::Value) -> impl Iterator<Item = u64> {
    value.as_array().expect("a list").iter().map(|number| number.as_u64().expect("a number"))
}

#[test]
fn core_digests() {
    let file = vectors();
    let list = file["vectors"].as_array().expect("vectors");
    assert!(!list.is_empty());
    for vector in list {
        let mut set = MuHash3072::new();
        numbers(&vector["insert"]).for_each(|number| _ = set.insert(&element(number)));
        numbers(&vector["remove"]).for_each(|number| _ = set.remove(&element(number)));
        let mut digest = set.finalize();
        digest.reverse();
        assert_eq!(digest.to_vec(), unhex(vector["digest"].as_str().expect("hex")));
    }
}

#[test]
fn core_serialisation() {
    let file = vectors();
    let vector = &file["serialize"];
    let mut set = MuHash3072::new();
    numbers(&vector["insert"]).for_each(|number| _ = set.insert(&element(number)));
    let bytes = unhex(vector["hex"].as_str().expect("hex"));
    assert_eq!(set.to_bytes().to_vec(), bytes);
    let read = MuHash3072::from_bytes(&bytes.try_into().expect("768 bytes"));
    assert_eq!(read.finalize(), set.finalize());
}

/// The case of Core's `muhash_tests` with a serialised numerator above the modulus (all bits set).
#[test]
fn numbers_above_the_modulus_are_reduced() {
    let mut bytes = [0; MuHash3072::BYTES];
    bytes[..Num3072::BYTES].fill(0xff);
    bytes[Num3072::BYTES] = 1;
    let digest = MuHash3072::from_bytes(&bytes).finalize();
    assert_eq!(digest.to_vec(), unhex("3a31e6903aff0de9f62f9a9f7f8b861de76ce2cda09822b90014319ae5dc2271"));
}

#[test]
fn order_does_not_matter_and_removal_undoes() {
    let mut forth = MuHash3072::new();
    let mut back = MuHash3072::new();
    for number in 0..9 {
        forth.insert(&element(number));
        back.insert(&element(8 - number));
    }
    assert_eq!(forth.finalize(), back.finalize());

    let mut odd = MuHash3072::new();
    let mut even = MuHash3072::new();
    for number in 0..9 {
        if number % 2 == 0 {
            even.insert(&element(number))
        } else {
            odd.insert(&element(number))
        };
    }
    assert_eq!(odd.clone().combine(&even).finalize(), forth.finalize());
    assert_eq!(forth.clone().divide(&odd).finalize(), even.finalize());
    for number in 0..9 {
        forth.remove(&element(number));
    }
    assert_eq!(forth.finalize(), MuHash3072::new().finalize());
    assert_ne!(even.finalize(), odd.finalize());
}

/// The counts around every group size, and one with many groups.
const COUNTS: [usize; 18] = [0, 1, 2, 3, 7, 8, 9, 11, 12, 15, 16, 17, 18, 19, 33, 100, 128, 300];

/// Elements of different lengths, some of them equal.
fn batch(count: usize) -> Elements {
    let mut batch = Elements::new();
    for i in 0..count {
        let number = u64::try_from(i / 3).expect("a small number").to_le_bytes();
        batch.push(&[&number, &[0xab; 130][..i % 131]]);
    }
    batch
}

#[test]
fn batches_on_every_kernel_equal_single_elements() {
    for count in COUNTS {
        let batch = batch(count);
        let mut expected = MuHash3072::new();
        batch.iter().for_each(|element| _ = expected.insert(element));
        for &kernel in &kernels().muhash_available {
            let inserted = MuHash3072::new().insert_many_with(kernel, &batch).clone();
            assert_eq!(inserted.to_bytes(), expected.to_bytes(), "{count} elements on {}", kernel.name());
            let removed = MuHash3072::new().remove_many_with(kernel, &batch).clone();
            assert_eq!(removed.numerator, Num3072::ONE);
            assert_eq!(removed.denominator, expected.numerator, "{count} elements on {}", kernel.name());
        }
    }
}

#[test]
fn the_order_of_a_batch_does_not_matter_and_removal_undoes() {
    let forth = batch(100);
    let mut back = Elements::new();
    (0..forth.len()).rev().for_each(|index| back.push(&[forth.get(index)]));
    for &kernel in &kernels().muhash_available {
        let mut set = MuHash3072::new();
        set.insert_many_with(kernel, &forth);
        assert_eq!(set.to_bytes(), MuHash3072::new().insert_many_with(kernel, &back).to_bytes());
        set.remove_many_with(kernel, &back);
        assert_eq!(set.finalize(), MuHash3072::new().finalize(), "{}", kernel.name());
    }
}

#[test]
fn a_batch_is_emptied_and_filled_again() {
    let mut elements = batch(20);
    elements.clear();
    assert!(elements.is_empty());
    elements.push(&[]);
    elements.push(&[b"a ", b"", b"coin"]);
    assert_eq!(elements.len(), 2);
    assert_eq!(elements.iter().collect::<Vec<_>>(), [&b""[..], b"a coin"]);
    let expected = MuHash3072::new().insert(b"a coin").insert(b"").clone();
    assert_eq!(MuHash3072::new().insert_many(&elements).to_bytes(), expected.to_bytes());
    assert_eq!(MuHash3072::new().remove_many(&elements).combine(&expected).finalize(), MuHash3072::new().finalize());
}

#[cfg(target_arch = "x86_64")]
mod lane {
    use super::super::lanes::{Columns, Lanes, WORDS};
    use super::*;

    /// Runs the checks below on every lane kernel of this CPU.
    #[test]
    fn kernels_equal_the_plain_one() {
        for &kernel in &kernels().muhash_available {
            match kernel {
                MuHashKernel::Plain => {}
                MuHashKernel::Avx2(avx2) => check(avx2),
                MuHashKernel::Ifma512(ifma512) => check(ifma512),
            }
        }
    }

    fn check<const N: usize>(kernel: impl Lanes<N>) {
        key_streams(kernel);
        edges(kernel);
        random_numbers(kernel);
    }

    fn key_streams<const N: usize>(kernel: impl Lanes<N>) {
        let keys = std::array::from_fn(|i| sha256(&[u8::try_from(i).expect("a lane")]));
        let mut streams = Columns([[0; N]; WORDS]);
        kernel.key_streams(&keys, &mut streams);
        for (i, key) in keys.iter().enumerate() {
            let words = streams.0.map(|row| row[i]);
            assert_eq!(words.map(u32::to_le_bytes).as_flattened(), number_of_digest(key).to_bytes());
        }
    }

    /// Every pair of edge numbers, in every lane.
    fn edges<const N: usize>(kernel: impl Lanes<N>) {
        let mut edges = Vec::new();
        for byte in [0, 0xff] {
            // 0, 1, 2^3072 - 1, 2^3072 - 2.
            edges.extend([0, 1].map(|low| number(|k| if k == 0 { byte ^ low } else { byte })));
        }
        // The modulus less one, the modulus, the modulus and one.
        let low = 0_u64.wrapping_sub(1_103_717);
        for low in [low - 1, low, low + 1] {
            edges.push(number(|k| low.to_le_bytes().get(k).copied().unwrap_or(0xff)));
        }
        // One bit around the limits of words and limbs.
        edges.extend(
            [27, 28, 31, 32, 47, 48, 63, 64, 3067, 3071]
                .map(|bit| number(|k| if k == bit / 8 { 1 << (bit % 8) } else { 0 })),
        );
        let shifted = |by: usize| std::array::from_fn(|lane| edges[(lane + by) % edges.len()].clone());
        for (first, second) in (0..edges.len()).flat_map(|first| (0..edges.len()).map(move |second| (first, second))) {
            multiply_and_compare(kernel, &[shifted(first), shifted(second)]);
        }
        // The largest number, often enough for the limbs to reach whatever they can.
        let largest: [Num3072; N] = std::array::from_fn(|_| edges[2].clone());
        multiply_and_compare(kernel, &vec![largest; 40]);
    }

    fn random_numbers<const N: usize>(kernel: impl Lanes<N>) {
        let mut key = sha256(b"random numbers");
        let mut next = || {
            key = sha256(&key);
            number_of_digest(&key)
        };
        for count in [1, 2, 60] {
            let factors: Vec<[Num3072; N]> = (0..count).map(|_| std::array::from_fn(|_| next())).collect();
            multiply_and_compare(kernel, &factors);
        }
    }

    fn multiply_and_compare<const N: usize>(kernel: impl Lanes<N>, factors: &[[Num3072; N]]) {
        let mut products = kernel.ones();
        let mut expected: [Num3072; N] = std::array::from_fn(|_| Num3072::ONE);
        for factors in factors {
            let mut columns = Columns([[0; N]; WORDS]);
            for (lane, factor) in factors.iter().enumerate() {
                for (row, word) in columns.0.iter_mut().zip(factor.to_bytes().as_chunks::<4>().0) {
                    row[lane] = u32::from_le_bytes(*word);
                }
                expected[lane].multiply(factor);
            }
            kernel.multiply(&mut products, &columns);
        }
        assert_eq!(kernel.numbers(&products), expected);
    }

    fn number(byte: impl Fn(usize) -> u8) -> Num3072 {
        Num3072::from_bytes(&std::array::from_fn(byte))
    }
}
