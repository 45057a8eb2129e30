//! Limits on external input: files and a server's responses.

/// Largest cookie file, in bytes; Core's has 75.
pub(crate) const COOKIE_BYTES_MAX: u64 = 1 << 12;

/// Largest header of a response, in bytes.
pub(crate) const HEAD_BYTES_MAX: usize = 1 << 16;

/// Largest body of a response, in bytes: a block in JSON with all outputs that it spends takes some 100 MB.
pub(crate) const BODY_BYTES_MAX: usize = 1 << 30;
