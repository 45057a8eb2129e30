//! Checks that results come from one build of each node: costs of two builds must not be combined in one formula.
//!
//! Input: results. Output: each node that is not the same program in all of them, with the first two files that differ.
//! The SHA-256 of the programs decides; if one is unknown, the version, and for our own node, whose builds all report
//! the same version, the commit of the lab.

use crate::results::{NodeFacts, Results};

/// A node with two builds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mixed {
    pub node: String,
    /// Indices in the list of results.
    pub first: usize,
    pub other: usize,
    pub reason: String,
}

/// In the order of the nodes; at most one entry per node.
pub fn mixed_builds(results: &[Results]) -> Vec<Mixed> {
    let mut found: Vec<Mixed> = Vec::new();
    for (other, result) in results.iter().enumerate() {
        for node in &result.nodes {
            if found.iter().any(|mixed| mixed.node == node.name) {
                continue;
            }
            let earlier = results.iter().enumerate().take(other).find_map(|(first, earlier)| {
                let before = earlier.nodes.iter().find(|before| before.name == node.name)?;
                Some((first, difference((before, earlier), (node, result))?))
            });
            if let Some((first, reason)) = earlier {
                found.push(Mixed { node: node.name.clone(), first, other, reason });
            }
        }
    }
    found
}

fn difference((one, of): (&NodeFacts, &Results), (other, beside): (&NodeFacts, &Results)) -> Option<String> {
    if let (Some(one), Some(other)) = (&one.program_sha256, &other.program_sha256) {
        return (one != other).then(|| format!("programs with the SHA-256 {one} and {other}"));
    }
    if one.version != other.version {
        return Some(format!("versions {} and {}", one.version, other.version));
    }
    let is_ours = one.name.split(':').next() == Some("lydian");
    let commit = |results: &Results| results.lab.commit.clone().unwrap_or_else(|| "unknown".into());
    (is_ours && commit(of) != commit(beside))
        .then(|| format!("built beside labs of the commits {} and {}", commit(of), commit(beside)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{self, Took};

    fn results() -> Results {
        let took = [Took::new("lydian", 2.0, 4.0), Took::new("bitcoind", 14.0, 24.0)];
        made_up::results("mainnet-mix", 550, [1; 6], &took)
    }

    fn mixed(change: impl Fn(&mut Results, &mut Results)) -> Vec<(String, String)> {
        let (mut one, mut other) = (results(), results());
        change(&mut one, &mut other);
        let found = mixed_builds(&[one, other]);
        assert!(found.iter().all(|mixed| (mixed.first, mixed.other) == (0, 1)));
        found.into_iter().map(|mixed| (mixed.node, mixed.reason)).collect()
    }

    #[test]
    fn two_builds_of_one_name_are_distinguished() {
        assert_eq!(mixed(|_, _| {}), []);
        let hashes = |one: &'static str, other: &'static str| {
            mixed(move |first, second| {
                first.nodes[1].program_sha256 = Some(one.into());
                second.nodes[1].program_sha256 = Some(other.into());
                second.nodes[1].version = "2".into();
            })
        };
        assert_eq!(hashes("aa", "aa"), [], "the program decides, whatever version it reports");
        assert_eq!(hashes("aa", "bb"), [("bitcoind".into(), "programs with the SHA-256 aa and bb".into())]);
        let versions = mixed(|first, second| {
            first.nodes[1].program_sha256 = Some("aa".into());
            second.nodes[1].version = "2".into();
        });
        assert_eq!(versions, [("bitcoind".into(), "versions 1 and 2".into())]);
    }

    #[test]
    fn our_builds_are_distinguished_by_commit_if_nothing_else_is_known() {
        let found = mixed(|first, _| first.lab.commit = Some("c0ffee".into()));
        assert_eq!(found, [("lydian".into(), "built beside labs of the commits c0ffee and unknown".into())]);
        assert_eq!(
            mixed(|first, second| {
                first.lab.commit = Some("c0ffee".into());
                first.nodes[0].program_sha256 = Some("aa".into());
                second.nodes[0].program_sha256 = Some("aa".into());
            }),
            []
        );
    }
}
