//! Overwriting secrets.

use std::hint::black_box;

/// Bytes of the stack that [`wipe_stack`] overwrites.
const STACK_BYTES: usize = 256 << 10;

/// Overwrites what functions called before have left on the stack below this one. The thread must have 256 KiB left.
#[inline(never)]
pub fn wipe_stack() {
    let mut left = [0_u8; STACK_BYTES];
    wipe(&mut left);
}

/// Overwrites secrets.
pub fn wipe<T: Copy + Default>(secrets: &mut [T]) {
    secrets.fill(T::default());
    // The compiler must assume that the zeros are read.
    black_box(secrets);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_become_zeros() {
        let mut secrets = [7_u64; 3];
        wipe(&mut secrets);
        assert_eq!(secrets, [0; 3]);
        wipe_stack();
    }
}
