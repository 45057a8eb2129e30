//! Limits of the server. Each has a test at it and above it.

/// Bytes of a request's body: Core's `MAX_BODY_SIZE` (httpserver.h).
pub const BODY_SIZE_MAX: usize = 32 << 20;

/// Bytes of a request's line and headers: Core's `MAX_HEADERS_SIZE`.
pub const HEADERS_SIZE_MAX: usize = 8192;

/// Header lines of a request; more are refused as headers that are too long are.
pub const HEADER_LINES_MAX: usize = 256;

/// Arrays and objects inside each other: Core's `MAX_JSON_DEPTH` (univalue_read.cpp).
pub const JSON_DEPTH_MAX: usize = 512;

/// Values in a request, or in a member of a batch. Core has no such limit: 32 MB of parameters take more than a
/// gigabyte there.
pub const JSON_VALUES_MAX: usize = 1 << 18;

/// Open connections. Core has no such limit and ends at that of its file descriptors.
pub const CONNECTIONS_MAX: usize = 2048;

/// Of these, connections that only loopback addresses may have.
pub const CONNECTIONS_FOR_LOOPBACK: usize = 256;

/// Connections of one address that is not loopback, or of one IPv6 network of 64 bits.
pub const CONNECTIONS_PER_ADDRESS_MAX: usize = 512;

/// Connections, beside the others, of addresses that `-rpcallowip` does not allow: they are answered with 403.
pub const CONNECTIONS_NOT_ALLOWED_MAX: usize = 16;

/// Passwords of one address under examination, each for 250 ms if it is wrong: 64 a second, as with Core's 16 threads.
pub const GUESSES_AT_ONCE_MAX: usize = 16;

/// Passwords of one address that wait to be examined; the oldest beyond is refused.
pub const GUESSES_WAITING_MAX: usize = 64;

/// Bytes of all request bodies above [`BODY_SIZE_SMALL`] that are held at once, until their answers are made.
pub const BODIES_SIZE_MAX: usize = 64 << 20;

/// A body that is not counted in [`BODIES_SIZE_MAX`].
pub const BODY_SIZE_SMALL: usize = 16 << 10;

/// Bytes of all requests that are parsed at once, those of small ones apart.
pub const PARSED_SIZE_MAX: usize = 64 << 20;

/// Bytes of all answers, from when they are made until the client has read them, those of small ones apart.
pub const ANSWERS_SIZE_MAX: usize = 128 << 20;

/// A batch's answer above this size is sent while it is made, in chunks and without `Content-Length`.
pub const ANSWER_BUFFERED_SIZE_MAX: usize = 32 << 20;

/// Expressions of miniscript inside each other, letters before a colon counted too. Core has no such limit but that of a script's size; no wallet
/// comes near it.
pub const MINISCRIPT_DEPTH_MAX: usize = 250;
