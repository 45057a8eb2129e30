//! Limits of the notifications. Constants only.

/// Bytes of blocks and transactions that are settled and wait to be published. Above this, validation and the mempool
/// wait. One block is always accepted.
pub const QUEUE_BYTES_MAX: usize = 32 << 20;

/// Bytes of messages that wait for one subscriber; further ones are dropped, as above the high-water mark. One message
/// is always accepted.
pub const OUTBOX_BYTES_MAX: usize = 128 << 20;

/// Subscribers of one address. More are disconnected at once.
pub const SUBSCRIBERS_MAX: usize = 64;

/// Bytes of a frame that a subscriber sends. Larger ones end the connection: a command has less than 600 bytes.
pub const FRAME_SIZE_MAX: usize = 4096;
