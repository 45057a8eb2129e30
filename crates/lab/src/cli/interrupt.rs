//! The signals that end a comparison: SIGINT (Ctrl-C), SIGTERM, SIGHUP, SIGQUIT (Ctrl-\).
//!
//! Output: a flag that such a signal sets. The measuring code checks it, stops the nodes and keeps the finished
//! results. After a SIGKILL, running nodes continue. It must never listen to a SIGHUP that the lab was started to
//! ignore (`nohup`).

use lydian_lab::LabError;
use lydian_lab::runs::system::read_proc;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Installs handlers that set the returned flag instead of ending the process.
pub(crate) fn interrupted() -> Result<Arc<AtomicBool>, LabError> {
    let ignored = ignored(&read_proc("/proc/self/status").unwrap_or_default());
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
        // A shell without job control starts background commands with SIGINT and SIGQUIT ignored; these are handled all
        // the same.
        if signal == SIGHUP && ignored >> (signal - 1) & 1 == 1 {
            continue;
        }
        signal_hook::flag::register(signal, Arc::clone(&interrupted))
            .map_err(|error| LabError::Usage(format!("cannot listen to signals: {error}")))?;
    }
    Ok(interrupted)
}

/// The mask of ignored signals in `/proc/self/status`, the lowest bit for signal 1.
fn ignored(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_read() {
        assert_eq!(ignored("SigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\nSigCgt:\t0\n"), 0x1001);
        assert_eq!((ignored(""), ignored("SigIgn:\tnothing")), (0, 0));
    }
}
