//! A sum of many multiples of points by buckets (Pippenger's algorithm), with additions in affine coordinates.
//!
//! Input: packed points and for each an odd multiplier of 130 bits, recoded. Output: the sum, or `None` if equal or
//! opposite points met, which is exceptional. In each window the points are sorted into buckets by digit; buckets are
//! summed pair by pair, and one round of pairs shares one inversion. Invariant: the sum is correct, or exceptional
//! (`None` or Z = 0). Cost: 6 multiplications per addition; about 40 additions per check; memory 64 bytes for each
//! addition of `WINDOW_REFERENCES` and for each bucket. Must never: add where the difference of x is zero. Derivation:
//! `docs/derivations/batch.md`, sections 3 to 5.

use super::field::Carried;
use super::lift::{point, store};
use super::point::{Jacobian, minus, select};
use super::{Lanes, Line, WIDTH_MAX};

/// The index of a point's line; the highest bit selects the opposite point.
type Reference = u32;
const OPPOSITE: Reference = 1 << 31;
/// No point.
const NONE: Reference = u32::MAX;

/// Windows are summed together up to this total number of points: more points share an inversion, fewer stay in the
/// cache.
const WINDOW_REFERENCES: usize = 1 << 14;
/// Independent products accumulated in parallel: a single one would wait for its own results.
const CHAINS: usize = 4;
/// Bits of a multiplier.
const BITS: u32 = 130;

/// A multiplier k, odd and below 2^130 in absolute value, as (k + 2^130 - 1) / 2 in words, least significant first.
pub(crate) type Recoded = [u64; 3];

/// X, Y and Z of a Jacobian point, below p.
pub(crate) type Coordinates = [[u64; 5]; 3];

/// The division of multipliers into windows.
#[derive(Clone, Copy, Debug)]
struct Plan {
    bits: u32,
    windows: u32,
}

impl Plan {
    /// The cheapest plan for this number of points: every point is added once per window, every bucket twice.
    fn new(points: usize) -> Plan {
        let cost = |plan: &Plan| plan.windows as usize * (points + plan.buckets());
        let plans = (4..14).map(|bits| Plan { bits, windows: BITS.div_ceil(bits) });
        plans.min_by_key(cost).unwrap_or(Plan { bits: 10, windows: 13 })
    }

    /// The number of windows that are summed together.
    fn together(&self, points: usize) -> usize {
        (WINDOW_REFERENCES / points.max(1)).clamp(1, self.windows as usize)
    }

    /// Enough lines for the points and their sums at any time.
    fn lines(&self, points: usize) -> usize {
        if points == 0 {
            return 0;
        }
        let (windows, (rows, columns)) = (self.windows as usize, self.table());
        // First all buckets and the additions of the windows that are summed together. Then every bucket is added two
        // more times, and half of the rows and columns for every bit of their index.
        let bits = rows * rows.ilog2() as usize + columns * columns.ilog2() as usize;
        let first = windows * self.buckets() + self.together(points) * points;
        points + first.max(windows * (3 * self.buckets() + bits / 2))
    }

    /// The rows and columns in which the buckets of a window are arranged.
    fn table(&self) -> (usize, usize) {
        let columns = 1 << ((self.bits - 1) / 2);
        (self.buckets() / columns, columns)
    }

    /// One bucket for each absolute value of an odd digit.
    fn buckets(&self) -> usize {
        1 << (self.bits - 1)
    }

    /// The bucket and the sign of every multiplier's digit in a window.
    fn digits(&self, multipliers: &[Recoded], window: u32, digits: &mut Vec<u32>) {
        let (word, shift) = ((window * self.bits / 64) as usize, window * self.bits % 64);
        let half = 1_u64 << (self.bits - 1);
        // k = sum of (2 b - 2^bits + 1) 2^(bits window): all windows together have at least 130 bits.
        let highest = (1 << (self.bits * self.windows - 129)) - 2;
        digits.clear();
        digits.extend(multipliers.iter().map(|words| {
            let words = [words[0], words[1], words[2] + highest, 0];
            let digit = (words[word] >> shift | words[word + 1] << 1 << (63 - shift)) & (2 * half - 1);
            let is_negative = digit < half;
            let size = if is_negative { half - 1 - digit } else { digit - half };
            reference(size) | if is_negative { OPPOSITE } else { 0 }
        }));
    }
}

/// Converts an index to a reference; one that comes from a length or a digit is far below 2^31.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "asserted to be below 2^31")]
fn reference(index: u64) -> Reference {
    debug_assert!(index < u64::from(OPPOSITE), "a reference has 31 bits for its line");
    index as u32
}

