//! A peer of the world: what every peer does (handshake, pings, serving what it has), and a [`Nature`] that makes it honest or not. Input: messages, the
//! time. Output: [`Deed`]s, which the world carries out.

use crate::chain::{Chain, Made};
use crate::ground::{Ground, ground};
use lydian_lab::rng::Random;
use lydian_p2p::peer::{ConnectionKind, Permissions};
use lydian_primitives::{BlockHash, RawBlock};
use lydian_wire::message::{CMPCTBLOCKS_VERSION, PROTOCOL_VERSION, SendCmpct, Version};
use lydian_wire::{
    BlockTransactions, Command, CompactBlock, Endpoint, Inv, InvType, Locator, Message, Services, TimedAddress,
};
use std::sync::Arc;
use std::time::Duration;

/// Headers of one answer.
const HEADERS_MAX: usize = 2_000;

/// What a peer deserves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It did nothing wrong: it is neither sent away nor discouraged.
    Honest,
    /// It is not discouraged, for Core does not; it may be sent away.
    Spared,
    /// It broke a rule for which Core sends it away.
    Dropped,
    /// It broke a rule for which Core discourages it.
    Discouraged,
}

/// Something that a peer does.
#[derive(Debug)]
pub enum Deed {
    Send(Message),
    /// A message whose payload is as it is.
    Payload(Command, Vec<u8>),
    /// Bytes past the transport.
    Raw(Vec<u8>),
    /// [`Nature::woken`] after a while.
    Wake(Duration, u32),
    Close,
    Connect(Duration),
    /// Reads nothing any more.
    Deafen,
    /// What it deserves from now on.
    Deserve(Verdict),
}

/// What a peer sees of the world, and where its deeds go.
#[derive(Debug)]
pub struct Stage<'a> {
    pub now: Duration,
    pub unix: u64,
    pub random: &'a mut Random,
    pub ground: &'static Ground,
    /// Bytes of it that wait for its wire.
    pub backlog: usize,
    pub deeds: Vec<Deed>,
}

impl Stage<'_> {
    pub fn send(&mut self, message: Message) {
        self.deeds.push(Deed::Send(message));
    }

    pub fn wake(&mut self, after: Duration, what: u32) {
        self.deeds.push(Deed::Wake(after, what));
    }

    pub fn deserve(&mut self, verdict: Verdict) {
        self.deeds.push(Deed::Deserve(verdict));
    }
}

/// The chain of a peer, as far as it shows it.
#[derive(Clone, Debug)]
pub struct Shown {
    pub chain: Arc<Chain>,
    pub height: u32,
}

impl Shown {
    pub fn all(chain: &Arc<Chain>) -> Shown {
        Shown { height: chain.height(), chain: Arc::clone(chain) }
    }

    pub fn find(&self, hash: &BlockHash) -> Option<&Made> {
        self.chain.find(hash).filter(|made| made.height <= self.height)
    }

    pub fn tip(&self) -> &Made {
        self.chain.at(self.height)
    }

    pub fn answer(&self, locator: &Locator) -> Message {
        let first = self.chain.fork_height(locator, self.height) + 1;
        let headers = (first..=self.height).take(HEADERS_MAX).map(|height| self.chain.at(height).header);
        Message::Headers(headers.collect())
    }
}

/// What makes a peer what it is.
pub trait Nature: std::fmt::Debug {
    /// It is there, and not connected yet.
    fn begin(&mut self, _body: &mut Body, _stage: &mut Stage<'_>) {}

    /// The handshake is over.
    fn ready(&mut self, _body: &mut Body, _stage: &mut Stage<'_>) {}

    /// A message of the node. Whether it is dealt with; else the peer does what an honest one does.
    fn message(&mut self, _message: &Message, _body: &mut Body, _stage: &mut Stage<'_>) -> bool {
        false
    }

    /// It is the time that was asked for.
    fn woken(&mut self, _what: u32, _body: &mut Body, _stage: &mut Stage<'_>) {}

    /// The connection ended.
    fn closed(&mut self, _body: &mut Body, _stage: &mut Stage<'_>) {}

    /// Whether it has nothing more in mind.
    fn is_done(&self) -> bool {
        true
    }
}

/// What every peer has.
#[derive(Debug)]
pub struct Body {
    pub name: &'static str,
    pub endpoint: Endpoint,
    /// What the connection is to the node.
    pub kind: ConnectionKind,
    pub permissions: Permissions,
    pub services: Services,
    pub shown: Shown,
    /// Addresses for who asks.
    pub addresses: Vec<TimedAddress>,
    pub verdict: Verdict,
    /// It does not understand v2.
    pub knows_v1_only: bool,
    pub is_ready: bool,
    wants_headers: bool,
    is_version_sent: bool,
}

/// A peer.
pub struct Actor {
    pub body: Body,
    nature: Box<dyn Nature>,
}

impl std::fmt::Debug for Actor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?} ({:?})", self.body.name, self.nature, self.body.kind)
    }
}

impl Body {
    /// What must have become of it: whoever is trusted, or was asked for by hand, is not punished.
    pub fn due(&self) -> Verdict {
        let is_spared = self.kind == ConnectionKind::Manual || self.permissions.contains(Permissions::NO_BAN);
        if is_spared && self.verdict == Verdict::Discouraged { Verdict::Spared } else { self.verdict }
    }

