//! Shrinks a finding.
//!
//! Input: a case, and a predicate for whether a case is still a finding. Output: a smaller case, or the same.
//! Signatures are not made again, so that only parts they do not commit to can be removed. Cost: some hundred calls of
//! the predicate.

use super::plan::Case;
use super::token::{encode, parse};
use lydian_script::Flags;

/// Removes flags, outputs, other inputs, scripts of other inputs, witness elements and operations, in that order.
pub fn shrink(case: &Case, is_finding: &mut dyn FnMut(&Case) -> bool) -> Case {
    let mut best = case.clone();
    loop {
        let smaller = candidates(&best).into_iter().find(|candidate| is_finding(candidate));
        match smaller {
            Some(candidate) => best = candidate,
            None => return best,
        }
    }
}

/// Returns the variants of the case with one thing less.
fn candidates(case: &Case) -> Vec<Case> {
    let mut found = Vec::new();
    let mut offer = |change: &mut dyn FnMut(&mut Case)| {
        let mut candidate = case.clone();
        change(&mut candidate);
        if candidate != *case && candidate.flags.is_legal() {
            found.push(candidate);
        }
    };
    for (_, flag) in Flags::ALL {
        offer(&mut |c| c.flags = c.flags.without(*flag));
    }
    for output in 0..case.tx.outputs.len() {
        offer(&mut |c| drop(c.tx.outputs.remove(output)));
    }
    offer(&mut |c| {
        c.tx.inputs.truncate(c.index + 1);
        c.spent.truncate(c.index + 1);
    });
    for other in (0..case.tx.inputs.len()).filter(|&other| other != case.index) {
        offer(&mut |c| {
            c.tx.inputs[other].script_sig.clear();
            c.tx.inputs[other].witness.clear();
            c.spent[other].script_pubkey.clear();
        });
    }
    let Some(input) = case.tx.inputs.get(case.index) else { return found };
    for element in 0..input.witness.len() {
        offer(&mut |c| drop(c.tx.inputs[c.index].witness.remove(element)));
    }
    let without = |script: &[u8], at: usize| {
        let mut tokens = parse(script);
        tokens.remove(at);
        encode(&tokens)
    };
    for at in 0..parse(&input.script_sig).len() {
        offer(&mut |c| c.tx.inputs[c.index].script_sig = without(&input.script_sig, at));
    }
    let script_pubkey = &case.spent[case.index].script_pubkey;
    for at in 0..parse(script_pubkey).len() {
        offer(&mut |c| c.spent[c.index].script_pubkey = without(script_pubkey, at));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::{Random, random_plan};
    use super::*;

    #[test]
    fn what_does_not_matter_goes() {
        let mut case = random_plan(&mut Random::new(5, "shrink")).build();
        case.flags = Flags::STANDARD;
        case.spent[case.index].script_pubkey = vec![0x61, 0x51, 0x76, 0x6a];
        let small = shrink(&case, &mut |c| c.spent[c.index].script_pubkey.contains(&0x6a));
        assert_eq!(small.spent[small.index].script_pubkey, [0x6a]);
        assert_eq!((small.flags, small.tx.outputs.len()), (Flags::NONE, 0));
    }
}
