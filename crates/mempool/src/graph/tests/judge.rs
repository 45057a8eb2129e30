//! The linearization is the one of Bitcoin Core.
//!
//! Input: `testdata/vectors/core/linearizations.txt`, written by Core's `Linearize` with an unlimited budget and
//! `PostLinearize`. One cluster per line: `count|fee/size/tie rank,...|parent>child,...|order|chunk lengths`.

use crate::graph::flow::Item;
use crate::graph::linearize::{Input, Linearizer};
use lydian_stdx::SplitMix64;

/// A cluster and Core's answer.
struct Vector {
    inputs: Vec<Input>,
    order: Vec<usize>,
    chunks: Vec<usize>,
}

fn numbers<T: std::str::FromStr>(text: &str, separator: char) -> Vec<T> {
    text.split(separator).filter_map(|number| number.parse().ok()).collect()
}

/// Returns a tie key that sorts by `rank`.
fn key(rank: u8) -> [u8; 32] {
    let mut key = [0xff; 32];
    key[17] = rank;
    key
}

fn parse(line: &str) -> Vector {
    let [_, items, dependencies, order, chunks] = line.split('|').collect::<Vec<_>>()[..] else {
        panic!("not a vector: {line}");
    };
    let mut inputs: Vec<Input> = Vec::new();
    for (at, item) in items.split(',').enumerate() {
        let [fee, size, rank] = numbers::<i64>(item, '/')[..] else { panic!("not an item: {item}") };
        let item = Item { fee, size: i32::try_from(size).unwrap(), ancestors: 1 << at };
        inputs.push(Input { item, key: key(u8::try_from(rank).unwrap()) });
    }
    // Parents precede children, so their ancestors are complete.
    for dependency in dependencies.split(',').filter(|text| !text.is_empty()) {
        let [parent, child] = numbers::<usize>(dependency, '>')[..] else { panic!("not a pair: {dependency}") };
        inputs[child].item.ancestors |= inputs[parent].item.ancestors;
    }
    Vector { inputs, order: numbers(order, ','), chunks: numbers(chunks, ',') }
}

/// Moves the input at each position to another one.
fn shuffled(inputs: &[Input], random: &mut SplitMix64) -> (Vec<Input>, Vec<usize>) {
    let mut old: Vec<usize> = (0..inputs.len()).collect();
    for at in (1..old.len()).rev() {
        old.swap(at, random.below(at + 1));
    }
    let new_of = |position: usize| old.iter().position(|&other| other == position).unwrap();
    let rename = |set: u64| (0..64).filter(|at| set >> at & 1 == 1).fold(0, |all, at| all | 1 << new_of(at));
    let renamed = |&position: &usize| {
        let input = &inputs[position];
        Input { item: Item { ancestors: rename(input.item.ancestors), ..input.item }, key: input.key }
    };
    (old.iter().map(renamed).collect(), old)
}

#[test]
fn the_order_is_that_of_core() {
    let text = super::vectors("LYDIAN_LINEARIZATIONS", "linearizations.txt");
    let mut random = SplitMix64::new(1);
    let mut linearizer = Linearizer::new();
    for (number, line) in text.lines().enumerate() {
        let vector = parse(line);
        let (inputs, old) = shuffled(&vector.inputs, &mut random);
        let pieces = linearizer.linearize(&inputs);
        let chunks: Vec<usize> = pieces.iter().map(|piece| piece.order.len()).collect();
        let order: Vec<usize> = pieces.iter().flat_map(|piece| &piece.order).map(|&new| old[new]).collect();
        assert_eq!((order, chunks), (vector.order, vector.chunks), "vector {number}: {line}");
    }
    assert!(text.lines().count() >= 300, "vectors are missing");
}
