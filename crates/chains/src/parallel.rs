//! Runs the same function on many items, on all cores.
//!
//! Input: a slice and a function. Output: its results in the order of the slice, whatever the number of threads. Cost:
//! one thread start per further core and call; items are handed out in batches. The schedule must never affect a
//! result.

use lydian_stdx::{IgnorePoison, lock};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Items handed out at once.
const BATCH: usize = 16;

/// The default number of threads: all cores.
pub fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Maps `items` with `work` on up to `threads` threads.
pub fn map<T: Sync, R: Send>(threads: usize, items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    map_batches(threads, items, BATCH, |batch| batch.iter().map(&work).collect())
}

/// Maps batches of up to `size` items with `work` on up to `threads` threads.
pub fn map_batches<T: Sync, R: Send>(
    threads: usize,
    items: &[T],
    size: usize,
    work: impl Fn(&[T]) -> Vec<R> + Sync,
) -> Vec<R> {
    let batches = items.len().div_ceil(size);
    let threads = threads.clamp(1, batches.max(1));
    if threads == 1 {
        return items.chunks(size).flat_map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Vec<R>)>> = Mutex::new(Vec::with_capacity(batches));
    let run = || {
        loop {
            let start = next.fetch_add(size, Ordering::Relaxed);
            let Some(batch) = items.get(start..(start + size).min(items.len())).filter(|batch| !batch.is_empty())
            else {
                break;
            };
            let answers = work(batch);
            lock(&done).push((start, answers));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(run);
        }
        run();
    });
    let mut done = done.into_inner().ignore_poison();
    done.sort_unstable_by_key(|(start, _)| *start);
    done.into_iter().flat_map(|(_, answers)| answers).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_keep_their_order() {
        for len in [0, 1, 15, 16, 17, 1000] {
            let items: Vec<usize> = (0..len).collect();
            for threads in [1, 2, 7] {
                let answers = map(threads, &items, |item| item * 3);
                assert_eq!(answers, items.iter().map(|item| item * 3).collect::<Vec<_>>(), "{len} on {threads}");
                let answers = map_batches(threads, &items, 100, |batch| batch.iter().map(|item| item * 3).collect());
                assert_eq!(answers, items.iter().map(|item| item * 3).collect::<Vec<_>>(), "{len} on {threads}");
            }
        }
    }
}
