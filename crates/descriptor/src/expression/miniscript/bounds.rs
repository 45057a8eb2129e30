//! Upper bounds on the cost of a satisfaction: operations and stack size (Core's `CalcOps` and `CalcStackSize`).
//!
//! `None`: no satisfaction exists.

use super::{Fragment, Kind};

/// Number of operations that are not pushes, and in addition the keys of an executed OP_CHECKMULTISIG.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ops {
    pub(super) count: u32,
    pub(super) sat: Option<u32>,
    dsat: Option<u32>,
}

fn add(a: Option<u32>, b: Option<u32>) -> Option<u32> {
    Some(a? + b?)
}

/// Removes what is impossible from the end: it stays impossible with more parts.
fn drop_impossible<T>(sats: &mut Vec<Option<T>>) {
    while sats.pop_if(|last| last.is_none()).is_some() {}
}

impl Ops {
    pub(super) fn of(kind: Kind, k: u32, keys: usize, subs: &[Fragment]) -> Ops {
        let keys = u32::try_from(keys).unwrap_or(u32::MAX);
        let none = Ops { count: 0, sat: None, dsat: None };
        let sub = |index: usize| subs.get(index).map_or(none, |sub| sub.ops);
        let (x, y, z) = (sub(0), sub(1), sub(2));
        let ops = |count, sat, dsat| Ops { count, sat, dsat };
        let two = x.count + y.count;
        match kind {
            Kind::Just0 => ops(0, None, Some(0)),
            Kind::Just1 => ops(0, Some(0), None),
            Kind::PkK => ops(0, Some(0), Some(0)),
            Kind::PkH => ops(3, Some(0), Some(0)),
            Kind::Older | Kind::After => ops(1, Some(0), None),
            Kind::Sha256 | Kind::Ripemd160 | Kind::Hash256 | Kind::Hash160 => ops(4, Some(0), None),
            Kind::AndV => ops(two, add(x.sat, y.sat), None),
            Kind::AndB => ops(1 + two, add(x.sat, y.sat), add(x.dsat, y.dsat)),
            Kind::OrB => ops(1 + two, add(x.sat, y.dsat).max(add(y.sat, x.dsat)), add(x.dsat, y.dsat)),
            Kind::OrD => ops(3 + two, x.sat.max(add(y.sat, x.dsat)), add(x.dsat, y.dsat)),
            Kind::OrC => ops(2 + two, x.sat.max(add(y.sat, x.dsat)), None),
            Kind::OrI => ops(3 + two, x.sat.max(y.sat), x.dsat.max(y.dsat)),
            Kind::AndOr => ops(3 + two + z.count, add(y.sat, x.sat).max(add(x.dsat, z.sat)), add(x.dsat, z.dsat)),
            Kind::Multi => ops(1, Some(keys), Some(keys)),
            Kind::MultiA => ops(keys + 1, Some(0), Some(0)),
            Kind::WrapS | Kind::WrapC | Kind::WrapN => ops(1 + x.count, x.sat, x.dsat),
            Kind::WrapA => ops(2 + x.count, x.sat, x.dsat),
            Kind::WrapD => ops(3 + x.count, x.sat, Some(0)),
            Kind::WrapJ => ops(4 + x.count, x.sat, Some(0)),
            Kind::WrapV => ops(x.count + u32::from(subs.first().is_some_and(Fragment::is_verified_apart)), x.sat, None),
            Kind::Thresh => {
                let mut sats = vec![Some(0)];
                for sub in subs {
                    let (sat, dsat) = (sub.ops.sat, sub.ops.dsat);
                    let without = sats.iter().map(|so_far| add(*so_far, dsat)).chain([None]);
                    let with = [None].into_iter().chain(sats.iter().map(|so_far| add(*so_far, sat)));
                    sats = without.zip(with).map(|(without, with)| without.max(with)).collect();
                    drop_impossible(&mut sats);
                }
                let count = subs.iter().map(|sub| sub.ops.count + 1).sum();
                let at_k = usize::try_from(k).ok().and_then(|k| sats.get(k)).copied().flatten();
                ops(count, at_k, sats.first().copied().flatten())
            }
        }
    }
}

/// How much higher the stack is at the start than at the end, and the maximum of the same during execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reach {
    pub(super) difference: i32,
    pub(super) exec: i32,
}

/// Bounds for satisfactions and for dissatisfactions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stack {
    pub(super) sat: Option<Reach>,
    dsat: Option<Reach>,
}

const fn step(difference: i32, exec: i32) -> Option<Reach> {
    Some(Reach { difference, exec })
}

const NOTHING: Option<Reach> = step(0, 0);
const PUSH: Option<Reach> = step(-1, 0);
const IF: Option<Reach> = step(1, 1);
/// A binary operation, OP_EQUAL, OP_CHECKSIG, OP_VERIFY.
const ONE_LESS: Option<Reach> = step(1, 1);
/// OP_DUP, OP_SIZE.
const ONE_MORE: Option<Reach> = step(-1, 0);
const EQUALVERIFY: Option<Reach> = step(2, 2);

