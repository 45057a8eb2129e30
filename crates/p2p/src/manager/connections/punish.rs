//! The consequence of a violation: Core's `MaybeDiscourageAndDisconnect`.
//!
//! Input: a peer that may have violated the protocol. Output: a disconnection, a discouraged address. Invariant: a
//! trusted peer and one that the operator connected to are not punished.

use super::Connections;
use crate::manager::PeerId;
use crate::manager::addresses::Addresses;
use crate::manager::context::Context;
use crate::peer::{Permissions, Punishment};
use lydian_engine::LogLevel;

impl Connections {
    /// Punishes the peer if it violated the protocol since the last call.
    pub(in crate::manager) fn settle(context: &mut Context, addresses: &mut Addresses, id: PeerId) {
        let Some(peer) = context.peers.get_mut(&id) else { return };
        if !std::mem::take(&mut peer.should_discourage) {
            return;
        }
        let (punishment, endpoint) = (peer.talk.punishment(), peer.talk.connection.endpoint);
        let (is_noban, is_onion) = (peer.may(Permissions::NO_BAN), peer.talk.connection.is_onion);
        match punishment {
            Punishment::None if is_noban => {
                context.log_at(LogLevel::Warning, format!("Not punishing noban peer {id}!"))
            }
            Punishment::None => {
                context.log_at(LogLevel::Warning, format!("Not punishing manually connected peer {id}!"))
            }
            Punishment::Disconnect => {
                let kind = if is_onion { "inbound onion" } else { "local" };
                context.log_debug(format!("Warning: disconnecting but not discouraging {kind} peer {id}!"));
                context.end_connection(id, "misbehaving");
            }
            Punishment::DisconnectAndDiscourage => {
                context.log_debug(format!("Disconnecting and discouraging peer {id}!"));
                addresses.discourage(&endpoint.addr);
                context.end_connection(id, "misbehaving, discouraged");
            }
        }
    }
}
