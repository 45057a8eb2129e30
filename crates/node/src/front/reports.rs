//! [`Reports`]: what a front end reports to the service manager. Input: the time and a line. Output: a message if the
//! line is another one than before, or [`INTERVAL`] after the last message, so that the watchdog sees that the process
//! is alive and the manager is not woken for nothing.

use crate::service;
use std::time::Duration;

/// As in a node.
const INTERVAL: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct Reports {
    /// When the last message was sent, and its line.
    last: Option<(Duration, String)>,
}

impl Reports {
    pub(super) fn report(&mut self, now: Duration, line: String) {
        if self.is_due(now, &line) {
            service::is_alive(&line);
            self.last = Some((now, line));
        }
    }

    fn is_due(&self, now: Duration, line: &str) -> bool {
        self.last.as_ref().is_none_or(|(at, last)| line != last || now.saturating_sub(*at) >= INTERVAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_sent_when_it_changes_and_every_five_seconds() {
        let mut reports = Reports::default();
        let times =
            [(0, "a", true), (4, "a", false), (5, "a", true), (6, "b", true), (10, "b", false), (11, "b", true)];
        for (seconds, line, is_sent) in times {
            let now = Duration::from_secs(seconds);
            assert_eq!(reports.is_due(now, line), is_sent, "{seconds} {line}");
            reports.report(now, line.to_owned());
        }
    }
}
