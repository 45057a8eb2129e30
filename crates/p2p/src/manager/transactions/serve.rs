//! Requested transactions: Core's `ProcessGetData` and `FindTxForGetData`.
//!
//! A peer may request fifty thousand transactions at once. They wait, charged to the peer, and are sent as its send
//! queue has room. Requested blocks keep their place between them.

use super::Transactions;
use crate::manager::PeerId;
use crate::manager::context::Context;
use crate::manager::pool::View;
use crate::txs::announce::Served;
use lydian_wire::{Inv, Message};

/// The next requested item of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::manager) enum NextItem {
    /// Nothing is left, or a transaction waits for room.
    None,
    Block(Inv),
    /// A transaction was sent.
    Done,
}

impl Transactions {
    /// A peer requested these items.
    pub(in crate::manager) fn take_requests(&mut self, context: &mut Context, id: PeerId, inventory: Vec<Inv>) {
        context.with(id, |peer| {
            peer.txs.requested.extend(inventory);
            peer.txs.count_requested();
        });
        self.asking.insert(id);
    }

    /// Returns the peers whose requests are not answered completely.
    pub(in crate::manager) fn asking(&self) -> Vec<PeerId> {
        self.asking.iter().copied().collect()
    }

    /// Looks at the next requested item, which stays in its place if it is a block.
    pub(in crate::manager) fn serve_next(&mut self, context: &mut Context, id: PeerId, has_room: bool) -> NextItem {
        let view = View::of(&self.mempool);
        loop {
            let front = context.peers.get(&id).and_then(|peer| peer.txs.requested.front().copied());
            let Some(item) = front.filter(|item| item.kind.is_gen_tx()) else {
                // The run of transactions ends: those that are not here are reported.
                self.report_missing(context, id);
                match front {
                    Some(item) if item.kind.is_gen_block() => return NextItem::Block(item),
                    Some(_) => self.drop_request(context, id),
                    None => {
                        self.asking.remove(&id);
                        return NextItem::None;
                    }
                }
                continue;
            };
            if !has_room {
                // As at the end of Core's `ProcessGetData`: what is missing is reported with each part that is sent.
                self.report_missing(context, id);
                return NextItem::None;
            }
            self.drop_request(context, id);
            match self.announcer.serve(id, &item, &view, &self.recent) {
                Served::Ignored => {}
                Served::NotFound => context.with(id, |peer| peer.txs.missing.push(item)),
                Served::Found { txid, bytes } => {
                    context.send(id, Message::Tx(bytes));
                    self.mempool.note_broadcast(txid);
                    return NextItem::Done;
                }
            }
        }
    }

    /// Takes the next requested item out of the queue of a peer.
    pub(in crate::manager) fn drop_request(&mut self, context: &mut Context, id: PeerId) {
        context.with(id, |peer| {
            peer.txs.requested.pop_front();
            if peer.txs.requested.is_empty() {
                peer.txs.requested = std::collections::VecDeque::new();
                peer.txs.count_requested();
            }
        });
    }

    fn report_missing(&mut self, context: &mut Context, id: PeerId) {
        let mut missing = Vec::new();
        context.with(id, |peer| missing = std::mem::take(&mut peer.txs.missing));
        if !missing.is_empty() {
            context.send(id, Message::NotFound(missing));
            context.with(id, |peer| peer.txs.count_requested());
        }
    }
}
