//! The bytes of the history file (docs/formats/history.md). Input: series and values. Output: two copies of a head, and
//! slots of fixed size; and back. Pure functions: nothing is read or written here.
//!
//! Both are records of [`lydian_disk::record`]. A slot's sequence number is its place in the file, so that bytes of
//! another place do not count. Invariant: decoding never fails on any input; what is not a record is damage.

use super::series::{Combine, Series};
use crate::limits::{HISTORY_FILE_BYTES, HISTORY_SERIES_MAX};
use lydian_disk::format::{Format, MOVE_AWAY, NumberPlace};
use lydian_disk::record::{RECORD_HEAD_SIZE, Records, encode_record};

/// The first words of a head.
const TITLE: &str = "lydian history";

/// The version of the format.
const VERSION: u32 = HISTORY_FORMAT.number;

/// The format of the file.
pub const HISTORY_FORMAT: Format =
    Format { number: 1, oldest: 1, place: NumberPlace::RecordLine(TITLE), otherwise: MOVE_AWAY };

/// Bytes of one copy of the head: more than the longest one needs.
pub(super) const HEAD_SIZE: u64 = 16 << 10;

/// Copies of the head.
pub(super) const HEADS: u64 = 2;

/// Bytes of a slot.
pub(super) const SLOT_SIZE: u64 = 1 << 10;

/// Intervals of one length, in a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tier {
    /// Length of an interval in seconds.
    pub(super) step: u64,
    /// Intervals that are kept.
    pub(super) count: u64,
}

impl Tier {
    /// Seconds that are kept.
    pub(super) fn span(&self) -> u64 {
        self.step * self.count
    }
}

/// The tiers of a file, the finest first. The step of each is a multiple of the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) tiers: [Tier; 3],
}

/// A day in steps of 10 s, a month of 31 days in steps of 5 min, five years (and a half) in hours.
pub(super) const LAYOUT: Layout = Layout {
    tiers: [Tier { step: 10, count: 8_640 }, Tier { step: 300, count: 8_928 }, Tier { step: 3_600, count: 47_936 }],
};

const _: () = assert!(LAYOUT.file_size() == HISTORY_FILE_BYTES, "the slots fill the file");
const _: () = assert!(RECORD_HEAD_SIZE + 8 + 8 * HISTORY_SERIES_MAX <= 1 << 10, "a slot has room for all series");

impl Layout {
    pub(super) const fn slots(&self) -> u64 {
        self.tiers[0].count + self.tiers[1].count + self.tiers[2].count
    }

    pub(super) const fn file_size(&self) -> u64 {
        HEADS * HEAD_SIZE + self.slots() * SLOT_SIZE
    }

    /// The slot of the interval of a tier that contains a time.
    pub(super) fn slot(&self, tier: usize, time: u64) -> u64 {
        let before: u64 = self.tiers.iter().take(tier).map(|tier| tier.count).sum();
        let ring = self.tiers.get(tier).map_or(0, |tier| time / tier.step % tier.count);
        before + ring
    }

    /// The tier of a slot, and its place in the ring.
    pub(super) fn place(&self, slot: u64) -> Option<(usize, u64)> {
        let mut place = slot;
        for (index, tier) in self.tiers.iter().enumerate() {
            if place < tier.count {
                return Some((index, place));
            }
            place -= tier.count;
        }
        None
    }
}

/// The offset of a slot in the file.
pub(super) fn slot_offset(slot: u64) -> u64 {
    HEADS * HEAD_SIZE + slot * SLOT_SIZE
}

/// A column of the slots: a series of this program, or one of another version of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) unit: String,
    pub(super) combine: Combine,
}

impl From<&Series> for Column {
    fn from(series: &Series) -> Column {
        Column { name: series.name.to_owned(), unit: series.unit.to_owned(), combine: series.combine }
    }
}

/// What a head says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Head {
    Columns(Vec<Column>),
    /// A whole head of another version of the format.
    Other {
        version: String,
    },
}

/// The head of a file, one copy of it.
pub(super) fn encode_head(layout: &Layout, columns: &[Column]) -> Vec<u8> {
    let mut text = first_lines(layout);
    for Column { name, unit, combine } in columns {
        text.push_str(&format!("series {name} {unit} {}\n", combine.name()));
    }
    let mut bytes = Vec::new();
    encode_record(text.as_bytes(), 0, &mut bytes);
    bytes.resize(usize::try_from(HEAD_SIZE).unwrap_or(0).max(bytes.len()), 0);
    bytes
}

