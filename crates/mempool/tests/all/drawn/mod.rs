//! Drawn inputs against Core's own functions and against plain twins: by a seeded generator here, by a fuzzer in the
//! targets `policy`, `package` and `package_acceptance`, which use the same files.

mod acceptance;
mod package;
mod standard;

use crate::pool::world;
use lydian_oracle::generate::Random;
use lydian_oracle::{Judge, or_skip};

const TRANSACTIONS: usize = 4_000;
const PACKAGES: usize = 2_000;
const SUBMISSIONS: usize = 100;

#[test]
fn drawn_transactions_have_the_policy_of_core() {
    let Some(mut judge) = or_skip("drawn_transactions_have_the_policy_of_core", Judge::start()) else { return };
    let mut random = Random::new(1, "standard");
    let (mut standard, mut inputs) = (0, 0);
    for _ in 0..TRANSACTIONS {
        if let Some(verdict) = standard::check(&mut judge, &mut random) {
            standard += usize::from(verdict.is_standard);
            inputs += usize::from(verdict.has_standard_inputs);
        }
    }
    let is_mixed = |count| count > TRANSACTIONS / 20 && count < TRANSACTIONS * 19 / 20;
    assert!(is_mixed(standard) && is_mixed(inputs), "{standard} {inputs}");
}

#[test]
fn drawn_packages_have_the_shape_that_core_finds() {
    let Some(mut judge) = or_skip("drawn_packages_have_the_shape_that_core_finds", Judge::start()) else { return };
    let mut random = Random::new(1, "package");
    let (mut well_formed, mut trees) = (0, 0);
    for _ in 0..PACKAGES {
        let shape = package::check(&mut judge, &mut random);
        well_formed += usize::from(shape.is_well_formed);
        trees += usize::from(shape.is_tree);
    }
    assert!(well_formed > PACKAGES / 20 && well_formed < PACKAGES && trees > PACKAGES / 50, "{well_formed} {trees}");
}

#[test]
fn drawn_packages_are_accepted_as_one_by_one_where_that_is_possible() {
    let world = world::Fixed::new();
    let mut random = Random::new(1, "acceptance");
    let (mut alone, mut together) = (0, 0);
    for _ in 0..SUBMISSIONS {
        let counts = acceptance::check(&world, &mut random);
        alone += counts.alone;
        together += counts.together;
    }
    assert!(alone > SUBMISSIONS / 5 && together > 0, "{alone} {together}");
}
