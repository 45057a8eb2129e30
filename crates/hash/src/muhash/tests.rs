//! Core's test vectors, and the algebraic properties of a set hash.

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
