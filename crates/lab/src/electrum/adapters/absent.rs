//! An Electrum server that could take part but is not installed.
//!
//! Input: the sentence that says what is missing. Output: an adapter that starts nothing. The comparison records the
//! server with that sentence, so that no table silently omits it.

use crate::electrum::adapter::{ElectrumServer, ServerJob};
use crate::error::LabError;
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

impl ElectrumServer for Absent {
    fn program(&self) -> &Path {
        Path::new("")
    }

    fn version(&self) -> Result<String, LabError> {
        Ok("not here".to_owned())
    }

    fn absent(&self) -> Option<&str> {
        Some(&self.reason)
    }

    fn daemon_arguments(&self) -> &'static [&'static str] {
        &[]
    }

    fn start(&self, _: &ServerJob) -> Result<Command, LabError> {
        Err(LabError::NotInstalled(self.reason.clone()))
    }
}
