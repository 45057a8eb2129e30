//! Address relay over a connection.
//!
//! Input: `addr` and `addrv2` messages of the peer, addresses for it, the time. Output: addresses to store and to
//! relay, messages.
//!
//! Core's `ProcessAddrs`, `PushAddress` and `MaybeSendAddr`. A token bucket limits how many addresses of a peer are
//! processed: one in ten seconds, with at most a thousand tokens in the bucket, plus a thousand for the answer to our
//! `getaddr`. Invariants: an address that the peer sent or received is not sent to it again (as far as a rolling filter
//! remembers); an inbound peer gets one answer to `getaddr`, other peers get none, so that it does not reveal which
//! node knows which addresses.

use super::{ConnectionKind, Context, DisconnectReason, Event, Note, Peer, Permissions, handshake};
use crate::discourage::RollingBloomFilter;
use crate::draw;
use crate::limits::{ADDR_TOKENS_MAX, ADDRESSES_TO_SEND_MAX};
use crate::local_address::Recipient;
use crate::time::{Moment, UnixTime};
use lydian_stdx::saturating_usize;
use lydian_wire::TimedAddress;
use lydian_wire::message::Message;
use rand_chacha::ChaCha20Rng;
use std::time::Duration;

/// Tokens per second.
const TOKENS_PER_SECOND: f64 = 0.1;
/// Core's `AVG_ADDRESS_BROADCAST_INTERVAL`.
const SEND_INTERVAL: Duration = Duration::from_secs(30);
/// Core's `AVG_LOCAL_ADDRESS_BROADCAST_INTERVAL`.
const LOCAL_SEND_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);
/// An earlier time is invalid.
const TIME_MIN: u32 = 100_000_000;
/// Addresses further in the future are not credible; addresses with a smaller age are relayed.
const FRESH_S: i64 = 10 * 60;
/// The assumed age of an address with an invalid time.
const UNKNOWN_AGE_S: u64 = 5 * 24 * 60 * 60;
/// Larger messages are answers to `getaddr` and are not relayed.
const RELAY_MESSAGE_MAX: usize = 10;
/// A smaller message ends the answer to `getaddr`.
const FULL_ANSWER: usize = 1000;
const KNOWN_MAX: u32 = 5000;
const KNOWN_FALSE_POSITIVE_RATE: f64 = 0.001;

/// The source of the addresses for a peer that requested some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressesFrom {
    /// The same answer for about a day for all peers of one network that connected to one of our addresses, so that the
    /// tables cannot be observed.
    Cache,
    /// Directly from the tables: the peer has the permission.
    Tables,
}

/// The address relay state of a peer.
#[derive(Debug)]
pub(super) struct Gossip {
    /// The addresses that the peer knows; `None` until addresses are relayed over the connection.
    known: Option<RollingBloomFilter>,
    to_send: Vec<TimedAddress>,
    tokens: f64,
    tokens_at: Moment,
    is_getaddr_sent: bool,
    is_getaddr_received: bool,
    next_send: Duration,
    next_local_send: Option<Duration>,
    processed: u64,
    rate_limited: u64,
}

impl Gossip {
    pub(super) fn new(now: Moment) -> Self {
        Gossip {
            known: None,
            to_send: Vec::new(),
            tokens: 1.0,
            tokens_at: now,
            is_getaddr_sent: false,
            is_getaddr_received: false,
            next_send: Duration::ZERO,
            next_local_send: None,
            processed: 0,
            rate_limited: 0,
        }
    }

    /// Starts address relay over the connection.
    pub(super) fn begin(&mut self, random: &mut ChaCha20Rng) -> &mut RollingBloomFilter {
        self.known.get_or_insert_with(|| RollingBloomFilter::new(KNOWN_MAX, KNOWN_FALSE_POSITIVE_RATE, random))
    }

    /// We sent `getaddr`: the tokens for a full answer are added.
    pub(super) fn getaddr_sent(&mut self) {
        self.is_getaddr_sent = true;
        self.tokens += f64::from(ADDR_TOKENS_MAX);
    }

    fn refill(&mut self, now: Moment) {
        let most = f64::from(ADDR_TOKENS_MAX);
        if self.tokens < most {
            let passed = now.mockable.saturating_sub(self.tokens_at.mockable).as_secs_f64();
            self.tokens = (self.tokens + passed * TOKENS_PER_SECOND).min(most);
        }
        self.tokens_at = now;
    }

    /// Takes a token; a peer without a limit may continue without one.
    fn may_process(&mut self, is_limited: bool) -> bool {
        let has_token = self.tokens >= 1.0;
        if has_token {
            self.tokens -= 1.0;
        } else if is_limited {
            self.rate_limited += 1;
        }
        has_token || !is_limited
    }
}

impl Peer {
    /// Returns whether addresses are relayed over the connection: `addr_relay_enabled`.
    pub fn is_addr_relay_enabled(&self) -> bool {
        self.gossip.known.is_some()
    }

    /// Returns the number of processed addresses, and of those dropped by the rate limit.
    pub fn addr_counts(&self) -> (u64, u64) {
        (self.gossip.processed, self.gossip.rate_limited)
    }

