//! Satisfactions: the cheapest witness that no third party can change. Core's `ProduceInput` and `Satisfy`.
//!
//! Input: an expression with its keys; what signs and what knows lock times and preimages. Output: the elements of the
//! witness. Cost: each pair of alternatives is compared once; witnesses share their parts, so that a threshold of n
//! parts costs n squared steps and not n cubed, and n steps if parts of no signature cannot be satisfied. Must never:
//! walk a witness by recursion, since it is as deep as a threshold has parts.

use super::{Fragment, Kind};
use std::rc::Rc;

/// What an expression asks for.
pub(crate) trait Means {
    /// A signature for a key, if it can be made or is known.
    fn sign(&mut self, key: &[u8]) -> Option<Vec<u8>>;

    /// Whether an absolute lock time has passed.
    fn is_after(&self, lock_time: u32) -> bool;

    /// Whether a relative lock time has passed.
    fn is_older(&self, lock_time: u32) -> bool;

    /// The preimage of a hash, if it is known.
    fn preimage(&self, kind: Preimage, hash: &[u8]) -> Option<Vec<u8>>;
}

/// By the function that hashes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preimage {
    Sha256,
    Hash256,
    Ripemd160,
    Hash160,
}

/// Elements of a witness, from the bottom of the stack to the top.
#[derive(Clone, Default)]
enum Elements {
    #[default]
    None,
    One(Rc<[u8]>),
    Joined(Rc<Pair>),
}

/// Elements below others.
struct Pair(Elements, Elements);

impl Pair {
    fn take(&mut self) -> [Elements; 2] {
        [std::mem::take(&mut self.0), std::mem::take(&mut self.1)]
    }
}

impl Drop for Pair {
    /// Without recursion.
    fn drop(&mut self) {
        if !matches!(self, Pair(Elements::Joined(_), _) | Pair(_, Elements::Joined(_))) {
            return;
        }
        let mut waiting = Vec::from(self.take());
        while let Some(next) = waiting.pop() {
            if let Elements::Joined(pair) = next
                && let Some(mut pair) = Rc::into_inner(pair)
            {
                waiting.extend(pair.take());
            }
        }
    }
}

impl Elements {
    fn joined(self, other: Elements) -> Elements {
        match (self, other) {
            (Elements::None, one) | (one, Elements::None) => one,
            (below, above) => Elements::Joined(Rc::new(Pair(below, above))),
        }
    }

    fn into_vec(self) -> Vec<Vec<u8>> {
        let (mut waiting, mut all) = (vec![self], Vec::new());
        while let Some(next) = waiting.pop() {
            match next {
                Elements::None => {}
                Elements::One(bytes) => all.push(bytes.to_vec()),
                Elements::Joined(both) => waiting.extend([both.1.clone(), both.0.clone()]),
            }
        }
        all
    }
}

/// A way to satisfy or dissatisfy an expression: Core's `InputStack` that is available.
#[derive(Clone)]
struct Way {
    has_signature: bool,
    is_malleable: bool,
    /// Serialized size in bytes.
    size: usize,
    elements: Elements,
}

/// `None`: there is no way.
type Choice = Option<Way>;

fn nothing() -> Choice {
    Some(Way { has_signature: false, is_malleable: false, size: 0, elements: Elements::None })
}

fn element(bytes: &[u8]) -> Choice {
    let elements = Elements::One(bytes.into());
    Some(Way { has_signature: false, is_malleable: false, size: bytes.len() + 1, elements })
}

fn zero() -> Choice {
    element(&[])
}

fn one() -> Choice {
    element(&[1])
}

fn signature(bytes: Option<Vec<u8>>) -> Choice {
    Some(Way { has_signature: true, ..element(&bytes?)? })
}

fn malleable(way: Choice) -> Choice {
    Some(Way { is_malleable: true, ..way? })
}

/// Both, `a` below `b`.
fn and(a: &Choice, b: &Choice) -> Choice {
    let (a, b) = (a.clone()?, b.clone()?);
    Some(Way {
        has_signature: a.has_signature || b.has_signature,
        is_malleable: a.is_malleable || b.is_malleable,
        size: a.size + b.size,
        elements: a.elements.joined(b.elements),
    })
}

/// The better of two: a third party must not be able to change one into the other, so one without a signature wins.
fn or(a: Choice, b: Choice) -> Choice {
    let (mut a, mut b) = match (a, b) {
        (Some(a), Some(b)) => (a, b),
        (a, b) => return a.or(b),
    };
    match (a.has_signature, b.has_signature) {
        (false, true) => return Some(a),
        (true, false) => return Some(b),
        (false, false) => (a.is_malleable, b.is_malleable) = (true, true),
        (true, true) if a.is_malleable != b.is_malleable => return Some(if a.is_malleable { b } else { a }),
        (true, true) => {}
    }
    Some(if a.size <= b.size { a } else { b })
}

