//! What the settings have to say before the log is open. Input: nothing. Output: [`Notice`]s in the order in which they
//! arose.

/// One message, and where it goes: to the log always, to stderr as Bitcoin Core does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// Core's `InitWarning`: on stderr and in the log.
    Warning(String),
    /// Core's `LogWarning`.
    LogWarning(String),
    /// Core's `LogInfo`.
    LogInfo(String),
    /// A line on stderr alone.
    Stderr(String),
}

impl Notice {
    /// The line for stderr.
    pub(crate) fn stderr(&self) -> Option<String> {
        match self {
            Notice::Warning(text) => Some(format!("Warning: {text}")),
            Notice::Stderr(text) => Some(text.clone()),
            Notice::LogWarning(_) | Notice::LogInfo(_) => None,
        }
    }
}
