//! Compares the layers of the lanes (field, scalars, points) with a simple bignum, on random and edge values, for every
//! instruction set of this CPU.

#[cfg(target_arch = "x86_64")]
use super::avx2::Avx2;
use super::field::{Carried, Masked, Raw};
use super::generator::{comb, tables};
#[cfg(target_arch = "x86_64")]
use super::ifma512::Ifma512;
use super::inverse::{invert_all_modulo_p, invert_modulo_order};
#[cfg(target_arch = "aarch64")]
use super::neon::Neon;
use super::plain::Plain;
use super::point::{Jacobian, minus, multiply, multiply_generator};
use super::prepare::limbs;
use super::scalar::{Canonical, Scalar};
use super::sign;
use super::word::Word;
#[cfg(target_arch = "x86_64")]
use super::ymm::{Ifma256Avx, Ifma256Vl};
use super::{LIMB, LaneEngine, Lanes, WIDTH_MAX, word};
use crate::Engine;
use crate::signing::{Scheme, ToSign};
use lydian_stdx::SplitMix64;
use secp256k1::{PublicKey, SecretKey};

/// 256 bits in words, least significant first.
type Big = [u64; 4];

const P: Big = [0xffff_fffe_ffff_fc2f, u64::MAX, u64::MAX, u64::MAX];
const N: Big = [0xbfd2_5e8c_d036_4141, 0xbaae_dce6_af48_a03b, 0xffff_ffff_ffff_fffe, u64::MAX];

fn less(a: &Big, b: &Big) -> bool {
    a.iter().rev().lt(b.iter().rev())
}

fn add_words(a: &Big, b: &Big) -> (Big, bool) {
    let (mut sum, mut carry) = ([0; 4], false);
    for i in 0..4 {
        let wide = u128::from(a[i]) + u128::from(b[i]) + u128::from(carry);
        sum[i] = u64::try_from(wide & u128::from(u64::MAX)).unwrap();
        carry = wide >> 64 != 0;
    }
    (sum, carry)
}

fn sub_words(a: &Big, b: &Big) -> Big {
    let (mut apart, mut borrow) = ([0; 4], false);
    for i in 0..4 {
        let (one, below) = a[i].overflowing_sub(b[i]);
        let (two, again) = one.overflowing_sub(u64::from(borrow));
        (apart[i], borrow) = (two, below || again);
    }
    apart
}

/// a + b modulo m, for both below m.
fn add_mod(a: &Big, b: &Big, m: &Big) -> Big {
    let (sum, carry) = add_words(a, b);
    if carry || !less(&sum, m) { sub_words(&sum, m) } else { sum }
}

fn sub_mod(a: &Big, b: &Big, m: &Big) -> Big {
    add_mod(a, &if *b == [0; 4] { [0; 4] } else { sub_words(m, b) }, m)
}

/// One bit at a time: slow and simple.
fn mul_mod(a: &Big, b: &Big, m: &Big) -> Big {
    let mut product = [0; 4];
    for bit in (0..256).rev() {
        product = add_mod(&product, &product, m);
        if b[bit / 64] >> (bit % 64) & 1 == 1 {
            product = add_mod(&product, a, m);
        }
    }
    product
}

fn inverse_mod(a: &Big, m: &Big) -> Big {
    let exponent = sub_words(m, &[2, 0, 0, 0]);
    let mut power = [1, 0, 0, 0];
    for bit in (0..256).rev() {
        power = mul_mod(&power, &power, m);
        if exponent[bit / 64] >> (bit % 64) & 1 == 1 {
            power = mul_mod(&power, a, m);
        }
    }
    power
}

fn reduced(mut value: Big, m: &Big) -> Big {
    while !less(&value, m) {
        value = sub_words(&value, m);
    }
    value
}

/// Limbs of any size below 2^64 modulo m.
fn from_limbs(limbs: [u64; 5], m: &Big) -> Big {
    limbs.iter().rev().fold([0; 4], |sum, limb| {
        let shifted = mul_mod(&sum, &[1 << 52, 0, 0, 0], m);
        add_mod(&shifted, &[*limb, 0, 0, 0], m)
    })
}