/// The ways to dissatisfy and to satisfy an expression.
struct Ways {
    no: Choice,
    yes: Choice,
}

impl Fragment {
    /// The elements of a satisfaction that is not malleable.
    pub(crate) fn satisfy(&self, keys: &[Vec<u8>], means: &mut dyn Means) -> Option<Vec<Vec<u8>>> {
        let way = self.ways(keys, means).yes?;
        (!way.is_malleable && way.has_signature).then(|| way.elements.into_vec())
    }

    fn ways(&self, keys: &[Vec<u8>], means: &mut dyn Means) -> Ways {
        let key = |place: usize| self.keys.get(place).and_then(|index| keys.get(*index)).map_or(&[][..], |key| key);
        match self.kind {
            Kind::Just0 => return Ways { no: nothing(), yes: None },
            Kind::Just1 => return Ways { no: None, yes: nothing() },
            Kind::PkK => return Ways { no: zero(), yes: signature(means.sign(key(0))) },
            Kind::PkH => {
                let shown = element(key(0));
                return Ways { no: and(&zero(), &shown), yes: and(&signature(means.sign(key(0))), &shown) };
            }
            Kind::Older => return Ways { no: None, yes: nothing().filter(|_| means.is_older(self.k)) },
            Kind::After => return Ways { no: None, yes: nothing().filter(|_| means.is_after(self.k)) },
            Kind::Sha256 => return self.hash_lock(Preimage::Sha256, means),
            Kind::Hash256 => return self.hash_lock(Preimage::Hash256, means),
            Kind::Ripemd160 => return self.hash_lock(Preimage::Ripemd160, means),
            Kind::Hash160 => return self.hash_lock(Preimage::Hash160, means),
            Kind::Multi => {
                let signatures = (0..self.keys.len()).map(|place| signature(means.sign(key(place)))).collect();
                return self.multi(signatures);
            }
            Kind::MultiA => {
                // The signature for the first key is on top of the stack.
                let places = (0..self.keys.len()).rev();
                let signatures = places.map(|place| signature(means.sign(key(place)))).collect();
                return self.multi_a(signatures);
            }
            _ => {}
        }
        let mut subs: Vec<Ways> = self.subs.iter().map(|sub| sub.ways(keys, means)).collect();
        if self.kind == Kind::Thresh {
            return self.thresh(&subs);
        }
        match &subs[..] {
            [x, y, z] => {
                Ways { no: or(and(&y.no, &x.yes), and(&z.no, &x.no)), yes: or(and(&y.yes, &x.yes), and(&z.yes, &x.no)) }
            }
            [x, y] => self.of_two(x, y),
            [_] => subs.pop().map_or(Ways { no: None, yes: None }, |x| self.of_one(x)),
            _ => Ways { no: None, yes: None },
        }
    }

    fn of_two(&self, x: &Ways, y: &Ways) -> Ways {
        match self.kind {
            Kind::AndV => Ways { no: and(&y.no, &x.yes), yes: and(&y.yes, &x.yes) },
            Kind::AndB => {
                let no = or(and(&y.no, &x.no), malleable(and(&y.yes, &x.no)));
                Ways { no: or(no, malleable(and(&y.no, &x.yes))), yes: and(&y.yes, &x.yes) }
            }
            Kind::OrB => {
                let either = or(and(&y.no, &x.yes), and(&y.yes, &x.no));
                Ways { no: and(&y.no, &x.no), yes: or(either, malleable(and(&y.yes, &x.yes))) }
            }
            Kind::OrC => Ways { no: None, yes: or(x.yes.clone(), and(&y.yes, &x.no)) },
            Kind::OrD => Ways { no: and(&y.no, &x.no), yes: or(x.yes.clone(), and(&y.yes, &x.no)) },
            _ => Ways {
                no: or(and(&x.no, &one()), and(&y.no, &zero())),
                yes: or(and(&x.yes, &one()), and(&y.yes, &zero())),
            },
        }
    }

    fn of_one(&self, x: Ways) -> Ways {
        match self.kind {
            Kind::WrapD => Ways { no: zero(), yes: and(&x.yes, &one()) },
            Kind::WrapV => Ways { no: None, yes: x.yes },
            Kind::WrapJ => {
                // Another dissatisfaction without a signature may exist.
                let is_malleable = x.no.as_ref().is_some_and(|no| !no.has_signature);
                Ways { no: zero().map(|no| Way { is_malleable, ..no }), yes: x.yes }
            }
            _ => x,
        }
    }

    /// OP_CHECKMULTISIG takes one element too many.
    fn multi(&self, signatures: Vec<Choice>) -> Ways {
        // By the number of signatures.
        let mut best = vec![zero()];
        for signature in &signatures {
            best = grown(&best, |with_none| with_none.clone(), |with_one| and(with_one, signature));
        }
        let no = (0..self.k).fold(zero(), |no, _| and(&no, &zero()));
        Ways { no, yes: self.at_threshold(&best) }
    }