fn first_lines(layout: &Layout) -> String {
    let tiers = layout.tiers.iter().map(|tier| format!("every {} keep {}\n", tier.step, tier.count));
    format!("{TITLE} {VERSION}\nslot {SLOT_SIZE}\n{}", tiers.collect::<String>())
}

/// `None` if the bytes are not a whole head.
pub(super) fn decode_head(layout: &Layout, bytes: &[u8]) -> Option<Head> {
    let text = std::str::from_utf8(Records::read(bytes, 0).next()?.ok()?).ok()?;
    let version = text.lines().next()?.strip_prefix(TITLE)?.trim();
    let Some(lines) = text.strip_prefix(&first_lines(layout)) else {
        return Some(Head::Other { version: version.to_owned() });
    };
    let column = |line: &str| {
        let mut words = line.strip_prefix("series ")?.split(' ');
        let (name, unit, combine) = (words.next()?, words.next()?, Combine::find(words.next()?)?);
        Some(Column { name: name.to_owned(), unit: unit.to_owned(), combine })
    };
    let columns: Vec<Column> = lines.lines().map(column).collect::<Option<_>>()?;
    (columns.len() <= HISTORY_SERIES_MAX).then_some(Head::Columns(columns))
}

/// A slot: the values of one interval, one for each column; NaN means that there is none.
pub(super) fn encode_slot(slot: u64, time: u64, values: &[f64]) -> Vec<u8> {
    let mut payload = time.to_le_bytes().to_vec();
    values.iter().take(HISTORY_SERIES_MAX).for_each(|value| payload.extend_from_slice(&value.to_le_bytes()));
    let mut bytes = Vec::new();
    encode_record(&payload, slot, &mut bytes);
    bytes.resize(usize::try_from(SLOT_SIZE).unwrap_or(0), 0);
    bytes
}

/// What a slot contains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Slot<'a> {
    /// It was never written.
    Empty,
    Damaged,
    Values {
        /// The start of the interval.
        time: u64,
        values: Values<'a>,
    },
}

/// The values of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Values<'a>(&'a [u8]);

impl Values<'_> {
    /// Columns that have a place in this slot.
    pub(super) fn columns(&self) -> usize {
        self.0.len() / 8
    }

    /// The value of a column, if it has one.
    pub(super) fn get(&self, column: usize) -> Option<f64> {
        let (bytes, _) = self.0.get(8 * column..)?.split_first_chunk::<8>()?;
        Some(f64::from_le_bytes(*bytes)).filter(|value| value.is_finite())
    }
}

