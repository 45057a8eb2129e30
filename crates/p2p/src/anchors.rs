//! `anchors.dat`: the block-relay-only peers of the previous run, which the next run connects to first.
//!
//! Converts between addresses and the bytes of the file.
//!
//! Core's format: the list in the frame of `datafile`, with addresses encoded as in `peers.dat`. An attacker who forces
//! a restart to make the node choose new peers finds it connected to two of the old ones. The file is used once: the
//! reader removes it, so that a crash at startup does not lead to the same anchors again. Invariants: at most
//! [`ANCHORS_MAX`] addresses are returned, as they were written, valid or not; total on any bytes.

use crate::datafile::{self, FrameError, Magic};
use crate::limits::{ANCHORS_FILE_SIZE_MAX, ANCHORS_MAX};
use lydian_primitives::{ParseError, write_compact_size};
use lydian_wire::{DecodeError, Encoding, TimedAddress};
use std::fmt;

/// The reason why a file was not read. Like Core, the caller then starts without anchors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnchorsError {
    Frame(FrameError),
    Decode(DecodeError),
    TooLarge { size: usize },
}

impl fmt::Display for AnchorsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnchorsError::Frame(error) => error.fmt(f),
            AnchorsError::Decode(error) => error.fmt(f),
            AnchorsError::TooLarge { size } => {
                write!(f, "{size} bytes exceed the maximum size of anchors.dat ({ANCHORS_FILE_SIZE_MAX} bytes)")
            }
        }
    }
}

impl std::error::Error for AnchorsError {}

impl From<FrameError> for AnchorsError {
    fn from(error: FrameError) -> Self {
        AnchorsError::Frame(error)
    }
}

impl From<DecodeError> for AnchorsError {
    fn from(error: DecodeError) -> Self {
        AnchorsError::Decode(error)
    }
}

impl From<ParseError> for AnchorsError {
    fn from(error: ParseError) -> Self {
        AnchorsError::Decode(error.into())
    }
}

/// Encodes the first [`ANCHORS_MAX`] addresses.
pub fn encode(anchors: &[TimedAddress], magic: Magic) -> Vec<u8> {
    let anchors = &anchors[..anchors.len().min(ANCHORS_MAX)];
    datafile::seal(magic, |out| {
        write_compact_size(out, anchors.len());
        for anchor in anchors {
            anchor.encode_disk(out, Encoding::V2);
        }
    })
}

/// Returns the first [`ANCHORS_MAX`] addresses of a file.
pub fn decode(bytes: &[u8], magic: Magic) -> Result<Vec<TimedAddress>, AnchorsError> {
    if bytes.len() > ANCHORS_FILE_SIZE_MAX {
        return Err(AnchorsError::TooLarge { size: bytes.len() });
    }
    let mut reader = datafile::open(magic, bytes)?;
    let mut anchors = Vec::new();
    for _ in 0..reader.compact_size()? {
        let anchor = TimedAddress::decode_disk(&mut reader, Encoding::V2)?;
        if anchors.len() < ANCHORS_MAX {
            anchors.push(anchor);
        }
    }
    datafile::verify(bytes, reader)?;
    Ok(anchors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_wire::{Endpoint, NetAddr, Services};
    use proptest::prelude::*;

    const MAGIC: Magic = [0xfa, 0xbf, 0xb5, 0xda];

    fn anchor(last: u8) -> TimedAddress {
        let addr = if last == 9 { NetAddr::TorV3([last; 32]) } else { NetAddr::Ipv4([1, 2, 3, last].into()) };
        TimedAddress { time: 1_700_000_000, services: Services::NETWORK, endpoint: Endpoint { addr, port: 8333 } }
    }

    /// limit: ANCHORS_MAX at
    /// limit: ANCHORS_MAX above
    #[test]
    fn two_anchors_are_kept() {
        let both = [anchor(1), anchor(9)];
        assert_eq!(decode(&encode(&both, MAGIC), MAGIC), Ok(both.to_vec()));
        assert_eq!(decode(&encode(&[both[0], both[1], anchor(3)], MAGIC), MAGIC), Ok(both.to_vec()));
        assert_eq!(decode(&encode(&[], MAGIC), MAGIC), Ok(vec![]));
        let three = datafile::seal(MAGIC, |out| {
            out.push(3);
            [anchor(1), anchor(9), anchor(3)].iter().for_each(|one| one.encode_disk(out, Encoding::V2));
        });
        assert_eq!(decode(&three, MAGIC), Ok(both.to_vec()));
    }

    /// limit: ANCHORS_FILE_SIZE_MAX at
    /// limit: ANCHORS_FILE_SIZE_MAX above
    #[test]
    fn a_file_is_read_up_to_its_size() {
        let mut file = encode(&[anchor(1)], MAGIC);
        file.resize(ANCHORS_FILE_SIZE_MAX, 0);
        assert_eq!(decode(&file, MAGIC), Ok(vec![anchor(1)]));
        file.push(0);
        assert_eq!(decode(&file, MAGIC), Err(AnchorsError::TooLarge { size: ANCHORS_FILE_SIZE_MAX + 1 }));
    }

    #[test]
    fn damage_and_other_networks_are_distinguished() {
        let file = encode(&[anchor(1), anchor(9)], MAGIC);
        assert_eq!(decode(&file, [0; 4]), Err(AnchorsError::Frame(FrameError::WrongNetwork)));
        for index in 0..file.len() {
            let mut damaged = file.clone();
            damaged[index] ^= 1;
            assert!(decode(&damaged, MAGIC).is_err(), "byte {index}");
            assert!(decode(&file[..index], MAGIC).is_err(), "{index} bytes");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let sealed = datafile::seal(MAGIC, |out| out.extend_from_slice(&bytes));
            for file in [bytes, sealed] {
                if let Ok(anchors) = decode(&file, MAGIC) {
                    prop_assert_eq!(decode(&encode(&anchors, MAGIC), MAGIC), Ok(anchors));
                }
            }
        }
    }
}
