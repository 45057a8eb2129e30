//! Where the lines for the log go. Declarations only.

/// Receives lines for the log, in the category of ZMQ.
pub trait Log: Send + Sync {
    /// Whether debug lines are wanted. If not, they need not be made.
    fn is_on(&self) -> bool;

    fn debug(&self, line: &str);
}
