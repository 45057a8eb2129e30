//! Limits of every server. Each has a test at the limit and above it.

/// Maximum bytes of a request body: Core's `MAX_BODY_SIZE` (httpserver.h).
pub const BODY_SIZE_MAX: usize = 32 << 20;

/// Maximum bytes of the request line and headers: Core's `MAX_HEADERS_SIZE`.
pub const HEADERS_SIZE_MAX: usize = 8192;

/// Maximum header lines of a request. More are refused like headers that are too long.
pub const HEADER_LINES_MAX: usize = 256;

/// Maximum open connections. Core's only limit is its number of file descriptors.
pub const CONNECTIONS_MAX: usize = 2048;

/// The part of these that is reserved for loopback addresses.
pub const CONNECTIONS_FOR_LOOPBACK: usize = 256;

/// Maximum connections of one non-loopback IPv4 address or one IPv6 /64 network.
pub const CONNECTIONS_PER_ADDRESS_MAX: usize = 512;

/// Maximum connections, in addition to the others, of addresses that are not allowed. The protocol refuses them, HTTP
/// with 403.
pub const CONNECTIONS_NOT_ALLOWED_MAX: usize = 16;

/// Passwords of one address that are checked at once. A wrong one takes 250 ms, so this is 64 per second, as with
/// Core's 16 threads.
pub const GUESSES_AT_ONCE_MAX: usize = 16;

/// Passwords of one address that wait to be checked. Above it, the oldest is refused.
pub const GUESSES_WAITING_MAX: usize = 64;

/// Maximum bytes of all request bodies above [`BODY_SIZE_SMALL`] that are held at once, until their answers are ready.
pub const BODIES_SIZE_MAX: usize = 64 << 20;

/// Maximum bytes of a PROXY header after its first 16, which end with their number. Addresses have at most 216.
pub const PROXY_HEADER_SIZE_MAX: usize = 4096;

/// Connections of proxies whose header has not come yet. More are closed: a proxy sends it at once.
pub const PROXY_HEADERS_WAITING_MAX: usize = 256;

/// Bytes of the texts of a [`crate::Monitor`] that its clients have not read yet: a longer text is sent alone.
pub const MONITOR_SIZE_MAX: usize = 4 << 20;

/// Maximum bans of a server. Each new connection is compared with all of them.
pub const BANS_MAX: usize = 1_000;

/// Maximum bytes of a body that is not counted in [`BODIES_SIZE_MAX`].
pub const BODY_SIZE_SMALL: usize = 16 << 10;
