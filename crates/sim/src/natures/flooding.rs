//! Peers that send as fast as their wire allows, with or without reading the responses.

use crate::actor::{Body, Deed, Nature, Stage, Verdict};
use lydian_p2p::peer::Permissions;
use lydian_primitives::BlockHash;
use lydian_wire::message::FilterLoad;
use lydian_wire::{Command, Inv, InvType, Locator, Message};
use std::time::Duration;

/// The kind of message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flood {
    Pings,
    /// Unknown block hashes, as many as fit.
    Inventory,
    /// Requests for all headers.
    GetHeaders,
    GetBlocks,
    /// Requests for the same block, as many as fit.
    GetData,
    /// Requests for the last block as a compact block, as many as fit.
    GetCompact,
    Unknown,
    Versions,
    EmptyHeaders,
    GetAddr,
    Pongs,
    NotFound,
    /// Announcements of transactions, which the node has asked not to get.
    TxInventory,
    Transactions,
    /// Services that the node does not offer.
    Filters,
    MemPool,
    /// Negotiation messages after the handshake.
    Negotiation,
}

impl Flood {
    pub const ALL: [Flood; 17] = [
        Flood::Pings,
        Flood::Inventory,
        Flood::GetHeaders,
        Flood::GetBlocks,
        Flood::GetData,
        Flood::GetCompact,
        Flood::Unknown,
        Flood::Versions,
        Flood::EmptyHeaders,
        Flood::GetAddr,
        Flood::Pongs,
        Flood::NotFound,
        Flood::TxInventory,
        Flood::Transactions,
        Flood::Filters,
        Flood::MemPool,
        Flood::Negotiation,
    ];

    fn verdict(self) -> Verdict {
        match self {
            Flood::TxInventory | Flood::Transactions | Flood::Filters | Flood::MemPool | Flood::Negotiation => {
                Verdict::Dropped
            }
            _ => Verdict::Spared,
        }
    }
}

/// Bytes that a flooding peer keeps in its send queue.
const BACKLOG: usize = 200_000;

#[derive(Debug)]
pub struct Flooding {
    flood: Flood,
    /// Number of messages left to send.
    left: u32,
    reads: bool,
}

impl Flooding {
    pub fn new(flood: Flood, count: u32, reads: bool) -> Flooding {
        let is_large = matches!(flood, Flood::Inventory | Flood::GetData | Flood::GetCompact | Flood::NotFound);
        Flooding { flood, left: if is_large { 3 } else { count }, reads }
    }

    fn pour(&mut self, body: &mut Body, stage: &mut Stage<'_>) {
        let mut bytes = stage.backlog;
        while self.left > 0 && bytes < BACKLOG {
            self.left -= 1;
            let message = self.make(body, stage);
            bytes += 24 + message.payload().len();
            stage.send(message);
        }
        if self.left > 0 {
            stage.wake(Duration::from_millis(20), 0);
        }
    }

    fn make(&self, body: &Body, stage: &mut Stage<'_>) -> Message {
        let mut strange = [0; 32];
        stage.random.fill(&mut strange);
        let tip = body.shown.tip().hash;
        let known = body.shown.chain.at(1).hash;
        let all = Locator { hashes: vec![body.shown.chain.at(0).hash], stop: BlockHash([0; 32]) };
        let many = |kind, hash| vec![Inv::block(kind, hash); 20_000];
        match self.flood {
            Flood::Pings => Message::Ping(Some(stage.random.next_u64())),
            Flood::Pongs => Message::Pong(Some(stage.random.next_u64())),
            Flood::Inventory => {
                let mut inventory = many(InvType::BLOCK, tip);
                for (item, number) in inventory.iter_mut().zip(0_u32..) {
                    item.hash = strange;
                    item.hash[..4].copy_from_slice(&number.to_le_bytes());
                }
                Message::Inv(inventory)
            }
            Flood::NotFound => Message::NotFound(vec![Inv::block(InvType::WITNESS_BLOCK, tip); 5_000]),
            Flood::GetHeaders => Message::GetHeaders(all),
            Flood::GetBlocks => Message::GetBlocks(all),
            Flood::GetData => Message::GetData(many(InvType::WITNESS_BLOCK, known)),
            Flood::GetCompact => Message::GetData(many(InvType::CMPCT_BLOCK, tip)),
            Flood::Unknown => {
                let size = usize::try_from(stage.random.below(3_000)).unwrap();
                Message::Unknown { command: Command::new("unheardof").unwrap(), payload: vec![9; size] }
            }
            Flood::Versions => Message::Unknown { command: Command::VERSION, payload: vec![1; 100] },
            Flood::EmptyHeaders => Message::Headers(Vec::new()),
            Flood::GetAddr => Message::GetAddr,
            Flood::TxInventory => Message::Inv(vec![Inv { kind: InvType::WTX, hash: strange }]),
            Flood::Transactions => {
                let block = lydian_primitives::RawBlock::new(body.shown.tip().bytes.clone()).parse().unwrap();
                let tx = lydian_primitives::build::MutBlock::from(&block).txs.pop().unwrap();
                Message::Tx(tx.encode())
            }
            Flood::Filters => Message::FilterLoad(FilterLoad { data: vec![1; 10], hash_funcs: 1, tweak: 0, flags: 0 }),
            Flood::MemPool => Message::MemPool,
            Flood::Negotiation => Message::WtxidRelay,
        }
    }
}

impl Nature for Flooding {
    fn ready(&mut self, body: &mut Body, stage: &mut Stage<'_>) {
        if !self.reads {
            stage.deeds.push(Deed::Deafen);
        }
        // A trusted peer may request the mempool.
        let may = self.flood == Flood::MemPool && body.permissions.contains(Permissions::NO_BAN);
        stage.deserve(if may { Verdict::Spared } else { self.flood.verdict() });
        self.pour(body, stage);
    }

    fn woken(&mut self, _: u32, body: &mut Body, stage: &mut Stage<'_>) {
        self.pour(body, stage);
    }

    fn closed(&mut self, _: &mut Body, _: &mut Stage<'_>) {
        self.left = 0;
    }
}
