//! Log lines from crates that do not write a log themselves. Input: a level and a text. Output: [`LogLine`] and
//! [`crate::Event::Log`], which the owner of the log writes. No file, no clock; a text is built only if its category is
//! logged ([`LogSwitches`]).

use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Severity of a line; a debug line also has the category's name in Core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// Logged only if the category is enabled.
    Debug(&'static str),
    Info,
    Warning,
    Error,
}

/// The source location of a line. Rate limits and `-logsourcelocations` use it.
pub type LogPlace = &'static Location<'static>;

/// A line for the log.
#[derive(Clone, Debug)]
pub struct LogLine {
    pub level: LogLevel,
    pub text: String,
    pub place: LogPlace,
}

impl LogLine {
    #[track_caller]
    pub fn new(level: LogLevel, text: String) -> LogLine {
        LogLine { level, text, place: Location::caller() }
    }
}

/// The debug categories logged now, and whether IP addresses of peers are logged. Clones share one state.
#[derive(Clone, Debug, Default)]
pub struct LogSwitches(Option<Arc<Switches>>);

#[derive(Debug)]
struct Switches {
    names: &'static [&'static str],
    bits: AtomicU32,
    has_ips: AtomicBool,
}

impl LogSwitches {
    /// Creates switches with all categories off. The default value, without names, has all on.
    pub fn new(names: &'static [&'static str], has_ips: bool) -> LogSwitches {
        LogSwitches(Some(Arc::new(Switches { names, bits: AtomicU32::new(0), has_ips: AtomicBool::new(has_ips) })))
    }

    /// Sets all categories: bit `n` is the `n`th name.
    pub fn set(&self, bits: u32) {
        if let Some(switches) = &self.0 {
            switches.bits.store(bits, Ordering::Relaxed);
        }
    }

    /// Whether debug lines of a category are logged.
    pub fn is_on(&self, category: &str) -> bool {
        let Some(switches) = &self.0 else { return true };
        let at = switches.names.iter().position(|name| *name == category);
        at.is_some_and(|at| switches.bits.load(Ordering::Relaxed) >> at & 1 == 1)
    }

    /// `-logips`: whether IP addresses of peers are logged.
    pub fn has_ips(&self) -> bool {
        self.0.as_ref().is_some_and(|switches| switches.has_ips.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_shared_and_off_until_set() {
        let switches = LogSwitches::new(&["net", "tor", "addrman"], false);
        let shared = switches.clone();
        assert!(!shared.is_on("net") && !shared.has_ips());
        switches.set(0b101);
        assert!(shared.is_on("net") && !shared.is_on("tor") && shared.is_on("addrman") && !shared.is_on("none"));
        assert!(LogSwitches::default().is_on("net"), "without names everything is on");
    }
}
