//! A node that could take part but is not installed.
//!
//! Input: the sentence that says what is missing. Output: an adapter that starts nothing. The runner records each of
//! its runs as failed with that sentence, so that the node is never silently missing from a table.

use crate::error::LabError;
use crate::runs::adapter::{Adapter, Job};
use lydian_report::results::Answer;
use std::path::Path;
use std::process::Command;

#[derive(Debug)]
pub struct Absent {
    reason: String,
}

impl Absent {
    pub fn new(reason: String) -> Absent {
        Absent { reason }
    }
}

impl Adapter for Absent {
    fn program(&self) -> &Path {
        Path::new("")
    }

    fn version(&self) -> Result<String, LabError> {
        Ok("not here".to_owned())
    }

    fn absent(&self) -> Option<&str> {
        Some(&self.reason)
    }

    fn reindex(&self, job: &Job) -> Command {
        job.command("")
    }

    fn sync(&self, job: &Job) -> Command {
        job.command("")
    }

    fn answer(&self, _: &Job) -> Result<Answer, LabError> {
        Err(LabError::NotInstalled(self.reason.clone()))
    }
}
