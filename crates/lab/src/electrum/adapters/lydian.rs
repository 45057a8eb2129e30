//! Lydian, which has no Electrum server yet.
//!
//! Input: nothing. Output: an adapter that says so, so that Lydian has a row in every table until it has figures.

use crate::electrum::adapter::{ElectrumServer, ServerJob};
use crate::error::LabError;
use std::path::Path;
use std::process::Command;

const REASON: &str = "Lydian has no Electrum server yet";

#[derive(Debug)]
pub struct Lydian;

impl ElectrumServer for Lydian {
    fn program(&self) -> &Path {
        Path::new("")
    }

    fn version(&self) -> Result<String, LabError> {
        Ok(env!("CARGO_PKG_VERSION").to_owned())
    }

    fn cannot(&self) -> Option<&'static str> {
        Some(REASON)
    }

    fn daemon_arguments(&self) -> &'static [&'static str] {
        &[]
    }

    fn start(&self, _: &ServerJob) -> Result<Command, LabError> {
        Err(LabError::Usage(REASON.to_owned()))
    }
}
