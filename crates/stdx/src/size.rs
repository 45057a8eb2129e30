//! Sizes read from files and peers. Input: a number of 64 bits. Output: a `usize`.

/// The number as a `usize`; the largest `usize` if it does not fit, so that a comparison with any limit fails.
#[inline]
pub fn saturating_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_fits_is_unchanged() {
        assert_eq!([0, 1, u64::from(u32::MAX)].map(saturating_usize), [0, 1, 0xffff_ffff]);
        assert_eq!(saturating_usize(u64::MAX), usize::MAX);
    }
}
