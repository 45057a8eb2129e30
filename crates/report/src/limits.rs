//! Limits of result files. Constants only.

/// Results files on one page.
pub const REPORT_FILES_MAX: usize = 64;

/// A results file of `lydian-lab electrum`.
pub const ELECTRUM_RESULTS_BYTES_MAX: u64 = 256 << 20;

/// A results file: thirty runs with all their samples take some 15 MB.
pub const RESULTS_BYTES_MAX: u64 = 64 << 20;
