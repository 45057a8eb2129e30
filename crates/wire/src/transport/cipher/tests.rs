use super::*;
use lydian_primitives::{hex, to_hex};
use proptest::prelude::*;
use secp256k1::PublicKey;

const PACKETS: &str = include_str!("../../../../../testdata/vectors/bips/bip-0324/packet_encoding_test_vectors.csv");
const DECODING: &str = include_str!("../../../../../testdata/vectors/bips/bip-0324/ellswift_decode_test_vectors.csv");
/// The magic of mainnet, which the vectors use.
const MAGIC: [u8; 4] = [0xf9, 0xbe, 0xb4, 0xd9];

fn array<const N: usize>(text: &str) -> [u8; N] {
    hex(text).unwrap().try_into().unwrap()
}

#[test]
fn the_packets_of_bip324() {
    let mut lines = PACKETS.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let mut count = 0;
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let field = |name: &str| fields[names.iter().position(|one| *one == name).unwrap()];
        let initiator = field("in_initiating") == "1";
        let handshake =
            Handshake::with_encoding(array(field("in_priv_ours")), array(field("in_ellswift_ours"))).unwrap();
        let mut cipher = handshake.finish(array(field("in_ellswift_theirs")), initiator, MAGIC);
        assert_eq!(to_hex(&cipher.session_id), field("out_session_id"));
        assert_eq!(to_hex(&cipher.send_terminator), field("mid_send_garbage_terminator"));
        assert_eq!(to_hex(&cipher.receive_terminator), field("mid_recv_garbage_terminator"));
        let mut out = Vec::new();
        for _ in 0..field("in_idx").parse::<u32>().unwrap() {
            cipher.encrypt(&[], &[], false, &mut out);
        }
        out.clear();
        let contents = hex(field("in_contents")).unwrap().repeat(field("in_multiply").parse().unwrap());
        cipher.encrypt(&[&contents], &hex(field("in_aad")).unwrap(), field("in_ignore") == "1", &mut out);
        let text = to_hex(&out);
        if !field("out_ciphertext").is_empty() {
            assert_eq!(text, field("out_ciphertext"));
        }
        assert!(text.ends_with(field("out_ciphertext_endswith")), "{line:.20}");
        count += 1;
    }
    assert_eq!(count, 7);
}

#[test]
fn the_keys_of_bip324() {
    let mut count = 0;
    for line in DECODING.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let point = PublicKey::from_ellswift(ElligatorSwift::from_array(array(fields[0])));
        assert_eq!(to_hex(&point.serialize()[1..]), fields[1], "{line}");
        count += 1;
    }
    assert_eq!(count, DECODING.lines().count() - 1);
    assert!(count > 70, "{count}");
}

#[test]
fn hmac_of_rfc_4231() {
    let text = to_hex(&hmac_sha256(&[0x0b; 20], &[b"Hi ", b"There"]));
    assert_eq!(text, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
}

pub(in crate::transport) fn pair() -> (Cipher, Cipher) {
    let handshake = |byte| V2Secrets::from_parts([byte; 32], [byte; 32], Vec::new()).unwrap().into_handshake().0;
    let (a, b) = (handshake(1), handshake(2));
    let (key_a, key_b) = (a.our_key(), b.our_key());
    (a.finish(key_b, true, MAGIC), b.finish(key_a, false, MAGIC))
}

/// Both ciphers rekey after 224 packets, and each packet decrypts only once, in its place.
/// checklist: 81
#[test]
fn a_thousand_packets_and_no_replay() {
    let (mut a, mut b) = pair();
    for index in 0..1000u32 {
        let (contents, aad) = (vec![7; index as usize % 40], index.to_le_bytes());
        let mut out = Vec::new();
        a.encrypt(&[&contents, &[1]], &aad, index % 3 == 0, &mut out);
        let (length, packet) = out.split_first_chunk_mut().unwrap();
        assert_eq!(b.decrypt_length(*length), contents.len() + 1);
        let mut copy = packet.to_vec();
        assert_eq!(b.decrypt(packet, &aad), Ok(index % 3 == 0), "{index}");
        assert_eq!(packet[1..packet.len() - TAG_SIZE], [&contents[..], &[1]].concat());
        if index == 999 {
            assert_eq!(b.decrypt(&mut copy, &aad), Err(NotAuthentic), "replayed");
        }
    }
    assert_eq!(b.decrypt(&mut [0; 15], &[]), Err(NotAuthentic));
}

#[test]
fn secrets_are_what_the_source_gives() {
    let mut byte = 0u8;
    let secrets = V2Secrets::generate(|buffer| {
        byte += 1;
        buffer.fill(byte);
    });
    assert_eq!((secrets.key, secrets.entropy), (SecretKey::from_secret_bytes([1; 32]).unwrap(), [2; 32]));
    assert_eq!(secrets.garbage, vec![4; 0x303]);
    // Zero is not a valid key, so the source is called again.
    let mut calls = 0;
    V2Secrets::generate(|buffer| {
        calls += 1;
        buffer.fill(u8::from(calls > 1));
    });
    assert_eq!(calls, 5);
    assert!(V2Secrets::from_parts([0; 32], [0; 32], Vec::new()).is_none());
}

/// limit: GARBAGE_SIZE_MAX at
/// limit: GARBAGE_SIZE_MAX above
#[test]
fn garbage_to_send_has_a_limit() {
    let garbage = |size: usize| V2Secrets::from_parts([1; 32], [0; 32], vec![0; size]).is_some();
    assert!(garbage(GARBAGE_SIZE_MAX) && !garbage(GARBAGE_SIZE_MAX + 1));
    let mut sizes = std::collections::BTreeSet::new();
    for last in [0x0f, 0xff] {
        sizes.insert(V2Secrets::generate(|buffer| buffer.fill(if buffer.len() == 2 { last } else { 1 })).garbage.len());
    }
    assert_eq!(sizes.last(), Some(&GARBAGE_SIZE_MAX));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_changed_bit_is_noticed(contents in proptest::collection::vec(any::<u8>(), 0..200), bit: usize, aad: [u8; 3]) {
        let (mut a, mut b) = pair();
        let mut out = Vec::new();
        a.encrypt(&[&contents], &aad, false, &mut out);
        let packet = &mut out[LENGTH_SIZE..];
        let at = bit % (8 * packet.len());
        packet[at / 8] ^= 1 << (at % 8);
        prop_assert_eq!(b.decrypt(packet, &aad), Err(NotAuthentic));
    }
}
