//! The cipher of BIP-0324: key exchange, key derivation, length cipher and packet cipher, with rekeying.
//!
//! Input: the caller's secrets, the other side's key, packets. Output: packets, and the session id. Invariants: packets
//! are encrypted and decrypted in order, each once; a packet that is not authentic gives an error and no contents. The
//! curve is libsecp256k1's, the ciphers are RustCrypto's. Cost: one ECDH per connection, one pass per packet, in place.
//! No randomness of its own; must never be given the same secrets twice.

use crate::limits::GARBAGE_SIZE_MAX;
use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher};
use chacha20poly1305::aead::AeadInOut;
use chacha20poly1305::{ChaCha20Poly1305, KeyInit};
use lydian_hash::sha256;
use secp256k1::SecretKey;
use secp256k1::ellswift::{ElligatorSwift, Party};
use std::fmt;

/// Size in bytes of a public key in ElligatorSwift encoding.
pub(super) const KEY_SIZE: usize = 64;
pub(super) const TERMINATOR_SIZE: usize = 16;
pub(super) const LENGTH_SIZE: usize = 3;
pub(super) const HEADER_SIZE: usize = 1;
pub(super) const TAG_SIZE: usize = 16;
/// Number of packets between two rekeyings.
const REKEY_INTERVAL: u32 = 224;
/// The bit of a packet's header that marks its contents as ignored.
const IGNORE_BIT: u8 = 0x80;

/// The random bytes of one connection. They must come from a cryptographic generator and be used only once.
#[derive(Clone)]
pub struct V2Secrets {
    key: SecretKey,
    entropy: [u8; 32],
    garbage: Vec<u8>,
}

impl fmt::Debug for V2Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("V2Secrets")
    }
}

impl V2Secrets {
    /// Generates secrets from a source of random bytes: key, entropy of its encoding, and 0 to 4,095 bytes of garbage.
    pub fn generate(mut fill: impl FnMut(&mut [u8])) -> V2Secrets {
        let mut key = [0; 32];
        let key = loop {
            fill(&mut key);
            // Fails only for zero and values beyond the group order, which never happens with random bytes.
            if let Ok(key) = SecretKey::from_secret_bytes(key) {
                break key;
            }
        };
        let (mut entropy, mut size) = ([0; 32], [0; 2]);
        fill(&mut entropy);
        fill(&mut size);
        let mut garbage = vec![0; usize::from(u16::from_le_bytes(size)) & GARBAGE_SIZE_MAX];
        fill(&mut garbage);
        V2Secrets { key, entropy, garbage }
    }

    /// Uses the given bytes, for vectors and tests. `None` if the key is not a valid secret key or the garbage is too
    /// long.
    pub fn from_parts(key: [u8; 32], entropy: [u8; 32], garbage: Vec<u8>) -> Option<V2Secrets> {
        let key = SecretKey::from_secret_bytes(key).ok()?;
        (garbage.len() <= GARBAGE_SIZE_MAX).then_some(V2Secrets { key, entropy, garbage })
    }

    /// The key to send, and the garbage to send after it.
    pub(super) fn into_handshake(self) -> (Handshake, Vec<u8>) {
        let ours = ElligatorSwift::from_seckey(self.key, Some(self.entropy));
        (Handshake { key: self.key, ours }, self.garbage)
    }
}

/// Our half of the key exchange.
pub(super) struct Handshake {
    key: SecretKey,
    ours: ElligatorSwift,
}

impl Handshake {
    #[cfg(test)]
    pub(super) fn with_encoding(key: [u8; 32], ours: [u8; KEY_SIZE]) -> Option<Handshake> {
        let key = SecretKey::from_secret_bytes(key).ok()?;
        Some(Handshake { key, ours: ElligatorSwift::from_array(ours) })
    }

    pub(super) fn our_key(&self) -> [u8; KEY_SIZE] {
        self.ours.to_array()
    }

    /// Derives the ciphers from the other side's key. Any 64 bytes are a key.
    pub(super) fn finish(mut self, theirs: [u8; KEY_SIZE], initiator: bool, magic: [u8; 4]) -> Cipher {
        let theirs = ElligatorSwift::from_array(theirs);
        let (a, b, party) = match initiator {
            true => (self.ours, theirs, Party::Initiator),
            false => (theirs, self.ours, Party::Responder),
        };
        let secret = ElligatorSwift::shared_secret(a, b, self.key, party);
        self.key.non_secure_erase();
        let salt = [&b"bitcoin_v2_shared_secret"[..], &magic].concat();
        let pseudorandom = hmac_sha256(&salt, &[secret.as_secret_bytes()]);
        let expand = |info: &str| hmac_sha256(&pseudorandom, &[info.as_bytes(), &[1]]);
        let (send, receive) = match initiator {
            true => ("initiator", "responder"),
            false => ("responder", "initiator"),
        };
        let terminators = expand("garbage_terminators");
        let (mut first, mut second) = ([0; TERMINATOR_SIZE], [0; TERMINATOR_SIZE]);
        first.copy_from_slice(&terminators[..TERMINATOR_SIZE]);
        second.copy_from_slice(&terminators[TERMINATOR_SIZE..]);
        let (send_terminator, receive_terminator) = if initiator { (first, second) } else { (second, first) };
        Cipher {
            send_length: LengthCipher::new(&expand(&format!("{send}_L"))),
            send_packet: PacketCipher::new(&expand(&format!("{send}_P"))),
            receive_length: LengthCipher::new(&expand(&format!("{receive}_L"))),
            receive_packet: PacketCipher::new(&expand(&format!("{receive}_P"))),
            send_terminator,
            receive_terminator,
            session_id: expand("session_id"),
        }
    }
}

