//! The 64 rounds over vectors, one message per vector element: the code that the AVX2 and AVX-512 kernels share.
//!
//! Macro input: the CPU features and the vector type; the calling module provides the operations `add`, `rotr`, `shr`,
//! `xor3`, `ch`, `maj`, `splat`. Output: the function `rounds` and the functions built on it. This is a macro and not a
//! trait because a function with target features cannot implement a trait method. Cost: see the kernels. Must never:
//! contain anything but the rounds.

/// Rounds that also replace each schedule word with the one sixteen rounds later; unrolled, so that all words stay in
/// registers.
macro_rules! scheduling_rounds {
    ($s:ident, $w:ident, $k:ident: $($i:literal)*) => {$(
        $s = round($s, add($w[$i], splat($k[$i])));
        let (w1, w9, w14) = ($w[($i + 1) & 15], $w[($i + 9) & 15], $w[($i + 14) & 15]);
        $w[$i] = add(add($w[$i], sigma0(w1)), add(w9, sigma1(w14)));
    )*};
}

/// Rounds whose schedule words need no replacement. After eight rounds every chaining word is back in its place.
macro_rules! final_rounds {
    ($s:ident, $kw:ident: $($i:literal)*) => {$(
        $s = round($s, $kw[$i]);
    )*};
}

macro_rules! lane_rounds {
    ($features:literal, $vector:ty) => {
        /// Processes one block in every lane: returns the state after the rounds, without the previous state added.
        ///
        /// Works in groups of sixteen rounds; a schedule word is replaced with the one sixteen rounds later after its
        /// use.
        #[inline]
        #[target_feature(enable = $features)]
        fn rounds(mut s: [$vector; 8], mut w: [$vector; 16]) -> [$vector; 8] {
            let [most @ .., last] = K.as_chunks::<16>().0 else { unreachable!("K is 64 words") };
            for k in most {
                scheduling_rounds!(s, w, k: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
            }
            let kw: [$vector; 16] = std::array::from_fn(|i| add(w[i], splat(last[i])));
            final_rounds!(s, kw: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
            s
        }

        /// Like `rounds`, for a block that is the same constant in all lanes: `kw` is its schedule plus the round
        /// constants.
        #[inline]
        #[target_feature(enable = $features)]
        fn rounds_of_constant(mut s: [$vector; 8], kw: &[u32; 64]) -> [$vector; 8] {
            for kw in kw.as_chunks::<8>().0 {
                let kw: [$vector; 8] = std::array::from_fn(|i| splat(kw[i]));
                final_rounds!(s, kw: 0 1 2 3 4 5 6 7);
            }
            s
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn round([a, b, c, d, e, f, g, h]: [$vector; 8], kw: $vector) -> [$vector; 8] {
            // The terms are added in the order in which they become available, at the cost of one extra addition. Only
            // a rotation, a xor and an addition remain on the path from e to the next e and from a to the next a; this
            // chain is the bottleneck on a CPU with two-cycle vector operations. 16 % faster than t1 and d + t1
            // (AVX-512, Zen 5). An empty `asm!` that prevents the compiler from regrouping the sums gained another 2 to
            // 5 %, which is not worth its `unsafe`.
            let hkw = add(h, kw);
            let choice = ch(e, f, g);
            let sum1 = xor3(rotr::<6>(e), rotr::<11>(e), rotr::<25>(e));
            let t1 = add(add(hkw, choice), sum1);
            let next_e = add(add(add(d, hkw), choice), sum1);
            let sum0 = xor3(rotr::<2>(a), rotr::<13>(a), rotr::<22>(a));
            [add(add(t1, maj(a, b, c)), sum0), a, b, c, next_e, e, f, g]
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn sigma0(x: $vector) -> $vector {
            xor3(rotr::<7>(x), rotr::<18>(x), shr::<3>(x))
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn sigma1(x: $vector) -> $vector {
            xor3(rotr::<17>(x), rotr::<19>(x), shr::<10>(x))
        }

        /// `x` + `y`, word by word.
        #[inline]
        #[target_feature(enable = $features)]
        fn add_states(x: [$vector; 8], y: [$vector; 8]) -> [$vector; 8] {
            std::array::from_fn(|i| add(x[i], y[i]))
        }

        /// The initial state in every lane.
        #[inline]
        #[target_feature(enable = $features)]
        fn iv() -> [$vector; 8] {
            std::array::from_fn(|i| splat(IV[i]))
        }

        /// The state after hashing a 32-byte digest, given as words.
        #[inline]
        #[target_feature(enable = $features)]
        fn hash_of_digest(digest: [$vector; 8]) -> [$vector; 8] {
            let mut w = [splat(0); 16];
            w[..8].copy_from_slice(&digest);
            w[8] = splat(0x8000_0000);
            w[15] = splat(256);
            add_states(rounds(iv(), w), iv())
        }

        /// Double SHA-256 of 64-byte messages given as words.
        #[inline]
        #[target_feature(enable = $features)]
        fn double_of_pairs(w: [$vector; 16]) -> [$vector; 8] {
            let first = add_states(rounds(iv(), w), iv());
            hash_of_digest(add_states(rounds_of_constant(first, &PAIR_PADDING_KW), first))
        }
    };
}

pub(super) use {final_rounds, lane_rounds, scheduling_rounds};
