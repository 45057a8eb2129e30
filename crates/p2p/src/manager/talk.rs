//! What a peer's connection brings to the others: its handshake, its addresses, its end. Input: the events of [`crate::peer`]. Output: actions, and
//! what the address manager learns.

use super::{Action, PeerId, PeerManager};
use crate::peer::{ADDR_TIME_PENALTY_S, AddressesFrom, Context, Event};
use crate::time::UnixTime;
use lydian_hash::SipHasher;
use lydian_wire::{Command, Message, TimedAddress};
use rand_chacha::rand_core::Rng;

/// Blocks that the tip may be old for limited peers to do: Core's `NODE_NETWORK_LIMITED_ALLOW_CONN_BLOCKS`.
const LIMITED_PEERS_BLOCKS: i64 = 144;

/// What of the address tables one answer tells: Core's `MAX_PCT_ADDR_TO_SEND` and `MAX_ADDR_TO_SEND`.
const ANSWER_PERCENT: usize = 23;
const ANSWER_MAX: usize = 1000;

const DAY: u64 = 24 * 60 * 60;

impl PeerManager {
    /// Lets a peer's connection do something, and does what follows.
    pub(super) fn talk(&mut self, id: PeerId, act: impl FnOnce(&mut crate::Peer, &mut Context<'_>, &mut Vec<Event>)) {
        let tip = self.tip();
        let is_near_tip = self.tip_age() / self.settings.params.pow_target_spacing.max(1) < LIMITED_PEERS_BLOCKS;
        let (now, is_initial_block_download) = (self.now, self.was_initial && self.is_initial_download());
        let mut events = Vec::new();
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let mut context = Context {
            local: &self.settings.local,
            now,
            best_height: i32::try_from(tip.height.0).unwrap_or(i32::MAX),
            is_near_tip,
            is_initial_block_download,
            own_nonces: &self.own_nonces,
            bans: &self.bans,
            reachable: &self.settings.reachable,
            random: &mut self.random,
        };
        act(&mut peer.talk, &mut context, &mut events);
        events.into_iter().for_each(|event| self.follow(id, event));
    }

    fn follow(&mut self, id: PeerId, event: Event) {
        let Some(peer) = self.peers.get(&id) else { return };
        let (connection, unix) = (peer.talk.connection, self.now.unix);
        match event {
            Event::Send(message) => self.send(id, message),
            Event::Disconnect(reason) => self.leave(id, format!("{reason:?}")),
            Event::Misbehaving(what) => self.misbehaving(id, &format!("{}: {}", what.command.as_str(), what.error)),
            Event::Connected => self.greet(id),
            Event::SetServices(services) => self.addrman.set_services(&connection.endpoint, services),
            Event::Good => {
                self.addrman.good(&connection.endpoint, unix);
            }
            Event::SeenLocal(_) | Event::TimeOffset(_) => {}
            Event::Store(addresses) => {
                self.addrman.add(&addresses, &connection.endpoint.addr, ADDR_TIME_PENALTY_S, unix);
            }
            Event::Relay { address, is_reachable } => self.relay(id, address, is_reachable),
            Event::WantsAddresses(from) => self.answer_with_addresses(id, from),
            Event::Message(message) => self.process(id, message),
        }
    }

    /// The handshake is over.
    fn greet(&mut self, id: PeerId) {
        let Some(peer) = self.peers.get(&id) else { return };
        let (is_inbound, nonce) = (peer.kind().is_inbound(), peer.talk.connection.nonce);
        let text = format!(
            "New {} peer connected: transport: {}, version: {}, peer={id}",
            peer.kind().name(),
            if peer.is_v2 { "v2" } else { "v1" },
            peer.talk.version,
        );
        self.own_nonces.remove(&nonce);
        if is_inbound {
            self.log(text)
        } else {
            self.tell(text)
        }
        self.look_after(id);
        self.request_blocks();
    }

    /// Core's `RelayAddress`: one or two peers, the same for a day, whoever tells of the address.
    fn relay(&mut self, from: PeerId, address: TimedAddress, is_reachable: bool) {
        let key = address.endpoint.key();
        let day = self.now.unix.0.wrapping_add(u64::from(key.iter().map(|byte| u32::from(*byte)).sum::<u32>())) / DAY;
        let rank = |id: PeerId| {
            SipHasher::new(self.relay_key[0], self.relay_key[1]).write(&key).write_u64(day).write_u64(id.0).finish()
        };
        let others =
            self.peers.values().filter(|peer| peer.id != from && peer.is_ready() && peer.talk.is_addr_relay_enabled());
        let mut others: Vec<_> = others.map(|peer| (rank(peer.id), peer.id)).collect();
        others.sort_unstable();
        let count = if is_reachable || rank(PeerId(u64::MAX)) & 1 == 1 { 2 } else { 1 };
        for (_, id) in others.into_iter().rev().take(count) {
            if let Some(peer) = self.peers.get_mut(&id) {
                peer.talk.push_addresses(&[address], &mut self.random);
            }
        }
    }

    fn answer_with_addresses(&mut self, id: PeerId, from: AddressesFrom) {
        let unix = self.now.unix;
        let is_old =
            unix.since(self.answer_made) > i64::try_from(DAY).unwrap_or(0) || self.answer_made == UnixTime::NEVER;
        let fresh = |addrman: &mut crate::AddrMan| addrman.get_addr(ANSWER_MAX, ANSWER_PERCENT, None, true, unix);
        let addresses = match from {
            AddressesFrom::Tables => fresh(&mut self.addrman),
            AddressesFrom::Cache => {
                if is_old {
                    (self.answer, self.answer_made) = (fresh(&mut self.addrman), unix);
                }
                self.answer.clone()
            }
        };
        let bans = &self.bans;
        let allowed: Vec<_> = addresses
            .into_iter()
            .filter(|address| {
                !bans.is_banned(&address.endpoint.addr, unix) && !bans.is_discouraged(&address.endpoint.addr)
            })
            .collect();
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.talk.push_addresses(&allowed, &mut self.random);
        }
    }

    pub(super) fn receive(&mut self, id: PeerId, command: Command, payload: Vec<u8>) {
        self.talk(id, |talk, context, out| talk.receive(command, payload, context, out));
    }

    pub(super) fn new_nonce(&mut self) -> u64 {
        self.random.next_u64()
    }

    pub(super) fn send(&mut self, to: PeerId, message: Message) {
        let now = self.now;
        if let Some(peer) = self.peers.get_mut(&to)
            && !peer.is_leaving
        {
            peer.talk.note_sent(now);
            self.actions.push(Action::Send { to, message });
        }
    }
}
