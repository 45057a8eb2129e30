//! Generates spends for the judge: from every template and from published vectors, with random changes, signed again or
//! not.
//!
//! Input: a [`Random`] from a seed or from a fuzzer's bytes. Output: [`Case`]s, each of which the judge can verify.
//! Apart from the scripts, keys and signatures of this folder, only the crates under test are used. Invariants: the
//! same choices give the same case; flags are legal; a case's transaction parses. Cost: 20 to 100 us per case, mostly
//! for signatures. Must never state which cases are valid: the generator does not judge.

mod adopt;
mod flags;
mod keys;
mod mutate;
mod plan;
mod program;
mod random;
mod shrink;
mod signature;
mod templates;
mod token;

pub use adopt::adopt;
pub use flags::random_flags;
pub use mutate::{mutate_case, mutate_plan};
pub use plan::{Case, Leaf, Plan, Wrap};
pub use random::Random;
pub use shrink::shrink;
pub use templates::{TEMPLATES, random_plan};
pub use token::{PushBy, Token, encode, parse};

/// Returns a case made from choices alone or, if there are any `seeds`, from one of them.
pub fn random_case(random: &mut Random, seeds: &[Case]) -> Case {
    if seeds.is_empty() || random.chance(65) {
        let plan = random_plan(random);
        return finish(random, plan);
    }
    let seed = &seeds[random.below(seeds.len())];
    if random.chance(50)
        && let Some(plan) = adopt(seed)
    {
        return finish(random, plan);
    }
    let mut case = seed.clone();
    if random.chance(50) {
        case.flags = random_flags(random);
    }
    for _ in 0..random.below(4) {
        mutate_case(random, &mut case);
    }
    case
}

/// Applies zero or more changes. Half of the changed plans are signed before the changes, half after.
fn finish(random: &mut Random, mut plan: Plan) -> Case {
    let changes = random.pick(&[0, 1, 1, 1, 2, 4]);
    if changes > 0 && random.chance(50) {
        plan = plan.frozen();
    }
    for _ in 0..changes {
        mutate_plan(random, &mut plan);
    }
    let mut case = plan.build();
    if random.chance(15) {
        mutate_case(random, &mut case);
    }
    case
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_script::{TxContext, verify_input};

    fn verdict(case: &Case) -> bool {
        let tx = case.tx.to_transaction().unwrap();
        let spent: Vec<_> = case
            .spent
            .iter()
            .map(|output| lydian_primitives::Output { value: output.value, script_pubkey: &output.script_pubkey })
            .collect();
        let context = TxContext::new(tx.view(), &spent).unwrap();
        verify_input(&context, case.index, case.flags).is_ok()
    }

    #[test]
    fn every_template_makes_valid_and_invalid_spends() {
        let mut random = Random::new(0, "templates");
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..6000 {
            let mut plan = random_plan(&mut random);
            plan.flags = lydian_script::Flags::MANDATORY;
            let count: &mut [usize; 2] = counts.entry(plan.name).or_default();
            count[usize::from(verdict(&plan.build()))] += 1;
        }
        assert_eq!(counts.len(), TEMPLATES.len(), "{counts:?}");
        for (name, [invalid, valid]) in counts {
            let noise_only = name == "noise";
            assert!(invalid > 0 && (valid > 10 || noise_only), "{name}: {valid} valid, {invalid} invalid");
        }
    }

    #[test]
    fn a_frozen_plan_is_the_same_spend() {
        let mut random = Random::new(1, "frozen");
        for _ in 0..500 {
            let plan = random_plan(&mut random);
            assert_eq!(plan.frozen().build(), plan.build(), "{plan:?}");
        }
    }

    #[test]
    fn an_adopted_plan_is_a_spend_of_the_same_form() {
        let mut random = Random::new(2, "adopted");
        let (mut valid, mut again) = (0, 0);
        for _ in 0..1000 {
            let mut case = random_plan(&mut random).build();
            case.flags = lydian_script::Flags::MANDATORY;
            if verdict(&case) {
                valid += 1;
                again += usize::from(adopt(&case).is_some_and(|plan| verdict(&plan.build())));
            }
        }
        assert!(again * 10 > valid * 6, "{again} of {valid} valid spends can be signed again");
    }

    #[test]
    fn the_same_choices_make_the_same_case_and_it_parses() {
        let make = || {
            let mut random = Random::new(9, "cases");
            (0..1000).map(move |_| random_case(&mut random, &[]))
        };
        for (case, again) in make().zip(make()) {
            assert_eq!(case, again);
            assert!(case.tx.to_transaction().is_some(), "{case:?}");
            assert_eq!(case.tx.inputs.len(), case.spent.len());
            assert!(case.index < case.spent.len() && case.flags.is_legal());
        }
    }
}
