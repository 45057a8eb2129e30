//! What the tables did, in Bitcoin Core's words, for whoever writes the log. Input: what happened. Output: lines, which the owner takes after each call. None is
//! made unless it is wanted.

use super::AddrMan;

/// Lines that nobody has taken yet; `None`: none are wanted.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines(Option<Vec<String>>);

impl AddrMan {
    /// Whether lines are made from now on. Then [`AddrMan::take_lines`] must be called again and again.
    pub fn set_logged(&mut self, is_logged: bool) {
        if is_logged != self.lines.0.is_some() {
            self.lines.0 = is_logged.then(Vec::new);
        }
    }

    /// The lines since the last call, for the category `addrman`.
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
