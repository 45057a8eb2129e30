//! Sessions in which the mempool comes from peers: as `tx` messages of one, and announced by many.
//!
//! Input: a node with an empty mempool, the data. Output: figures. In the row `peers` every transaction is announced by
//! two peers, each peer announces ten a second, and the peer that is asked answers. Cost: one thread per peer. It
//! must never leave a request unanswered.

use super::data::parse_tx;
use super::node::{Common, Node};
use super::peer::Peer;
use super::rows::{Measured, Row, as_f64};
use crate::error::LabError;
use crate::runs::system;
use lydian_primitives::{Txid, Wtxid};
use lydian_report::mempool::Unit;
use lydian_wire::{Inv, InvType, Message};
use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant};

/// Peers of the row `peers`: the most that a node has by default.
pub const PEERS: usize = 125;
/// Transactions that each of them announces in a second.
const PER_SECOND: usize = 10;
/// Peers that announce one transaction.
const ANNOUNCERS: usize = 2;
/// The second announcer of a transaction is this many peers after the first.
const SECOND_PEER: usize = 37;
/// After the last announcement: a node waits two seconds before it requests from an incoming peer.
const TAIL: Duration = Duration::from_secs(5);
const STACK_BYTES: usize = 512 << 10;
const POLL: Duration = Duration::from_millis(20);
/// A node that has fewer of the announced transactions than this did not do the work.
const ACCEPTED_PER_MILLE_MIN: u64 = 990;

/// The transactions as unrequested messages of one peer.
pub fn tx(common: &Common<'_>, node: &Node, measured: &mut Measured) -> Result<(), LabError> {
    let mut peer = Peer::connect(node.port, 1, common.data.facts.height)?;
    let txs = &common.data.waiting.txs;
    let (cpu, start) = (node.cpu_seconds(), system::now());
    thread::scope(|scope| {
        let sender = scope.spawn(move || peer.send_all(txs.iter().map(|tx| Message::Tx(tx.clone()))).map(|()| peer));
        let grown = node.wait_for_size(txs.len() as u64);
        let (wall, used) = (start.elapsed().as_secs_f64(), node.cpu_seconds() - cpu);
        // The connection must stay open until everything was accepted.
        let sent = sender.join().map_err(|_| LabError::program("peer of the lab", "its thread ended"))?;
        grown?;
        sent?;
        measured.seconds(Row::Tx, "wall", wall);
        measured.seconds(Row::Tx, "cpu", used);
        Ok(())
    })
}

/// The transactions by id, and who announces which.
struct Crowd<'a> {
    txs: &'a [Vec<u8>],
    wtxids: Vec<Wtxid>,
    /// By wtxid, and by txid for parents of orphans.
    places: HashMap<[u8; 32], usize>,
    start: Instant,
    seconds: usize,
}