    /// Tells of a tip that is new.
    pub fn announce(&self, stage: &mut Stage<'_>) {
        if !self.is_ready {
            return;
        }
        let tip = self.shown.tip();
        stage.send(if self.wants_headers {
            let first = tip.height.saturating_sub(7).max(1);
            Message::Headers((first..=tip.height).map(|height| self.shown.chain.at(height).header).collect())
        } else {
            Message::Inv(vec![Inv::block(InvType::BLOCK, tip.hash)])
        });
    }

    fn send_version(&mut self, stage: &mut Stage<'_>) {
        self.is_version_sent = true;
        let nonce = stage.random.next_u64();
        stage.send(Message::Version(Box::new(Version {
            version: PROTOCOL_VERSION,
            services: self.services,
            time: i64::try_from(stage.unix).unwrap(),
            receiver_services: Services::NONE,
            receiver: Endpoint::default(),
            nonce,
            user_agent: b"/peer:1/".to_vec(),
            start_height: i32::try_from(self.shown.height).unwrap(),
            relay: false,
        })));
    }

    /// What an honest peer does with a message.
    fn answer(&mut self, message: &Message, stage: &mut Stage<'_>) {
        match message {
            Message::Ping(nonce) => stage.send(Message::Pong(*nonce)),
            Message::SendHeaders => self.wants_headers = true,
            Message::GetHeaders(locator) => stage.send(self.shown.answer(locator)),
            Message::GetData(inventory) => inventory.iter().for_each(|item| self.give(item, stage)),
            Message::GetBlockTxn(request) => {
                let Some(made) = self.shown.find(&request.block_hash) else { return };
                let block = RawBlock::new(made.bytes.clone()).parse().unwrap();
                stage.send(Message::BlockTxn(BlockTransactions::new(&block, request).unwrap()));
            }
            Message::GetAddr if !self.addresses.is_empty() => stage.send(Message::AddrV2(self.addresses.clone())),
            _ => {}
        }
    }

    /// A block that was asked for.
    pub fn give(&self, item: &Inv, stage: &mut Stage<'_>) {
        let Some(made) = self.shown.find(&BlockHash(item.hash)) else { return };
        match item.kind {
            InvType::WITNESS_BLOCK => stage.send(Message::Block(made.bytes.clone())),
            InvType::BLOCK => stage.send(Message::Block(RawBlock::new(made.bytes.clone()).parse().unwrap().stripped())),
            InvType::CMPCT_BLOCK => {
                let block = RawBlock::new(made.bytes.clone()).parse().unwrap();
                let nonce = stage.random.next_u64();
                stage.send(Message::CmpctBlock(Box::new(CompactBlock::new(&block, nonce))));
            }
            _ => {}
        }
    }
}

impl Actor {
    pub fn new(name: &'static str, endpoint: Endpoint, kind: ConnectionKind, nature: Box<dyn Nature>) -> Actor {
        let body = Body {
            name,
            endpoint,
            kind,
            permissions: Permissions::NONE,
            services: Services::NETWORK | Services::NETWORK_LIMITED | Services::WITNESS,
            shown: Shown::all(&ground().honest),
            addresses: Vec::new(),
            verdict: Verdict::Spared,
            knows_v1_only: false,
            is_ready: false,
            wants_headers: false,
            is_version_sent: false,
        };
        Actor { body, nature }
    }

    pub fn begin(&mut self, stage: &mut Stage<'_>) {
        self.nature.begin(&mut self.body, stage);
    }

    /// The connection stands.
    pub fn connected(&mut self, stage: &mut Stage<'_>) {
        (self.body.is_ready, self.body.wants_headers, self.body.is_version_sent) = (false, false, false);
        if self.body.kind.is_inbound() {
            self.body.send_version(stage);
        }
    }

    pub fn message(&mut self, message: &Message, stage: &mut Stage<'_>) {
        match message {
            Message::Version(_) => {
                if !self.body.is_version_sent {
                    self.body.send_version(stage);
                }
                stage.send(Message::WtxidRelay);
                stage.send(Message::SendAddrV2);
                stage.send(Message::Verack);
            }
            Message::Verack => {
                self.body.is_ready = true;
                stage.send(Message::SendCmpct(SendCmpct { high_bandwidth: false, version: CMPCTBLOCKS_VERSION }));
                self.nature.ready(&mut self.body, stage);
            }
            message => {
                if !self.nature.message(message, &mut self.body, stage) {
                    self.body.answer(message, stage);
                }
            }
        }
    }

    pub fn woken(&mut self, what: u32, stage: &mut Stage<'_>) {
        self.nature.woken(what, &mut self.body, stage);
    }

    pub fn closed(&mut self, stage: &mut Stage<'_>) {
        self.body.is_ready = false;
        self.nature.closed(&mut self.body, stage);
    }

    pub fn is_done(&self) -> bool {
        self.nature.is_done()
    }
}
