//! [`Allowance`]: the deleted blocks that one request may wait for, and the account that is charged for them.
//!
//! Input: each wait of the request for a block, where [`crate::PrunedBlocks`] begins it. Output: whether it may wait. A
//! server runs each request inside of [`Allowance::during`]; what has no allowance, such as the notifier, is not
//! limited. The allowance belongs to the thread while the request runs, since questions pass through [`crate::Chain`]
//! and [`crate::ScriptIndex`], which know nothing of requests; threads that help take it over.
//!
//! Invariants: a request waits for at most [`FETCHES_PER_REQUEST_MAX`] blocks; each wait is paid before it begins, also
//! one for a block that another request is fetching, and costs nothing if the block does not come. Cost: two small
//! allocations for each request.

use crate::error::QueryError;
use crate::limits::FETCHES_PER_REQUEST_MAX;
use std::cell::RefCell;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Pays for the blocks that a request makes the node fetch.
pub trait Payer: Debug + Send + Sync {
    /// Pays for one block, or says why it is not to be fetched.
    fn pay(&self) -> Result<(), String>;

    /// Takes the payment back: the block did not come.
    fn take_back(&self);
}

/// The deleted blocks that a request may still wait for. A clone is the same.
#[derive(Clone, Debug)]
pub struct Allowance(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    left: AtomicUsize,
    payer: Option<Arc<dyn Payer>>,
}

thread_local! {
    /// That of the request on which this thread works.
    static CURRENT: RefCell<Option<Allowance>> = const { RefCell::new(None) };
}

/// Gives the thread back what it had, whatever ends the request.
struct Guard(Option<Allowance>);

impl Drop for Guard {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

impl Allowance {
    /// That of a request. `payer`: `None` if blocks cost nothing.
    pub fn new(payer: Option<Arc<dyn Payer>>) -> Allowance {
        Allowance(Arc::new(Inner { left: AtomicUsize::new(FETCHES_PER_REQUEST_MAX), payer }))
    }

    /// Does the work of the request on this thread.
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        let _guard = Guard(CURRENT.replace(Some(self.clone())));
        work()
    }

    /// That of the request on which this thread works.
    pub(crate) fn current() -> Option<Allowance> {
        CURRENT.with_borrow(Clone::clone)
    }

    pub(crate) fn left(&self) -> usize {
        self.0.left.load(Ordering::Relaxed)
    }

    /// An error if the rest of the answer needs more blocks than may be waited for.
    pub(crate) fn check(&self, needed: usize) -> Result<(), QueryError> {
        let left = self.left();
        match needed > left {
            true => Err(QueryError::TooManyFetches { needed: FETCHES_PER_REQUEST_MAX - left + needed }),
            false => Ok(()),
        }
    }

    /// The block did not come.
    pub(crate) fn take_back(&self) {
        if let Some(payer) = &self.0.payer {
            payer.take_back();
        }
    }

    /// The request is about to wait for a block.
    pub(crate) fn take(&self) -> Result<(), QueryError> {
        let less = self.0.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if less.is_err() {
            return Err(QueryError::TooManyFetches { needed: FETCHES_PER_REQUEST_MAX + 1 });
        }
        self.0.payer.as_ref().map_or(Ok(()), |payer| payer.pay()).map_err(QueryError::FetchRefused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct Purse(AtomicUsize);

    impl Payer for Purse {
        fn pay(&self) -> Result<(), String> {
            match self.0.fetch_add(1, Ordering::Relaxed) {
                0..5 => Ok(()),
                _ => Err("the purse is empty".to_owned()),
            }
        }

        fn take_back(&self) {
            self.0.fetch_sub(2, Ordering::Relaxed);
        }
    }

    #[test]
    fn it_belongs_to_the_thread_while_the_request_runs() {
        let take = || Allowance::current().unwrap().take();
        let (one, other) = (Allowance::new(None), Allowance::new(None));
        one.during(|| {
            take().unwrap();
            other.during(take).unwrap();
            take().unwrap();
            assert!(std::thread::spawn(|| Allowance::current().is_none()).join().unwrap());
        });
        assert!(Allowance::current().is_none());
        assert_eq!([&one, &other].map(|one| FETCHES_PER_REQUEST_MAX - one.left()), [2, 1]);
        std::thread::scope(|scope| {
            let broken = scope.spawn(|| {
                let fails = std::panic::AssertUnwindSafe(|| one.during(|| panic!("the request fails")));
                (std::panic::catch_unwind(fails).is_err(), Allowance::current().is_none())
            });
            assert_eq!(broken.join().unwrap(), (true, true));
        });
    }

    #[test]
    fn each_block_is_paid_for() {
        let allowance = Allowance::new(Some(Arc::<Purse>::default()));
        (0..5).for_each(|_| allowance.take().unwrap());
        assert_eq!(allowance.take(), Err(QueryError::FetchRefused("the purse is empty".to_owned())));
        allowance.take_back();
        assert_eq!(allowance.take(), Ok(()));
    }

    #[test]
    fn what_is_too_much_is_refused_before_anything_is_fetched() {
        let allowance = Allowance::new(None);
        allowance.take().unwrap();
        assert_eq!(allowance.check(FETCHES_PER_REQUEST_MAX - 1), Ok(()));
        let refused = allowance.check(FETCHES_PER_REQUEST_MAX).unwrap_err();
        assert_eq!(refused, QueryError::TooManyFetches { needed: FETCHES_PER_REQUEST_MAX + 1 });
        let words = "the answer needs at least 257 deleted blocks, and a request may have 256 fetched; with \
                     -addressindex=full, histories and unspent outputs need none";
        assert_eq!(refused.to_string(), words);
    }
}
