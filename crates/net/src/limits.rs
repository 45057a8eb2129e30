//! Limits on what peers may make this node hold. Constants only.

/// Maximum bytes that wait to be sent to a peer; above it, nothing is read from the peer: Core's `-maxsendbuffer`.
pub const SEND_BUFFER_BYTES: usize = 1_000_000;

/// Maximum bytes of one peer's messages that wait for the manager; more is not read: Core's default of
/// `-maxreceivebuffer`.
pub const RECEIVE_BUFFER_BYTES: usize = 5_000_000;

/// Maximum events that wait for the manager's thread; further senders wait.
pub const EVENTS_QUEUED: usize = 1024;

/// Maximum blocks that wait to be stored. The download window and `p2p::UNREQUESTED_BLOCKS_MAX` keep them fewer; a
/// block beyond it is dropped.
pub const BLOCKS_QUEUED: usize = 16_384;

/// Maximum files that wait to be written.
pub const SAVES_QUEUED: usize = 64;
