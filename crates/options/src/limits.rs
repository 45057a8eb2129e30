//! Limits of the files that are read. Constants only.

/// Bytes of a configuration file.
pub(crate) const CONF_SIZE_MAX: u64 = 1 << 20;

/// Bytes of `settings.json`.
pub(crate) const SETTINGS_FILE_SIZE_MAX: u64 = 1 << 20;
