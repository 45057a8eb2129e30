//! Limits of the page. Each has a test at the limit and above it.

/// Maximum bytes of a request body.
pub const BODY_SIZE_MAX: usize = 1 << 20;

/// Maximum streams of live data at once. Tabs of one browser share a stream.
pub const STREAMS_MAX: usize = 64;

/// Maximum sessions. A new one replaces the oldest.
pub const SESSIONS_MAX: usize = 64;

/// Maximum links that wait for their use. A new one replaces the oldest.
pub const LINKS_MAX: usize = 16;

/// Seconds after which a session ends: 12 hours.
pub const SESSION_SECONDS: u64 = 12 * 60 * 60;

/// Seconds for which a link of `lydian page` is valid.
pub const LINK_SECONDS: u64 = 60;

/// Changes that are kept for readers that come back.
pub const CHANGES_KEPT: usize = 512;

/// Bytes of these changes.
pub const CHANGES_SIZE_MAX: usize = 4 << 20;

/// Changes that may wait for one reader. A reader that is slower gets everything anew.
pub const CHANGES_WAITING_MAX: usize = 256;

/// Bytes of all answers that clients have not read yet.
pub const ANSWERS_SIZE_MAX: usize = 64 << 20;

/// Bytes of all files of the page together as they are served, those of others included (`assets/ORIGIN.md`).
pub const ASSETS_SIZE_MAX: usize = 200_000;

/// Bytes of the history file.
pub const HISTORY_FILE_BYTES: u64 = 64 << 20;

/// Series that a history can keep, those included that are not kept any more.
pub const HISTORY_SERIES_MAX: usize = 125;

/// Points of one answer of the history, for each series.
pub const HISTORY_POINTS_MAX: usize = 1_000;