/// Lists of points, each to be summed: list i ends where list i + 1 begins.
#[derive(Debug, Default)]
struct Lists {
    members: Vec<Reference>,
    ends: Vec<usize>,
}

impl Lists {
    fn clear(&mut self) {
        self.members.clear();
        self.ends.clear();
    }

    fn push(&mut self, list: impl Iterator<Item = Reference>) {
        self.members.extend(list.filter(|member| *member != NONE));
        self.ends.push(self.members.len());
    }

    /// Adds a list for each bucket of a window.
    fn push_buckets(&mut self, buckets: usize, digits: &[u32]) {
        let base = self.members.len();
        let first = self.ends.len();
        self.members.resize(base + digits.len(), NONE);
        self.ends.resize(first + buckets, 0);
        let ends = &mut self.ends[first..];
        for digit in digits {
            ends[(digit & !OPPOSITE) as usize] += 1;
        }
        let mut start = base;
        for end in &mut *ends {
            (*end, start) = (start, start + *end);
        }
        for (member, digit) in (0..).zip(digits) {
            let end = &mut ends[(digit & !OPPOSITE) as usize];
            self.members[*end] = member | digit & OPPOSITE;
            *end += 1;
        }
    }

    /// Replaces the pairs of every list with their sums, which will be stored from line `sum` on.
    fn pair(&mut self, mut sum: Reference, pairs: &mut Vec<[Reference; 2]>) {
        pairs.clear();
        let (mut from, mut to) = (0, 0);
        for end in &mut self.ends {
            let (list, start) = (*end - from, from);
            for i in 0..list / 2 {
                let at = start + 2 * i;
                let pair = [self.members[at], self.members[at + 1]];
                pairs.push(pair);
                self.members[to + i] = sum | pair[0] & OPPOSITE;
                sum += 1;
            }
            to += list / 2;
            if list % 2 == 1 {
                self.members[to] = self.members[*end - 1];
                to += 1;
            }
            from = *end;
            *end = to;
        }
        self.members.truncate(to);
    }

    /// The only member of each list.
    fn only(&self) -> impl Iterator<Item = Reference> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(start, end)| if start < end { self.members[*start] } else { NONE })
    }
}

/// Points, and buffers for rounds of additions.
#[derive(Debug)]
struct Adder<L: Lanes> {
    lanes: L,
    lines: Vec<Line>,
    pairs: Vec<[Reference; 2]>,
    before: Vec<Carried<L>>,
}

/// The points of a sum and the buffers for it, whose memory serves one sum after another.
#[derive(Debug)]
pub(crate) struct Buckets<L: Lanes> {
    adder: Adder<L>,
    lists: Lists,
    digits: Vec<u32>,
    /// The sum of each bucket.
    sums: Vec<Reference>,
}

impl<L: Lanes> Buckets<L> {
    pub(crate) fn new(lanes: L) -> Buckets<L> {
        let adder = Adder { lanes, lines: Vec::new(), pairs: Vec::new(), before: Vec::new() };
        Buckets { adder, lists: Lists::default(), digits: Vec::new(), sums: Vec::new() }
    }

    /// Empty memory for as many points and for their sum.
    pub(crate) fn lines(&mut self, points: usize) -> &mut Vec<Line> {
        self.adder.lines.clear();
        self.adder.lines.reserve_exact(Plan::new(points).lines(points));
        &mut self.adder.lines
    }

    /// The size of the buffers in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let Buckets { adder, lists, digits, sums } = self;
        let words = lists.members.capacity() + 2 * lists.ends.capacity() + digits.capacity() + sums.capacity();
        size_of::<Line>() * adder.lines.capacity()
            + size_of::<Carried<L>>() * adder.before.capacity()
            + 4 * (2 * adder.pairs.capacity() + words)
    }

    /// Returns the sum of all multiples; `None` or Z = 0 if exceptional. `multipliers[i]` belongs to line i.
    pub(crate) fn sum(&mut self, multipliers: &[Recoded]) -> Option<Coordinates> {
        let Buckets { adder, lists, digits, sums } = self;
        let points = adder.lines.len();
        assert!(points == multipliers.len() && points < 1 << 20, "a line for each multiplier");
        let plan = Plan::new(points);
        let together = plan.together(points);
        adder.reserve(together * points);
        sums.clear();
        // The sums of buckets follow the points.
        let mut end = points;
        let windows: Vec<u32> = (0..plan.windows).collect();
        for windows in windows.chunks(together) {
            lists.clear();
            for window in windows {
                plan.digits(multipliers, *window, digits);
                lists.push_buckets(plan.buckets(), digits);
            }
            adder.sum_lists(lists)?;
            let added = adder.lines.len();
            for sum in lists.only() {
                let line = adder.lines.get((sum & !OPPOSITE) as usize).copied();
                let place = end + adder.lines.len() - added;
                sums.push(line.map_or(NONE, |_| reference(place as u64) | sum & OPPOSITE));
                adder.lines.extend(line);
            }
            adder.lines.copy_within(added.., end);
            end += adder.lines.len() - added;
            adder.lines.truncate(end);
        }
        let places = adder.places(plan, sums, lists)?;
        adder.lanes.run(
            #[inline(always)]
            || adder.join(&places),
        )
    }
}

