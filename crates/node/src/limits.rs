//! Limits of the program. Constants only.

/// Depth to which directories are walked.
pub(crate) const WALK_DEPTH_MAX: usize = 16;

/// Files and directories examined below the given paths.
pub(crate) const WALK_ENTRIES_MAX: usize = 100_000;

/// Violations of one chain that are kept; the rest are counted.
pub(crate) const VIOLATIONS_MAX: usize = 1_000;

/// Log lines kept before the log is open.
pub(crate) const LINES_WAITING_MAX: usize = 1_000;

/// Log lines that the page shows.
pub(crate) const LOG_LINES_SHOWN_MAX: usize = 1_000;

/// Bytes of one of these lines; the rest of a longer one is only in the file.
pub(crate) const LOG_LINE_SHOWN_BYTES_MAX: usize = 4_096;

/// Bytes of all these lines together.
pub(crate) const LOG_SHOWN_BYTES_MAX: usize = 1 << 20;

/// Bytes that remain of a log that is shrunk: Core's `RECENT_DEBUG_HISTORY_SIZE`.
pub(crate) const LOG_KEPT_BYTES: u64 = 10_000_000;

/// A log larger than this is shrunk: Core's 11/10 of what remains.
pub(crate) const LOG_SHRINK_BYTES: u64 = LOG_KEPT_BYTES / 10 * 11;

/// Processes of one command (`-blocknotify` and the like) that run at once.
pub(crate) const COMMANDS_MAX: usize = 16;

/// Bytes of a status file.
pub(crate) const STATUS_SIZE_MAX: u64 = 1 << 20;

/// Files that record that a signature engine was wrong; further cases are only in the log.
pub(crate) const DISAGREEMENT_FILES_MAX: u32 = 100;

/// Remarks about imported files that are printed; the rest are counted.
pub(crate) const REMARKS_MAX: usize = 100;

/// Bytes of the list of imported paths.
pub(crate) const SOURCES_SIZE_MAX: u64 = 1 << 20;

/// Bytes that one place of the program may write to `debug.log` in a window: Core's `RATELIMIT_MAX_BYTES`.
pub(crate) const LOG_BYTES_PER_PLACE_MAX: usize = 1 << 20;

/// The window: Core's `RATELIMIT_WINDOW`, an hour.
pub(crate) const LOG_WINDOW_MICROS: u64 = 3_600_000_000;

/// Bytes of this node's user agent, including comments of `-uacomment`: Core's `MAX_SUBVERSION_LENGTH`.
pub(crate) const USER_AGENT_LENGTH_MAX: usize = 256;

/// The last blocks that have a row on the page: those of a difficulty period.
pub(crate) const ROWS_MAX: usize = 2_016;

/// Blocks that were sent and have no row yet: more than arrive before one is connected.
pub(crate) const SENT_WAITING_MAX: usize = 64;

/// Reorganisations that the page lists.
pub(crate) const REORGS_MAX: usize = 100;

/// Bytes of the file of these reorganisations: more than 100 with the longest numbers.
pub(crate) const REORGS_FILE_SIZE_MAX: u64 = 64 << 10;

/// Bytes of the file of the Electrum server's bans: more than the most bans with the longest texts.
pub(crate) const ELECTRUM_BANS_FILE_SIZE_MAX: u64 = 1 << 20;

/// Invalid blocks that the page lists.
pub(crate) const INVALID_MAX: usize = 100;

/// Bytes of Core's words for what is wrong with a block on the page; they may have a script in them.
pub(crate) const STATE_BYTES_MAX: usize = 400;

/// Characters of a stranger's text on the page, such as that of a coinbase.
pub(crate) const TEXT_MAX: usize = 100;
