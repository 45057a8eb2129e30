//! Limits of the program. Constants only.

/// Depth to which directories are walked.
pub(crate) const WALK_DEPTH_MAX: usize = 16;

/// Files and directories looked at below the paths that were given.
pub(crate) const WALK_ENTRIES_MAX: usize = 100_000;

/// Violations of one chain that are kept; the rest are counted.
pub(crate) const VIOLATIONS_MAX: usize = 1_000;