/// HMAC-SHA256 of the concatenated parts. The key has at most 64 bytes.
fn hmac_sha256(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let pad = |byte: u8| {
        let mut block = [byte; 64];
        block.iter_mut().zip(key).for_each(|(pad, key)| *pad ^= key);
        block
    };
    let inner = sha256(&[&pad(0x36)[..], &parts.concat()].concat());
    sha256(&[&pad(0x5c)[..], &inner].concat())
}

/// Both directions of an encrypted connection.
pub(super) struct Cipher {
    send_length: LengthCipher,
    send_packet: PacketCipher,
    receive_length: LengthCipher,
    receive_packet: PacketCipher,
    pub(super) send_terminator: [u8; TERMINATOR_SIZE],
    pub(super) receive_terminator: [u8; TERMINATOR_SIZE],
    pub(super) session_id: [u8; 32],
}

/// The packet was modified, or encrypted with other keys.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotAuthentic;

impl Cipher {
    /// Appends the packet for contents given in parts, of at most 2^24 - 1 bytes in total.
    pub(super) fn encrypt(&mut self, parts: &[&[u8]], aad: &[u8], ignore: bool, out: &mut Vec<u8>) {
        let size: usize = parts.iter().map(|part| part.len()).sum();
        assert!(size < 1 << 24, "three bytes hold the length of a packet");
        out.reserve(LENGTH_SIZE + HEADER_SIZE + size + TAG_SIZE);
        let [a, b, c, ..] = size.to_le_bytes();
        let mut length = [a, b, c];
        self.send_length.crypt(&mut length);
        out.extend_from_slice(&length);
        let start = out.len();
        out.push(if ignore { IGNORE_BIT } else { 0 });
        parts.iter().for_each(|part| out.extend_from_slice(part));
        let tag = self.send_packet.encrypt(&mut out[start..], aad);
        out.extend_from_slice(&tag);
    }

    /// Decrypts the length of the next packet's contents.
    pub(super) fn decrypt_length(&mut self, mut length: [u8; LENGTH_SIZE]) -> usize {
        self.receive_length.crypt(&mut length);
        let [a, b, c] = length;
        usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16
    }

    /// Decrypts header, contents and tag in place. Returns whether the packet is to be ignored. The contents start
    /// after the header.
    pub(super) fn decrypt(&mut self, packet: &mut [u8], aad: &[u8]) -> Result<bool, NotAuthentic> {
        let (body, tag) = packet.split_last_chunk_mut::<TAG_SIZE>().ok_or(NotAuthentic)?;
        self.receive_packet.decrypt(body, tag, aad)?;
        Ok(body.first().is_some_and(|header| header & IGNORE_BIT != 0))
    }
}

impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cipher")
    }
}

impl fmt::Debug for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handshake")
    }
}

/// Core's `FSChaCha20`: one stream for 224 lengths; the end of the stream is the next key.
struct LengthCipher {
    stream: ChaCha20,
    chunks: u32,
    rekeys: u64,
}

impl LengthCipher {
    fn new(key: &[u8; 32]) -> LengthCipher {
        LengthCipher { stream: ChaCha20::new(key.into(), &nonce(0, 0).into()), chunks: 0, rekeys: 0 }
    }

    fn crypt(&mut self, length: &mut [u8; LENGTH_SIZE]) {
        self.stream.apply_keystream(length);
        self.chunks += 1;
        if self.chunks == REKEY_INTERVAL {
            let mut key = [0; 32];
            self.stream.apply_keystream(&mut key);
            self.rekeys += 1;
            self.chunks = 0;
            self.stream = ChaCha20::new(&key.into(), &nonce(0, self.rekeys).into());
        }
    }
}

/// Core's `FSChaCha20Poly1305`: one nonce per packet, and after 224 packets a new key from a stream that no packet
/// uses.
struct PacketCipher {
    aead: ChaCha20Poly1305,
    packets: u32,
    rekeys: u64,
}

impl PacketCipher {
    fn new(key: &[u8; 32]) -> PacketCipher {
        PacketCipher { aead: ChaCha20Poly1305::new(key.into()), packets: 0, rekeys: 0 }
    }

    fn encrypt(&mut self, body: &mut [u8], aad: &[u8]) -> [u8; TAG_SIZE] {
        let nonce = nonce(self.packets, self.rekeys).into();
        // Fails only above 256 GB.
        let tag = self.aead.encrypt_inout_detached(&nonce, aad, body.into()).map(Into::into);
        self.next_packet();
        tag.unwrap_or([0; TAG_SIZE])
    }

    fn decrypt(&mut self, body: &mut [u8], tag: &[u8; TAG_SIZE], aad: &[u8]) -> Result<(), NotAuthentic> {
        let nonce = nonce(self.packets, self.rekeys).into();
        let result = self.aead.decrypt_inout_detached(&nonce, aad, body.into(), tag.into());
        self.next_packet();
        result.map_err(|_| NotAuthentic)
    }

    fn next_packet(&mut self) {
        self.packets += 1;
        if self.packets == REKEY_INTERVAL {
            // The key stream from its second block on, which is the result of encrypting zeros.
            let mut key = [0; 32];
            let nonce = nonce(u32::MAX, self.rekeys).into();
            let _ = self.aead.encrypt_inout_detached(&nonce, &[], key.as_mut_slice().into());
            self.aead = ChaCha20Poly1305::new(&key.into());
            self.packets = 0;
            self.rekeys += 1;
        }
    }
}

fn nonce(low: u32, high: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[..4].copy_from_slice(&low.to_le_bytes());
    nonce[4..].copy_from_slice(&high.to_le_bytes());
    nonce
}

#[cfg(test)]
mod tests;
