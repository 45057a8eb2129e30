//! The 160 rounds of RIPEMD-160 over vectors, one digest per vector element: the code that the AVX2 and AVX-512 kernels
//! share.
//!
//! Macro input: the CPU features and the vector type; the calling module provides the operations `add`, `rotr`, `xor3`,
//! `ch`, `splat`, which the kernels of SHA-256 have too, and `or_not_xor`. Output: the function `hash_words`. A macro
//! for the reason given in `sha256/rounds.rs`. Cost: about 2,100 operations with AVX2, 1,300 with AVX-512. Must never:
//! contain anything but the rounds.

/// Rounds of both lines: two functions and constants; then, for each round, word and rotation of the left and of the
/// right line.
macro_rules! sixteen_rounds {
    ($left:ident, $right:ident, $w:ident; $f_left:ident $k_left:literal, $f_right:ident $k_right:literal:
     $($word_left:literal $shift_left:literal $word_right:literal $shift_right:literal),*) => {
        let (k_left, k_right) = (splat($k_left), splat($k_right));
        $(
            let [_, b, c, d, _] = $left;
            $left = round::<{ 32 - $shift_left }>($left, $f_left(b, c, d), add($w[$word_left], k_left));
            let [_, b, c, d, _] = $right;
            $right = round::<{ 32 - $shift_right }>($right, $f_right(b, c, d), add($w[$word_right], k_right));
        )*
    };
}

macro_rules! digest_rounds {
    ($features:literal, $vector:ty) => {
        /// RIPEMD-160 of 32-byte messages given as words: the one block of each, with its padding.
        ///
        /// The two lines of rounds depend on each other only at the end, so their rounds alternate here.
        #[inline]
        #[target_feature(enable = $features)]
        fn hash_words(digest: [$vector; 8]) -> [$vector; 5] {
            let mut w = [splat(0); 16];
            w[..8].copy_from_slice(&digest);
            w[8] = splat(0x80);
            w[14] = splat(256); // bits
            let iv: [$vector; 5] = std::array::from_fn(|i| splat(IV[i]));
            let (mut left, mut right) = (iv, iv);
            sixteen_rounds!(left, right, w; f1 0, f5 0x50a2_8be6:
                0 11 5 8, 1 14 14 9, 2 15 7 9, 3 12 0 11,
                4 5 9 13, 5 8 2 15, 6 7 11 15, 7 9 4 5,
                8 11 13 7, 9 13 6 7, 10 14 15 8, 11 15 8 11,
                12 6 1 14, 13 7 10 14, 14 9 3 12, 15 8 12 6);
            sixteen_rounds!(left, right, w; f2 0x5a82_7999, f4 0x5c4d_d124:
                7 7 6 9, 4 6 11 13, 13 8 3 15, 1 13 7 7,
                10 11 0 12, 6 9 13 8, 15 7 5 9, 3 15 10 11,
                12 7 14 7, 0 12 15 7, 9 15 8 12, 5 9 12 7,
                2 11 4 6, 14 7 9 15, 11 13 1 13, 8 12 2 11);
            sixteen_rounds!(left, right, w; f3 0x6ed9_eba1, f3 0x6d70_3ef3:
                3 11 15 9, 10 13 5 7, 14 6 1 15, 4 7 3 11,
                9 14 7 8, 15 9 14 6, 8 13 6 6, 1 15 9 14,
                2 14 11 12, 7 8 8 13, 0 13 12 5, 6 6 2 14,
                13 5 10 13, 11 12 0 13, 5 7 4 7, 12 5 13 5);
            sixteen_rounds!(left, right, w; f4 0x8f1b_bcdc, f2 0x7a6d_76e9:
                1 11 8 15, 9 12 6 5, 11 14 4 8, 10 15 1 11,
                0 14 3 14, 8 15 11 14, 12 9 15 6, 4 8 0 14,
                13 9 5 6, 3 14 12 9, 7 5 2 12, 15 6 13 9,
                14 8 9 12, 5 6 7 5, 6 5 10 15, 2 12 14 8);
            sixteen_rounds!(left, right, w; f5 0xa953_fd4e, f1 0:
                4 9 12 8, 0 15 15 5, 5 5 10 12, 9 11 4 9,
                7 6 1 12, 12 8 5 5, 2 13 8 14, 10 12 7 6,
                14 5 6 8, 1 12 2 13, 3 13 13 6, 8 14 14 5,
                11 11 0 15, 6 8 3 13, 15 5 9 11, 13 6 11 11);
            let ([a, b, c, d, e], [a2, b2, c2, d2, e2]) = (left, right);
            let [h0, h1, h2, h3, h4] = iv;
            let sum = |x, y, z| add(add(x, y), z);
            [sum(h1, c, d2), sum(h2, d, e2), sum(h3, e, a2), sum(h4, a, b2), sum(h0, b, c2)]
        }

        /// One round of one line. `RIGHT` is 32 less the count of the rotation to the left.
        #[inline]
        #[target_feature(enable = $features)]
        fn round<const RIGHT: i32>([a, b, c, d, e]: [$vector; 5], f: $vector, kw: $vector) -> [$vector; 5] {
            // The function of b, c, d is the last term: it depends on the round before.
            let sum = add(add(a, kw), f);
            [e, add(rotr::<RIGHT>(sum), e), b, rotr::<22>(c), d]
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn f1(x: $vector, y: $vector, z: $vector) -> $vector {
            xor3(x, y, z)
        }

        /// x ? y : z
        #[inline]
        #[target_feature(enable = $features)]
        fn f2(x: $vector, y: $vector, z: $vector) -> $vector {
            ch(x, y, z)
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn f3(x: $vector, y: $vector, z: $vector) -> $vector {
            or_not_xor(x, y, z)
        }

        /// z ? x : y
        #[inline]
        #[target_feature(enable = $features)]
        fn f4(x: $vector, y: $vector, z: $vector) -> $vector {
            ch(z, x, y)
        }

        /// x ^ (y | !z)
        #[inline]
        #[target_feature(enable = $features)]
        fn f5(x: $vector, y: $vector, z: $vector) -> $vector {
            or_not_xor(y, z, x)
        }
    };
}

/// Initial words, those of MD4 and SHA-1.
pub(super) const IV: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];

pub(super) use {digest_rounds, sixteen_rounds};
