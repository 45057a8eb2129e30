//! An Electrum server that could take part but is not installed.
//!
//! Input: the sentence that says what is missing, what it would need of the node below. Output: an adapter that starts
//! nothing. The comparison records the server with that sentence, so that no table silently omits it.

use crate::electrum::adapter::{ElectrumServer, ServerJob};
use crate::error::LabError;
use std::path::Path;
use std::process::Command;

#[derive(Debug)]
pub struct Absent {
    reason: String,
    daemon_arguments: &'static [&'static str],
}

impl Absent {
    /// Above a node that lacks one of `daemon_arguments`, the server is refused, and its installation is not advised.
    pub fn new(reason: String, daemon_arguments: &'static [&'static str]) -> Absent {
        Absent { reason, daemon_arguments }
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
        self.daemon_arguments
    }

    fn start(&self, _: &ServerJob) -> Result<Command, LabError> {
        Err(LabError::NotInstalled(self.reason.clone()))
    }
}
