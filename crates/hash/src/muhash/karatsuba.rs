//! Products of numbers side by side: Karatsuba's method, stamped into each SIMD kernel.
//!
//! Input: two numbers per lane as n limbs, one vector per limb. Output: 2n columns, each a sum of products of the same
//! weight, not yet carried. How it works: with a = a0 + a1 x and b = b0 + b1 x, the middle part a0 b1 + a1 b0 is (a0 +
//! a1)(b0 + b1) - a0 b0 - a1 b1, so three products of half the length replace four. Sums of limbs are not carried: each
//! level needs one more bit per limb, which the multiplier of the kernel must have to spare. Sums of columns are taken
//! modulo 2^64; each kernel states why the result is exact. Cost: per level with halves of h limbs, three products and
//! 7h additions. Must never: carry (the kernel does that once, after the last level).

/// The product of numbers of twice the length of `$half`, which multiplies `$h` limbs.
///
/// Requires the functions `add` and `sub` of vectors.
macro_rules! karatsuba {
    ($features:literal, $vector:ty, $name:ident = $half:ident($h:literal)) => {
        #[target_feature(enable = $features)]
        fn $name(a: &[$vector; 2 * $h], b: &[$vector; 2 * $h], out: &mut [$vector; 4 * $h]) {
            let (a, b) = (a.as_chunks::<$h>().0, b.as_chunks::<$h>().0);
            let halves = out.as_chunks_mut::<{ 2 * $h }>().0;
            $half(&a[0], &b[0], &mut halves[0]);
            $half(&a[1], &b[1], &mut halves[1]);
            let sum_a: [$vector; $h] = std::array::from_fn(|i| add(a[0][i], a[1][i]));
            let sum_b: [$vector; $h] = std::array::from_fn(|i| add(b[0][i], b[1][i]));
            let mut middle = [sum_a[0]; 2 * $h];
            $half(&sum_a, &sum_b, &mut middle);
            // The quarters of `out` are l0, l1 (of a0 b0) and h0, h1 (of a1 b1). The second quarter becomes
            // l1 + m0 - l0 - h0, the third h0 + m1 - l1 - h1.
            for i in 0..$h {
                let shared = sub(out[$h + i], out[2 * $h + i]);
                out[$h + i] = add(shared, sub(middle[i], out[i]));
                out[2 * $h + i] = sub(sub(middle[$h + i], out[3 * $h + i]), shared);
            }
        }
    };
}

pub(super) use karatsuba;
