//! When the three files are written.
//!
//! Addresses and bans are written every 15 minutes and at shutdown, bans also after every change by the operator,
//! anchors only at a clean shutdown. Core's `DumpAddresses`, `DumpBanlist`, `DumpAnchors`. The output is bytes; other
//! code writes them to disk.

use super::Addresses;
use crate::anchors;
use crate::bans::DUMP_BANS_INTERVAL_S;
use crate::files::{ANCHORS_FILE, BANLIST_FILE, PEERS_FILE};
use crate::manager::Action;
use crate::manager::context::Context;
use lydian_wire::TimedAddress;
use std::time::Duration;

/// Core's `DUMP_PEERS_INTERVAL`, the same as that for bans.
const SAVE_INTERVAL: Duration = Duration::from_secs(DUMP_BANS_INTERVAL_S);

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

impl Addresses {
    /// The node shuts down cleanly: writes everything that must be kept. `anchors`: the block-relay-only peers, to be
    /// connected to at the next start.
    pub(in crate::manager) fn save_at_end(&mut self, context: &mut Context, anchors: Option<&[TimedAddress]>) {
        self.save_peers(context);
        self.save_bans(context);
        if let Some(addresses) = anchors {
            let bytes = anchors::encode(addresses, context.settings.params.magic);
            context.actions.push(Action::Save { file: SavedFile::Anchors, bytes });
        }
    }

    pub(in crate::manager) fn save_when_due(&mut self, context: &mut Context) {
        let now = context.now.elapsed;
        let next = *self.next_save.get_or_insert(now + SAVE_INTERVAL);
        if now >= next {
            self.next_save = Some(now + SAVE_INTERVAL);
            self.save_peers(context);
            self.save_bans(context);
        }
    }

    /// Makes the next save due earlier by `delta`.
    pub(in crate::manager) fn mock_forward(&mut self, context: &Context, delta: Duration) {
        let next = self.next_save.unwrap_or(context.now.elapsed + SAVE_INTERVAL);
        self.next_save = Some(next.saturating_sub(delta));
    }

    fn save_peers(&mut self, context: &mut Context) {
        let count = self.tables.size(None, None);
        context.log_debug(format!("Flushed {count} addresses to peers.dat {}ms", 0));
        let bytes = self.tables.encode(context.settings.params.magic);
        context.actions.push(Action::Save { file: SavedFile::Peers, bytes });
    }

    /// Writes the bans if they changed or some expired.
    pub(super) fn save_bans(&mut self, context: &mut Context) {
        self.bans.list(context.now.unix);
        if self.bans.take_dirty() {
            let count = self.bans.list(context.now.unix).len();
            context.log_debug(format!("Flushed {count} banned node addresses/subnets to disk {}ms", 0));
            let bytes = self.bans.encode();
            context.actions.push(Action::Save { file: SavedFile::Bans, bytes });
        }
    }
}
