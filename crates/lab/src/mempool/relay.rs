//! Sessions in which the mempool comes from peers: from one, and from many.
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
use lydian_primitives::Wtxid;
use lydian_report::mempool::Unit;
use lydian_wire::{Inv, InvType, Message};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
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
/// Until everything that was announced is accepted: a node waits two seconds before it requests from an incoming peer,
/// and may be behind.
const TAIL_MAX: Duration = Duration::from_secs(60);
/// Transactions in one announcement of the row `tx`, and how far the announcements may be ahead of the requests: nodes
/// remember 5,000 announcements of one peer.
const INV_SIZE: usize = 500;
const WINDOW: usize = 4_000;
const STACK_BYTES: usize = 512 << 10;
const POLL: Duration = Duration::from_millis(20);
/// A node that has fewer of the announced transactions than this did not do the work.
const ACCEPTED_PER_MILLE_MIN: u64 = 990;

/// The options of a session with one peer: the node requests from it without a delay and without a limit, as from the
/// peers that it chose itself.
pub const TX_OPTIONS: &[&str] = &["-whitelist=noban,relay@127.0.0.1"];

/// The transactions from one peer, which announces them and sends what is requested. No transaction is sent unless the
/// node requested it, as between real nodes.
pub fn tx(common: &Common<'_>, node: &Node, measured: &mut Measured) -> Result<(), LabError> {
    let peer = Peer::connect(node.port, 1, common.data.facts.height)?;
    let txs = &common.data.waiting.txs;
    let ids = Ids::of(txs)?;
    let is_over = AtomicBool::new(false);
    let (cpu, start) = (node.cpu_seconds(), system::now());
    thread::scope(|scope| {
        let sender = scope.spawn(|| serve_one(peer, txs, &ids, &is_over));
        let grown = node.wait_for_size(txs.len() as u64);
        let (wall, used) = (start.elapsed().as_secs_f64(), node.cpu_seconds() - cpu);
        is_over.store(true, Ordering::Relaxed);
        let sent = sender.join().map_err(|_| LabError::program("peer of the lab", "its thread ended"))?;
        sent.and(grown)?;
        measured.seconds(Row::Tx, "wall", wall);
        measured.seconds(Row::Tx, "cpu", used);
        Ok(())
    })
}

/// Announces the transactions in order, at most [`WINDOW`] ahead of the requests, and answers requests until
/// it is over.
fn serve_one(mut peer: Peer, txs: &[Vec<u8>], ids: &Ids, is_over: &AtomicBool) -> Result<(), LabError> {
    let (mut announced, mut served) = (0, 0);
    while !is_over.load(Ordering::Relaxed) {
        while announced < txs.len() && announced + INV_SIZE <= served + WINDOW {
            let next = ids.wtxids.iter().skip(announced).take(INV_SIZE);
            peer.send(&inventory(next))?;
            announced += INV_SIZE;
        }
        if let Some(Message::GetData(wanted)) = peer.next(POLL)? {
            served += ids.answer(&mut peer, txs, &wanted)?;
        }
    }
    Ok(())
}

fn inventory<'a>(wtxids: impl Iterator<Item = &'a Wtxid>) -> Message {
    Message::Inv(wtxids.map(|wtxid| Inv { kind: InvType::WTX, hash: wtxid.0 }).collect())
}

/// The ids of transactions.
struct Ids {
    wtxids: Vec<Wtxid>,
    /// By wtxid, and by txid for parents of orphans.
    places: HashMap<[u8; 32], usize>,
}

impl Ids {
    fn of(txs: &[Vec<u8>]) -> Result<Ids, LabError> {
        let (mut wtxids, mut places) = (Vec::new(), HashMap::new());
        for (place, tx) in txs.iter().enumerate() {
            let tx = parse_tx(tx)?;
            places.insert(tx.view().txid().0, place);
            places.insert(tx.view().wtxid().0, place);
            wtxids.push(tx.view().wtxid());
        }
        Ok(Ids { wtxids, places })
    }

    /// Sends what is requested; returns the number of transactions.
    fn answer(&self, peer: &mut Peer, txs: &[Vec<u8>], wanted: &[Inv]) -> Result<usize, LabError> {
        let found: Vec<usize> = wanted.iter().filter_map(|inv| self.places.get(&inv.hash)).copied().collect();
        peer.send_all(found.iter().filter_map(|place| txs.get(*place)).map(|tx| Message::Tx(tx.clone())))?;
        Ok(found.len())
    }
}

