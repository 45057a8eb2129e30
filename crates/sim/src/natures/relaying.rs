//! Peers that relay transactions: honest ones, which announce their own and fetch those of others, and ones that abuse
//! the relay without breaking a rule for which Core punishes a peer.

use crate::actor::{Body, Nature, Stage};
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint, Transaction, Txid};
use lydian_wire::limits::INV_COUNT_MAX;
use lydian_wire::{Inv, InvType, Message};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

fn wtx(tx: &Transaction) -> Inv {
    Inv { kind: InvType::WTX, hash: tx.view().wtxid().0 }
}

fn message(tx: &Transaction) -> Message {
    Message::Tx(tx.as_bytes().to_vec())
}

/// The transactions that a peer has, by wtxid and by txid.
#[derive(Debug, Default)]
struct Pool(BTreeMap<[u8; 32], Arc<Transaction>>);

impl Pool {
    fn add(&mut self, tx: &Arc<Transaction>) {
        let view = tx.view();
        self.0.extend([(view.wtxid().0, Arc::clone(tx)), (view.txid().0, Arc::clone(tx))]);
    }

    /// Answers a request as an honest peer does.
    fn serve(&self, inventory: &[Inv], stage: &mut Stage<'_>) {
        let mut missing = Vec::new();
        for item in inventory.iter().filter(|item| item.kind.is_gen_tx()) {
            match self.0.get(&item.hash) {
                Some(tx) => stage.send(message(tx)),
                None => missing.push(*item),
            }
        }
        if !missing.is_empty() {
            stage.send(Message::NotFound(missing));
        }
    }
}

/// A transaction that an honest peer announces.
#[derive(Clone, Debug)]
pub struct Own {
    /// When, since the peer was added.
    pub at: Duration,
    pub tx: Arc<Transaction>,
    /// The transactions that it depends on. The peer has them too, wherever they are announced first.
    pub ancestors: Vec<Arc<Transaction>>,
}

/// An honest peer. It announces its own transactions at their times, and is done when it has those of all honest peers.
pub struct Relaying {
    /// Its own transactions, in the order of their times.
    own: Vec<Own>,
    next: usize,
    wanted: BTreeSet<[u8; 32]>,
    pool: Pool,
}

impl std::fmt::Debug for Relaying {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let missing = self.wanted.iter().filter(|wtxid| !self.pool.0.contains_key(*wtxid)).count();
        write!(f, "with {} transactions, {} announced, {missing} of others missing", self.own.len(), self.next)
    }
}

impl Relaying {
    /// `wanted`: the wtxids of all honest transactions.
    pub fn new(own: Vec<Own>, wanted: BTreeSet<[u8; 32]>) -> Relaying {
        Relaying { own, next: 0, wanted, pool: Pool::default() }
    }
}

impl Nature for Relaying {
    fn begin(&mut self, _: &mut Body, stage: &mut Stage<'_>) {
        self.own.iter().for_each(|own| stage.wake(own.at, 0));
    }

    fn message(&mut self, message: &Message, _: &mut Body, stage: &mut Stage<'_>) -> bool {
        match message {
            Message::Inv(inventory) => {
                let unknown = |item: &&Inv| item.kind == InvType::WTX && !self.pool.0.contains_key(&item.hash);
                let wanted: Vec<_> = inventory.iter().filter(unknown).copied().collect();
                if !wanted.is_empty() {
                    stage.send(Message::GetData(wanted));
                }
                true
            }
            Message::Tx(bytes) => {
                self.pool.add(&Arc::new(Transaction::parse(bytes.clone()).unwrap()));
                true
            }
            Message::GetData(inventory) if inventory.iter().all(|item| item.kind.is_gen_tx()) => {
                self.pool.serve(inventory, stage);
                true
            }
            _ => false,
        }
    }

    fn woken(&mut self, _: u32, _: &mut Body, stage: &mut Stage<'_>) {
        if let Some(own) = self.own.get(self.next) {
            self.next += 1;
            own.ancestors.iter().chain([&own.tx]).for_each(|tx| self.pool.add(tx));
            stage.send(Message::Inv(vec![wtx(&own.tx)]));
        }
    }

    fn is_done(&self) -> bool {
        self.wanted.iter().all(|wtxid| self.pool.0.contains_key(wtxid))
    }
}

