//! The files of a report, distinguished by their field `experiment`.
//!
//! Input: a path. Output: the results in it, or one sentence that names the file and what to do. It must never accept a
//! file of another format, or of another program, as results.

use crate::electrum::results::ElectrumResults;
use crate::error::ReportError;
use crate::read::ResultsFault;
use crate::results::Results;
use std::path::Path;

/// One results file.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Results of `lydian-lab reindex` or `lydian-lab sync`.
    Runs(Box<Results>),
    /// Results of `lydian-lab electrum`.
    Electrum(Box<ElectrumResults>),
}

impl Input {
    pub fn read(path: &Path) -> Result<Input, ReportError> {
        match Results::read(path) {
            Ok(results) => Ok(Input::Runs(Box::new(results))),
            Err(ReportError::Results { fault: ResultsFault::Electrum, .. }) => {
                ElectrumResults::read(path).map(|results| Input::Electrum(Box::new(results)))
            }
            Err(error) => Err(error),
        }
    }
}