    /// Each key has an element, empty without a signature.
    fn multi_a(&self, signatures: Vec<Choice>) -> Ways {
        let mut best = vec![nothing()];
        for signature in &signatures {
            best = grown(&best, |without| and(without, &zero()), |with| and(with, signature));
        }
        Ways { no: best.first().cloned().flatten(), yes: self.at_threshold(&best) }
    }

    /// Any other 32 bytes dissatisfy.
    fn hash_lock(&self, kind: Preimage, means: &dyn Means) -> Ways {
        let yes = means.preimage(kind, &self.data).and_then(|preimage| element(&preimage));
        Ways { no: malleable(element(&[0; 32])), yes }
    }

    fn thresh(&self, subs: &[Ways]) -> Ways {
        let mut best = vec![nothing()];
        for sub in subs.iter().rev() {
            best = grown(&best, |without| and(without, &sub.no), |with| and(with, &sub.yes));
        }
        let yes = self.at_threshold(&best);
        let mut no = None;
        for (count, way) in (0_u32..).zip(best) {
            if count != self.k {
                no = or(no, if count == 0 { way } else { malleable(way) });
            }
        }
        Ways { no, yes }
    }

    fn at_threshold(&self, best: &[Choice]) -> Choice {
        usize::try_from(self.k).ok().and_then(|k| best.get(k)).cloned().flatten()
    }
}

/// The best ways by the number of satisfied parts, with one part more. Where there is no way at the end, the list is
/// shorter.
fn grown(best: &[Choice], without: impl Fn(&Choice) -> Choice, with: impl Fn(&Choice) -> Choice) -> Vec<Choice> {
    let mut next: Vec<Choice> = best.iter().map(&without).collect();
    next.push(None);
    for (count, way) in best.iter().enumerate() {
        let above = next[count + 1].take();
        next[count + 1] = or(above, with(way));
    }
    while next.pop_if(|last| last.is_none()).is_some() {}
    next
}

#[cfg(test)]
mod tests {
    use super::super::decode;
    use super::{Means, Preimage};
    use crate::limits::THRESHOLD_PARTS_MAX;
    use lydian_script::ScriptBuilder;
    use lydian_script::opcodes::*;

    /// Signs with the first key.
    struct First;

    impl Means for First {
        fn sign(&mut self, key: &[u8]) -> Option<Vec<u8>> {
            (key == [1; 32]).then(|| vec![7; 64])
        }

        fn is_after(&self, _: u32) -> bool {
            false
        }

        fn is_older(&self, _: u32) -> bool {
            false
        }

        fn preimage(&self, _: Preimage, _: &[u8]) -> Option<Vec<u8>> {
            None
        }
    }

    /// `pk(A)` and other parts, of which one is needed. `last`: a script.
    fn threshold(parts: usize, last: &[u8]) -> Vec<u8> {
        let key = |key: u8| ScriptBuilder::new().push_slice(&[key; 32]).op(OP_CHECKSIG).into_bytes();
        let mut script = key(1);
        let others = if last.is_empty() { parts - 1 } else { parts - 2 };
        for _ in 0..others {
            script.extend([&[OP_SWAP], &key(2)[..], &[OP_ADD]].concat());
        }
        if !last.is_empty() {
            script.extend([&[OP_TOALTSTACK], last, &[OP_FROMALTSTACK, OP_ADD]].concat());
        }
        script.extend([OP_1, OP_EQUAL]);
        script
    }

    /// Regression: a leaf script of taproot may have thresholds with thousands of parts in all. The witness was as deep
    /// as these, and freeing it overflowed the stack, which ended the process.
    #[test]
    fn a_witness_of_many_parts_needs_little_stack() {
        let script = (0..4).fold(Vec::new(), |last, _| threshold(900, &last));
        let work = move || {
            let (fragment, keys) = decode(&script, true, &mut |_| None).unwrap();
            fragment.satisfy(&keys, &mut First).map(|elements| elements.iter().map(Vec::len).collect())
        };
        let thread = std::thread::Builder::new().stack_size(192 << 10).spawn(work).unwrap();
        let sizes: Option<Vec<usize>> = thread.join().unwrap();
        let sizes = sizes.unwrap();
        assert_eq!((sizes.len(), sizes.iter().sum::<usize>()), (4 * 900 - 3, 64));
    }

    /// limit: THRESHOLD_PARTS_MAX at
    /// limit: THRESHOLD_PARTS_MAX above
    #[test]
    fn thresholds_have_so_many_parts_and_no_more() {
        assert!(decode(&threshold(THRESHOLD_PARTS_MAX, &[]), true, &mut |_| None).is_some());
        assert!(decode(&threshold(THRESHOLD_PARTS_MAX + 1, &[]), true, &mut |_| None).is_none());
    }
}
