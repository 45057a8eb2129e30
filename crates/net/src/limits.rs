//! Limits of what one peer may make this node hold. Constants only.

/// Bytes that wait to be sent to a peer, above which nothing more is read from it: Core's `-maxsendbuffer`.
pub const SEND_BUFFER_BYTES: usize = 1_000_000;