/// The transactions, announced by [`PEERS`] peers.
pub fn peers(common: &Common<'_>, node: &Node, measured: &mut Measured) -> Result<(), LabError> {
    let seconds = common.settings.peers_seconds as usize;
    let wanted = seconds * per_second();
    let txs = common.data.waiting.txs.get(..wanted).unwrap_or(&common.data.waiting.txs);
    let ids = txs.iter().map(|tx| parse_tx(tx).map(|tx| (tx.view().txid(), tx.view().wtxid())));
    let ids: Vec<(Txid, Wtxid)> = ids.collect::<Result<_, LabError>>()?;
    let mut places: HashMap<[u8; 32], usize> = ids.iter().map(|(txid, _)| txid.0).zip(0..).collect();
    places.extend(ids.iter().map(|(_, wtxid)| wtxid.0).zip(0..));
    let height = common.data.facts.height;
    let mut all = Vec::new();
    for number in 0..PEERS {
        all.push(Peer::connect(node.port, number as u64 + 1, height)?);
    }
    node.until_idle();
    let wtxids = ids.into_iter().map(|(_, wtxid)| wtxid).collect();
    let cpu = node.cpu_seconds();
    let crowd = Crowd { txs, wtxids, places, start: system::now(), seconds };
    let served = thread::scope(|scope| {
        let mut threads = Vec::new();
        for (number, peer) in all.into_iter().enumerate() {
            let crowd = &crowd;
            let builder = thread::Builder::new().stack_size(STACK_BYTES);
            let spawned = builder.spawn_scoped(scope, move || crowd.serve(number, peer, common));
            threads.push(spawned.map_err(|error| LabError::program("peer of the lab", error))?);
        }
        let join = |thread: thread::ScopedJoinHandle<'_, Result<u64, LabError>>| {
            thread.join().unwrap_or_else(|_| Err(LabError::program("peer of the lab", "its thread ended")))
        };
        threads.into_iter().map(join).sum::<Result<u64, LabError>>()
    })?;
    let used = node.cpu_seconds() - cpu;
    let accepted = node.content()?.size;
    let announced = txs.len() as u64;
    if accepted * 1_000 < announced * ACCEPTED_PER_MILLE_MIN {
        let text = format!("it accepted {accepted} of {announced} announced transactions, and requested {served}");
        return Err(LabError::program("mempool", text));
    }
    measured.seconds(Row::Peers, "cpu", used);
    measured.add(Row::Peers, "accepted", Unit::Count, as_f64(accepted));
    measured.add(Row::Peers, "requests answered", Unit::Count, as_f64(served));
    Ok(())
}

/// Different transactions announced in a second.
fn per_second() -> usize {
    PEERS * PER_SECOND / ANNOUNCERS
}

/// The places of the transactions that a peer announces in this second, counted from the second's first.
fn announced_by(number: usize) -> impl Iterator<Item = usize> {
    let is_ours = move |place: &usize| {
        let first = place % PEERS;
        first == number || (first + SECOND_PEER) % PEERS == number
    };
    (0..per_second()).filter(is_ours)
}

impl Crowd<'_> {
    /// Announces its share every second and answers requests, until the end. Returns the number of transactions sent.
    fn serve(&self, number: usize, mut peer: Peer, common: &Common<'_>) -> Result<u64, LabError> {
        let end = Duration::from_secs(self.seconds as u64) + TAIL;
        // The peers are spread over the second.
        let offset = Duration::from_millis((number * 1_000 / PEERS) as u64);
        let mut second = 0;
        let mut served = 0;
        while self.start.elapsed() < end && !common.is_interrupted() {
            if second < self.seconds && self.start.elapsed() >= offset + Duration::from_secs(second as u64) {
                self.announce(number, second, &mut peer)?;
                second += 1;
            }
            if let Some(Message::GetData(wanted)) = peer.next(POLL)? {
                let found = wanted.iter().filter_map(|inv| self.places.get(&inv.hash)).copied();
                let found: Vec<usize> = found.collect();
                served += found.len() as u64;
                peer.send_all(found.into_iter().map(|place| Message::Tx(self.txs[place].clone())))?;
            }
        }
        Ok(served)
    }

    fn announce(&self, number: usize, second: usize, peer: &mut Peer) -> Result<(), LabError> {
        let first = second * per_second();
        let ids = announced_by(number).filter_map(|place| self.wtxids.get(first + place));
        let list: Vec<Inv> = ids.map(|wtxid| Inv { kind: InvType::WTX, hash: wtxid.0 }).collect();
        if list.is_empty() { Ok(()) } else { peer.send(&Message::Inv(list)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_peer_announces_ten_and_each_transaction_has_two_announcers() {
        let mut announcers = vec![0; per_second()];
        for number in 0..PEERS {
            let places: Vec<usize> = announced_by(number).collect();
            assert_eq!(places.len(), PER_SECOND, "{number}");
            places.into_iter().for_each(|place| announcers[place] += 1);
        }
        assert!(announcers.iter().all(|count| *count == ANNOUNCERS));
    }
}
