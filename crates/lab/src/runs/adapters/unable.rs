//! A node that by design takes part in nothing and is never started.
//!
//! Input: its kind, optionally a path. Output: an adapter whose reasons are those of the table of systems; such a node
//! has a row there and no module of its own. Must never: start the program.

use crate::error::LabError;
use crate::runs::adapter::{Adapter, Job};
use lydian_report::results::{Answer, Experiment};
use lydian_report::systems;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Debug)]
pub(super) struct Unable {
    kind: &'static str,
    program: PathBuf,
}

impl Unable {
    /// Needs no program: there is nothing to start.
    pub(super) fn new(kind: &'static str, path: Option<&Path>) -> Unable {
        Unable { kind, program: path.unwrap_or(Path::new("")).to_owned() }
    }
}

impl Adapter for Unable {
    fn program(&self) -> &Path {
        &self.program
    }

    fn version(&self) -> Result<String, LabError> {
        Err(LabError::NotInstalled(systems::how(self.kind)))
    }

    fn cannot(&self, experiment: Experiment) -> Option<&'static str> {
        systems::kept_from(self.kind, experiment)
    }

    fn reindex(&self, job: &Job) -> Command {
        job.command(&self.program)
    }

    fn sync(&self, job: &Job) -> Command {
        job.command(&self.program)
    }

    fn answer(&self, _: &Job) -> Result<Answer, LabError> {
        Err(LabError::NotInstalled(systems::how(self.kind)))
    }
}
