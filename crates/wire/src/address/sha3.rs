//! SHA3-256 of a short message, for the checksum in the name of an onion service. Input: at most 135 bytes. Output: 32 bytes.
//!
//! Nothing secret and nothing fast depends on it. One permutation, no heap. Must never be given more than one block.

/// Bytes that one permutation absorbs, less the one of padding.
const MESSAGE_SIZE_MAX: usize = 135;

/// The digest; a message above 135 bytes is a bug of the caller.
pub(super) fn sha3_256(parts: &[&[u8]]) -> [u8; 32] {
    let mut block = [0u8; 200];
    let mut size = 0;
    for part in parts {
        block[size..size + part.len()].copy_from_slice(part);
        size += part.len();
    }
    assert!(size <= MESSAGE_SIZE_MAX, "one block only");
    block[size] ^= 0x06;
    block[MESSAGE_SIZE_MAX] ^= 0x80;
    let mut state = [0u64; 25];
    for (lane, bytes) in state.iter_mut().zip(block.as_chunks::<8>().0) {
        *lane = u64::from_le_bytes(*bytes);
    }
    permute(&mut state);
    let mut digest = [0; 32];
    for (bytes, lane) in digest.as_chunks_mut::<8>().0.iter_mut().zip(state) {
        *bytes = lane.to_le_bytes();
    }
    digest
}

/// Keccak-f[1600]. Round constants come from the shift register of the specification, rotations from the walk of its step rho.
fn permute(state: &mut [u64; 25]) {
    let mut register = 1u8;
    for _ in 0..24 {
        // theta
        let mut columns = [0u64; 5];
        for (index, lane) in state.iter().enumerate() {
            columns[index % 5] ^= lane;
        }
        for (index, lane) in state.iter_mut().enumerate() {
            *lane ^= columns[(index + 4) % 5] ^ columns[(index + 1) % 5].rotate_left(1);
        }
        // rho and pi: each lane on the walk takes the place of the next
        let (mut x, mut y) = (1, 0);
        let mut carried = state[1];
        for step in 0..24u32 {
            (x, y) = (y, (2 * x + 3 * y) % 5);
            let rotated = carried.rotate_left((step + 1) * (step + 2) / 2 % 64);
            carried = std::mem::replace(&mut state[x + 5 * y], rotated);
        }
        // chi
        for row in state.as_chunks_mut::<5>().0 {
            let old = *row;
            for x in 0..5 {
                row[x] = old[x] ^ (!old[(x + 1) % 5] & old[(x + 2) % 5]);
            }
        }
        // iota
        for bit in 0..7 {
            if register & 1 == 1 {
                state[0] ^= 1 << ((1u32 << bit) - 1);
            }
            register = register << 1 ^ if register & 0x80 == 0 { 0 } else { 0x71 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_primitives::to_hex;

    #[test]
    fn known_digests() {
        assert_eq!(to_hex(&sha3_256(&[])), "a7ffc6f8bf1ed76651c14756a061d662f580ff4de43b49fa82d80a4b80f8434a");
        assert_eq!(
            to_hex(&sha3_256(&[b"a", b"bc"])),
            "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532"
        );
    }
}