/// Pseudorandom numbers, the same in every run.
struct Numbers(SplitMix64);

impl Numbers {
    fn new(seed: u64) -> Numbers {
        Numbers(SplitMix64::new(seed))
    }

    fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Random below m, or with probability one half a value at an edge of m or of a limb.
    fn big(&mut self, m: &Big) -> Big {
        let edges: [Big; 8] = [
            [0; 4],
            [1, 0, 0, 0],
            sub_words(m, &[1, 0, 0, 0]),
            [LIMB, 0, 0, 0],
            [1 << 52, 0, 0, 0],
            [u64::MAX, u64::MAX, 0, 0],
            [0, 0, 0, 1 << 63],
            [0xffff_ffff_ffff_fc2e, u64::MAX, u64::MAX, u64::MAX],
        ];
        let value = match self.next() % 16 {
            edge @ 0..8 => edges[usize::try_from(edge).unwrap()],
            _ => std::array::from_fn(|_| self.next()),
        };
        reduced(value, m)
    }

    fn lanes<T>(&mut self, mut one: impl FnMut(&mut Numbers) -> T) -> [T; WIDTH_MAX] {
        std::array::from_fn(|_| one(self))
    }
}

fn load<L: Lanes>(l: L, values: &[[u64; 5]; WIDTH_MAX]) -> [L::Vector; 5] {
    std::array::from_fn(|i| l.load(&std::array::from_fn(|lane| values[lane][i])))
}

fn load_bigs<L: Lanes>(l: L, values: &[Big; WIDTH_MAX]) -> [L::Vector; 5] {
    load(l, &values.map(limbs))
}

/// Every lane of a sum modulo p.
fn bigs<L: Lanes>(l: L, raw: &Raw<L>) -> Vec<Big> {
    let words = raw.limbs().map(|limb| l.store(limb));
    (0..L::WIDTH).map(|lane| from_limbs(words.map(|limb| limb[lane]), &P)).collect()
}