/// Reads the slot with this number.
pub(super) fn decode_slot<'a>(layout: &Layout, slot: u64, bytes: &'a [u8]) -> Slot<'a> {
    if bytes.iter().take(RECORD_HEAD_SIZE).all(|byte| *byte == 0) {
        return Slot::Empty;
    }
    let whole = || {
        let payload = Records::read(bytes, slot).next()?.ok()?;
        let (time, values) = payload.split_first_chunk::<8>()?;
        let time = u64::from_le_bytes(*time);
        let (tier, _) = layout.place(slot)?;
        let is_here = layout.slot(tier, time) == slot && time.is_multiple_of(layout.tiers.get(tier)?.step);
        is_here.then_some(Slot::Values { time, values: Values(values) })
    };
    whole().unwrap_or(Slot::Damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_slot_has_one_place() {
        assert_eq!(LAYOUT.slots(), 65_504);
        for (tier, time, slot) in [
            (0, 0, 0),
            (0, 86_399, 8_639),
            (0, 86_400, 0),
            (1, 0, 8_640),
            (1, 299, 8_640),
            (1, 300, 8_641),
            (2, 3_600, 8_640 + 8_928 + 1),
            (2, 3_600 * 47_936, 8_640 + 8_928),
        ] {
            assert_eq!(LAYOUT.slot(tier, time), slot);
            assert_eq!(LAYOUT.place(slot).unwrap().0, tier);
        }
        assert_eq!((LAYOUT.place(65_503), LAYOUT.place(65_504)), (Some((2, 47_935)), None));
    }

    /// limit: HISTORY_SERIES_MAX at
    /// limit: HISTORY_SERIES_MAX above
    #[test]
    fn a_head_has_room_for_all_series() {
        let of = |count: usize| -> Vec<Column> {
            let column = |number: usize| Column {
                name: format!("{number:0>60}"),
                unit: "transactions".to_owned(),
                combine: Combine::Last,
            };
            (0..count).map(column).collect()
        };
        let bytes = encode_head(&LAYOUT, &of(HISTORY_SERIES_MAX));
        assert_eq!(bytes.len() as u64, HEAD_SIZE);
        assert_eq!(decode_head(&LAYOUT, &bytes), Some(Head::Columns(of(HISTORY_SERIES_MAX))));
        assert_eq!(decode_head(&LAYOUT, &encode_head(&LAYOUT, &of(HISTORY_SERIES_MAX + 1))), None);
        let values: Vec<f64> = (0..200_u32).map(f64::from).collect();
        let slot = encode_slot(3, 30, &values);
        let Slot::Values { time: 30, values } = decode_slot(&LAYOUT, 3, &slot) else { panic!("not whole") };
        assert_eq!(values.columns(), HISTORY_SERIES_MAX);
        assert_eq!((values.get(124), values.get(125)), (Some(124.0), None));
    }

    #[test]
    fn every_flipped_byte_is_damage() {
        let values = [1.0, f64::NAN, -2.5];
        let slot = encode_slot(8_641, 300, &values);
        let Slot::Values { time, values } = decode_slot(&LAYOUT, 8_641, &slot) else { panic!("not whole") };
        assert_eq!((time, values.get(0), values.get(1), values.get(2)), (300, Some(1.0), None, Some(-2.5)));
        assert_eq!(decode_slot(&LAYOUT, 8_640, &slot), Slot::Damaged, "another place");
        assert_eq!(decode_slot(&LAYOUT, 8_641, &encode_slot(8_641, 600, &[])), Slot::Damaged, "another time");
        assert_eq!(decode_slot(&LAYOUT, 8_641, &encode_slot(8_641, 301, &[])), Slot::Damaged, "no step");
        for at in 0..RECORD_HEAD_SIZE + 8 + 24 {
            let mut bad = slot.clone();
            bad[at] ^= 1;
            assert_eq!(decode_slot(&LAYOUT, 8_641, &bad), Slot::Damaged, "byte {at}");
            assert_eq!(decode_slot(&LAYOUT, 8_641, &slot[..at]), if at == 0 { Slot::Empty } else { Slot::Damaged });
        }
        assert_eq!(decode_slot(&LAYOUT, 8_641, &[0; 1024]), Slot::Empty);

        let column = Column { name: "a".to_owned(), unit: "b".to_owned(), combine: Combine::Sum };
        let head = encode_head(&LAYOUT, &[column]);
        for at in 0..head.iter().rposition(|byte| *byte != 0).unwrap() {
            let mut bad = head.clone();
            bad[at] ^= 1;
            assert_eq!(decode_head(&LAYOUT, &bad), None, "byte {at}");
        }
    }

    #[test]
    fn other_versions_are_recognized() {
        let mut bytes = Vec::new();
        encode_record(b"lydian history 2\nslot 4096\n", 0, &mut bytes);
        assert_eq!(decode_head(&LAYOUT, &bytes), Some(Head::Other { version: "2".to_owned() }));
        bytes.clear();
        encode_record(b"something else\n", 0, &mut bytes);
        assert_eq!(decode_head(&LAYOUT, &bytes), None);
    }

    /// The bytes in docs/formats/history.md are these.
    #[test]
    fn the_document_shows_a_slot_and_a_head() {
        let page = include_str!("../../../../docs/formats/history.md");
        let head = String::from_utf8_lossy(&encode_head(&LAYOUT, &[])[RECORD_HEAD_SIZE..]).replace('\0', "");
        assert!(page.contains(&head), "{head}");
        let slot = encode_slot(8_641, 300, &[1.0, f64::NAN]);
        let hex: String = slot.iter().take(RECORD_HEAD_SIZE + 24).map(|byte| format!("{byte:02x}")).collect();
        assert!(page.contains(&hex), "{hex}");
    }
}
