//! btcd: built from its Go module, with sums checked by Go, using Go's own caches.
//!
//! Output: the program in the cache directory. Cost: ten seconds of one core, or two minutes with empty Go caches.

use super::Unfinished;
use crate::error::LabError;
use crate::runs::adapter::ask;
use crate::runs::adapters::{BTCD_FOLDER, BTCD_PROGRAM, BTCD_VERSION};
use std::process::Command;

pub(super) fn fetch(print_progress: &mut dyn FnMut(&str)) -> Result<(), LabError> {
    let unfinished = Unfinished::new(BTCD_FOLDER)?;
    print_progress(&format!("building btcd {BTCD_VERSION} with go"));
    let mut command = Command::new("go");
    // Outside a checkout there is no version to stamp.
    command.env("GOBIN", unfinished.path()).env("GOFLAGS", "-buildvcs=false").current_dir(unfinished.path());
    command.arg("install").arg(format!("github.com/btcsuite/btcd@{BTCD_VERSION}"));
    ask(command)?;
    unfinished.must_hold("go install", BTCD_PROGRAM)?;
    unfinished.finish()
}
