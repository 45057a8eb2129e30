//! [`Recent`]: what was looked up lately.
//!
//! Input: values with a weight. Output: those that were used lately; at most twice `max` of weight is kept. When the
//! new half is full, the old one is dropped: what was used meanwhile is in the new one.

use std::collections::HashMap;
use std::hash::Hash;

#[derive(Debug)]
pub(crate) struct Recent<K, V> {
    new: HashMap<K, V>,
    old: HashMap<K, V>,
    weight: usize,
    /// Of each half.
    max: usize,
}

impl<K: Eq + Hash, V: Clone> Recent<K, V> {
    pub(crate) fn new(max: usize) -> Recent<K, V> {
        Recent { new: HashMap::new(), old: HashMap::new(), weight: 0, max }
    }

    pub(crate) fn get(&self, key: &K) -> Option<V> {
        self.new.get(key).or_else(|| self.old.get(key)).cloned()
    }

    pub(crate) fn put(&mut self, key: K, value: V, weight: usize) {
        if self.weight + weight > self.max {
            self.old = std::mem::take(&mut self.new);
            self.weight = 0;
        }
        if weight <= self.max && self.new.insert(key, value).is_none() {
            self.weight += weight;
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.new.len() + self.old.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{KEPT_HEADERS_MAX, KEPT_LEFT_MAX, KEPT_TXIDS_MAX};

    /// limit: KEPT_HEADERS_MAX at
    /// limit: KEPT_HEADERS_MAX above
    #[test]
    fn the_old_half_makes_room() {
        let mut recent = Recent::new(KEPT_HEADERS_MAX / 2);
        (0..KEPT_HEADERS_MAX).for_each(|number| recent.put(number, number, 1));
        assert_eq!((recent.len(), recent.get(&0)), (KEPT_HEADERS_MAX, Some(0)));
        recent.put(KEPT_HEADERS_MAX, 7, 1);
        assert_eq!((recent.get(&0), recent.get(&KEPT_HEADERS_MAX)), (None, Some(7)));
        assert_eq!(recent.len(), KEPT_HEADERS_MAX / 2 + 1);
    }

    /// limit: KEPT_TXIDS_MAX at
    /// limit: KEPT_TXIDS_MAX above
    /// limit: KEPT_LEFT_MAX at
    /// limit: KEPT_LEFT_MAX above
    #[test]
    fn what_is_heavier_than_a_half_is_not_kept() {
        for max in [KEPT_TXIDS_MAX, KEPT_LEFT_MAX] {
            let mut recent = Recent::new(max / 2);
            recent.put(1, 1, max / 2);
            recent.put(2, 2, max / 2);
            assert_eq!((recent.get(&1), recent.get(&2)), (Some(1), Some(2)));
            recent.put(3, 3, max / 2 + 1);
            assert_eq!((recent.get(&1), recent.get(&2), recent.get(&3)), (None, Some(2), None));
        }
    }
}
