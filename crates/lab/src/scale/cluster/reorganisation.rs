//! A reorganisation of six blocks during the load.
//!
//! Input: the chain and mempool of the run. Output: the changes that servers announce. Four kinds of scripts are
//! touched: those whose payment is in both branches, at another height; those whose payment returns to the mempool; and
//! those whose payment is spent otherwise by the longer branch, with those that get the coin instead. Invariant: the
//! first node gave every answer that is right at any moment of the change, since each script is paid once, first in the
//! mempool, then in a block; so an answer from the middle of the change is known, too. Cost: 13 blocks.

use super::changes::{Change, Changes, Fate, Paid, Payer};
use crate::electrum::client::Client;
use crate::error::LabError;
use crate::runs::system;
use lydian_chains::presets::maker::{output, seal};
use lydian_primitives::build::{MutBlock, MutTx};

/// Blocks that leave the chain.
const REORGANISED: usize = 6;

/// The payments of a reorganisation.
struct Plan {
    /// In both branches.
    kept: Vec<Paid>,
    /// In the first branch only.
    returned: Vec<Paid>,
    /// In the first branch, and the payments of the same coins in the second one.
    replaced: Vec<Paid>,
    instead: Vec<Paid>,
}

impl Plan {
    fn new(changes: &Changes<'_>, payer: &mut Payer, touched: usize) -> Plan {
        let scripts = changes.some_scripts(payer, 4 * touched.min(changes.oracle.targets.len() / 4));
        let part = scripts.len() / 4;
        let of = |number: usize| scripts.get(number * part..(number + 1) * part).unwrap_or_default();
        let [kept, returned, replaced] = [of(0), of(1), of(2)].map(|scripts| payer.pay_each(changes.oracle, scripts));
        let pay_instead = |(paid, script): (&Paid, &usize)| {
            let mut tx = paid.tx.clone();
            let to = &changes.oracle.targets.get(*script)?.script;
            let value = tx.outputs.first()?.value.0;
            tx.outputs = vec![output(value, to)];
            Some(Paid { script: *script, tx })
        };
        let instead = replaced.iter().zip(of(3)).filter_map(pay_instead).collect();
        Plan { kept, returned, replaced, instead }
    }
}

/// Those of the block with this number.
fn share(paid: &[Paid], block: usize) -> impl Iterator<Item = &Paid> {
    paid.iter().skip(block).step_by(REORGANISED)
}

fn txs<'a>(paid: impl Iterator<Item = &'a Paid>) -> Vec<MutTx> {
    paid.map(|paid| paid.tx.clone()).collect()
}

impl Changes<'_> {
    /// Six blocks on the tip, and seven others in their place. `pause` is called between the blocks of the first
    /// branch, and before the second one.
    pub fn reorganise(
        &self,
        payer: &mut Payer,
        client: &mut Client,
        touched: usize,
        pause: &dyn Fn(),
    ) -> Result<Vec<Change>, LabError> {
        let fates = |paid: &[Paid], fate| paid.iter().map(|paid| (paid.clone(), fate)).collect::<Vec<_>>();
        let plan = Plan::new(self, payer, touched);
        let in_mempool = [&plan.kept[..], &plan.returned, &plan.replaced].concat();
        let start = system::now();
        let taken = self.send(&in_mempool)?;
        let scripts = self.settle(client, &fates(&in_mempool, Fate::At(0)))?;
        let mut changes = vec![Change { height: None, start, taken, scripts }];
        pause();
        let mut second = payer.maker.clone();
        let earlier = std::mem::take(&mut payer.returned);
        for block in 0..REORGANISED {
            // What an earlier reorganisation returned is in the first block of both branches.
            let first = earlier.iter().filter(|_| block == 0);
            let paid: Vec<Paid> = first.chain(share(&in_mempool, block)).cloned().collect();
            let start = system::now();
            let taken = self.block(payer, txs(paid.iter()))?;
            let height = payer.maker.height;
            let scripts = self.settle(client, &fates(&paid, Fate::At(height)))?;
            changes.push(Change { height: Some(height), start, taken, scripts });
            pause();
        }
        let mut ends = [fates(&plan.returned, Fate::At(0)), fates(&plan.replaced, Fate::Gone)].concat();
        let in_second = [&plan.kept[..], &plan.instead].concat();
        let (mut start, mut taken) = (system::now(), Vec::new());
        for block in 0..=REORGANISED {
            // A payment is one block higher than in the first branch, as far as it is there.
            let paid: Vec<Paid> = match block.checked_sub(1) {
                None => earlier.clone(),
                Some(block) => share(&in_second, block).cloned().collect(),
            };
            let mut sealed: MutBlock = second.template(txs(paid.iter()));
            // It differs from the one in its place also if both are empty.
            sealed.header.time += 1;
            seal(&mut sealed);
            second.advance(&sealed);
            if block > 0 {
                ends.extend(fates(&paid, Fate::At(second.height)));
            }
            start = system::now();
            taken = self.submit(second.height, &sealed)?;
        }
        payer.maker = second;
        payer.returned.clone_from(&plan.returned);
        self.set_waiting(&plan.returned);
        let height = payer.maker.height;
        let scripts = self.settle(client, &ends)?;
        changes.push(Change { height: Some(height), start, taken, scripts });
        Ok(changes)
    }
}
