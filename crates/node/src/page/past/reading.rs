//! The node's counters at one moment. Input: the parts of the node. Output: numbers, `None` where a part does not exist
//! (yet). Cost: a question to the peer manager; everything else is a snapshot that other modules keep.

use crate::display::{Seen, float};
use crate::page::PageNode;
use crate::page::topics::overview;
use crate::process::{self, Usage};
use crate::status::MempoolStatus;
use lydian_engine::Stage;
use lydian_p2p::manager::{PeerInfo, Question};
use std::collections::BTreeMap;

/// The folders that have a series; all others are one.
pub(super) const FOLDERS: [&str; 3] = ["blocks", "chainstate", "indexes"];

#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) cores: u64,
    pub(super) height: Option<u64>,
    pub(super) headers: Option<u64>,
    pub(super) work_share: Option<f64>,
    pub(super) bytes_received: Option<u64>,
    pub(super) bytes_sent: Option<u64>,
    pub(super) blocks: Option<u64>,
    pub(super) inputs: Option<u64>,
    pub(super) checks: Option<u64>,
    /// Of all stages except waiting.
    pub(super) stage_ns: Option<u64>,
    pub(super) peers_out: Option<u64>,
    pub(super) peers_in: Option<u64>,
    pub(super) ping_ms: Option<f64>,
    pub(super) mempool: Option<MempoolStatus>,
    /// Virtual bytes of each fee band.
    pub(super) bands: Option<Vec<u64>>,
    pub(super) usage: Usage,
    pub(super) coins_bytes: Option<u64>,
    pub(super) folders: Option<BTreeMap<String, u64>>,
    pub(super) free_bytes: Option<u64>,
    /// The requests of each Electrum session.
    pub(super) electrum: Option<BTreeMap<u64, u64>>,
}

impl Reading {
    pub(super) fn new(node: &PageNode) -> Reading {
        let engine = node.engine();
        let tip = engine.as_ref().map(|engine| engine.tip_update());
        let progress = engine.as_ref().map(|engine| engine.progress());
        let working = |(stage, time): (&Stage, &lydian_engine::StageTime)| match stage.is_waiting() {
            true => 0,
            false => time.wall_ns,
        };
        let peers = node.context.ask_peers(Question::Peers);
        let count = |is_inbound: bool| {
            let of = |peers: &Vec<PeerInfo>| peers.iter().filter(|peer| peer.kind.is_inbound() == is_inbound).count();
            peers.as_ref().map(|peers| of(peers) as u64)
        };
        let traffic = node.context.ask_peers(Question::Traffic);
        let seen = node.sight.get();
        Reading {
            cores: node.machine.cores,
            height: tip.as_ref().map(|tip| tip.height.0.into()),
            headers: engine.as_ref().map(|engine| engine.best_header_height().0.into()),
            work_share: overview::progress(&seen).0.filter(|_| !matches!(seen, Seen::Nothing)),
            bytes_received: traffic.as_ref().map(|traffic| traffic.received),
            bytes_sent: traffic.as_ref().map(|traffic| traffic.sent),
            blocks: progress.as_ref().map(|progress| progress.stats.blocks),
            inputs: progress.as_ref().map(|progress| progress.stats.inputs),
            checks: progress.as_ref().map(|progress| progress.checks_made),
            stage_ns: progress.as_ref().map(|progress| Stage::ALL.iter().zip(&progress.stages).map(working).sum()),
            peers_out: count(false),
            peers_in: count(true),
            ping_ms: peers.as_deref().and_then(median_ping),
            mempool: node.mempool().map(|mempool| MempoolStatus::of(&mempool)),
            bands: node.mempool().map(|mempool| {
                let snapshot = mempool.snapshot();
                snapshot.bands().all().iter().map(|band| band.vsize).collect()
            }),
            usage: process::usage(),
            coins_bytes: tip.map(|tip| tip.cache_bytes),
            folders: node.machine.folders(),
            free_bytes: node.machine.free_bytes(),
            electrum: electrum(node),
        }
    }

    pub(super) fn folder(&self, name: &str) -> Option<f64> {
        let folders = self.folders.as_ref()?;
        Some(float(folders.iter().filter(|(folder, _)| in_folder(folder, name)).map(|(_, bytes)| bytes).sum()))
    }

    pub(super) fn other_folders(&self) -> Option<f64> {
        let folders = self.folders.as_ref()?;
        let is_other = |folder: &str| !FOLDERS.iter().any(|name| in_folder(folder, name));
        Some(float(folders.iter().filter(|(folder, _)| is_other(folder)).map(|(_, bytes)| bytes).sum()))
    }

    /// Requests of the sessions that are open now.
    pub(super) fn electrum_requests_since(&self, before: &Reading) -> Option<f64> {
        let known = before.electrum.as_ref();
        let new = |(id, count): (&u64, &u64)| {
            let old = known.and_then(|known| known.get(id)).copied().unwrap_or(0);
            count.saturating_sub(old)
        };
        Some(float(self.electrum.as_ref()?.iter().map(new).sum()))
    }
}

/// Whether a folder is `name`, or in it.
fn in_folder(folder: &str, name: &str) -> bool {
    folder.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The middle of the shortest pings, in milliseconds.
fn median_ping(peers: &[PeerInfo]) -> Option<f64> {
    let mut pings: Vec<f64> =
        peers.iter().filter_map(|peer| Some(peer.ping_times?.1.as_secs_f64() * 1_000.0)).collect();
    pings.sort_by(f64::total_cmp);
    pings.get(pings.len() / 2).copied()
}

/// The sessions of the Electrum server and their requests, as `listelectrumsessions` has them.
fn electrum(node: &PageNode) -> Option<BTreeMap<u64, u64>> {
    #[derive(serde::Deserialize)]
    struct Session {
        id: u64,
        requests: u64,
    }
    let sessions: Vec<Session> = serde_json::from_value(node.ask("listelectrumsessions").ok()?).ok()?;
    Some(sessions.into_iter().map(|session| (session.id, session.requests)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_summed_up() {
        let names = [
            ("blocks", 1),
            ("blocks/index", 2),
            ("chainstate", 4),
            ("indexes/tables", 8),
            ("blocks.old", 16),
            ("files", 32),
        ];
        let folders = names.map(|(name, bytes)| (name.to_owned(), bytes)).into();
        let reading = Reading { folders: Some(folders), ..Reading::default() };
        assert_eq!(FOLDERS.map(|name| reading.folder(name)), [3.0, 4.0, 8.0].map(Some));
        assert_eq!((reading.other_folders(), Reading::default().other_folders()), (Some(48.0), None));
    }

    #[test]
    fn requests_of_new_sessions_count_whole() {
        let of = |sessions: &[(u64, u64)]| Reading {
            electrum: Some(sessions.iter().copied().collect()),
            ..Reading::default()
        };
        let now = of(&[(1, 10), (3, 4)]);
        assert_eq!(now.electrum_requests_since(&of(&[(1, 7), (2, 9)])), Some(7.0));
        assert_eq!(now.electrum_requests_since(&Reading::default()), Some(14.0));
        assert_eq!(Reading::default().electrum_requests_since(&now), None);
    }
}
