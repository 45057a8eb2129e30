//! A synced node that relays transactions between honest peers, while others abuse the relay.
//!
//! Input: a seed. Output: a [`Plot`] in which each honest transaction must reach each honest peer in time, whatever the
//! others do, and no peer is punished.

use super::Plot;
use crate::actor::{Shown, Verdict};
use crate::chain::{Coin, pay, pay_with};
use crate::ground::ground;
use crate::link::Wire;
use crate::natures::{Abuse, Abusing, Own, Relaying};
use crate::world::World;
use lydian_chains::rng::Random;
use lydian_consensus::U256;
use lydian_p2p::manager::ConnectSettings;
use lydian_p2p::peer::ConnectionKind;
use lydian_primitives::Transaction;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// When the first transactions are announced: by then the node has the chain.
const BEGIN: Duration = Duration::from_secs(40);

/// Time limit for all transactions. A peer that does not answer delays one by a minute, and there are a few of these.
const DEADLINE: Duration = Duration::from_secs(20 * 60);

/// Coins that the honest peers spend; the others are for those that conflict.
const HONEST_COINS: usize = 20;

/// Builds the world of a seed.
pub(super) fn relay(seed: u64, is_logged: bool) -> Plot {
    let random = Random::new(seed, "relay");
    let world = World::relaying(seed, U256::ZERO, ConnectSettings::default(), is_logged);
    let mut plot = Plot::new(world, Shown::all(&ground().honest), DEADLINE, random);
    let coins = ground().honest.coins();
    let count = usize::try_from(plot.random.between(2, 4)).unwrap();
    let mut shares = plot.honest_transactions(&coins[..HONEST_COINS], count);
    let mut left = coins[HONEST_COINS..].to_vec();
    let pins = plot.pinned(&mut left, &mut shares);
    shares.iter_mut().for_each(|share| share.sort_by_key(|own| (own.at, own.tx.view().txid())));
    let all = || shares.iter().flatten().map(|own| own.tx.view().wtxid().0);
    let wanted: BTreeSet<_> = all().collect();
    let honest: Vec<_> = all().collect();
    for (index, own) in shares.iter().enumerate() {
        let kinds = [ConnectionKind::OutboundFullRelay, ConnectionKind::Inbound];
        let kind = if index == 0 { kinds[0] } else { kinds[plot.random.index(2)] };
        let mut actor = plot.actor("relaying", kind, Box::new(Relaying::new(own.clone(), wanted.clone())));
        actor.body.relays = true;
        actor.body.verdict = Verdict::Honest;
        plot.meet(actor);
    }
    for pin in pins {
        plot.abuse(Abuse::Given, &honest, vec![pin]);
    }
    for _ in 0..plot.random.below(6) {
        let abuse = Abuse::ALL[plot.random.index(Abuse::ALL.len())];
        let (own, other) = if abuse == Abuse::Given { plot.conflicts(&mut left) } else { Default::default() };
        for given in [own, other] {
            if abuse == Abuse::Given || given.is_empty() {
                plot.abuse(abuse, &honest, given);
            }
        }
    }
    plot
}

impl Plot {
    /// Makes transactions and assigns them to peers. Some spend others, which another peer may announce.
    fn honest_transactions(&mut self, coins: &[Coin], peers: usize) -> Vec<Vec<Own>> {
        let mut shares = vec![Vec::new(); peers];
        for coin in coins {
            let mut coin = coin.clone();
            let mut ancestors = Vec::new();
            let mut at = BEGIN + Duration::from_millis(self.random.below(60_000));
            for _ in 0..self.random.between(1, 4) {
                let fee = i64::try_from(self.random.between(500, 20_000)).unwrap();
                let (tx, next) = pay(&coin, fee);
                coin = next;
                let own = Own { at, tx: Arc::clone(&tx), ancestors: ancestors.clone() };
                shares[self.random.index(peers)].push(own);
                ancestors.push(tx);
                at += Duration::from_millis(self.random.below(5_000));
            }
        }
        shares
    }

    /// Adds a peer that abuses the relay.
    fn abuse(&mut self, abuse: Abuse, honest: &[[u8; 32]], given: Vec<Arc<Transaction>>) {
        let begin = Duration::from_secs(self.random.between(20, 90));
        let rounds = u32::try_from(self.random.between(5, 60)).unwrap();
        let nature = Abusing::new(abuse, begin, rounds, honest.to_vec(), given);
        // A connection for blocks would end with the first transaction, and too many outbound ones end some.
        let kinds = [ConnectionKind::Inbound, ConnectionKind::Manual];
        let kind = kinds[self.random.index(2)];
        let mut actor = self.actor("abusing", kind, Box::new(nature));
        actor.body.relays = true;
        self.meet(actor);
    }

    /// A payment of two parties, of which one pins it: a transaction of version 3 (BIP-0431) with an output for each.
    /// The other party attaches a child that is too large for one, and a small one that pays little. The honest child
    /// must reach everyone all the same. Returns the children of the other party.
    fn pinned(&mut self, coins: &mut Vec<Coin>, shares: &mut [Vec<Own>]) -> Vec<Arc<Transaction>> {
        let Some(coin) = coins.pop() else { return Vec::new() };
        let (parent, outputs) = pay_with(&coin, 1_000, 3, 2);
        let (child, _) = pay_with(&outputs[0], 20_000, 3, 1);
        let large = pay_with(&outputs[1], 2_000, 3, 60).0;
        let small = pay_with(&outputs[1], 300, 3, 1).0;
        let at = BEGIN + Duration::from_millis(self.random.below(30_000));
        let after = at + Duration::from_millis(self.random.below(60_000));
        let own = Own { at, tx: Arc::clone(&parent), ancestors: Vec::new() };
        shares[self.random.index(shares.len())].push(own);
        shares[self.random.index(shares.len())].push(Own { at: after, tx: child, ancestors: vec![parent] });
        vec![large, small]
    }

    /// Transactions that conflict, for two peers: each sends replacements for the same coin.
    fn conflicts(&mut self, coins: &mut Vec<Coin>) -> (Vec<Arc<Transaction>>, Vec<Arc<Transaction>>) {
        let Some(coin) = coins.pop() else { return Default::default() };
        let (mut own, mut other) = (Vec::new(), Vec::new());
        for step in 0..i64::try_from(self.random.between(2, 30)).unwrap() {
            // Sent from the last one on: the fee rises.
            let (tx, _) = pay(&coin, 50_000 - 1_000 * step);
            if self.random.chance(500) { own.push(tx) } else { other.push(tx) }
        }
        (own, other)
    }

    /// Adds a peer that connects early.
    fn meet(&mut self, actor: crate::actor::Actor) {
        let wire = Wire { rate: 2_000_000, ..self.wire() };
        let after = Duration::from_millis(self.random.below(3_000));
        self.world.add(actor, wire, after);
    }
}
