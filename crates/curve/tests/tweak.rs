//! Taproot tweak checks at their edges, as Core's `XOnlyPubKey::CheckTapTweak` decides them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use lydian_curve::{Check, Engine, Reference};
use secp256k1::{Parity, Scalar, SecretKey, XOnlyPublicKey};

fn holds(output: [u8; 32], is_odd: bool, internal: [u8; 32], tweak: [u8; 32]) -> bool {
    let mut verdicts = [false];
    Reference.verify(&[Check::Tweak { output, is_odd, internal, tweak }], &mut verdicts);
    verdicts[0]
}

fn key(byte: u8) -> XOnlyPublicKey {
    SecretKey::from_secret_bytes([byte; 32]).unwrap().public_key().x_only_public_key().0
}

/// The order of the group: the first tweak that is too large.
const ORDER: [u8; 32] = [
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, 0xba, 0xae, 0xdc,
    0xe6, 0xaf, 0x48, 0xa0, 0x3b, 0xbf, 0xd2, 0x5e, 0x8c, 0xd0, 0x36, 0x41, 0x41,
];

/// checklist: 52, 59
#[test]
fn tweaks_and_their_parities() {
    for byte in 1..40 {
        let internal = key(byte);
        let tweak = [byte + 100; 32];
        let (output, parity) = internal.add_tweak(&Scalar::from_be_bytes(tweak).unwrap()).unwrap();
        let (output, is_odd) = (output.to_byte_array(), parity == Parity::Odd);
        let internal = internal.to_byte_array();
        assert!(holds(output, is_odd, internal, tweak));
        assert!(!holds(output, !is_odd, internal, tweak), "the parity is part of the commitment");
        assert!(!holds(output, is_odd, key(byte + 1).to_byte_array(), tweak));
        for bit in 0..256 {
            let mut wrong = tweak;
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(!holds(output, is_odd, internal, wrong));
        }
    }
}

/// A zero tweak leaves the key unchanged, with even y; no rule forbids it.
/// checklist: 59
#[test]
fn a_zero_tweak_is_a_tweak() {
    let internal = key(7).to_byte_array();
    assert!(holds(internal, false, internal, [0; 32]));
    assert!(!holds(internal, true, internal, [0; 32]));
}

/// checklist: 59
#[test]
fn what_is_out_of_range_is_refused() {
    let internal = key(7).to_byte_array();
    assert!(!holds(internal, false, internal, ORDER), "a tweak of the order would be zero");
    assert!(!holds(internal, false, internal, [0xff; 32]));
    // No point on the curve has x = 5, and x must be below the field size.
    let mut five = [0; 32];
    five[31] = 5;
    for not_a_key in [five, [0xff; 32], [0; 32]] {
        assert!(!holds(not_a_key, false, not_a_key, [0; 32]));
        assert!(!holds(not_a_key, true, not_a_key, [1; 32]));
    }
}