/// How the relay is abused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abuse {
    /// Transactions whose parents do not exist.
    Orphans,
    /// Announced transactions whose parents it does not deliver.
    WithheldParents,
    /// Announcements of the honest transactions, which it does not deliver.
    Unanswered,
    /// Announcements of transactions that do not exist, as many as fit.
    Inventory,
    /// Requests for everything, again and again.
    Requests,
    /// The given transactions, sent unrequested: conflicts, replacements.
    Given,
}

impl Abuse {
    pub const ALL: [Abuse; 6] =
        [Abuse::Orphans, Abuse::WithheldParents, Abuse::Unanswered, Abuse::Inventory, Abuse::Requests, Abuse::Given];
}

/// A peer that abuses the relay.
#[derive(Debug)]
pub struct Abusing {
    abuse: Abuse,
    /// When it begins, since it was added.
    begin: Duration,
    /// The rounds left.
    left: u32,
    honest: Vec<[u8; 32]>,
    given: Vec<Arc<Transaction>>,
    pool: Pool,
}

/// Time between two rounds.
const PAUSE: Duration = Duration::from_millis(700);

impl Abusing {
    /// `honest`: the wtxids of the honest transactions.
    pub fn new(
        abuse: Abuse,
        begin: Duration,
        rounds: u32,
        honest: Vec<[u8; 32]>,
        given: Vec<Arc<Transaction>>,
    ) -> Abusing {
        Abusing { abuse, begin, left: rounds, honest, given, pool: Pool::default() }
    }

    /// A transaction without a parent.
    fn orphan(stage: &mut Stage<'_>) -> Arc<Transaction> {
        let mut txid = [0; 32];
        stage.random.fill(&mut txid);
        let size = usize::try_from(stage.random.between(30, 20_000)).unwrap();
        let prevout = OutPoint { txid: Txid(txid), vout: 0 };
        let input = MutInput { prevout, script_sig: Vec::new(), sequence: 0, witness: vec![vec![1; size]] };
        let output = MutOutput { value: Amount(1_000), script_pubkey: [&[0, 20][..], &[7; 20]].concat() };
        let tx = MutTx { version: 2, inputs: vec![input], outputs: vec![output], lock_time: 0 };
        Arc::new(tx.to_transaction().unwrap())
    }

    fn round(&mut self, stage: &mut Stage<'_>) {
        let as_inv = |hash: &[u8; 32]| Inv { kind: InvType::WTX, hash: *hash };
        match self.abuse {
            Abuse::Orphans => (0..30).for_each(|_| {
                let tx = Abusing::orphan(stage);
                stage.send(message(&tx));
            }),
            Abuse::WithheldParents => (0..30).for_each(|_| {
                let tx = Abusing::orphan(stage);
                self.pool.add(&tx);
                stage.send(Message::Inv(vec![wtx(&tx)]));
            }),
            Abuse::Unanswered => stage.send(Message::Inv(self.honest.iter().map(as_inv).collect())),
            Abuse::Inventory => {
                let unknown = |_| {
                    let mut hash = [0; 32];
                    stage.random.fill(&mut hash);
                    as_inv(&hash)
                };
                let items = (0..2_000).map(unknown).collect();
                stage.send(Message::Inv(items));
            }
            Abuse::Requests => {
                let everything = self.honest.iter().map(as_inv).cycle().take(INV_COUNT_MAX / 10).collect();
                stage.send(Message::GetData(everything));
            }
            Abuse::Given => {
                if let Some(tx) = self.given.pop() {
                    self.left += 1;
                    stage.send(message(&tx));
                }
            }
        }
    }
}

impl Nature for Abusing {
    fn begin(&mut self, _: &mut Body, stage: &mut Stage<'_>) {
        stage.wake(self.begin, 0);
    }

    fn message(&mut self, message: &Message, _: &mut Body, stage: &mut Stage<'_>) -> bool {
        match message {
            Message::GetData(inventory) if inventory.iter().all(|item| item.kind.is_gen_tx()) => {
                if self.abuse == Abuse::WithheldParents {
                    self.pool.serve(inventory, stage);
                }
                true
            }
            _ => false,
        }
    }

    fn woken(&mut self, _: u32, body: &mut Body, stage: &mut Stage<'_>) {
        if self.left > 0 && body.is_ready {
            self.left -= 1;
            self.round(stage);
            stage.wake(PAUSE, 0);
        }
    }
}
