//! Limits of the Esplora server. Each has a test at the limit and above it. The sizes of pages are with their answers.

/// Maximum transactions in a package: Core's `MAX_PACKAGE_COUNT`.
pub const PACKAGE_MAX: usize = 25;

/// Maximum transactions or outputs whose spenders one request asks for: that of mempool/electrs.
pub const OUTSPENDS_MAX: usize = 50;

/// Maximum addresses or scripts whose transactions one request asks for: that of mempool/electrs.
pub const SCRIPTS_MAX: usize = 300;

/// Maximum transactions of one answer of the paths below `/internal`, without those of a block.
pub const TXS_MAX: usize = 1_000;

/// Maximum bytes of the transactions of one answer of the paths below `/internal`, with the scripts that they spend. As
/// JSON they are about five times as many.
pub const TXS_SIZE_MAX: usize = 16 << 20;

/// Maximum bytes of all answers that clients have not read yet. A larger answer is sent alone.
pub const ANSWERS_SIZE_MAX: usize = 128 << 20;