/// Generates a test for every instruction set of this CPU.
macro_rules! on_every_kernel {
    ($($(#[$attribute:meta])* $name:ident;)*) => {$(
        mod $name {
            use super::*;

            $(#[$attribute])*
            #[test]
            fn plain() {
                super::$name(Plain);
            }

            $(#[$attribute])*
            #[test]
            fn word() {
                super::$name(Word);
            }

            #[cfg(target_arch = "aarch64")]
            #[test]
            fn neon() {
                if let Some(l) = Neon::detect() {
                    super::$name(l);
                }
            }

            #[cfg(target_arch = "x86_64")]
            #[test]
            fn ifma512() {
                if let Some(l) = Ifma512::detect() {
                    super::$name(l);
                }
            }

            #[cfg(target_arch = "x86_64")]
            #[test]
            fn avx2() {
                if let Some(l) = Avx2::detect() {
                    super::$name(l);
                }
            }

            #[cfg(target_arch = "x86_64")]
            #[test]
            fn ifma256() {
                if let Some(l) = Ifma256Vl::detect() {
                    super::$name(l);
                }
                if let Some(l) = Ifma256Avx::detect() {
                    super::$name(l);
                }
            }
        }
    )*};
}

mod small_world;

on_every_kernel! {
    products_and_sums;
    dirty_factors_at_their_bound;
    canonical_values;
    field_inverses;
    scalar_products;
    scalar_inverses;
    halves_of_scalars;
    windows_of_the_generator;
    points;
    zero_stays_zero;
    tables_are_read_inside_their_bounds;
    secret_points;
    exceptional_secrets;
    signatures_are_those_of_the_library;
}

/// The expected result of an operation for a, b, c, d.
type Expected = fn([&Big; 4]) -> Big;

fn products_and_sums<L: Lanes>(l: L) {
    let mut numbers = Numbers::new(1);
    for _ in 0..200 {
        let values: [[Big; WIDTH_MAX]; 4] = std::array::from_fn(|_| numbers.lanes(|numbers| numbers.big(&P)));
        let [a, b, c, d] = values.map(|values| Masked::new(l, load_bigs(l, &values)));
        let (fa, fb, fc, fd) = (a.factor(l), b.factor(l), c.factor(l), d.factor(l));
        let mut results: Vec<(Raw<L>, Expected)> = vec![
            (fa.times(l, &fb), |[a, b, ..]| mul_mod(a, b, &P)),
            (fa.times_plus(l, &fb, &c.raw()), |[a, b, c, _]| add_mod(&mul_mod(a, b, &P), c, &P)),
            (fa.times_plus_times(l, &fb, &fc, &fd), |[a, b, c, d]| add_mod(&mul_mod(a, b, &P), &mul_mod(c, d, &P), &P)),
            (fa.square(l), |[a, ..]| mul_mod(a, a, &P)),
            (fa.square_plus(l, &b.raw().negate::<2>(l)), |[a, b, ..]| sub_mod(&mul_mod(a, a, &P), b, &P)),
            (a.raw().add(l, &b.raw()), |[a, b, ..]| add_mod(a, b, &P)),
            (a.raw().double(l), |[a, ..]| add_mod(a, a, &P)),
            (a.raw().triple(l), |[a, ..]| add_mod(a, &add_mod(a, a, &P), &P)),
            (a.raw().quadruple(l), |[a, ..]| mul_mod(a, &[4, 0, 0, 0], &P)),
            (a.raw().double(l).negate::<3>(l), |[a, ..]| sub_mod(&[0; 4], &add_mod(a, a, &P), &P)),
            (minus(l, &a.raw(), &b.raw()).times(l, &Carried::one(l)), |[a, b, ..]| sub_mod(a, b, &P)),
        ];
        if let Some(packed) = &L::PACKED {
            results.push((fa.times_plus_square(packed, &fb, &fc), |[a, b, c, _]| {
                add_mod(&mul_mod(a, b, &P), &mul_mod(c, c, &P), &P)
            }));
            results.push((a.raw().half(packed).double(l), |[a, ..]| *a));
            results.push((fa.square(l).triple(l).half(packed).double(l), |[a, ..]| {
                let square = mul_mod(a, a, &P);
                add_mod(&square, &add_mod(&square, &square, &P), &P)
            }));
        }
        for (i, (result, expected)) in results.iter().enumerate() {
            for (lane, got) in bigs(l, result).iter().enumerate() {
                let inputs = [&values[0][lane], &values[1][lane], &values[2][lane], &values[3][lane]];
                assert_eq!(*got, expected(inputs), "result {i} of {inputs:x?}");
            }
        }
    }
}

/// Words at their edges, for which every carry of a reduction occurs, also the last one, which is too rare for random
/// numbers.
#[test]
fn reductions_of_words() {
    let mut numbers = Numbers::new(13);
    // Where the last fold reaches the second word: top * FOLD_256 is just below a multiple of 2^64.
    let tops = (0..6).map(|more| u64::MAX / 0x1_0000_03d1 - 3 + more);
    let mut cases: Vec<([u64; 8], u64, [u64; 5])> = Vec::new();
    for top in tops.chain([0, 1, 2, 4, 0xffff]) {
        cases.extend(
            [u64::MAX, u64::MAX - 1, 0x1_0000_03d1].map(|low| ([0; 8], 0, [low, u64::MAX, u64::MAX, u64::MAX, top])),
        );
        cases.push(([u64::MAX; 8], 0, [u64::MAX, u64::MAX, u64::MAX, u64::MAX, top]));
    }
    let edges = [0, 1, u64::MAX, u64::MAX - 1, P[0], P[0] - 1, P[0] + 1, 1 << 63, 0x1_0000_03d1];
    for _ in 0..20_000 {
        let mut edge = || edges[usize::try_from(numbers.next() % 9).unwrap()];
        let wide = std::array::from_fn(|_| edge());
        cases.push((wide, edge() & 1, [edge(), edge(), edge(), edge(), edge() & 7]));
    }
    let residue = |words: &[u64]| {
        words.iter().rev().fold([0; 4], |sum, word| {
            // sum * 2^64 + word: the word that leaves counts 2^256.
            let [a, b, c, d] = sum;
            let wide = u128::from(d) * 0x1_0000_03d1 + u128::from(*word);
            let split =
                |wide: u128| (u64::try_from(wide & u128::from(u64::MAX)).unwrap(), u64::try_from(wide >> 64).unwrap());
            let (low, high) = split(wide);
            let shifted = reduced([low, a, b, c], &P);
            add_mod(&shifted, &[0, high, 0, 0], &P)
        })
    };
    for (wide, above, start) in &cases {
        let words: Vec<u64> = wide.iter().copied().chain([*above]).collect();
        let expected = add_mod(&residue(&words), &residue(start), &P);
        let got = word::reduce(wide, *above, start);
        assert_eq!(reduced(got, &P), expected, "{wide:x?} {above} {start:x?}");
    }
}

/// Factors near 2^260, with garbage above bit 52 of every lower limb, which a multiplier must not read.
fn dirty_factors_at_their_bound<L: Lanes>(l: L) {
    let mut numbers = Numbers::new(2);
    for _ in 0..200 {
        let mut dirty = || {
            numbers.lanes(|numbers| {
                let mut limbs: [u64; 5] = std::array::from_fn(|_| LIMB - numbers.next() % 3);
                for limb in &mut limbs[..4] {
                    *limb += (numbers.next() % 256) << 52;
                }
                // The value must stay below 2^260 after carrying.
                limbs[4] = (1 << 52) - 1 - 256 - numbers.next() % 3;
                limbs
            })
        };
        let (a, b) = (dirty(), dirty());
        let (fa, fb) = (Raw::from_limbs(load(l, &a)).carry(l), Raw::from_limbs(load(l, &b)).carry(l));
        let both = [bigs(l, &fa.times(l, &fb)), bigs(l, &fa.square(l))];
        for lane in 0..L::WIDTH {
            let (x, y) = (from_limbs(a[lane], &P), from_limbs(b[lane], &P));
            assert_eq!(both[0][lane], mul_mod(&x, &y, &P), "{:x?} {:x?}", a[lane], b[lane]);
            assert_eq!(both[1][lane], mul_mod(&x, &x, &P), "{:x?}", a[lane]);
        }
    }
}

/// Every value that a reduction can return has one canonical form: also 0, p - 1, p, p + 1, 2^256 and above.
fn canonical_values<L: Lanes>(l: L) {
    let p = limbs(P);
    let mut cases =
        vec![[0; 5], [1, 0, 0, 0, 0], p, [p[0] - 1, p[1], p[2], p[3], p[4]], [p[0] + 1, p[1], p[2], p[3], p[4]]];
    cases.extend([[0, 0, 0, 0, 1 << 48], [5, 0, 0, 0, 1 << 48], [LIMB, LIMB, LIMB, LIMB, (1 << 48) - 1]]);
    cases.extend([[LIMB, LIMB, LIMB, LIMB, 1 << 48], [3, LIMB, 7, LIMB, (1 << 48) + 5]]);
    for case in &cases {
        let value = Raw::from_limbs(load(l, &[*case; WIDTH_MAX])).canonical(l);
        let expected = from_limbs(*case, &P);
        assert_eq!(value.lane(l, 0), limbs(expected), "{case:x?}");
        assert_eq!(l.bits(value.is_zero(l)) & 1 == 1, expected == [0; 4], "{case:x?}");
        assert_eq!(l.bits(value.is_odd(l)) & 1 == 1, expected[0] & 1 == 1, "{case:x?}");
    }
}

fn field_inverses<L: Lanes>(l: L) {
    let mut numbers = Numbers::new(3);
    for _ in 0..8 {
        let values = numbers.lanes(|numbers| numbers.big(&P));
        let factor = Masked::new(l, load_bigs(l, &values)).factor(l);
        for inverse in [factor.invert(l), factor.invert_var(l)] {
            for (lane, got) in bigs(l, &inverse.times(l, &Carried::one(l))).iter().enumerate() {
                assert_eq!(*got, inverse_mod(&values[lane], &P), "{:x?}", values[lane]);
            }
        }
    }
}

/// Of powers of two and their neighbours, of edges, and of random values.
#[test]
fn inverses_in_words() {
    let mut numbers = Numbers::new(13);
    let one = [1, 0, 0, 0];
    let mut values: Vec<Big> = Vec::new();
    for bit in 0..256 {
        let power: Big = std::array::from_fn(|i| if bit / 64 == i { 1 << (bit % 64) } else { 0 });
        values.extend([power, add_words(&power, &one).0, sub_words(&power, &one)]);
    }
    values.extend((0..2_000).map(|_| numbers.big(&P)));
    for value in &values {
        let (of_p, of_n) = (reduced(*value, &P), reduced(*value, &N));
        let mut inverse = [of_p];
        assert_eq!(invert_all_modulo_p(&mut inverse), of_p != [0; 4], "{value:x?}");
        assert_eq!(mul_mod(&inverse[0], &of_p, &P), if of_p == [0; 4] { [0; 4] } else { one }, "{value:x?}");
        let inverse = invert_modulo_order(&of_n);
        assert_eq!(mul_mod(&inverse, &of_n, &N), if of_n == [0; 4] { [0; 4] } else { one }, "{value:x?}");
    }
    for values in values.chunks_exact(WIDTH_MAX) {
        let before: [Big; WIDTH_MAX] = std::array::from_fn(|i| reduced(values[i], &P));
        let mut inverses = before;
        if invert_all_modulo_p(&mut inverses) {
            let are_inverse = |(a, b)| mul_mod(a, b, &P) == one;
            assert!(inverses.iter().zip(&before).all(are_inverse), "{before:x?}");
        } else {
            assert!(before.contains(&[0; 4]) && inverses == before, "{before:x?}");
        }
    }
}

fn scalar_products<L: Lanes>(l: L) {
    let mut numbers = Numbers::new(4);
    for _ in 0..200 {
        let (a, b) = (numbers.lanes(|numbers| numbers.big(&N)), numbers.lanes(|numbers| numbers.big(&N)));
        let product =
            Scalar::new(l, &load_bigs(l, &a)).to_montgomery(l).times_canonical(l, &Scalar::new(l, &load_bigs(l, &b)));
        let words = product.0.map(|limb| l.store(limb));
        for lane in 0..L::WIDTH {
            assert_eq!(
                words.map(|limb| limb[lane]),
                limbs(mul_mod(&a[lane], &b[lane], &N)),
                "{:x?}",
                (a[lane], b[lane])
            );
        }
    }
}

fn scalar_inverses<L: Lanes>(l: L) {
    let mut numbers = Numbers::new(5);
    let values = numbers.lanes(|numbers| {
        loop {
            let value = numbers.big(&N);
            if value != [0; 4] {
                return value;
            }
        }
    });
    let scalar = Scalar::new(l, &load_bigs(l, &values));
    // The inverse is in Montgomery form; a product with 1 converts it back.
    let one = Scalar::new(l, &load(l, &[[1, 0, 0, 0, 0]; WIDTH_MAX]));
    let inverse = scalar.to_montgomery(l).invert(l).times_canonical(l, &one);
    let words = inverse.0.map(|limb| l.store(limb));
    for lane in 0..L::WIDTH {
        assert_eq!(words.map(|limb| limb[lane]), limbs(inverse_mod(&values[lane], &N)));
    }
    let inverse = scalar.to_montgomery(l).invert_var(l).times_canonical(l, &one);
    assert_eq!(inverse.0.map(|limb| l.store(limb)), words);
}

const LAMBDA: Big = [0xdf02_967c_1b23_bd72, 0x122e_22ea_2081_6678, 0xa526_1c02_8812_645a, 0x5363_ad4c_c05c_30e0];

/// The digits of both halves add up to the scalar.
fn halves_of_scalars<L: Lanes>(l: L) {
    let mut numbers = Numbers::new(6);
    for _ in 0..200 {
        let values = numbers.lanes(|numbers| numbers.big(&N));
        let halves = Canonical(load_bigs(l, &values)).split(l);
        let windows = |half: &super::scalar::Half<L>| (0..26).map(|i| l.store(half.window(l, i))).collect::<Vec<_>>();
        let (first, second) = (windows(&halves.first), windows(&halves.second));
        for lane in 0..L::WIDTH {
            let value = |windows: &[[u64; WIDTH_MAX]]| {
                windows.iter().rev().fold([0; 4], |sum, window| {
                    assert!(window[lane] < 32);
                    let sum = mul_mod(&sum, &[32, 0, 0, 0], &N);
                    sub_mod(&add_mod(&sum, &[2 * window[lane], 0, 0, 0], &N), &[31, 0, 0, 0], &N)
                })
            };
            let sum = add_mod(&value(&first), &mul_mod(&value(&second), &LAMBDA, &N), &N);
            assert_eq!(sum, values[lane]);
        }
    }
}

fn windows_of_the_generator<L: Lanes>(l: L) {
    let mut numbers = Numbers::new(7);
    for _ in 0..200 {
        let values = numbers.lanes(|numbers| numbers.big(&N));
        let (windows, is_opposite) = Canonical(load_bigs(l, &values)).generator_windows(l);
        let words = windows.map(|limb| l.store(limb));
        for lane in 0..L::WIDTH {
            let sum = (0..20).rev().fold([0; 4], |sum, i| {
                let digit = words[i / 4][lane] >> (13 * (i % 4)) & 0x1fff;
                let sum = mul_mod(&sum, &[8192, 0, 0, 0], &N);
                sub_mod(&add_mod(&sum, &[2 * digit, 0, 0, 0], &N), &[8191, 0, 0, 0], &N)
            });
            let opposite = l.bits(is_opposite) >> lane & 1 == 1;
            assert_eq!(if opposite { sub_mod(&[0; 4], &sum, &N) } else { sum }, values[lane]);
        }
    }
}

/// The affine form of a lane, computed with the simple bignum.
fn affine<L: Lanes>(l: L, point: &Jacobian<L>, lane: usize) -> (Big, Big) {
    let one = Carried::one(l);
    let z = inverse_mod(&bigs(l, &point.z.times(l, &one))[lane], &P);
    let z2 = mul_mod(&z, &z, &P);
    let x = mul_mod(&bigs(l, &point.x.raw())[lane], &z2, &P);
    let y = mul_mod(&bigs(l, &point.signed_y(l))[lane], &mul_mod(&z2, &z, &P), &P);
    (x, y)
}

fn secret(k: &Big) -> SecretKey {
    let mut bytes = [0; 32];
    for (i, word) in k.iter().rev().enumerate() {
        bytes[8 * i..8 * i + 8].copy_from_slice(&word.to_be_bytes());
    }
    SecretKey::from_secret_bytes(bytes).unwrap()
}

fn coordinates(key: &PublicKey) -> (Big, Big) {
    let bytes = key.serialize_uncompressed();
    let word = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().unwrap());
    let big = |at: usize| [word(at + 24), word(at + 16), word(at + 8), word(at)];
    (big(1), big(33))
}

#[test]
fn the_table_holds_odd_multiples() {
    for (i, table) in tables().iter().enumerate() {
        let base = (0..13 * i).fold([1, 0, 0, 0], |power, _| add_mod(&power, &power, &N));
        for j in [0, 1, 2, 3, 4095] {
            let expected =
                coordinates(&PublicKey::from_secret_key(&secret(&mul_mod(&base, &[2 * j + 1, 0, 0, 0], &N))));
            let [x0, x1, x2, x3, y0, y1, y2, y3] = table[usize::try_from(j).unwrap()].0;
            assert_eq!(([x0, x1, x2, x3], [y0, y1, y2, y3]), expected, "entry {j} of table {i}");
        }
    }
}

/// Compares multiples of the generator and of other points with libsecp256k1.
fn points<L: Lanes>(l: L) {
    let mut numbers = Numbers::new(8);
    for _ in 0..4 {
        let mut nonzero = || {
            numbers.lanes(|numbers| {
                loop {
                    let value = numbers.big(&N);
                    if value != [0; 4] {
                        return value;
                    }
                }
            })
        };
        let (u, d, v) = (nonzero(), nonzero(), nonzero());
        let (windows, is_opposite) = Canonical(load_bigs(l, &u)).generator_windows(l);
        let mut of_generator = multiply_generator(l, &windows, tables());
        of_generator.is_negative = l.differ(of_generator.is_negative, is_opposite);
        let keys = d.map(|d| PublicKey::from_secret_key(&secret(&d)));
        let (x, y) = (keys.map(|key| coordinates(&key).0), keys.map(|key| coordinates(&key).1));
        let (x, y) = (Masked::new(l, load_bigs(l, &x)), Masked::new(l, load_bigs(l, &y)));
        let of_key = multiply(l, &x, &y, &Canonical(load_bigs(l, &v)).split(l));
        for lane in 0..L::WIDTH {
            let expected = PublicKey::from_secret_key(&secret(&u[lane]));
            assert_eq!(affine(l, &of_generator, lane), coordinates(&expected), "{:x?} G", u[lane]);
            let expected = PublicKey::from_secret_key(&secret(&mul_mod(&d[lane], &v[lane], &N)));
            assert_eq!(affine(l, &of_key, lane), coordinates(&expected), "{:x?} times {:x?} G", v[lane], d[lane]);
        }
    }
}

/// Adding a point to itself, to its opposite and to infinity gives Z = 0, and every step after that keeps it.
fn zero_stays_zero<L: Lanes>(l: L) {
    let key = PublicKey::from_secret_key(&secret(&[77, 0, 0, 0]));
    let (x, y) = coordinates(&key);
    let (x, y) = (Masked::new(l, load_bigs(l, &[x; WIDTH_MAX])), Masked::new(l, load_bigs(l, &[y; WIDTH_MAX])));
    let (fx, fy) = (x.factor(l), y.factor(l));
    let plus = Jacobian::affine(l, x, y, l.mask(0));
    let is_infinite = |point: &Jacobian<L>| {
        let z = point.z.times(l, &Carried::one(l)).canonical(l);
        l.bits(z.is_zero(l)).count_ones() == u32::try_from(L::WIDTH).unwrap()
    };
    assert!(!is_infinite(&plus.double(l)));
    for negative in [0, u8::MAX] {
        let sum = plus.add(l, &fx, &fy, l.mask(negative));
        assert!(is_infinite(&sum), "equal or opposite");
        assert!(is_infinite(&sum.double(l)));
        let other = plus.double(l).add(l, &fx, &fy, l.mask(0));
        assert!(!is_infinite(&other), "2 P + P is no exception");
        assert!(is_infinite(&sum.double(l).add(l, &fx, &fy, l.mask(negative)).double(l)));
    }
}

/// The plain lanes panic if an addition wraps, in every profile, so that each of their tests also tests the bounds.
#[test]
#[should_panic = "overflow"]
fn the_plain_twin_checks_its_additions() {
    Plain.add(std::hint::black_box(u64::MAX), 1);
}

/// The bounds in the comments are asserted when `make test` runs.
#[cfg(debug_assertions)]
#[test]
#[should_panic = "a sum has room for its carry"]
fn bounds_are_asserted() {
    Raw::<Plain>::from_limbs([1 << 63; 5]).carry(Plain);
}

/// Every index reads the entry selected by its low bits, with any bits above them.
fn tables_are_read_inside_their_bounds<L: Lanes>(l: L) {
    let mut numbers = Numbers::new(9);
    let words: [[[u64; WIDTH_MAX]; 5]; 16] =
        std::array::from_fn(|_| std::array::from_fn(|_| numbers.lanes(Numbers::next)));
    let entries = words.map(|entry| entry.map(|limb| l.load(&limb)));
    for _ in 0..100 {
        let index = numbers.lanes(Numbers::next);
        let limbs = l.pick(&entries, l.load(&index)).map(|limb| l.store(limb));
        let lines = l.lines(&tables()[3], l.load(&index)).map(|word| l.store(word));
        for lane in 0..L::WIDTH {
            let (entry, line) =
                (usize::try_from(index[lane] & 15).unwrap(), usize::try_from(index[lane] & 4095).unwrap());
            assert_eq!(limbs.map(|limb| limb[lane]), words[entry].map(|limb| limb[lane]));
            assert_eq!(lines.map(|word| word[lane]), tables()[3][line].0);
        }
    }
}

#[test]
fn the_comb_holds_odd_multiples() {
    let mut base = [1, 0, 0, 0];
    for (i, row) in comb().iter().enumerate() {
        for (j, line) in (0..).zip(row) {
            let expected =
                coordinates(&PublicKey::from_secret_key(&secret(&mul_mod(&base, &[2 * j + 1, 0, 0, 0], &N))));
            let [x0, x1, x2, x3, y0, y1, y2, y3] = line.0;
            assert_eq!(([x0, x1, x2, x3], [y0, y1, y2, y3]), expected, "entry {j} of window {i}");
        }
        base = (0..4).fold(base, |power, _| add_mod(&power, &power, &N));
    }
}

/// The points of secret numbers, whatever scales them; zero has none.
fn secret_points<L: Lanes>(l: L) {
    let mut numbers = Numbers::new(10);
    for count in [1, L::WIDTH, 3 * L::WIDTH + 1] {
        let secrets: Vec<Big> = (0..count).map(|_| numbers.big(&N)).collect();
        let blind = numbers.big(&P);
        let blind = if blind == [0; 4] { [1, 0, 0, 0] } else { blind };
        let points = sign::points(l, &secrets, &blind);
        assert_eq!(points.len(), count);
        for (k, point) in secrets.iter().zip(points) {
            let Some(point) = point else {
                assert_eq!(*k, [0; 4]);
                continue;
            };
            let key = PublicKey::from_secret_key(&secret(k)).serialize();
            assert_eq!((2 + u8::from(point.is_odd), &point.x[..]), (key[0], &key[1..]), "{k:x?}");
        }
    }
    assert_eq!(sign::points(l, &[[0; 4]], &[5, 0, 0, 0]), [None]);
}

/// The only numbers whose sum meets an equal or an opposite point (`docs/derivations/scalar.md`, section 5): the lanes
/// have no point for them, and libsecp256k1 signs with them.
fn exceptional_secrets<L: Lanes>(l: L) {
    let equal = sub_words(&N, &[0, 0, 0, 14 << 60]);
    let opposite = sub_words(&[0; 4], &N);
    for k in [equal, opposite] {
        for k in [k, sub_words(&N, &k)] {
            assert_eq!(sign::points(l, &[k], &[5, 0, 0, 0]), [None], "{k:x?}");
            for near in [add_words(&k, &[2, 0, 0, 0]).0, sub_words(&k, &[2, 0, 0, 0])] {
                assert!(sign::points(l, &[near], &[5, 0, 0, 0])[0].is_some(), "{near:x?}");
            }
            let secret = secret(&k).to_secret_bytes();
            let wanted = [ToSign::new(&secret, [1; 32], Scheme::Schnorr)];
            assert_eq!(sign::sign(l, &wanted, &[0; 32]), [None]);
            assert!(LaneEngine::plain().sign(&wanted, &[0; 32])[0].is_some());
        }
    }
}

/// Every signature is that of libsecp256k1 for any number of them, keys and messages at the edges included.
fn signatures_are_those_of_the_library<L: Lanes>(l: L) {
    let mut numbers = Numbers::new(11);
    let bytes = |value: &Big| -> [u8; 32] {
        let words: Vec<[u8; 8]> = value.iter().rev().map(|word| word.to_be_bytes()).collect();
        words.concat().try_into().unwrap()
    };
    for count in [1, 2, 7, 8, 9, 100] {
        let wanted: Vec<ToSign> = (0..count)
            .map(|i| {
                let (key, message) = (numbers.big(&N), numbers.big(&[u64::MAX; 4]));
                let scheme = if i % 2 == 0 { Scheme::Ecdsa } else { Scheme::Schnorr };
                ToSign::new(&bytes(&key), bytes(&message), scheme)
            })
            .collect();
        let seed = bytes(&numbers.big(&P));
        for (made, wanted) in sign::sign(l, &wanted, &seed).into_iter().zip(&wanted) {
            assert_eq!(made, wanted.by_library(), "{wanted:?}");
        }
    }
    let no_keys = [[0; 32], bytes(&N), [255; 32]].map(|secret| ToSign::new(&secret, [1; 32], Scheme::Ecdsa));
    assert_eq!(sign::sign(l, &no_keys, &[0; 32]), [None; 3]);
    assert_eq!(sign::sign(l, &[], &[0; 32]), []);
}