/// Sequential execution.
fn then(parts: &[Option<Reach>]) -> Option<Reach> {
    parts.iter().try_fold(Reach { difference: 0, exec: 0 }, |a, b| {
        let b = (*b)?;
        Some(Reach { difference: a.difference + b.difference, exec: b.exec.max(b.difference + a.exec) })
    })
}

/// The maximum of two alternatives.
fn either(a: Option<Reach>, b: Option<Reach>) -> Option<Reach> {
    let (Some(a), Some(b)) = (a, b) else { return a.or(b) };
    Some(Reach { difference: a.difference.max(b.difference), exec: a.exec.max(b.exec) })
}

impl Stack {
    pub(super) fn of(kind: Kind, k: u32, keys: usize, subs: &[Fragment]) -> Stack {
        let (k, keys) = (i32::try_from(k).unwrap_or(i32::MAX), i32::try_from(keys).unwrap_or(i32::MAX));
        let sub = |index: usize| subs.get(index).map_or(Stack { sat: None, dsat: None }, |sub| sub.stack);
        let (x, y, z) = (sub(0), sub(1), sub(2));
        let stack = |sat, dsat| Stack { sat, dsat };
        let both = |reach| Stack { sat: reach, dsat: reach };
        match kind {
            Kind::Just0 => stack(None, PUSH),
            Kind::Just1 => stack(PUSH, None),
            Kind::Older | Kind::After => stack(then(&[PUSH, NOTHING]), None),
            Kind::PkK => both(PUSH),
            Kind::PkH => both(then(&[ONE_MORE, NOTHING, PUSH, EQUALVERIFY])),
            Kind::Sha256 | Kind::Ripemd160 | Kind::Hash256 | Kind::Hash160 => {
                stack(then(&[ONE_MORE, PUSH, EQUALVERIFY, NOTHING, PUSH, ONE_LESS]), None)
            }
            Kind::AndOr => {
                stack(either(then(&[x.sat, IF, y.sat]), then(&[x.dsat, IF, z.sat])), then(&[x.dsat, IF, z.dsat]))
            }
            Kind::AndV => stack(then(&[x.sat, y.sat]), None),
            Kind::AndB => stack(then(&[x.sat, y.sat, ONE_LESS]), then(&[x.dsat, y.dsat, ONE_LESS])),
            Kind::OrB => {
                let one = either(then(&[x.sat, y.dsat]), then(&[x.dsat, y.sat]));
                stack(then(&[one, ONE_LESS]), then(&[x.dsat, y.dsat, ONE_LESS]))
            }
            Kind::OrC => stack(either(then(&[x.sat, IF]), then(&[x.dsat, IF, y.sat])), None),
            Kind::OrD => stack(
                either(then(&[x.sat, ONE_MORE, IF]), then(&[x.dsat, NOTHING, IF, y.sat])),
                then(&[x.dsat, NOTHING, IF, y.dsat]),
            ),
            Kind::OrI => stack(then(&[IF, either(x.sat, y.sat)]), then(&[IF, either(x.dsat, y.dsat)])),
            Kind::Multi => both(step(k, k.saturating_add(keys).saturating_add(2))),
            Kind::MultiA => both(step(keys - 1, keys)),
            Kind::WrapA | Kind::WrapN | Kind::WrapS => x,
            Kind::WrapC => stack(then(&[x.sat, ONE_LESS]), then(&[x.dsat, ONE_LESS])),
            Kind::WrapD => stack(then(&[ONE_MORE, IF, x.sat]), then(&[ONE_MORE, IF])),
            Kind::WrapV => stack(then(&[x.sat, ONE_LESS]), None),
            Kind::WrapJ => stack(then(&[ONE_MORE, NOTHING, IF, x.sat]), then(&[ONE_MORE, NOTHING, IF])),
            Kind::Thresh => Stack::of_thresh(k, subs),
        }
    }

    fn of_thresh(k: i32, subs: &[Fragment]) -> Stack {
        // Indexed by the number of satisfied parts.
        let mut sats = vec![NOTHING];
        for (index, sub) in subs.iter().enumerate() {
            let sum = if index == 0 { NOTHING } else { ONE_LESS };
            let without = sats.iter().map(|so_far| then(&[*so_far, sub.stack.dsat])).chain([None]);
            let with = [None].into_iter().chain(sats.iter().map(|so_far| then(&[*so_far, sub.stack.sat])));
            sats = without.zip(with).map(|(without, with)| then(&[either(without, with), sum])).collect();
            drop_impossible(&mut sats);
        }
        let at_k = usize::try_from(k).ok().and_then(|k| sats.get(k)).copied().flatten();
        Stack { sat: then(&[at_k, PUSH, ONE_LESS]), dsat: then(&[sats.first().copied().flatten(), PUSH, ONE_LESS]) }
    }
}
