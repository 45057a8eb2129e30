//! Any list of transactions: whether it is a well-formed package, a child with its parents, and its hash are what
//! Core's `IsWellFormedPackage`, `IsChildWithParents`, `IsChildWithParentsTree` and `GetPackageHash` say.

use lydian_mempool::policy::{check_package, is_child_with_parents, is_child_with_parents_tree, package_hash};
use lydian_oracle::generate::Random;
use lydian_oracle::{Answer, Judge, PackageReport, PackageRequest};
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint, Transaction, Tx, Txid};

/// What the judge and we say.
pub(crate) struct Shape {
    pub(crate) is_well_formed: bool,
    pub(crate) is_tree: bool,
}

/// Draws a package, and compares.
pub(crate) fn check(judge: &mut Judge, random: &mut Random) -> Shape {
    let package = draw(random);
    let views: Vec<Tx<'_>> = package.iter().map(Transaction::view).collect();
    let bytes: Vec<&[u8]> = package.iter().map(Transaction::as_bytes).collect();
    let answer = judge.ask(&PackageRequest { txs: &bytes }).unwrap();
    let Answer::Known(report) = answer else { panic!("{answer:?}") };
    let ours = PackageReport {
        reason: check_package(&views).err().map(|rejection| rejection.reject_reason()),
        is_child_with_parents: is_child_with_parents(&views),
        is_child_with_parents_tree: is_child_with_parents_tree(&views),
        hash: package_hash(&views.iter().map(|tx| tx.wtxid()).collect::<Vec<_>>()),
    };
    let describe = || package.iter().map(|tx| lydian_primitives::to_hex(tx.as_bytes())).collect::<Vec<_>>();
    assert_eq!(ours, report, "{:?}", describe());
    Shape { is_well_formed: ours.reason.is_none(), is_tree: ours.is_child_with_parents_tree }
}

/// Up to 28 transactions that spend each other and some outputs of others; then some change their places.
fn draw(random: &mut Random) -> Vec<Transaction> {
    let count = random.pick(&[0, 1, 2, 2, 3, 3, 4, 6, 24, 25, 26, 28]);
    let fan_in = random.chance(60);
    let mut package: Vec<Transaction> = Vec::new();
    for number in 0..count {
        let inputs = if fan_in && number + 1 == count {
            // The child of all, or of all but some.
            let is_spent = |_: &&Transaction| random.chance(97);
            package.iter().filter(is_spent).map(|tx| spend(tx.view().txid(), 0)).collect()
        } else {
            (0..1 + random.below(2)).map(|_| input(&package, random)).collect()
        };
        let size = random.pick(&[0, 0, 0, 0, 0, 0, 50_000, 99_000]);
        let script_pubkey = vec![0x6a; size];
        // Several equal ones, and some that differ in their witness only.
        let outputs = vec![MutOutput { value: Amount(1), script_pubkey }; 2];
        let lock_time = u32::from(random.byte());
        let tx = MutTx { version: 2, inputs, outputs, lock_time };
        package.extend(tx.to_transaction());
    }
    for _ in 0..random.pick(&[0, 0, 0, 1, 2]) {
        let places = (random.below(package.len()), random.below(package.len()));
        if !package.is_empty() {
            package.swap(places.0, places.1);
        }
    }
    package
}

fn spend(txid: Txid, vout: u32) -> MutInput {
    MutInput { prevout: OutPoint { txid, vout }, script_sig: Vec::new(), sequence: 0, witness: Vec::new() }
}

/// An input that spends a transaction of the package, or one of a few others.
fn input(package: &[Transaction], random: &mut Random) -> MutInput {
    let vout = u32::from(random.chance(30));
    let txid = match package.get(random.below(package.len())) {
        Some(tx) if random.chance(30) => tx.view().txid(),
        _ => Txid([random.byte(); 32]),
    };
    let mut input = spend(txid, vout);
    if random.chance(30) {
        input.witness = vec![vec![random.byte()]];
    }
    input
}
