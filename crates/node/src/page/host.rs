//! The clock and the log, for the page.

use crate::clock::{now, now_nanos};
use crate::log::{Category, Log};
use lydian_dashboard::Host;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct PageHost(Arc<Log>);

impl PageHost {
    pub(super) fn new(log: &Arc<Log>) -> PageHost {
        PageHost(Arc::clone(log))
    }
}

impl Host for PageHost {
    fn now(&self) -> u64 {
        now().into()
    }

    fn steady_millis(&self) -> u64 {
        now_nanos() / 1_000_000
    }

    fn note(&self, words: String) {
        self.0.info(format!("Page: {words}"));
    }

    fn debug(&self, words: String) {
        self.0.debug(Category::NET, || format!("Page: {words}"));
    }
}
