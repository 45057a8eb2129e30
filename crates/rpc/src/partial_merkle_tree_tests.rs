use super::*;
use crate::limits::PROOF_TRANSACTIONS_MAX;
use lydian_hash::merkle_root;
use lydian_stdx::SplitMix64;

fn header(txids: &[Txid]) -> Header {
    let mut hashes: Vec<[u8; 32]> = txids.iter().map(|txid| txid.0).collect();
    let merkle_root = merkle_root(&mut hashes).0;
    Header { version: 4, prev_block: lydian_primitives::BlockHash::ZERO, merkle_root, time: 1, bits: 2, nonce: 3 }
}

fn txids(count: usize) -> Vec<Txid> {
    (0..count).map(|index| Txid(sha256d(&index.to_le_bytes()))).collect()
}

/// Every size of block up to a few levels, with every pattern of a few wanted transactions.
#[test]
fn what_is_proven_is_extracted() {
    let mut random = SplitMix64::new(1);
    for count in 1..70 {
        let all = txids(count);
        for _ in 0..8 {
            let share = random.below(4);
            let wanted: BTreeSet<Txid> = all.iter().copied().filter(|_| random.below(4) < share).collect();
            let proof = MerkleBlock::build(header(&all), &all, &wanted);
            let decoded = MerkleBlock::decode(&proof.encode()).unwrap();
            let (root, found) = decoded.extract().unwrap();
            assert_eq!(root, proof.header.merkle_root);
            let expected: Vec<Txid> = all.iter().copied().filter(|txid| wanted.contains(txid)).collect();
            assert_eq!(found, expected);
        }
    }
}

/// limit: PROOF_TRANSACTIONS_MAX at
/// limit: PROOF_TRANSACTIONS_MAX above
#[test]
fn a_proof_is_at_most_as_wide_as_a_block() {
    let all = txids(PROOF_TRANSACTIONS_MAX);
    let wanted = BTreeSet::from([all[PROOF_TRANSACTIONS_MAX - 1]]);
    let proof = MerkleBlock::build(header(&all), &all, &wanted);
    assert_eq!(proof.extract().unwrap(), (proof.header.merkle_root, vec![all[PROOF_TRANSACTIONS_MAX - 1]]));
    let all = txids(PROOF_TRANSACTIONS_MAX + 1);
    let wanted = BTreeSet::from([all[PROOF_TRANSACTIONS_MAX]]);
    assert_eq!(MerkleBlock::build(header(&all), &all, &wanted).extract(), None);
}

/// Any change of a proof is noticed, unless it only concerns which leaves are wanted: nothing panics, and what is
/// extracted leads to another root, or is in the block.
#[test]
fn changed_bytes_prove_nothing_else() {
    let mut random = SplitMix64::new(2);
    for count in [1, 2, 3, 7, 8, 21] {
        let all = txids(count);
        let wanted: BTreeSet<Txid> = all.iter().copied().step_by(3).collect();
        let proof = MerkleBlock::build(header(&all), &all, &wanted);
        let (bytes, expected) = (proof.encode(), proof.header.merkle_root);
        for end in 0..bytes.len() {
            assert!(MerkleBlock::decode(&bytes[..end]).is_err(), "{end} of {} bytes", bytes.len());
        }
        for _ in 0..2_000 {
            let mut changed = bytes.clone();
            let place = 80 + random.below(changed.len() - 80);
            changed[place] ^= 1 << random.below(8);
            let Ok(decoded) = MerkleBlock::decode(&changed) else { continue };
            let Some((root, found)) = decoded.extract() else { continue };
            if root == expected && decoded.transactions == proof.transactions {
                assert!(found.iter().all(|txid| all.contains(txid)), "{place}");
            }
        }
    }
}

#[test]
fn random_bytes_do_no_harm() {
    let mut random = SplitMix64::new(3);
    for _ in 0..20_000 {
        let mut bytes = header(&txids(1)).to_bytes().to_vec();
        bytes.extend_from_slice(&u32::try_from(random.below(40)).unwrap().to_le_bytes());
        let hashes = random.below(6);
        bytes.push(u8::try_from(hashes).unwrap());
        bytes.extend((0..hashes * 32).map(|_| u8::try_from(random.below(2)).unwrap()));
        bytes.push(3);
        bytes.extend((0..3).map(|_| u8::try_from(random.below(256)).unwrap()));
        let proof = MerkleBlock::decode(&bytes).unwrap();
        if let Some((_, found)) = proof.extract() {
            assert!(found.len() <= usize::try_from(proof.transactions).unwrap());
        }
    }
}

/// CVE-2012-2459: two equal subtrees have the root of one, so that a transaction would be proven twice.
#[test]
fn equal_children_are_refused() {
    let mut all = txids(3);
    let honest = header(&all);
    all.push(all[2]);
    assert_eq!(header(&all).merkle_root, honest.merkle_root);
    let wanted = BTreeSet::from([all[2]]);
    assert_eq!(MerkleBlock::build(honest, &all, &wanted).extract(), None);
}

/// CVE-2017-12842: a transaction of 64 bytes is also an inner node, so that its halves seem to be transactions of a
/// block with twice as many. The proof extracts; only the number of transactions shows that it is wrong.
#[test]
fn an_inner_node_passes_for_a_transaction_until_transactions_are_counted() {
    let halves = txids(2);
    let whole = Txid(pair_hash(&halves[0].0, &halves[1].0));
    let all = [txids(1)[0], whole];
    let deeper = [txids(1)[0], txids(1)[0], halves[0], halves[1]];
    let honest = header(&all);
    let forged = MerkleBlock {
        header: honest,
        transactions: 4,
        hashes: vec![deeper[0].0, halves[0].0, halves[1].0],
        bits: vec![true, false, true, false, true, false, false, false],
    };
    let (root, found) = forged.extract().unwrap();
    assert_eq!((root, found), (honest.merkle_root, vec![halves[1]]));
    assert_ne!(usize::try_from(forged.transactions).unwrap(), all.len());
}
