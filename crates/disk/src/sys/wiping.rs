//! [`WipingAllocator`]: memory that may hold private keys is overwritten before it is freed.
//!
//! Input: blocks that are freed. Output: the same blocks, filled with zeros if they are freed on a thread inside
//! [`wiping`]. This reaches the copies that other crates make: parsed text, grown buffers, temporary values. Invariant:
//! the setting of one thread changes nothing on others. Cost: one thread-local read for each freed block; inside
//! [`wiping`] its bytes are written again, and a block that grows is always copied. Must never: allocate.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

thread_local! {
    /// The largest block that is overwritten; zero outside of [`wiping`].
    static SIZE_MAX: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, with [`wiping`]. A program that holds private keys makes it its global allocator.
#[derive(Clone, Copy, Debug, Default)]
pub struct WipingAllocator;

/// Runs `work`. Blocks of at most `size_max` bytes that this thread frees meanwhile are overwritten, provided that the
/// program uses [`WipingAllocator`].
pub fn wiping<T>(size_max: usize, work: impl FnOnce() -> T) -> T {
    /// Restores the setting if `work` panics, too.
    struct Outer(usize);
    impl Drop for Outer {
        fn drop(&mut self) {
            SIZE_MAX.set(self.0);
        }
    }
    let outer = Outer(SIZE_MAX.get());
    SIZE_MAX.set(outer.0.max(size_max));
    work()
}

/// Fills a block with zeros.
///
/// # Safety
/// The block has `size` bytes that may be written, and no reference to them exists.
unsafe fn wipe(block: *mut u8, size: usize) {
    // SAFETY: the caller's promise.
    unsafe { block.write_bytes(0, size) };
    // The compiler must assume that the zeros are read.
    black_box(block);
}

// SAFETY: all blocks come from `System` and go back to it with the layout that they were allocated with. What is done
// besides never unwinds and never allocates: the thread-local value is a constant at first and has no destructor.
unsafe impl GlobalAlloc for WipingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if layout.size() <= SIZE_MAX.get() {
            // SAFETY: the caller gives up the block, which has the size of its layout.
            unsafe { wipe(block, layout.size()) };
        }
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if layout.size() > SIZE_MAX.get() {
            // SAFETY: the caller's promise.
            return unsafe { System.realloc(block, layout, size) };
        }
        // SAFETY: the caller promises that `size` is not zero and does not overflow with the alignment, which is that
        // of a valid layout.
        let moved = unsafe { self.alloc(Layout::from_size_align_unchecked(size, layout.align())) };
        if !moved.is_null() {
            // SAFETY: both blocks have so many bytes, and the new one is another; the caller gives up the old one.
            unsafe {
                moved.copy_from_nonoverlapping(block, layout.size().min(size));
                self.dealloc(block, layout);
            }
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_scope_ends_first() {
        let sizes = || SIZE_MAX.get();
        assert_eq!(sizes(), 0);
        wiping(10, || {
            assert_eq!(wiping(5, sizes), 10, "an inner scope wipes no less");
            assert_eq!(wiping(20, sizes), 20);
            assert_eq!(sizes(), 10);
            assert_eq!(std::thread::spawn(|| SIZE_MAX.get()).join().unwrap(), 0, "another thread");
            assert!(std::panic::catch_unwind(|| wiping(30, || panic!("as a method may"))).is_err());
            assert_eq!(sizes(), 10);
        });
        assert_eq!(sizes(), 0);
    }

    /// Blocks that grow and shrink keep their bytes. That freed bytes are zeros is tested in crate `node`, which may
    /// look at the memory of a process.
    #[test]
    fn blocks_keep_their_bytes() {
        for size_max in [0, 100, usize::MAX] {
            wiping(size_max, || {
                for (size, other) in [(1, 50), (50, 200), (200, 7), (1 << 20, 1 << 21), (1 << 21, 3)] {
                    let layout = Layout::from_size_align(size, 8).unwrap();
                    // SAFETY: the sizes are not zero, every pointer is checked, and each block is freed once with the
                    // layout that it has at that time.
                    unsafe {
                        let block = WipingAllocator.alloc(layout);
                        assert!(!block.is_null());
                        block.write_bytes(7, size);
                        let block = WipingAllocator.realloc(block, layout, other);
                        assert!(!block.is_null());
                        let kept = std::slice::from_raw_parts(block, size.min(other));
                        assert!(kept.iter().all(|byte| *byte == 7), "{size} {other}");
                        WipingAllocator.dealloc(block, Layout::from_size_align(other, 8).unwrap());
                    }
                }
            });
        }
    }

    #[test]
    fn a_block_is_filled_with_zeros() {
        let mut bytes = [7; 100];
        // SAFETY: the array has 100 bytes, and the pointer is the only reference to them.
        unsafe { wipe(bytes.as_mut_ptr(), 99) };
        assert!(bytes[..99].iter().all(|byte| *byte == 0) && bytes[99] == 7);
    }
}
