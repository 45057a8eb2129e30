//! `lydian-cli grind`: the proof of work of a block header, as Bitcoin Core's `bitcoin-util grind`.
//!
//! Input: a header in hex. Output: the header with a nonce whose hash is at most its own target, in hex; or Core's
//! error. No node is asked. All cores share the nonces, of which each is tried at most once. Cost: up to 2^32 hashes.

use lydian_primitives::{HashedHeader, Header, Reader, hex, to_hex};
use std::fmt;
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

/// Nonces that a thread takes at once: a part of 2^32.
const NONCES_AT_ONCE: u32 = 1 << 14;

/// Headers that are hashed together.
const HEADERS_AT_ONCE: u32 = 1 << 8;

/// Why there is no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GrindError {
    NoHeader,
    Undecodable,
    /// No nonce meets the target, or the header's bits are no valid target.
    NotFound,
}

impl fmt::Display for GrindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GrindError::NoHeader => "Must specify block header to grind",
            GrindError::Undecodable => "Could not decode block header",
            GrindError::NotFound => "Could not satisfy difficulty target",
        })
    }
}

impl std::error::Error for GrindError {}

/// Finds the nonce of the only argument. Like Core, ignores bytes after the header.
pub(crate) fn grind(arguments: &[String]) -> Result<String, GrindError> {
    let [text] = arguments else { return Err(GrindError::NoHeader) };
    let bytes = hex(text).map_err(|_| GrindError::Undecodable)?;
    let header = Header::read(&mut Reader::new(&bytes)).map_err(|_| GrindError::Undecodable)?;
    let target = target(header.bits).ok_or(GrindError::NotFound)?;
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let found = search(&header, &target, threads).ok_or(GrindError::NotFound)?;
    Ok(to_hex(&found.to_bytes()))
}

/// A target in big-endian bytes.
type Target = [u8; 32];

/// Core's `SetCompact`; `None` for a target that is zero, negative or too large.
fn target(bits: u32) -> Option<Target> {
    let [exponent, mantissa @ ..] = bits.to_be_bytes();
    let mut target = [0; 32];
    let is_negative = mantissa[0] & 0x80 != 0;
    for (index, byte) in (1..=3).zip(mantissa) {
        // The weight of the byte, in powers of 256.
        match usize::from(exponent).checked_sub(index) {
            Some(place) if place < target.len() => target[target.len() - 1 - place] = byte,
            Some(_) if byte != 0 => return None,
            _ => {}
        }
    }
    (!is_negative && target != [0; 32]).then_some(target)
}

/// The header with the first nonce that any thread finds.
fn search(header: &Header, target: &Target, threads: usize) -> Option<Header> {
    let (next, found) = (AtomicU32::new(0), Mutex::new(None));
    let is_found = || found.lock().is_ok_and(|found| found.is_some());
    let try_parts = || {
        while !is_found() {
            let part = next.fetch_add(1, Ordering::Relaxed);
            let Some(first) = part.checked_mul(NONCES_AT_ONCE) else { return };
            if let (Some(header), Ok(mut found)) = (try_nonces(header, target, first), found.lock()) {
                found.get_or_insert(header);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(try_parts);
        }
        try_parts();
    });
    found.into_inner().ok().flatten()
}

/// The header with a nonce from `first` on, of a part.
fn try_nonces(header: &Header, target: &Target, first: u32) -> Option<Header> {
    let batches = (0..NONCES_AT_ONCE).step_by(HEADERS_AT_ONCE as usize);
    batches.into_iter().find_map(|start| {
        let nonces = (start..start + HEADERS_AT_ONCE).map(|offset| first + offset);
        let headers: Vec<Header> = nonces.map(|nonce| Header { nonce, ..*header }).collect();
        let is_met = |hashed: &HashedHeader| hashed.hash().0.iter().rev().le(target.iter());
        HashedHeader::many(&headers).into_iter().find(is_met).map(|hashed| *hashed.header())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GENESIS: &str = "0100000000000000000000000000000000000000000000000000000000000000000000003ba3edfd7a7b12b27ac72c3e67768f617fc81bc388\
                           8a51323a9fb8aa4b1e5e4adae5494dffff7f2002000000";

    fn grind_text(text: &str) -> Result<String, GrindError> {
        grind(&[text.to_owned()])
    }

    #[test]
    fn a_header_gets_its_nonce() {
        let header = |text: &str| Header::read(&mut Reader::new(&hex(text).unwrap())).unwrap();
        let found = header(&grind_text(GENESIS).unwrap());
        assert!(*found.hash().0.last().unwrap() < 0x80, "{found:?}");
        assert_eq!(Header { nonce: 2, ..found }, header(GENESIS));
        // About 65,000 nonces: several parts, on several threads.
        let harder = GENESIS.replace("ffff7f20", "ffff001f");
        for threads in [1, 3] {
            let header = header(&harder);
            let found = search(&header, &target(header.bits).unwrap(), threads).unwrap();
            assert_eq!(found.hash().0[30..], [0, 0]);
            assert_eq!(Header { nonce: 2, ..found }, header);
        }
        assert!(grind_text(&format!("{GENESIS}00")).is_ok(), "more bytes are ignored, as in Core");
    }

    #[test]
    fn errors_are_cores() {
        assert_eq!(grind(&[]).unwrap_err().to_string(), "Must specify block header to grind");
        assert_eq!(grind(&[String::new(), String::new()]), Err(GrindError::NoHeader));
        for text in ["", "zz", "00", &GENESIS[2..]] {
            assert_eq!(grind_text(text).unwrap_err().to_string(), "Could not decode block header");
        }
        for bits in ["00000000", "0000ff20", "ffff7f24"] {
            let none = grind_text(&GENESIS.replace("ffff7f20", bits));
            assert_eq!(none.unwrap_err().to_string(), "Could not satisfy difficulty target", "{bits}");
        }
    }

    #[test]
    fn targets_are_those_of_compact_bits() {
        let shown = |bits| target(bits).map(|target| to_hex(&target));
        assert_eq!(shown(0x1d00_ffff), Some(format!("00000000ffff{}", "0".repeat(52))));
        assert_eq!(shown(0x207f_ffff), Some(format!("7fffff{}", "0".repeat(58))));
        assert_eq!(shown(0x0212_3456), Some(format!("{}1234", "0".repeat(60))));
        assert_eq!(shown(0x2100_ffff), Some(format!("ffff{}", "0".repeat(60))));
        assert_eq!([0x0080_0000, 0x0100_3456, 0x2200_ffff_u32 + 0x0100_0000, 0x1d80_ffff].map(target), [None; 4]);
    }
}
