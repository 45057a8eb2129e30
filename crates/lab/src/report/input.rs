//! The files a report is made of, told apart by their field `experiment`.
//!
//! Input: a path. Output: the results in it, or one sentence that names the file and says what to do. Must never: take a file of another format, or of
//! another program, for results.

use crate::electrum::results::ElectrumResults;
use crate::error::LabError;
use crate::runs::ResultsFault;
use crate::runs::results::Results;
use std::path::Path;

/// One file of results.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Of `lydian-lab reindex` and `lydian-lab sync`.
    Runs(Box<Results>),
    /// Of `lydian-lab electrum`.
    Electrum(Box<ElectrumResults>),
}

impl Input {
    pub fn read(path: &Path) -> Result<Input, LabError> {
        match Results::read(path) {
            Ok(results) => Ok(Input::Runs(Box::new(results))),
            Err(LabError::Results { fault: ResultsFault::Electrum, .. }) => {
                ElectrumResults::read(path).map(|results| Input::Electrum(Box::new(results)))
            }
            Err(error) => Err(error),
        }
    }
}
