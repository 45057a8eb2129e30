//! When the three files are written.
//!
//! Addresses and bans are written every 15 minutes and at shutdown, bans also after every change by the operator,
//! anchors only at a clean shutdown. Core's `DumpAddresses`, `DumpBanlist`, `DumpAnchors`. The output is bytes; other
//! code writes them to disk.

use crate::anchors;
use crate::bans::DUMP_BANS_INTERVAL_S;
use crate::files::{ANCHORS_FILE, BANLIST_FILE, PEERS_FILE};
use crate::manager::{Action, PeerManager};
use crate::peer::ConnectionKind;
use crate::time::Moment;
use std::time::Duration;

/// Core's `DUMP_PEERS_INTERVAL`, the same as that for bans.
pub(in crate::manager) const SAVE_INTERVAL: Duration = Duration::from_secs(DUMP_BANS_INTERVAL_S);

/// A network file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedFile {
    Peers,
    Bans,
    Anchors,
}

impl SavedFile {
    /// Returns its name in the data directory.
    pub fn name(self) -> &'static str {
        match self {
            SavedFile::Peers => PEERS_FILE,
            SavedFile::Bans => BANLIST_FILE,
            SavedFile::Anchors => ANCHORS_FILE,
        }
    }
}

impl PeerManager {
    /// The node shuts down cleanly: writes everything that must be kept.
    pub fn end(&mut self, now: Moment) {
        self.context.now = now;
        self.save_peers();
        self.save_bans();
        if self.connector.chooses_peers() {
            let of_kind = self.context.peers.values().filter(|peer| peer.kind() == ConnectionKind::BlockRelayOnly);
            let addresses: Vec<_> = of_kind.map(|peer| peer.link.address).collect();
            let bytes = anchors::encode(&addresses, self.context.settings.params.magic);
            self.context.actions.push(Action::Save { file: SavedFile::Anchors, bytes });
        }
    }

    pub(in crate::manager) fn save_when_due(&mut self) {
        let now = self.context.now.elapsed;
        let next = *self.connector.next_save.get_or_insert(now + SAVE_INTERVAL);
        if now >= next {
            self.connector.next_save = Some(now + SAVE_INTERVAL);
            self.save_peers();
            self.save_bans();
        }
    }

    fn save_peers(&mut self) {
        let count = self.addrman.size(None, None);
        self.context.log_debug(format!("Flushed {count} addresses to peers.dat {}ms", 0));
        let bytes = self.addrman.encode(self.context.settings.params.magic);
        self.context.actions.push(Action::Save { file: SavedFile::Peers, bytes });
    }

    /// Writes the bans if they changed or some expired.
    pub(in crate::manager) fn save_bans(&mut self) {
        self.bans.list(self.context.now.unix);
        if self.bans.take_dirty() {
            let count = self.bans.list(self.context.now.unix).len();
            self.context.log_debug(format!("Flushed {count} banned node addresses/subnets to disk {}ms", 0));
            let bytes = self.bans.encode();
            self.context.actions.push(Action::Save { file: SavedFile::Bans, bytes });
        }
    }
}
