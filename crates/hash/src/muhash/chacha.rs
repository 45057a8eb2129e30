//! ChaCha20 key streams side by side (RFC 8439), stamped into each SIMD kernel.
//!
//! Input: one 32-byte key per lane; nonce and counter are zero. Output: the first 96 words of each key stream, word by
//! word. Invariant: element i of every vector belongs to key i. Cost: 976 vector operations with a rotation instruction
//! per 64 bytes of all lanes. Must never: be used with keys that are secret (nothing here is cleared).

/// The first four words of the state: "expand 32-byte k".
pub(super) const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

/// Word w of the key of lane i, as row w, column i.
pub(super) fn key_words<const N: usize>(keys: &[[u8; 32]; N]) -> [[u32; N]; 8] {
    let mut rows = [[0; N]; 8];
    for (i, key) in keys.iter().enumerate() {
        for (row, bytes) in rows.iter_mut().zip(key.as_chunks::<4>().0) {
            row[i] = u32::from_le_bytes(*bytes);
        }
    }
    rows
}

/// Four quarter rounds on different words, step by step, so that none waits for itself.
macro_rules! quarter_rounds {
    ($s:ident: $(($a:literal $b:literal $c:literal $d:literal))*) => {
        $($s[$a] = add32($s[$a], $s[$b]);)*
        $($s[$d] = rotl::<16>(xor($s[$d], $s[$a]));)*
        $($s[$c] = add32($s[$c], $s[$d]);)*
        $($s[$b] = rotl::<12>(xor($s[$b], $s[$c]));)*
        $($s[$a] = add32($s[$a], $s[$b]);)*
        $($s[$d] = rotl::<8>(xor($s[$d], $s[$a]));)*
        $($s[$c] = add32($s[$c], $s[$d]);)*
        $($s[$b] = rotl::<7>(xor($s[$b], $s[$c]));)*
    };
}

/// Defines `chacha_block(key, counter)`: one block of every lane.
///
/// Requires the functions `add32`, `xor`, `rotl` and `splat32` of vectors, and `quarter_rounds`.
macro_rules! chacha_block {
    ($features:literal, $vector:ty) => {
        #[inline]
        #[target_feature(enable = $features)]
        fn chacha_block(key: &[$vector; 8], counter: u32) -> [$vector; 16] {
            let mut start = [splat32(0); 16];
            for (word, constant) in start.iter_mut().zip(CONSTANTS) {
                *word = splat32(constant);
            }
            start[4..12].copy_from_slice(key);
            start[12] = splat32(counter);
            let mut s = start;
            for _ in 0..10 {
                quarter_rounds!(s: (0 4 8 12) (1 5 9 13) (2 6 10 14) (3 7 11 15));
                quarter_rounds!(s: (0 5 10 15) (1 6 11 12) (2 7 8 13) (3 4 9 14));
            }
            std::array::from_fn(|i| add32(s[i], start[i]))
        }
    };
}

pub(super) use {chacha_block, quarter_rounds};
