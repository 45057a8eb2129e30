//! Numbers as bits: of a fixed width, and as Rice codes, which are short for small numbers.
//!
//! Input: numbers. Output: bytes, the first bit in the highest place; or the numbers again. Any bytes are read: the end
//! of the bytes is `None`. The Rice code of `n` with `width` low bits is `n >> width` ones, a zero, and the low bits.
//! Cost: a few operations for each number; the reader refills 64 bits at a time.

/// The longest run of ones in a Rice code. A longer one is damage: no page is written with one.
pub(crate) const ONES_MAX: u32 = 4_096;

/// Bits that are written one number after another.
#[derive(Debug, Default)]
pub(crate) struct BitWriter {
    bytes: Vec<u8>,
    /// The last bits, in the low places.
    last: u64,
    /// How many of them there are, below 8 between calls.
    count: u32,
}

impl BitWriter {
    /// The low `width` bits of a number; at most 56.
    pub(crate) fn write(&mut self, number: u64, width: u32) {
        debug_assert!(width <= 56 && (width == 0 || number >> width == 0), "{number} in {width} bits");
        self.last = self.last << width | number;
        self.count += width;
        while self.count >= 8 {
            self.count -= 8;
            self.bytes.push(low_byte(self.last >> self.count));
        }
        self.last &= (1 << self.count) - 1;
    }

    /// The Rice code of a number.
    pub(crate) fn write_rice(&mut self, number: u64, width: u32) {
        let mut ones = number >> width;
        while ones >= 32 {
            self.write((1 << 32) - 1, 32);
            ones -= 32;
        }
        // The ones, and the zero behind them.
        let count = u32::try_from(ones).unwrap_or(0);
        self.write(((1 << ones) - 1) << 1, count + 1);
        self.write(number & ((1 << width) - 1), width);
    }

    /// All bytes; the last one is filled with zeros.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        if self.count > 0 {
            self.bytes.push(low_byte(self.last << (8 - self.count)));
        }
        self.bytes
    }
}

fn low_byte(bits: u64) -> u8 {
    bits.to_le_bytes()[0]
}

/// Reads what a [`BitWriter`] wrote.
#[derive(Clone, Debug)]
pub(crate) struct BitReader<'a> {
    bytes: &'a [u8],
    /// The next bits, from the highest place on.
    next: u64,
    count: u32,
}

impl<'a> BitReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> BitReader<'a> {
        BitReader { bytes, next: 0, count: 0 }
    }

    /// At least 57 bits, if there are so many.
    fn refill(&mut self) {
        if let Some((eight, _)) = self.bytes.split_first_chunk::<8>()
            && self.count <= 56
        {
            // Bits behind the last whole byte are those that the next refill adds again.
            let taken = (64 - self.count) / 8;
            self.next |= u64::from_be_bytes(*eight) >> self.count;
            self.count += taken * 8;
            self.bytes = self.bytes.get(taken as usize..).unwrap_or_default();
            return;
        }
        while self.count <= 56
            && let Some((byte, rest)) = self.bytes.split_first()
        {
            self.next |= u64::from(*byte) << (56 - self.count);
            self.count += 8;
            self.bytes = rest;
        }
    }

    /// A number of `width` bits; at most 56.
    pub(crate) fn read(&mut self, width: u32) -> Option<u64> {
        if width == 0 {
            return Some(0);
        }
        if self.count < width {
            self.refill();
        }
        if self.count < width {
            return None;
        }
        let number = self.next >> (64 - width);
        self.next <<= width;
        self.count -= width;
        Some(number)
    }

    /// A number of which the Rice code has `width` low bits.
    pub(crate) fn read_rice(&mut self, width: u32) -> Option<u64> {
        self.refill();
        let ones = self.next.leading_ones();
        let bits = ones + 1 + width;
        // Nearly always the whole code is here.
        if bits <= self.count && width > 0 {
            let low = self.next << ones << 1 >> (64 - width);
            self.skip(bits);
            return Some(u64::from(ones) << width | low);
        }
        self.read_long_rice(width)
    }

    fn read_long_rice(&mut self, width: u32) -> Option<u64> {
        let mut ones = 0;
        loop {
            if self.count == 0 {
                self.refill();
            }
            if self.count == 0 || ones > ONES_MAX {
                return None;
            }
            let run = self.next.leading_ones().min(self.count);
            ones += run;
            if run < self.count {
                // With the zero.
                self.skip(run + 1);
                break;
            }
            self.skip(run);
        }
        let low = self.read(width)?;
        u64::from(ones).checked_shl(width).filter(|high| high >> width == u64::from(ones)).map(|high| high | low)
    }

    /// Whether fewer than eight bits are left.
    pub(crate) fn is_at_last_byte(&self) -> bool {
        self.bytes.is_empty() && self.count < 8
    }

    fn skip(&mut self, count: u32) {
        self.next = self.next.checked_shl(count).unwrap_or(0);
        self.count -= count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_bits_are_in_the_order_of_the_document() {
        let mut writer = BitWriter::default();
        writer.write(0b101, 3);
        // Two ones, a zero, and the low bits 01.
        writer.write_rice(0b1001, 2);
        assert_eq!(writer.finish(), [0b1011_1001]);
        let mut reader = BitReader::new(&[0b1011_1001]);
        assert_eq!((reader.read(3), reader.read_rice(2), reader.read(1)), (Some(0b101), Some(0b1001), None));
    }

    #[test]
    fn a_run_of_ones_without_end_is_no_number() {
        assert_eq!(BitReader::new(&[0xff; 10_000]).read_rice(3), None);
        assert_eq!(BitReader::new(&[0xff; 3]).read_rice(3), None);
    }

    proptest! {
        #[test]
        fn numbers_come_back(numbers in prop::collection::vec((0_u64..1 << 56, 0_u32..57, 0_u32..41), 0..200)) {
            let mut writer = BitWriter::default();
            for (number, width, rice) in &numbers {
                writer.write(number & ((1 << width) - 1), *width);
                // At most a thousand ones.
                writer.write_rice(number % (1_000 << rice), *rice);
            }
            let bytes = writer.finish();
            let mut reader = BitReader::new(&bytes);
            for (number, width, rice) in &numbers {
                prop_assert_eq!(reader.read(*width), Some(number & ((1 << width) - 1)));
                prop_assert_eq!(reader.read_rice(*rice), Some(number % (1_000 << rice)));
            }
            prop_assert!(reader.read(8).is_none());
        }

        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..100), width in 0_u32..57) {
            let mut reader = BitReader::new(&bytes);
            while reader.read_rice(width).is_some() && reader.read(7).is_some() {}
        }
    }
}
