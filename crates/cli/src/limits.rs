//! Limits on what comes from outside: files and a server's answers.

/// Longest configuration file that is read, in bytes.
pub(crate) const CONF_BYTES_MAX: u64 = 1 << 20;

/// Longest cookie file, in bytes; Core's has 75.
pub(crate) const COOKIE_BYTES_MAX: u64 = 1 << 12;

/// Longest head of an answer, in bytes.
pub(crate) const HEAD_BYTES_MAX: usize = 1 << 16;

/// Longest body of an answer, in bytes: a block in JSON with all that it spends has some 100 MB.
pub(crate) const BODY_BYTES_MAX: usize = 1 << 30;
