//! Log lines about changes of the tables, with Bitcoin Core's texts.
//!
//! Input: the changes. Output: lines, which the owner takes after each call. Lines are created only if logging is
//! enabled.

use super::AddrMan;

/// Lines that were not taken yet; `None` if logging is disabled.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines(Option<Vec<String>>);

impl AddrMan {
    /// Enables or disables logging. If it is enabled, [`AddrMan::take_lines`] must be called regularly.
    pub fn set_logged(&mut self, is_logged: bool) {
        if is_logged != self.lines.0.is_some() {
            self.lines.0 = is_logged.then(Vec::new);
        }
    }

    /// Returns the lines since the last call, for the category `addrman`.
    pub fn take_lines(&mut self) -> Vec<String> {
        self.lines.0.as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(super) fn note(&mut self, line: impl FnOnce(&AddrMan) -> String) {
        if self.lines.0.is_some() {
            let line = line(self);
            if let Some(lines) = &mut self.lines.0 {
                lines.push(line);
            }
        }
    }
}
