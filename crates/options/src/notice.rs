//! Messages of the settings, from before the log is open. Output: [`Notice`]s in the order in which they arose.

/// A message and where it goes: the log, stderr or both, as in Bitcoin Core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Core's `InitWarning`: on stderr and in the log.
    Warning(String),
    /// Core's `LogWarning`.
    LogWarning(String),
    /// Core's `LogInfo`.
    LogInfo(String),
    /// A line on stderr only.
    Stderr(String),
}

impl Notice {
    /// The line for stderr.
    pub fn stderr(&self) -> Option<String> {
        match self {
            Notice::Warning(text) => Some(format!("Warning: {text}")),
            Notice::Stderr(text) => Some(text.clone()),
            Notice::LogWarning(_) | Notice::LogInfo(_) => None,
        }
    }
}