impl<L: Lanes> Adder<L> {
    /// Reserves memory for this number of additions.
    fn reserve(&mut self, additions: usize) {
        self.pairs.clear();
        self.pairs.reserve_exact(additions / 2);
        self.before.clear();
        self.before.reserve_exact(additions / 2 / L::WIDTH + 1);
    }

    /// Reduces every list to at most one member.
    fn sum_lists(&mut self, lists: &mut Lists) -> Option<()> {
        loop {
            let mut pairs = std::mem::take(&mut self.pairs);
            lists.pair(reference(self.lines.len() as u64), &mut pairs);
            let added = if pairs.is_empty() { Some(()) } else { self.add(&pairs) };
            let is_done = pairs.is_empty();
            self.pairs = pairs;
            added?;
            if is_done {
                return Some(());
            }
        }
    }

    /// Appends the sum of every pair, or of the opposites if the first of a pair is marked as opposite.
    fn add(&mut self, pairs: &[[Reference; 2]]) -> Option<()> {
        let l = self.lanes;
        let first = self.lines.len();
        self.lines.resize(first + pairs.len(), Line::default());
        let (points, sums) = self.lines.split_at_mut(first);
        let before = &mut self.before;
        before.clear();
        let products = l.run(
            #[inline(always)]
            || multiply_differences(l, points, pairs, before),
        );
        let inverses = l.run(
            #[inline(always)]
            || invert_chains(l, &products),
        )?;
        l.run(
            #[inline(always)]
            || add_pairs(l, points, pairs, before, inverses, sums),
        );
        Some(())
    }

    /// Computes a point for every power of two from the sums of the buckets: bucket j of a window counts 2 j + 1 times.
    fn places(&mut self, plan: Plan, sums: &[Reference], lists: &mut Lists) -> Option<Vec<Reference>> {
        let (rows, columns) = plan.table();
        // Sums of rows and of columns: the indices of a row's buckets have equal high bits, those of a column equal low
        // bits.
        lists.clear();
        for window in sums.chunks(plan.buckets()) {
            window.chunks(columns).for_each(|row| lists.push(row.iter().copied()));
            (0..columns).for_each(|column| lists.push(window.iter().skip(column).step_by(columns).copied()));
        }
        self.sum_lists(lists)?;
        let sums: Vec<Reference> = lists.only().collect();
        // All rows; then for each bit of an index the columns or rows with this bit set.
        lists.clear();
        for window in sums.chunks(rows + columns) {
            let (row_sums, column_sums) = window.split_at(rows);
            lists.push(row_sums.iter().copied());
            for (sums, bits) in [(column_sums, columns.ilog2()), (row_sums, rows.ilog2())] {
                for bit in 0..bits {
                    lists.push((0_usize..).zip(sums).filter(|(index, _)| index >> bit & 1 == 1).map(|(_, sum)| *sum));
                }
            }
        }
        self.sum_lists(lists)?;
        Some(lists.only().collect())
    }

    /// Computes the sum of 2^i times point i, the same in every lane.
    ///
    /// Does not use [`Jacobian::double`] and [`Jacobian::add`]: with one more caller, the compiler no longer inlines
    /// them where checks are verified individually, which makes those 8 % slower.
    #[inline(always)]
    fn join(&self, places: &[Reference]) -> Option<Coordinates> {
        let l = self.lanes;
        let mut sum: Option<Jacobian<L>> = None;
        for place in places.iter().rev() {
            if let Some(sum) = &mut sum {
                *sum = sum.double_here(l);
            }
            let Some(line) = self.lines.get((place & !OPPOSITE) as usize) else { continue };
            let (x, y) = point(l, [line; WIDTH_MAX]);
            let is_negative = l.mask(if place & OPPOSITE != 0 { u8::MAX } else { 0 });
            sum = Some(match &sum {
                None => Jacobian::affine(l, x, y, is_negative),
                Some(sum) => sum.add_here(l, &x.factor(l), &y.factor(l), is_negative),
            });
        }
        let (sum, one) = (sum?, Carried::one(l));
        let y = sum.signed_y(l).carry(l).times(l, &one).canonical(l);
        let z = sum.z.times(l, &one).canonical(l);
        Some([sum.x.factor(l).times(l, &one).canonical(l).lane(l, 0), y.lane(l, 0), z.lane(l, 0)])
    }
}

