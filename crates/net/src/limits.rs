//! Limits of what peers may make this node hold. Constants only.

/// Bytes that wait to be sent to a peer, above which nothing more is read from it: Core's `-maxsendbuffer`.
pub const SEND_BUFFER_BYTES: usize = 1_000_000;

/// Bytes of messages of one peer that wait for the manager; more is not read: Core's default of `-maxreceivebuffer`.
pub const RECEIVE_BUFFER_BYTES: usize = 5_000_000;

/// Events that wait for the thread of the manager: who has more to tell waits.
pub const EVENTS_QUEUED: usize = 1024;

/// Blocks that wait to be stored. The download's window keeps them fewer; what is sent unasked beyond it is forgotten.
pub const BLOCKS_QUEUED: usize = 16_384;

/// Files that wait to be written.
pub const SAVES_QUEUED: usize = 64;
