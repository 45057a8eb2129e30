//! The numbers of formats: where the file of a store names its number, and the sentence about one that is too new.
//!
//! Input: the constants of the stores, the first bytes of a file. Output: the number that the file names. Every store
//! refuses a newer number by [`NewerFormat`], and `docs/formats/README.md` lists the constants. Accepts any bytes: what
//! has no number here is left to the store, which reports it as damaged or foreign.

use crate::record::Records;
use std::fmt;
use std::path::PathBuf;

/// The format of a file: what this release writes and reads, and where the file says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// The number that is written, and the highest one that is read.
    pub number: u32,
    /// The lowest number that is read.
    pub oldest: u32,
    pub place: NumberPlace,
    /// What the user can do about a newer file without the newer release.
    pub otherwise: &'static str,
}

/// What to do without the newer release: about a store that the whole directory depends on.
pub const OTHER_DATADIR: &str = "choose another -datadir";
/// About a file that is begun anew if it is missing.
pub const MOVE_AWAY: &str = "move the file away";
/// About an index.
pub const DELETE_INDEX: &str = "delete its directory to build the index anew";

/// Where a file names the number of its format. Numbers in binary files are little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberPlace {
    /// Behind these first bytes of the file, in 4 bytes.
    Start(&'static [u8]),
    /// Behind these first bytes of the first record, in 4 bytes.
    Record(&'static [u8]),
    /// In the first line of the first record, which is a text: behind these words and a space.
    RecordLine(&'static str),
    /// In the first line of the file, behind these words and a space.
    Line(&'static str),
    /// In the first 8 bytes of the file.
    First,
    /// In the member `format` of the JSON object that is the file.
    Json,
}

impl Format {
    /// The number that a file names, from its first bytes. `None` if it names none, or if it is a JSON object, which
    /// its store decodes.
    pub fn number_in(&self, bytes: &[u8]) -> Option<u64> {
        let record = || Records::read(bytes, 0).next()?.ok();
        let behind = |start: &[u8], bytes: &[u8]| {
            let number = bytes.strip_prefix(start)?.first_chunk::<4>()?;
            Some(u32::from_le_bytes(*number).into())
        };
        let in_line = |words: &str, bytes: &[u8]| {
            let line = bytes.split(|byte| *byte == b'\n').next()?;
            std::str::from_utf8(line).ok()?.strip_prefix(words)?.strip_prefix(' ')?.parse().ok()
        };
        match self.place {
            NumberPlace::Start(start) => behind(start, bytes),
            NumberPlace::Record(start) => behind(start, record()?),
            NumberPlace::RecordLine(words) => in_line(words, record()?),
            NumberPlace::Line(words) => in_line(words, bytes),
            NumberPlace::First => bytes.first_chunk::<8>().map(|number| u64::from_le_bytes(*number)),
            NumberPlace::Json => None,
        }
    }

    /// The error for a file that names a newer number than this release reads.
    pub fn newer(&self, path: impl Into<PathBuf>, found: impl Into<u64>) -> Option<NewerFormat> {
        let found = found.into();
        (found > self.number.into()).then(|| NewerFormat {
            path: path.into(),
            found,
            known: self.number,
            otherwise: self.otherwise,
        })
    }
}

/// A file of a newer format than this release reads. Its text is the sentence of every store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewerFormat {
    pub path: PathBuf,
    pub found: u64,
    /// The highest number that this release reads.
    pub known: u32,
    /// See [`Format::otherwise`].
    pub otherwise: &'static str,
}

impl fmt::Display for NewerFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} has format {}, which a newer release of Lydian reads; this one ({}) reads formats up to {}: start the newer \
             release, or {}",
            self.path.display(),
            self.found,
            env!("CARGO_PKG_VERSION"),
            self.known,
            self.otherwise
        )
    }
}

impl std::error::Error for NewerFormat {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::encode_record;

    fn format(place: NumberPlace) -> Format {
        Format { number: 2, oldest: 1, place, otherwise: MOVE_AWAY }
    }

    #[test]
    fn a_number_is_found_where_its_format_has_it() {
        let record = |payload: &[u8]| {
            let mut bytes = Vec::new();
            encode_record(payload, 0, &mut bytes);
            bytes
        };
        let mut flipped = record(b"text\x07\0\0\0");
        flipped[13] ^= 1;
        let cases: &[(NumberPlace, Vec<u8>, Option<u64>)] = &[
            (NumberPlace::Start(b"magic"), b"magic\x02\x01\0\0rest".to_vec(), Some(258)),
            (NumberPlace::Start(b"magic"), b"magik\x02\0\0\0".to_vec(), None),
            (NumberPlace::Start(b"magic"), b"magic\x02\0\0".to_vec(), None),
            (NumberPlace::Record(b"text"), record(b"text\x07\0\0\0more"), Some(7)),
            (NumberPlace::Record(b"text"), flipped, None),
            (NumberPlace::RecordLine("a history"), record(b"a history 12\nslot"), Some(12)),
            (NumberPlace::RecordLine("a history"), record(b"a history12\n"), None),
            (NumberPlace::Line("lydian"), b"lydian 3\nchain main\n".to_vec(), Some(3)),
            (NumberPlace::Line("lydian"), b"lydian -3\n".to_vec(), None),
            (NumberPlace::First, vec![9, 0, 0, 0, 0, 0, 0, 1, 5], Some((1 << 56) + 9)),
            (NumberPlace::First, vec![9, 0, 0, 0], None),
            (NumberPlace::Json, b"{\"format\":9}".to_vec(), None),
        ];
        for (place, bytes, expected) in cases {
            assert_eq!(format(*place).number_in(bytes), *expected, "{place:?}");
        }
    }

    #[test]
    fn only_a_newer_number_is_refused() {
        let format = format(NumberPlace::First);
        assert_eq!((format.newer("/x", 1_u64), format.newer("/x", 2_u32)), (None, None));
        let error = format.newer("/x", 3_u32).unwrap();
        let expected = format!(
            "/x has format 3, which a newer release of Lydian reads; this one ({}) reads formats up to 2: start the newer \
             release, or move the file away",
            env!("CARGO_PKG_VERSION")
        );
        assert_eq!(error.to_string(), expected);
    }
}