/// The points of one side of a group of pairs; lanes without a pair repeat the last.
#[inline(always)]
fn side<'a>(points: &'a [Line], group: &[[Reference; 2]], side: usize) -> [&'a Line; WIDTH_MAX] {
    let mut lines = [&points[0]; WIDTH_MAX];
    for (lane, line) in lines.iter_mut().enumerate() {
        *line = &points[(group[lane.min(group.len() - 1)][side] & !OPPOSITE) as usize];
    }
    lines
}

/// Products of the differences of x: every `CHAINS`th group belongs to the same one. Its value before each group is
/// appended to `before`.
#[inline(always)]
fn multiply_differences<L: Lanes>(
    l: L,
    points: &[Line],
    pairs: &[[Reference; 2]],
    before: &mut Vec<Carried<L>>,
) -> [Carried<L>; CHAINS] {
    let mut products = [Carried::one(l); CHAINS];
    for (i, group) in pairs.chunks(L::WIDTH).enumerate() {
        let (x1, _) = point(l, side(points, group, 0));
        let (x2, _) = point(l, side(points, group, 1));
        let product = &mut products[i % CHAINS];
        before.push(*product);
        *product = product.times(l, &minus(l, &x2.raw(), &x1.raw())).carry(l);
    }
    products
}

/// The inverses of all products, or `None` if any lane is zero.
#[inline(always)]
fn invert_chains<L: Lanes>(l: L, products: &[Carried<L>; CHAINS]) -> Option<[Carried<L>; CHAINS]> {
    let mut inverses = [Carried::one(l); CHAINS];
    let mut product = Carried::one(l);
    for i in 0..CHAINS {
        inverses[i] = product;
        product = product.times(l, &products[i]).carry(l);
    }
    if l.bits(product.times(l, &Carried::one(l)).canonical(l).is_zero(l)) != 0 {
        return None;
    }
    let mut inverse = product.invert_var(l);
    for i in (0..CHAINS).rev() {
        inverses[i] = inverses[i].times(l, &inverse).carry(l);
        inverse = inverse.times(l, &products[i]).carry(l);
    }
    Some(inverses)
}

/// Adds the pairs in reverse order, because the inverses drop the differences from the last to the first.
#[inline(always)]
fn add_pairs<L: Lanes>(
    l: L,
    points: &[Line],
    pairs: &[[Reference; 2]],
    before: &[Carried<L>],
    mut inverses: [Carried<L>; CHAINS],
    sums: &mut [Line],
) {
    let groups = pairs.chunks(L::WIDTH).zip(sums.chunks_mut(L::WIDTH)).zip(before);
    for (i, ((group, sums), before)) in groups.enumerate().rev() {
        let (x1, y1) = point(l, side(points, group, 0));
        let (x2, y2) = point(l, side(points, group, 1));
        let mut differ = 0;
        for (lane, [first, second]) in group.iter().enumerate() {
            differ |= u8::from((first ^ second) & OPPOSITE != 0) << lane;
        }
        let inverse = &mut inverses[i % CHAINS];
        let of_difference = before.times(l, inverse).carry(l);
        *inverse = inverse.times(l, &minus(l, &x2.raw(), &x1.raw())).carry(l);
        // Both relative to the sign of the first: y of the second, or its opposite, minus y of the first.
        let (minus_y1, minus_y2) = (y1.raw().negate::<2>(l), y2.raw().negate::<2>(l));
        let second_y = select(l, l.mask(differ), &minus_y2, &y2.raw());
        let slope = second_y.add(l, &minus_y1).carry(l).times(l, &of_difference).carry(l);
        let x3 = slope.square_plus(l, &x1.raw().add(l, &x2.raw()).negate::<3>(l)).canonical(l);
        let y3 = slope.times_plus(l, &minus(l, &x1.raw(), &x3.raw()), &minus_y1).canonical(l);
        store(l, &x3, &y3, sums);
    }
}
