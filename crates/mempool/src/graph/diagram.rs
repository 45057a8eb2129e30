//! Feerate diagrams and their comparison.
//!
//! Input: the chunks of some clusters. Output: the fee that the best transactions of each total size pay, as a curve of
//! straight pieces, and which of two curves is higher. The rules are Core's `CompareChunks`: a curve begins at zero and
//! stays level after its last chunk; one that is higher at one size and lower at another is incomparable.
//!
//! Cost: one pass over both curves; making one sorts its chunks. Totals have 128 bits, so any fees can be added.

use super::fee_size::FeeSize;
use std::cmp::Ordering;

/// The chunks of some clusters in mining order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagram {
    chunks: Vec<FeeSize>,
}

/// A point of the curve.
#[derive(Clone, Copy, Debug, Default)]
struct Point {
    size: i128,
    fee: i128,
}

impl Point {
    fn after(self, chunk: FeeSize) -> Point {
        Point { size: self.size + i128::from(chunk.size), fee: self.fee + i128::from(chunk.fee) }
    }
}

impl Diagram {
    /// Makes the diagram of `chunks`, given in any order.
    #[must_use]
    pub fn new(mut chunks: Vec<FeeSize>) -> Diagram {
        chunks.sort_by(FeeSize::compare_mining);
        Diagram { chunks }
    }

    /// Returns the chunks, best first.
    #[must_use]
    pub fn chunks(&self) -> &[FeeSize] {
        &self.chunks
    }

    /// Compares the two curves: `Greater` if `self` is nowhere lower and somewhere higher, `None` if each is higher
    /// somewhere.
    #[must_use]
    pub fn compare(&self, other: &Diagram) -> Option<Ordering> {
        let (mut own, mut theirs) = (Curve::new(&self.chunks), Curve::new(&other.chunks));
        let (mut is_higher, mut is_lower) = (false, false);
        // Between two ends of pieces both curves are straight, so only the ends matter.
        while let Some(size) = [own.end(), theirs.end()].into_iter().flatten().min() {
            match own.compare_at(&theirs, size) {
                Ordering::Greater => is_higher = true,
                Ordering::Less => is_lower = true,
                Ordering::Equal => {}
            }
            if is_higher && is_lower {
                return None;
            }
            own.pass(size);
            theirs.pass(size);
        }
        Some(is_higher.cmp(&is_lower))
    }
}

/// A walk along a diagram.
struct Curve<'a> {
    rest: std::slice::Iter<'a, FeeSize>,
    /// Where the current piece begins.
    start: Point,
    /// The current piece, if the curve is not level yet.
    piece: Option<FeeSize>,
}

impl<'a> Curve<'a> {
    fn new(chunks: &'a [FeeSize]) -> Curve<'a> {
        let mut rest = chunks.iter();
        let piece = rest.next().copied();
        Curve { rest, start: Point::default(), piece }
    }

    /// Returns the size at which the current piece ends.
    fn end(&self) -> Option<i128> {
        self.piece.map(|piece| self.start.after(piece).size)
    }

    /// Goes on to the next piece if the current one ends at `size`.
    fn pass(&mut self, size: i128) {
        if let Some(piece) = self.piece
            && self.start.after(piece).size <= size
        {
            self.start = self.start.after(piece);
            self.piece = self.rest.next().copied();
        }
    }

    /// Compares the heights of two curves at `size`, where the piece of one of them ends, or of both.
    fn compare_at(&self, other: &Curve<'_>, size: i128) -> Ordering {
        match self.piece.map(|piece| self.start.after(piece)) {
            Some(end) if end.size == size => other.compare_with(end).reverse(),
            _ => match other.piece.map(|piece| other.start.after(piece)) {
                Some(end) => self.compare_with(end),
                None => Ordering::Equal,
            },
        }
    }

    /// Compares the height of the curve at the size of `point` with its fee. The size is on the current piece.
    fn compare_with(&self, point: Point) -> Ordering {
        let (fee, size) = self.slope();
        (fee * (point.size - self.start.size)).cmp(&((point.fee - self.start.fee) * size))
    }

    /// Returns the slope of the current piece as a fee and a positive size.
    fn slope(&self) -> (i128, i128) {
        match self.piece {
            Some(piece) if piece.size > 0 => (i128::from(piece.fee), i128::from(piece.size)),
            _ => (0, 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagram(chunks: &[(i64, i32)]) -> Diagram {
        Diagram::new(chunks.iter().map(|&(fee, size)| FeeSize::new(fee, size)).collect())
    }

    fn check(one: &[(i64, i32)], other: &[(i64, i32)], expected: Option<Ordering>) {
        let (one, other) = (diagram(one), diagram(other));
        assert_eq!(one.compare(&other), expected, "{one:?} {other:?}");
        assert_eq!(other.compare(&one), expected.map(Ordering::reverse), "{other:?} {one:?}");
    }

    #[test]
    fn curves_compare() {
        check(&[], &[], Some(Ordering::Equal));
        check(&[(0, 5)], &[], Some(Ordering::Equal));
        check(&[(1, 5)], &[], Some(Ordering::Greater));
        check(&[(-1, 5)], &[], Some(Ordering::Less));
        check(&[(10, 10)], &[(5, 5), (5, 5)], Some(Ordering::Equal));
        check(&[(10, 10)], &[(6, 5), (4, 5)], Some(Ordering::Less));
        check(&[(10, 5)], &[(10, 10)], Some(Ordering::Greater));
        check(&[(10, 5)], &[(11, 10)], None);
        check(&[(10, 5), (1, 5)], &[(11, 10)], Some(Ordering::Greater));
        check(&[(10, 1), (10, 10)], &[(9, 1), (12, 10)], None);
    }

    #[test]
    fn extreme_fees_do_not_overflow() {
        let many = vec![(i64::MAX, i32::MAX); 100];
        let more = vec![(i64::MAX, i32::MAX); 101];
        check(&more, &many, Some(Ordering::Greater));
        check(&vec![(i64::MIN, 1); 100], &many, Some(Ordering::Less));
    }

    #[test]
    fn chunks_are_sorted() {
        let diagram = diagram(&[(1, 2), (3, 1), (2, 4), (5, 2)]);
        let chunks: Vec<(i64, i32)> = diagram.chunks().iter().map(|chunk| (chunk.fee, chunk.size)).collect();
        assert_eq!(chunks, [(3, 1), (5, 2), (1, 2), (2, 4)]);
    }
}
