//! The merkle root of a block's txids or wtxids (`ComputeMerkleRoot`, consensus/merkle.cpp).
//!
//! Input: the leaves, which are replaced in place level by level. Output: the root, and whether the tree was mutated
//! (CVE-2012-2459: two equal neighbours are hashed together, so another list of transactions has the same root). Cost:
//! about one double hash per leaf, no allocation except room for one more leaf. Must never: lose the `mutated` flag of
//! any level.

use crate::sha256::{BatchKernel, kernels, sha256d_64_with};

/// Pairs hashed per call: enough for two passes of the widest kernel, small enough for the L1 cache.
const PAIRS_PER_STEP: usize = 32;

/// Returns the root and the mutated flag; the root of no leaves is zero. `leaves` is consumed and left empty.
pub fn merkle_root(leaves: &mut Vec<[u8; 32]>) -> ([u8; 32], bool) {
    merkle_root_with(kernels().pairs, leaves)
}

/// Like [`merkle_root`], with a kernel chosen by the caller, for tests and benchmarks.
pub fn merkle_root_with(kernel: BatchKernel, leaves: &mut Vec<[u8; 32]>) -> ([u8; 32], bool) {
    let mut mutated = false;
    while leaves.len() > 1 {
        // The last of an odd number of leaves is paired only with its own copy, which Core does not count as a
        // mutation.
        mutated |= leaves.as_chunks::<2>().0.iter().any(|[left, right]| left == right);
        if leaves.len() & 1 == 1 {
            leaves.extend_from_within(leaves.len() - 1..);
        }
        halve(kernel, leaves);
    }
    (leaves.pop().unwrap_or_default(), mutated)
}

/// Replaces an even number of leaves with the hashes of the pairs.
fn halve(kernel: BatchKernel, leaves: &mut Vec<[u8; 32]>) {
    let mut hashed = [[0; 32]; PAIRS_PER_STEP];
    let pairs = leaves.len() / 2;
    for start in (0..pairs).step_by(PAIRS_PER_STEP) {
        let count = PAIRS_PER_STEP.min(pairs - start);
        let input = leaves[2 * start..2 * (start + count)].as_flattened();
        sha256d_64_with(kernel, input.as_chunks::<64>().0, &mut hashed[..count]);
        leaves[start..start + count].copy_from_slice(&hashed[..count]);
    }
    leaves.truncate(pairs);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sha256::sha256d;

    /// The recursive definition: the left part is the largest power of two below the count, short parts are repeated.
    fn root_by_definition(leaves: &[[u8; 32]], height: u32) -> [u8; 32] {
        if height == 0 {
            return leaves[0];
        }
        let half = 1 << (height - 1);
        let left = root_by_definition(&leaves[..half.min(leaves.len())], height - 1);
        let right = if leaves.len() > half { root_by_definition(&leaves[half..], height - 1) } else { left };
        sha256d(&[left, right].concat())
    }

    fn leaves(count: usize) -> Vec<[u8; 32]> {
        (0..count).map(|i| sha256d(&i.to_le_bytes())).collect()
    }

    fn check(list: &[[u8; 32]], mutated: bool) {
        let expected = if list.is_empty() {
            [0; 32]
        } else {
            root_by_definition(list, list.len().next_power_of_two().trailing_zeros())
        };
        for &kernel in &kernels().batches_available {
            let mut work = list.to_vec();
            assert_eq!(merkle_root_with(kernel, &mut work), (expected, mutated), "{} of {}", kernel.name(), list.len());
        }
    }

    #[test]
    fn every_count_follows_the_definition() {
        for count in 0..200 {
            check(&leaves(count), false);
        }
        for count in [255, 256, 257, 1000, 2047, 4097] {
            check(&leaves(count), false);
        }
    }

    /// CVE-2012-2459: [1..6] and [1..6, 5, 6] have the same root; the second is reported as mutated, at whatever level
    /// the repetition occurs.
    #[test]
    fn repeated_neighbours_are_called_mutated() {
        let mut list = leaves(6);
        let (root, _) = merkle_root(&mut list.clone());
        list.extend_from_within(4..);
        check(&list, true);
        assert_eq!(merkle_root(&mut list).0, root);

        for position in 0..11 {
            let mut list = leaves(12);
            list[position + 1] = list[position];
            // Equal neighbours are only hashed together at an even position.
            check(&list, position % 2 == 0);
        }
        for odd in [1, 3, 5, 7, 31, 33] {
            let mut list = leaves(odd);
            check(&list, false);
            list.push(list[odd - 1]);
            check(&list, true);
        }
    }
}
