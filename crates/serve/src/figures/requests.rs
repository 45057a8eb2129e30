//! [`Requests`]: the requests of a server by method: how many, how long, how many failed.
//!
//! Input: requests that begin and end. Output: samples for a table. Invariant: the methods are those of a table of the
//! program; every other name counts as [`OTHER`]. Cost: a binary search and a few atomic additions for a request, no
//! lock.

use super::{Histogram, Samples, float};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// The name of every method that is in no table.
pub const OTHER: &str = "other";

/// Counts requests.
#[derive(Debug)]
pub struct Requests {
    /// By name, sorted; the last one counts the others.
    methods: Vec<Method>,
}

#[derive(Debug)]
struct Method {
    name: &'static str,
    seconds: Histogram,
    errors: AtomicU64,
}

impl Requests {
    /// Counts the requests for these methods.
    pub fn new(names: impl IntoIterator<Item = &'static str>) -> Requests {
        let mut names: Vec<&'static str> = names.into_iter().collect();
        names.sort_unstable();
        names.dedup();
        names.push(OTHER);
        let method = |name| Method { name, seconds: Histogram::default(), errors: AtomicU64::new(0) };
        Requests { methods: names.into_iter().map(method).collect() }
    }

    /// A request begins. It ends when the timer is dropped: as an error, unless it was reported as answered.
    pub fn begin(self: &Arc<Requests>, name: &str) -> Timer {
        let others = self.methods.len() - 1;
        let index = self.methods[..others].binary_search_by(|method| method.name.cmp(name)).unwrap_or(others);
        Timer { requests: Arc::clone(self), index, began: Instant::now(), is_answered: false }
    }

    fn end(&self, index: usize, duration: Duration, is_answered: bool) {
        self.methods[index].seconds.note(duration);
        self.methods[index].errors.fetch_add(u64::from(!is_answered), Ordering::Relaxed);
    }

    /// How long the requests took, for each method that was called.
    pub fn read_seconds(&self, out: &mut Samples) {
        for method in &self.methods {
            let seconds = method.seconds.read();
            if seconds.count() > 0 {
                out.seconds(&[method.name], seconds);
            }
        }
    }

    /// The requests that were answered with an error, for each method that was called.
    pub fn read_errors(&self, out: &mut Samples) {
        for method in self.methods.iter().filter(|method| method.seconds.read().count() > 0) {
            out.of(&[method.name], float(method.errors.load(Ordering::Relaxed)));
        }
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub struct Timer {
    requests: Arc<Requests>,
    index: usize,
    began: Instant,
    is_answered: bool,
}

impl Timer {
    /// The request was answered without an error.
    pub fn answered(&mut self) {
        self.is_answered = true;
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.requests.end(self.index, self.began.elapsed(), self.is_answered);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Value;
    use super::*;

    #[test]
    fn requests_are_counted_by_the_methods_of_the_table() {
        let requests = Arc::new(Requests::new(["b", "a"]));
        requests.begin("b").answered();
        drop(requests.begin("b"));
        drop(requests.begin("</script>"));
        let (mut seconds, mut errors) = (Samples::default(), Samples::default());
        requests.read_seconds(&mut seconds);
        requests.read_errors(&mut errors);
        let counts: Vec<(&str, u64)> = seconds
            .0
            .iter()
            .map(|sample| match sample.value {
                Value::Seconds(all) => (sample.labels[0], all.count()),
                Value::Number(_) => unreachable!(),
            })
            .collect();
        assert_eq!(counts, [("b", 2), ("other", 1)]);
        let errors: Vec<(&str, Value)> = errors.0.iter().map(|sample| (sample.labels[0], sample.value)).collect();
        assert_eq!(errors, [("b", Value::Number(1.0)), ("other", Value::Number(1.0))]);
    }
}
