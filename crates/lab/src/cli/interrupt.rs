//! The signals that end a comparison: Ctrl-C, a polite end, a terminal that closes, Ctrl-\.
//!
//! Input: nothing. Output: a flag that such a signal sets; whoever measures looks at it, ends the nodes and keeps what has ended. A SIGKILL cannot be
//! seen: nodes that run then go on. Must never: listen to a signal that the lab was told to ignore (`nohup`).

use lydian_lab::LabError;
use lydian_lab::runs::system::read_proc;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// From here on such a signal is a wish that is looked at.
pub(crate) fn interrupted() -> Result<Arc<AtomicBool>, LabError> {
    let ignored = ignored(&read_proc("/proc/self/status").unwrap_or_default());
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
        // A shell without job control starts what runs behind it with SIGINT and SIGQUIT ignored; a wish to end is meant all the same.
        if signal == SIGHUP && ignored >> (signal - 1) & 1 == 1 {
            continue;
        }
        signal_hook::flag::register(signal, Arc::clone(&interrupted))
            .map_err(|error| LabError::Usage(format!("cannot listen to signals: {error}")))?;
    }
    Ok(interrupted)
}

/// A bit a signal, from the lowest, as `/proc/self/status` has them.
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
