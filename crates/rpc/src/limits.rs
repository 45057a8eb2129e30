//! Limits of the server. Each has a test at it and above it.

/// Bytes of a request's body: Core's `MAX_BODY_SIZE` (httpserver.h).
pub const BODY_SIZE_MAX: usize = 32 << 20;

/// Bytes of a request's line and headers: Core's `MAX_HEADERS_SIZE`.
pub const HEADERS_SIZE_MAX: usize = 8192;

/// Header lines of a request; more are refused as headers that are too long are.
pub const HEADER_LINES_MAX: usize = 256;

/// Arrays and objects inside each other: Core's `MAX_JSON_DEPTH` (univalue_read.cpp).
pub const JSON_DEPTH_MAX: usize = 512;

/// Open connections. Core has no such limit and ends at that of its file descriptors.
pub const CONNECTIONS_MAX: usize = 2048;

/// Expressions of miniscript inside each other, letters before a colon counted too. Core has no such limit but that of a script's size; no wallet
/// comes near it.
pub const MINISCRIPT_DEPTH_MAX: usize = 250;
