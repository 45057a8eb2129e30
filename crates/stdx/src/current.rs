//! [`Current`]: a value that is replaced as a whole while others read it.

use crate::lock;
use std::sync::{Arc, Mutex};

/// A shared value. Readers keep the one that they got.
#[derive(Debug)]
pub struct Current<T>(Arc<Mutex<Arc<T>>>);

impl<T> Clone for Current<T> {
    fn clone(&self) -> Current<T> {
        Current(Arc::clone(&self.0))
    }
}

impl<T> Current<T> {
    pub fn new(value: T) -> Current<T> {
        Current(Arc::new(Mutex::new(Arc::new(value))))
    }

    /// The value of now.
    pub fn get(&self) -> Arc<T> {
        Arc::clone(&lock(&self.0))
    }

    /// Replaces it for everyone who reads it from now on.
    pub fn set(&self, value: T) {
        *lock(&self.0) = Arc::new(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_keep_what_they_got() {
        let current = Current::new(1);
        let (other, got) = (current.clone(), current.get());
        other.set(2);
        assert_eq!((*got, *current.get()), (1, 2));
    }
}
