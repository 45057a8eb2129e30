//! Peers that send one message at its limit, or one above it. Core's reaction to each is known: none, a disconnect, or
//! discouragement.

use crate::actor::{Body, Deed, Nature, Stage, Verdict};
use lydian_primitives::build::write_var_bytes;
use lydian_primitives::{BlockHash, write_compact_size};
use lydian_wire::limits::{
    ADDR_COUNT_MAX, HEADERS_COUNT_MAX, INV_COUNT_MAX, LOCATOR_COUNT_MAX, MESSAGE_SIZE_MAX, NOTFOUND_COUNT_MAX,
};
use lydian_wire::{Command, Endpoint, Inv, InvType, Locator, Message, NetAddr, Services, TimedAddress};

/// The limit to test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Addr,
    AddrV2,
    Inv,
    GetData,
    NotFound,
    Headers,
    GetHeaders,
    GetBlocks,
    /// Size of any message.
    Size,
    /// Size of an address of an unknown network.
    AddressSize,
    /// The first field of `sendcmpct`.
    Announce,
    /// Size of a ping's nonce, which is a minimum.
    Ping,
}

impl Limit {
    pub const ALL: [Limit; 12] = [
        Limit::Addr,
        Limit::AddrV2,
        Limit::Inv,
        Limit::GetData,
        Limit::NotFound,
        Limit::Headers,
        Limit::GetHeaders,
        Limit::GetBlocks,
        Limit::Size,
        Limit::AddressSize,
        Limit::Announce,
        Limit::Ping,
    ];

    /// The verdict on a message that exceeds the limit.
    fn verdict(self) -> Verdict {
        match self {
            Limit::Addr | Limit::AddrV2 | Limit::Inv | Limit::GetData | Limit::Headers | Limit::Announce => {
                Verdict::Discouraged
            }
            Limit::GetHeaders | Limit::GetBlocks | Limit::Size => Verdict::Dropped,
            Limit::NotFound | Limit::AddressSize | Limit::Ping => Verdict::Honest,
        }
    }
}

#[derive(Debug)]
pub struct Limits {
    limit: Limit,
    is_above: bool,
    is_done: bool,
}

impl Limits {
    pub fn new(limit: Limit, is_above: bool) -> Limits {
        Limits { limit, is_above, is_done: false }
    }

    fn make(&self, stage: &mut Stage<'_>) -> (Command, Vec<u8>) {
        let more = usize::from(self.is_above);
        let of = |message: Message| (message.command(), message.payload());
        let hashes = |count| Locator { hashes: vec![BlockHash([3; 32]); count], stop: BlockHash([0; 32]) };
        let unknown = |count| vec![Inv::block(InvType::BLOCK, BlockHash([5; 32])); count];
        match self.limit {
            Limit::Addr => of(Message::Addr(addresses(ADDR_COUNT_MAX + more, stage))),
            Limit::AddrV2 => of(Message::AddrV2(addresses(ADDR_COUNT_MAX + more, stage))),
            Limit::Inv => of(Message::Inv(unknown(INV_COUNT_MAX + more))),
            Limit::GetData => of(Message::GetData(unknown(INV_COUNT_MAX + more))),
            Limit::NotFound => of(Message::NotFound(unknown(NOTFOUND_COUNT_MAX + more))),
            Limit::Headers => {
                // The parent of the first header is unknown, so that no headers sync starts.
                let headers = stage.ground.long.blocks().skip(2).take(HEADERS_COUNT_MAX + more);
                of(Message::Headers(headers.map(|made| made.header).collect()))
            }
            Limit::GetHeaders => of(Message::GetHeaders(hashes(LOCATOR_COUNT_MAX + more))),
            Limit::GetBlocks => of(Message::GetBlocks(hashes(LOCATOR_COUNT_MAX + more))),
            Limit::Size => (Command::new("unheardof").unwrap(), vec![0; MESSAGE_SIZE_MAX + more]),
            Limit::AddressSize => {
                // One address of a network that does not exist: time, services, network, address, port.
                let mut payload = vec![1, 0, 0, 0, 100, 1, 200];
                write_var_bytes(&mut payload, &vec![7; 512 + more]);
                payload.extend_from_slice(&[0, 1]);
                (Command::ADDRV2, payload)
            }
            Limit::Announce => {
                (Command::SENDCMPCT, [vec![1 + u8::from(self.is_above)], vec![2; 1], vec![0; 7]].concat())
            }
            Limit::Ping => {
                let mut payload = Vec::new();
                write_compact_size(&mut payload, 8);
                payload.resize(8 - more, 1);
                (Command::PING, payload)
            }
        }
    }
}

/// Returns random IPv4 addresses.
pub(super) fn addresses(count: usize, stage: &mut Stage<'_>) -> Vec<TimedAddress> {
    let time = u32::try_from(stage.unix).unwrap();
    let mut address = || {
        let number = u32::try_from(stage.random.between(0x0b00_0000, 0xd000_0000)).unwrap();
        let endpoint = Endpoint::new(NetAddr::Ipv4(number.into()), 8333);
        TimedAddress { time, services: Services::NETWORK | Services::WITNESS, endpoint }
    };
    (0..count).map(|_| address()).collect()
}

impl Nature for Limits {
    fn ready(&mut self, _: &mut Body, stage: &mut Stage<'_>) {
        self.is_done = true;
        stage.deserve(if self.is_above { self.limit.verdict() } else { Verdict::Honest });
        let (command, payload) = self.make(stage);
        stage.deeds.push(Deed::Payload(command, payload));
    }

    fn closed(&mut self, _: &mut Body, _: &mut Stage<'_>) {
        self.is_done = true;
    }

    fn is_done(&self) -> bool {
        self.is_done
    }
}
