//! [`Kept`]: what was computed for scripts, so that the next answer computes only what came after.
//!
//! Numbers of transactions mean others after blocks have left the index, so values are of one epoch of the index: a
//! newer one empties it. Memory: a bounded number of values; the oldest makes room.

use lydian_index::ScriptHash;
use lydian_stdx::lock;
use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

#[derive(Debug)]
pub(crate) struct Kept<T> {
    max: usize,
    inner: Mutex<Inner<T>>,
}

#[derive(Debug)]
struct Inner<T> {
    epoch: u64,
    values: HashMap<ScriptHash, T>,
    /// The oldest first.
    order: VecDeque<ScriptHash>,
}

impl<T> Inner<T> {
    fn new(epoch: u64) -> Inner<T> {
        Inner { epoch, values: HashMap::new(), order: VecDeque::new() }
    }
}

impl<T: Clone> Kept<T> {
    /// Room for `max` scripts.
    pub(crate) fn new(max: usize) -> Kept<T> {
        Kept { max, inner: Mutex::new(Inner::new(0)) }
    }

    /// The value of a script, if it is of this epoch.
    pub(crate) fn get(&self, epoch: u64, script: &ScriptHash) -> Option<T> {
        let inner = lock(&self.inner);
        inner.values.get(script).filter(|_| inner.epoch == epoch).cloned()
    }

    /// Keeps a value, unless it is of an epoch that is over.
    pub(crate) fn put(&self, epoch: u64, script: &ScriptHash, value: T) {
        let mut inner = lock(&self.inner);
        if inner.epoch > epoch {
            return;
        }
        if inner.epoch < epoch {
            *inner = Inner::new(epoch);
        }
        if inner.values.insert(*script, value).is_none() {
            inner.order.push_back(*script);
        }
        while inner.order.len() > self.max {
            let oldest = inner.order.pop_front();
            oldest.map(|script| inner.values.remove(&script));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(number: u8) -> ScriptHash {
        ScriptHash([number; 32])
    }

    #[test]
    fn the_oldest_values_make_room() {
        let kept = Kept::new(3);
        (0..3).for_each(|number| kept.put(0, &script(number), number));
        kept.put(0, &script(0), 7);
        assert_eq!(kept.get(0, &script(0)), Some(7));
        kept.put(0, &script(3), 3);
        let found = [0, 1, 2, 3].map(|number| kept.get(0, &script(number)));
        assert_eq!(found, [None, Some(1), Some(2), Some(3)]);
        let inner = lock(&kept.inner);
        assert_eq!((inner.values.len(), inner.order.len()), (3, 3));
    }

    /// limit: SUMS_MAX at
    /// limit: SUMS_MAX above
    /// limit: STATUSES_MAX at
    /// limit: STATUSES_MAX above
    #[test]
    fn limits_are_those_of_their_constants() {
        for max in [crate::limits::SUMS_MAX, crate::limits::STATUSES_MAX] {
            let kept = Kept::new(max);
            let script = |number: usize| {
                let mut bytes = [0; 32];
                bytes[..8].copy_from_slice(&number.to_le_bytes());
                ScriptHash(bytes)
            };
            (0..max).for_each(|number| kept.put(0, &script(number), ()));
            assert_eq!((kept.get(0, &script(0)), kept.get(0, &script(max - 1))), (Some(()), Some(())));
            kept.put(0, &script(max), ());
            assert_eq!((kept.get(0, &script(0)), kept.get(0, &script(max))), (None, Some(())));
        }
    }

    #[test]
    fn values_are_of_one_epoch() {
        let kept = Kept::new(3);
        kept.put(1, &script(0), 0);
        assert_eq!((kept.get(0, &script(0)), kept.get(1, &script(0))), (None, Some(0)));
        kept.put(0, &script(1), 1);
        assert_eq!((kept.get(0, &script(1)), kept.get(1, &script(1))), (None, None));
        kept.put(2, &script(1), 1);
        assert_eq!((kept.get(2, &script(0)), kept.get(2, &script(1))), (None, Some(1)));
    }
}
