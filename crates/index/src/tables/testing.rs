//! A table in memory, for tests.

use super::pages::{Facts, PageSink, PageSource};
use crate::error::IndexError;
use std::path::Path;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct MemoryTable {
    pub(super) facts: Facts,
    pub(super) pages: Vec<Vec<u8>>,
}

impl PageSink for MemoryTable {
    fn push(&mut self, page: &[u8]) -> Result<(), IndexError> {
        self.pages.push(page.to_vec());
        Ok(())
    }

    fn finish(&mut self, facts: &Facts) -> Result<(), IndexError> {
        assert_eq!(facts.pages as usize, self.pages.len());
        self.facts = *facts;
        Ok(())
    }
}

impl PageSource for MemoryTable {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn page(&self, number: u32) -> Result<Vec<u8>, IndexError> {
        self.pages.get(number as usize).cloned().ok_or_else(|| self.damaged(number, "no such page"))
    }

    fn damaged(&self, number: u32, what: &'static str) -> IndexError {
        IndexError::damaged(Path::new("memory"), u64::from(number), what)
    }
}
