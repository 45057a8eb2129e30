//! Unit tests of the single-message engine.

use super::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn check(message: &[u8], expected: &str) {
    for &kernel in &kernels().streams_available {
        let digest = Sha256::with_kernel(kernel).update(message).finalize();
        assert_eq!(hex(&digest), expected, "{} on {} bytes", kernel.name(), message.len());
    }
}

/// The examples of FIPS 180-4 (CSRC "SHA256.pdf" and one million repetitions of "a").
#[test]
fn fips_examples() {
    check(b"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check(b"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check(
        b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
    );
    check(
        b"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
        "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1",
    );
    check(&[b'a'; 1_000_000], "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/// Hashes the digests of every length up to 300; the two expected values come from Python's hashlib.
#[test]
fn all_short_lengths() {
    for &kernel in &kernels().streams_available {
        let (mut single, mut double) = (Sha256::new(), Sha256::new());
        for length in 0..=300_usize {
            let message: Vec<u8> = (0..length).map(|i| u8::try_from((i * 7 + length) & 255).expect("a byte")).collect();
            single.update(&Sha256::with_kernel(kernel).update(&message).finalize());
            double.update(&Sha256::with_kernel(kernel).update(&message).finalize_double());
        }
        assert_eq!(hex(&single.finalize()), "60d63ff40b5558727a9b786ac0be9300f7ca58fd9ddd3b2f3681b369018a87dc");
        assert_eq!(hex(&double.finalize()), "922da0266866045c577a77eea6042240624f3290927bfb377d5977b2e2ca506d");
    }
}

/// The hash of the genesis header, in the reversed byte order in which hashes are displayed.
#[test]
fn genesis_block_hash() {
    let mut header = [0; 80];
    header[0] = 1;
    let root: [u8; 32] = [
        0x3b, 0xa3, 0xed, 0xfd, 0x7a, 0x7b, 0x12, 0xb2, 0x7a, 0xc7, 0x2c, 0x3e, 0x67, 0x76, 0x8f, 0x61, 0x7f, 0xc8,
        0x1b, 0xc3, 0x88, 0x8a, 0x51, 0x32, 0x3a, 0x9f, 0xb8, 0xaa, 0x4b, 0x1e, 0x5e, 0x4a,
    ];
    header[36..68].copy_from_slice(&root);
    header[68..72].copy_from_slice(&1_231_006_505_u32.to_le_bytes());
    header[72..76].copy_from_slice(&0x1d00_ffff_u32.to_le_bytes());
    header[76..].copy_from_slice(&2_083_236_893_u32.to_le_bytes());
    let mut hash = sha256d(&header);
    hash.reverse();
    assert_eq!(hex(&hash), "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f");
}

/// Any split of a message into updates gives the same digest, and a clone is independent of the original.
#[test]
fn cuts_do_not_matter() {
    let message: Vec<u8> = (0..=255).cycle().take(400).collect();
    let expected = sha256(&message);
    for first in 0..130 {
        for second in [0, 1, 55, 56, 63, 64, 65, 127, 128, 129, 200] {
            let mut engine = Sha256::new();
            engine.update(&message[..first]);
            let before = engine.clone();
            engine.update(&message[first..first + second]).update(&message[first + second..]);
            assert_eq!(engine.finalize(), expected);
            assert_eq!(before.finalize(), sha256(&message[..first]));
        }
    }
}
