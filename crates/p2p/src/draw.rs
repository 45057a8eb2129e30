//! Random numbers from a seeded generator.
//!
//! Input: the caller's `ChaCha20Rng`. Output: numbers below a bound, coin flips.
//!
//! Invariant: the same generator in the same state gives the same numbers on every machine. Cost: one word, rarely two.
//! If a peer that knows the seed could gain from it, the generator must be seeded by the operating system.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::Rng;
use std::time::Duration;

/// Returns a uniformly distributed number below `bound`; 0 if `bound` is 0.
pub(crate) fn below(random: &mut ChaCha20Rng, bound: usize) -> usize {
    let bound_wide = bound as u64;
    if bound_wide == 0 {
        return 0;
    }
    // Words above the largest multiple of the bound would favor small numbers.
    let whole = u64::MAX - u64::MAX % bound_wide;
    loop {
        let word = random.next_u64();
        if word < whole {
            return usize::try_from(word % bound_wide).unwrap_or(0);
        }
    }
}

/// Returns true or false with equal probability.
pub(crate) fn coin(random: &mut ChaCha20Rng) -> bool {
    random.next_u32() & 1 == 1
}

/// Returns a number from 0 to 1.
pub(crate) fn unit(random: &mut ChaCha20Rng) -> f64 {
    f64::from(random.next_u32()) / f64::from(u32::MAX)
}

/// Returns a 30-bit number.
pub(crate) fn bits30(random: &mut ChaCha20Rng) -> u32 {
    random.next_u32() >> 2
}

/// Returns an exponentially distributed duration: Core's `rand_exp_duration`.
pub(crate) fn exponential(random: &mut ChaCha20Rng, mean: Duration) -> Duration {
    let uniform = (f64::from(random.next_u32()) + 1.0) / 4_294_967_296.0;
    mean.mul_f64(-uniform.ln())
}

/// Shuffles the items.
pub(crate) fn shuffle<T>(items: &mut [T], random: &mut ChaCha20Rng) {
    for index in (1..items.len()).rev() {
        items.swap(index, below(random, index + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::rand_core::SeedableRng;

    #[test]
    fn every_number_below_the_bound_comes_and_none_else() {
        let mut random = ChaCha20Rng::seed_from_u64(1);
        let mut seen = [0_u32; 7];
        for _ in 0..7000 {
            seen[below(&mut random, 7)] += 1;
        }
        assert!(seen.iter().all(|count| (850..1150).contains(count)), "{seen:?}");
        assert_eq!(below(&mut random, 1), 0);
        assert_eq!(below(&mut random, 0), 0);
        let heads = (0..1000).filter(|_| coin(&mut random)).count();
        assert!((420..580).contains(&heads), "{heads}");
        let mean = Duration::from_secs(30);
        let total: Duration = (0..10_000).map(|_| exponential(&mut random, mean)).sum();
        assert!((28..32).contains(&(total.as_secs() / 10_000)), "{total:?}");
        let mut items: Vec<_> = (0..100).collect();
        shuffle(&mut items, &mut random);
        assert!(!items.is_sorted());
        items.sort_unstable();
        assert!(items.iter().copied().eq(0..100));
        assert!((0..1000).all(|_| (0.0..=1.0).contains(&unit(&mut random))));
        assert!((0..1000).all(|_| bits30(&mut random) < 1 << 30));
    }
}
