//! Limits of sockets and queues. Constants only.

use std::time::Duration;

/// Threads that read and write sockets.
pub const SOCKET_THREADS: usize = 2;

/// Events that wait for the thread of the manager.
pub const EVENTS_MAX: usize = 1024;

/// Blocks that wait to be stored; the download's window keeps them fewer.
pub const BLOCKS_TO_STORE_MAX: usize = 16_384;

/// Bytes of messages of one peer that wait to be read by the manager: Core's `-maxreceivebuffer`.
pub const RECEIVE_BUFFER_BYTES: u32 = 5_000_000;

/// Bytes that wait to be sent to a peer, above which nothing more is read from it: Core's `-maxsendbuffer`.
pub const SEND_BUFFER_BYTES: usize = 1_000_000;

/// Bytes read from a socket at once.
pub const READ_BYTES: usize = 64 << 10;

/// To open a connection: Core's `DEFAULT_CONNECT_TIMEOUT`.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Between two attempts to connect to where one is wanted; doubles up to the second.
pub const RECONNECT_TIME: Duration = Duration::from_millis(500);
pub const RECONNECT_TIME_MAX: Duration = Duration::from_secs(60);

/// Between two looks at what time brings.
pub const TICK: Duration = Duration::from_millis(100);

/// What is left to be sent to a peer that is sent away may take so long.
pub const FAREWELL_TIME: Duration = Duration::from_secs(5);

pub const SHUTDOWN_TIME: Duration = Duration::from_secs(2);
