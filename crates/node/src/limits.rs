//! Limits of the program. Constants only.

/// Depth to which directories are walked.
pub(crate) const WALK_DEPTH_MAX: usize = 16;

/// Files and directories looked at below the paths that were given.
pub(crate) const WALK_ENTRIES_MAX: usize = 100_000;

/// Violations of one chain that are kept; the rest are counted.
pub(crate) const VIOLATIONS_MAX: usize = 1_000;

/// Bytes of a configuration file.
pub(crate) const CONF_SIZE_MAX: u64 = 1 << 20;

/// Log lines kept before the log is open.
pub(crate) const LINES_WAITING_MAX: usize = 1_000;

/// Of a log that is shrunk, this much stays: Core's `RECENT_DEBUG_HISTORY_SIZE`.
pub(crate) const LOG_KEPT_BYTES: u64 = 10_000_000;

/// A log of more bytes is shrunk: Core's 11/10 of what stays.
pub(crate) const LOG_SHRINK_BYTES: u64 = LOG_KEPT_BYTES / 10 * 11;

/// Processes of one command of `-blocknotify` and the like that run at once.
pub(crate) const COMMANDS_MAX: usize = 16;

/// Bytes of a status file.
pub(crate) const STATUS_SIZE_MAX: u64 = 1 << 20;

/// Files that tell of a signature engine that was wrong; more cases are in the log alone.
pub(crate) const DISAGREEMENT_FILES_MAX: u32 = 100;

/// Remarks about imported files that are told; the rest are counted.
pub(crate) const REMARKS_MAX: usize = 100;

/// Bytes of the list of imported paths.
pub(crate) const SOURCES_SIZE_MAX: u64 = 1 << 20;

/// Bytes that one place of the program may write to `debug.log` in a window: Core's `RATELIMIT_MAX_BYTES`.
pub(crate) const LOG_BYTES_PER_PLACE_MAX: usize = 1 << 20;

/// The window: Core's `RATELIMIT_WINDOW`, an hour.
pub(crate) const LOG_WINDOW_MICROS: u64 = 3_600_000_000;

/// Bytes of what this node calls itself, comments of `-uacomment` included: Core's `MAX_SUBVERSION_LENGTH`.
pub(crate) const USER_AGENT_LENGTH_MAX: usize = 256;

/// Bytes of `settings.json`.
pub(crate) const SETTINGS_FILE_SIZE_MAX: u64 = 1 << 20;
