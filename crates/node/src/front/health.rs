//! `/health` and `/metrics` of a front end. Input: the front end and its servers, once they serve. Output: texts.
//!
//! `/health` is 200 while wallets are answered from current data, or from data that is at most a minute old; else 503,
//! also while the front end starts and from the request to stop on. A balancer sends new clients by it.

use super::Servers;
use super::figures::{self, Reading};
use crate::signals::Stop;
use lydian_electrum::Operator;
use lydian_electrum::figures::FIGURES as ELECTRUM_FIGURES;
use lydian_esplora::figures::{Counts, FIGURES as ESPLORA_FIGURES};
use lydian_front::{Front, Health};
use lydian_serve::figures::{CONTENT_TYPE, Family, read, text};
use lydian_serve::{Text, Texts};
use std::sync::{Arc, OnceLock};

/// What the texts are made from.
#[derive(Debug)]
pub(super) struct Monitored {
    stop: Stop,
    serving: OnceLock<Serving>,
}

#[derive(Debug)]
struct Serving {
    front: Arc<Front>,
    electrum: Option<Operator>,
    esplora: Option<Counts>,
}

impl Monitored {
    pub(super) fn new(stop: Stop) -> Monitored {
        Monitored { stop, serving: OnceLock::new() }
    }

    /// Wallets are answered from now on.
    pub(super) fn serves(&self, front: &Arc<Front>, servers: &Servers) {
        let electrum = servers.electrum.as_ref().map(|server| server.operator().clone());
        let esplora = servers.esplora.as_ref().map(|server| server.counts().clone());
        // It begins once.
        let _ = self.serving.set(Serving { front: Arc::clone(front), electrum, esplora });
    }

    /// Whether clients should come, and one line.
    fn health(&self) -> (bool, String) {
        match self.serving.get() {
            _ if self.stop.is_asked() => (false, "stopping".to_owned()),
            None => (false, "starting".to_owned()),
            Some(serving) => {
                let health = serving.front.health();
                (!matches!(health, Health::Gone { .. }), sentence(&health))
            }
        }
    }

    fn metrics(&self) -> String {
        let serving = self.serving.get();
        let reading = Reading::new(self.health().0, serving.map(|serving| serving.front.figures()));
        let mut all: Vec<Family> = read(figures::FIGURES, &reading).collect();
        let electrum = serving.and_then(|serving| serving.electrum.as_ref());
        let esplora = serving.and_then(|serving| serving.esplora.as_ref());
        all.extend(electrum.into_iter().flat_map(|server| read(ELECTRUM_FIGURES, server)));
        all.extend(esplora.into_iter().flat_map(|counts| read(ESPLORA_FIGURES, counts)));
        text(&all)
    }
}

impl Texts for Monitored {
    fn text(&self, path: &str) -> Option<Text> {
        match path {
            "/health" => {
                let (is_good, line) = self.health();
                Some(Text { is_good, kind: "text/plain; charset=utf-8", text: format!("{line}\n") })
            }
            "/metrics" => Some(Text { is_good: true, kind: CONTENT_TYPE, text: self.metrics() }),
            _ => None,
        }
    }
}

/// The line of `/health`.
pub(super) fn sentence(health: &Health) -> String {
    match health {
        Health::Fresh { height } => format!("ok height={height}"),
        Health::Stale { reason, .. } => format!("ok, but the answers grow old: {reason}"),
        Health::Gone { reason } => reason.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn health_fails_before_and_after_serving() {
        let monitored = Monitored::new(Stop::default());
        let health = |expected: &str| {
            let text = monitored.text("/health").unwrap();
            assert_eq!((text.is_good, text.text.as_str()), (false, expected));
        };
        health("starting\n");
        let metrics = monitored.text("/metrics").unwrap();
        assert!(metrics.is_good && metrics.text.contains("\nlydian_front_up 0\n"), "{metrics:?}");
        monitored.stop.ask();
        health("stopping\n");
        assert_eq!(monitored.text("/other"), None);
    }

    #[test]
    fn a_line_says_what_is_wrong() {
        assert_eq!(sentence(&Health::Fresh { height: 7 }), "ok height=7");
        let reason = || "no node answers".to_owned();
        let stale = Health::Stale { since: Duration::ZERO, reason: reason() };
        assert_eq!(sentence(&stale), "ok, but the answers grow old: no node answers");
        assert_eq!(sentence(&Health::Gone { reason: reason() }), "no node answers");
    }
}