/// The transactions, and who announces which.
struct Crowd<'a> {
    txs: &'a [Vec<u8>],
    ids: Ids,
    start: Instant,
    seconds: usize,
    is_over: AtomicBool,
}

/// The transactions, announced by [`PEERS`] peers.
pub fn peers(common: &Common<'_>, node: &Node, measured: &mut Measured) -> Result<(), LabError> {
    let seconds = common.settings.peers_seconds as usize;
    let wanted = seconds * per_second();
    let txs = common.data.waiting.txs.get(..wanted).unwrap_or(&common.data.waiting.txs);
    let ids = Ids::of(txs)?;
    let height = common.data.facts.height;
    let mut all = Vec::new();
    for number in 0..PEERS {
        all.push(Peer::connect(node.port, number as u64 + 1, height)?);
    }
    node.until_idle();
    let cpu = node.cpu_seconds();
    let crowd = Crowd { txs, ids, start: system::now(), seconds, is_over: AtomicBool::new(false) };
    let served = thread::scope(|scope| {
        let mut threads = Vec::new();
        for (number, peer) in all.into_iter().enumerate() {
            let crowd = &crowd;
            let builder = thread::Builder::new().stack_size(STACK_BYTES);
            let spawned = builder.spawn_scoped(scope, move || crowd.serve(number, peer));
            match spawned {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    crowd.is_over.store(true, Ordering::Relaxed);
                    return Err(LabError::program("peer of the lab", error));
                }
            }
        }
        let wait = crowd.wait(node, common);
        crowd.is_over.store(true, Ordering::Relaxed);
        wait?;
        let join = |thread: thread::ScopedJoinHandle<'_, Result<u64, LabError>>| {
            thread.join().unwrap_or_else(|_| Err(LabError::program("peer of the lab", "its thread ended")))
        };
        threads.into_iter().map(join).sum::<Result<u64, LabError>>()
    })?;
    let used = node.cpu_seconds() - cpu;
    let behind = crowd.start.elapsed().as_secs_f64() - as_f64(seconds as u64);
    let accepted = node.content()?.size;
    let announced = txs.len() as u64;
    if accepted * 1_000 < announced * ACCEPTED_PER_MILLE_MIN {
        let text = format!("it accepted {accepted} of {announced} announced transactions, and requested {served}");
        return Err(LabError::program("mempool", text));
    }
    measured.seconds(Row::Peers, "cpu", used);
    measured.seconds(Row::Peers, "accepted after the last second", behind);
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
    /// Waits until everything that was announced is accepted, at most [`TAIL_MAX`] after the last announcement.
    fn wait(&self, node: &Node, common: &Common<'_>) -> Result<(), LabError> {
        let announcing = Duration::from_secs(self.seconds as u64);
        while self.start.elapsed() < announcing + TAIL_MAX && !common.is_interrupted() {
            if self.start.elapsed() >= announcing && node.content()?.size >= self.txs.len() as u64 {
                break;
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// Announces its share every second and answers requests, until the end. Returns the number of transactions sent.
    fn serve(&self, number: usize, mut peer: Peer) -> Result<u64, LabError> {
        // The peers are spread over the second.
        let offset = Duration::from_millis((number * 1_000 / PEERS) as u64);
        let mut second = 0;
        let mut served = 0;
        while !self.is_over.load(Ordering::Relaxed) {
            if second < self.seconds && self.start.elapsed() >= offset + Duration::from_secs(second as u64) {
                self.announce(number, second, &mut peer)?;
                second += 1;
            }
            if let Some(Message::GetData(wanted)) = peer.next(POLL)? {
                served += self.ids.answer(&mut peer, self.txs, &wanted)? as u64;
            }
        }
        Ok(served)
    }

    fn announce(&self, number: usize, second: usize, peer: &mut Peer) -> Result<(), LabError> {
        let first = second * per_second();
        let ids: Vec<&Wtxid> = announced_by(number).filter_map(|place| self.ids.wtxids.get(first + place)).collect();
        if ids.is_empty() { Ok(()) } else { peer.send(&inventory(ids.into_iter())) }
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
