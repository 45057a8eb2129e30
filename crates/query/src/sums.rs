//! [`Sums`]: the values of spent outputs, which the index does not keep.
//!
//! A value takes the bytes of the transaction that created the output. Each transaction is read once, in the order of
//! the chain, and by several threads if there are many. The sum of a script with many spent outputs is kept, so that
//! only what was spent since is read the next time. Numbers mean other transactions after blocks have left the index,
//! so nothing is kept then. Memory: about 150 bytes for a script.

use crate::allowance::Allowance;
use crate::error::QueryError;
use crate::kept::Kept;
use crate::limits::SUMS_MAX;
use crate::source::{ScriptIndex, Taken};
use lydian_index::{OutputFate, ScriptHash, ScriptOutput};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// A sum of at least so many outputs is kept.
pub(crate) const KEPT_FROM: usize = 100;

/// Transactions whose bytes a thread has in memory at once.
const READ_AT_ONCE: usize = 16;

/// Transactions that one thread reads alone in a few milliseconds.
pub(crate) const ALONE_MAX: usize = 256;

/// The most threads that help others, over all requests.
const HELPERS_MAX: usize = 4;

/// Sums of scripts, and the threads that help.
#[derive(Debug)]
pub(crate) struct Sums {
    kept: Kept<Sum>,
    idle_helpers: AtomicUsize,
}

/// The outputs of a script that are spent by transactions below a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    below: u32,
    count: usize,
    value: i64,
}

/// An output: the number of its transaction, and its place in it.
type Place = (u32, u32);

impl Sums {
    pub(crate) fn new() -> Sums {
        // One processor is left for the thread that is helped.
        let helpers = thread::available_parallelism().map_or(1, usize::from).saturating_sub(1).min(HELPERS_MAX);
        Sums { kept: Kept::new(SUMS_MAX), idle_helpers: AtomicUsize::new(helpers) }
    }

    /// What the spent ones of a script's outputs were worth, in satoshis. `None` if a transaction is no longer where it
    /// was. `epoch` is that of the outputs.
    pub(crate) fn spent(
        &self,
        index: &dyn ScriptIndex,
        script: &ScriptHash,
        epoch: u64,
        outputs: &[ScriptOutput],
    ) -> Result<Option<i64>, QueryError> {
        let spent_from = |least: u32| {
            let is_new = move |output: &&ScriptOutput| matches!(output.fate, OutputFate::Spent(by) if by >= least);
            outputs.iter().filter(is_new)
        };
        let count = spent_from(0).count();
        let known = self.kept.get(epoch, script).filter(|sum| count - spent_from(sum.below).count() == sum.count);
        let known = known.unwrap_or_default();
        let places: Vec<Place> = spent_from(known.below).map(|output| (output.number, output.vout)).collect();
        let Some(values) = self.values(index, &places)? else { return Ok(None) };
        let value = known.value + values.iter().sum::<i64>();
        if count >= KEPT_FROM && !places.is_empty() {
            let last = outputs.iter().filter_map(|output| match output.fate {
                OutputFate::Spent(by) => Some(by),
                OutputFate::Unspent(_) | OutputFate::Overwritten => None,
            });
            self.kept.put(epoch, script, Sum { below: last.max().map_or(0, |by| by + 1), count, value });
        }
        Ok(Some(value))
    }

    /// The values of outputs in satoshis, in their order, which must be that of the chain. `None` if a transaction is
    /// no longer where it was.
    pub(crate) fn values(&self, index: &dyn ScriptIndex, places: &[Place]) -> Result<Option<Vec<i64>>, QueryError> {
        let groups: Vec<&[Place]> = places.chunk_by(|one, next| one.0 == next.0).collect();
        let numbers: Vec<u32> = groups.iter().filter_map(|group| group.first()).map(|(number, _)| *number).collect();
        index.check_fetches(Taken::Bytes, &numbers)?;
        let is_over = AtomicBool::new(false);
        if groups.len() <= ALONE_MAX {
            return values_of(index, &groups, &is_over);
        }
        let helpers = Helpers::take(&self.idle_helpers);
        let allowance = Allowance::current();
        let read = |groups: &[&[Place]]| {
            let work = || values_of(index, groups, &is_over);
            let values = allowance.as_ref().map_or_else(work, |allowance| allowance.during(work));
            is_over.fetch_or(!matches!(values, Ok(Some(_))), Ordering::Relaxed);
            values
        };
        let read = &read;
        let mut shares = groups.chunks(groups.len().div_ceil(helpers.count + 1));
        let own = shares.next().unwrap_or_default();
        thread::scope(|scope| {
            let start = |share| thread::Builder::new().spawn_scoped(scope, move || read(share));
            let others: Vec<_> = shares.map(|share| (start(share), share)).collect();
            let mut all = read(own);
            for (thread, share) in others {
                let more = match thread {
                    // A panic was printed by then.
                    Ok(thread) => thread.join().unwrap_or(Ok(None)),
                    // There is no thread to be had.
                    Err(_) => read(share),
                };
                all = joined(all, more);
            }
            all
        })
    }
}