    pub(super) fn receive_addresses(
        &mut self,
        mut addresses: Vec<TimedAddress>,
        context: &mut Context<'_>,
        out: &mut Vec<Event>,
    ) {
        self.gossip.begin(context.random);
        self.gossip.refill(context.now);
        let is_limited = !self.connection.permissions.contains(Permissions::ADDR);
        let count = addresses.len();
        let (processed, rate_limited) = self.addr_counts();
        let now = context.now.unix;
        draw::shuffle(&mut addresses, context.random);
        let mut store = Vec::new();
        for mut address in addresses {
            if !self.gossip.may_process(is_limited) {
                continue;
            }
            let wanted = handshake::desirable_services(address.services, context.is_near_tip);
            if !address.services.may_have_useful_address_db() && !address.services.contains(wanted) {
                continue;
            }
            if address.time <= TIME_MIN || UnixTime::from(address.time).since(now) > FRESH_S {
                address.time = now.minus(UNKNOWN_AGE_S).to_u32();
            }
            self.gossip.begin(context.random).insert(&address.endpoint.key());
            let addr = address.endpoint.addr;
            if context.bans.is_discouraged(&addr) || context.bans.is_banned(&addr, now) {
                continue;
            }
            self.gossip.processed += 1;
            let is_reachable = context.reachable.contains(&addr.network());
            let is_fresh = now.since(UnixTime::from(address.time)) < FRESH_S;
            if is_fresh && !self.gossip.is_getaddr_sent && count <= RELAY_MESSAGE_MAX && addr.is_routable() {
                out.push(Event::Relay { address, is_reachable });
            }
            if is_reachable {
                store.push(address);
            }
        }
        let total = self.addr_counts();
        let fresh = |after: u64, before: u64| saturating_usize(after - before);
        out.push(Event::Note(Note::ReceivedAddresses {
            count,
            processed: fresh(total.0, processed),
            rate_limited: fresh(total.1, rate_limited),
        }));
        out.push(Event::Store(store));
        if count < FULL_ANSWER {
            self.gossip.is_getaddr_sent = false;
        }
        // A single address is the peer's own and not the answer.
        if self.connection.kind == ConnectionKind::AddrFetch && count > 1 {
            self.disconnect(DisconnectReason::AddrFetchCompleted, out);
        }
    }

    pub(super) fn receive_getaddr(&mut self, context: &mut Context<'_>, out: &mut Vec<Event>) {
        if !self.connection.kind.is_inbound() {
            return out.push(Event::Note(Note::IgnoredGetAddr));
        }
        self.gossip.begin(context.random);
        if self.gossip.is_getaddr_received {
            return out.push(Event::Note(Note::RepeatedGetAddr));
        }
        self.gossip.is_getaddr_received = true;
        self.gossip.to_send.clear();
        let is_permitted = self.connection.permissions.contains(Permissions::ADDR);
        out.push(Event::WantsAddresses(if is_permitted { AddressesFrom::Tables } else { AddressesFrom::Cache }));
    }

    /// Queues addresses for the peer, which are sent by a tick. Addresses that it knows or cannot decode are dropped;
    /// if there are too many, random queued ones are replaced.
    pub fn push_addresses(&mut self, addresses: &[TimedAddress], random: &mut ChaCha20Rng) {
        if !self.connection.kind.relays_addresses() {
            return;
        }
        for address in addresses {
            let is_known = self.gossip.begin(random).contains(&address.endpoint.key());
            if is_known || !address.endpoint.addr.is_valid() || !self.can_read(address) {
                continue;
            }
            if self.gossip.to_send.len() >= ADDRESSES_TO_SEND_MAX {
                let index = draw::below(random, self.gossip.to_send.len());
                self.gossip.to_send[index] = *address;
            } else {
                self.gossip.to_send.push(*address);
            }
        }
    }

    /// Returns whether the peer understands the encoding that the address needs.
    pub fn can_read(&self, address: &TimedAddress) -> bool {
        self.wants_addrv2 || address.endpoint.addr.is_addr_v1_compatible()
    }

    pub(super) fn send_addresses(&mut self, context: &mut Context<'_>, out: &mut Vec<Event>) {
        let now = context.now.mockable;
        if self.gossip.known.is_none() {
            return;
        }
        if context.local.own.listens()
            && !context.is_initial_block_download
            && self.gossip.next_local_send.is_none_or(|next| next < now)
        {
            self.send_own_address(context, out);
        }
        if now <= self.gossip.next_send {
            return;
        }
        self.gossip.next_send = now + draw::exponential(context.random, SEND_INTERVAL);
        let mut addresses = std::mem::take(&mut self.gossip.to_send);
        let known = self.gossip.begin(context.random);
        addresses.retain(|address| {
            let key = address.endpoint.key();
            let is_new = !known.contains(&key);
            known.insert(&key);
            is_new
        });
        if !addresses.is_empty() {
            out.push(Event::Send(self.addr_message(addresses)));
        }
    }

    /// The first time it is sent alone, so that a peer with few tokens processes it; later, about once a day, with
    /// others.
    fn send_own_address(&mut self, context: &mut Context<'_>, out: &mut Vec<Event>) {
        let next = context.now.mockable + draw::exponential(context.random, LOCAL_SEND_INTERVAL);
        let is_first = self.gossip.next_local_send.replace(next).is_none();
        if !is_first {
            self.gossip.begin(context.random).reset(context.random);
        }
        let recipient = Recipient {
            addr: self.connection.endpoint.addr,
            sees: self.addr_local,
            is_inbound: self.connection.kind.is_inbound(),
            is_onion: self.connection.is_onion,
        };
        let Some(endpoint) = context.local.own.for_peer(&recipient, context.random) else { return };
        out.push(Event::Note(Note::Advertised { address: endpoint }));
        let time = context.now.unix.to_u32();
        let own = TimedAddress { time, services: context.local.services, endpoint };
        if !is_first {
            self.push_addresses(&[own], context.random);
        } else if self.can_read(&own) {
            out.push(Event::Send(self.addr_message(vec![own])));
        }
    }

    fn addr_message(&self, addresses: Vec<TimedAddress>) -> Message {
        if self.wants_addrv2 { Message::AddrV2(addresses) } else { Message::Addr(addresses) }
    }
}