/// The values of two parts. An error of one is that of both.
fn joined(
    one: Result<Option<Vec<i64>>, QueryError>,
    other: Result<Option<Vec<i64>>, QueryError>,
) -> Result<Option<Vec<i64>>, QueryError> {
    let (one, other) = (one?, other?);
    Ok(one.zip(other).map(|(mut one, other)| {
        one.extend(other);
        one
    }))
}

/// Threads that are taken until the value is dropped.
struct Helpers<'a> {
    idle: &'a AtomicUsize,
    count: usize,
}

impl Helpers<'_> {
    /// All that are idle.
    fn take(idle: &AtomicUsize) -> Helpers<'_> {
        Helpers { idle, count: idle.swap(0, Ordering::Relaxed) }
    }
}

impl Drop for Helpers<'_> {
    fn drop(&mut self) {
        self.idle.fetch_add(self.count, Ordering::Relaxed);
    }
}

/// The values of outputs, those of each transaction together.
fn values_of(
    index: &dyn ScriptIndex,
    groups: &[&[Place]],
    is_over: &AtomicBool,
) -> Result<Option<Vec<i64>>, QueryError> {
    let mut values = Vec::new();
    for groups in groups.chunks(READ_AT_ONCE) {
        if is_over.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let numbers: Vec<u32> = groups.iter().filter_map(|group| group.first()).map(|(number, _)| *number).collect();
        for (group, found) in groups.iter().zip(index.transactions(&numbers)?) {
            let Some((_, tx)) = found else { return Ok(None) };
            let tx = tx.view();
            for (_, vout) in *group {
                if *vout as usize >= tx.output_count() {
                    return Ok(None);
                }
                values.push(tx.output(*vout as usize).value.0);
            }
        }
    }
    Ok(Some(values))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Located, Numbered};
    use lydian_index::ScriptOutputs;
    use lydian_primitives::build::{MutInput, MutOutput, MutTx};
    use lydian_primitives::{Amount, Height, OutPoint, Transaction, Txid};

    /// Transactions by number, each with outputs of these values.
    #[derive(Debug, Default)]
    struct Values {
        of: Vec<Vec<i64>>,
        reads: AtomicUsize,
    }

    impl Values {
        /// One with `count` transactions.
        fn new(count: usize) -> Values {
            let value = |number: usize| i64::try_from(number).unwrap();
            Values {
                of: (0..count).map(|number| vec![value(number), value(number * 3 + 1)]).collect(),
                ..Values::default()
            }
        }

        fn reads(&self) -> usize {
            self.reads.swap(0, Ordering::Relaxed)
        }
    }

    impl ScriptIndex for Values {
        fn transactions(&self, numbers: &[u32]) -> Result<Vec<Option<(u32, Transaction)>>, QueryError> {
            let one = |number: &u32| {
                self.reads.fetch_add(1, Ordering::Relaxed);
                let output = |value: &i64| MutOutput { value: Amount(*value), script_pubkey: vec![0x51] };
                let outputs = self.of.get(*number as usize)?.iter().map(output).collect();
                let input =
                    MutInput { prevout: OutPoint::NULL, script_sig: Vec::new(), sequence: 0, witness: Vec::new() };
                let tx = MutTx { inputs: vec![input], outputs, ..MutTx::default() };
                Some((0, Transaction::parse(tx.encode()).unwrap()))
            };
            Ok(numbers.iter().map(one).collect())
        }

        fn check(&self) -> Result<(), QueryError> {
            unreachable!()
        }

        fn wait_until_synced(&self) -> Result<bool, QueryError> {
            unreachable!()
        }

        fn outputs(&self, _: &ScriptHash) -> Result<ScriptOutputs, QueryError> {
            unreachable!()
        }

        fn epoch(&self) -> u64 {
            unreachable!()
        }

        fn numbered(&self, _: &[u32]) -> Result<Vec<Option<Numbered>>, QueryError> {
            unreachable!()
        }

        fn located(&self, _: &[u32]) -> Result<Vec<Option<Located>>, QueryError> {
            unreachable!()
        }

        fn height_of(&self, _: u32) -> Option<u32> {
            unreachable!()
        }

        fn position_of(&self, _: u32) -> Option<u32> {
            unreachable!()
        }

        fn locate(&self, _: &Txid) -> Result<Option<Located>, QueryError> {
            unreachable!()
        }

        fn wait_for(&self, _: Height) {
            unreachable!()
        }

        fn touched(&self, _: Height, _: &[ScriptHash]) -> Vec<ScriptHash> {
            unreachable!()
        }
    }

    fn spent(number: u32, vout: u32, by: u32) -> ScriptOutput {
        ScriptOutput { number, vout, fate: OutputFate::Spent(by) }
    }

    #[test]
    fn values_have_the_order_of_their_outputs() {
        for count in [0, 1, ALONE_MAX, ALONE_MAX + 1, 10 * ALONE_MAX] {
            let index = Values::new(count);
            let numbers = 0..u32::try_from(count).unwrap();
            // Both outputs of every third.
            let places: Vec<Place> = numbers
                .flat_map(|number| [(number, 0), (number, 1)].into_iter().take(if number % 3 == 0 { 2 } else { 1 }))
                .collect();
            let expected: Vec<i64> =
                places.iter().map(|(number, vout)| index.of[*number as usize][*vout as usize]).collect();
            let sums = Sums::new();
            let idle = sums.idle_helpers.load(Ordering::Relaxed);
            assert_eq!(sums.values(&index, &places), Ok(Some(expected)));
            assert_eq!(index.reads(), count, "each transaction once");
            assert_eq!(sums.idle_helpers.load(Ordering::Relaxed), idle);
            // One that is no longer there, or has no such output.
            for gone in [(u32::try_from(count).unwrap(), 0), (0, 2)] {
                let mut places = places.clone();
                places.push(gone);
                assert_eq!(sums.values(&index, &places), Ok(None));
            }
        }
    }

    #[test]
    fn only_what_was_spent_since_is_read() {
        let (index, sums, script) = (Values::new(500), Sums::new(), ScriptHash([7; 32]));
        let count = u32::try_from(KEPT_FROM).unwrap();
        let mut outputs: Vec<ScriptOutput> = (0..count).map(|number| spent(number, 1, 200 + number)).collect();
        outputs.push(ScriptOutput { number: 150, vout: 0, fate: OutputFate::Unspent(5) });
        outputs.push(spent(151, 0, 152));
        outputs.push(ScriptOutput { number: 160, vout: 0, fate: OutputFate::Overwritten });
        let sum = |outputs: &[ScriptOutput], epoch: u64| {
            let values = outputs.iter().filter(|output| matches!(output.fate, OutputFate::Spent(_)));
            let value: i64 = values.map(|output| index.of[output.number as usize][output.vout as usize]).sum();
            assert_eq!(sums.spent(&index, &script, epoch, outputs), Ok(Some(value)));
            index.reads()
        };
        let whole = KEPT_FROM + 1;
        assert_eq!(sum(&outputs, 3), whole);
        assert_eq!(sum(&outputs, 3), 0);
        outputs[KEPT_FROM].fate = OutputFate::Spent(400);
        outputs.push(spent(170, 1, 401));
        assert_eq!(sum(&outputs, 3), 2);
        // As it was before: what was counted is not all there.
        assert_eq!(sum(&outputs[..KEPT_FROM], 3), KEPT_FROM);
        assert_eq!(sum(&outputs, 3), KEPT_FROM + 3);
        // Blocks left.
        assert_eq!(sum(&outputs, 4), KEPT_FROM + 3);
        assert_eq!(sum(&outputs, 4), 0);
        assert_eq!(sum(&outputs, 3), KEPT_FROM + 3, "an answer from before");
        assert_eq!(sum(&outputs, 4), 0);
        // Of few outputs nothing is kept.
        let (few, other) = (&outputs[..KEPT_FROM - 1], ScriptHash([8; 32]));
        for _ in 0..2 {
            assert!(sums.spent(&index, &other, 4, few).unwrap().is_some());
            assert_eq!(index.reads(), KEPT_FROM - 1);
        }
    }
}
