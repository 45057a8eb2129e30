//! Compares the answers of servers with each other and with those that follow from the blocks.
//!
//! Input: canonical answers, one query after another. Output: digests, and the differences in words. Cost: 64 bytes and
//! a shortened text per answer, so that megabytes of histories need not be kept. Must never: treat two answers with
//! different digests as equal.

use super::client::shortened;
use lydian_hash::{Sha256, sha256};
use lydian_primitives::to_hex;
use lydian_report::electrum::results::Difference;
use serde_json::Value;

/// Of all queries of a comparison together.
pub const DIFFERENCES_MAX: usize = 20;
/// Lists per query that differ only in their order.
const ORDERS_MAX: usize = 3;
/// Stands for the answers that the lab computed from the blocks.
pub const FROM_BLOCKS: &str = "the blocks";

/// Whether the order of a list matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The order is part of the answer: another order is another answer.
    Counts,
    /// The protocol defines an order, but only the entries are the answer; lists in another order are counted
    /// separately.
    IsNoted,
}

/// What is stored of one answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    /// SHA-256 of its canonical form; if the order is only noted, of the sorted entries.
    pub content: [u8; 32],
    /// SHA-256 of its canonical form.
    exact: [u8; 32],
    short: String,
}

impl Digest {
    pub fn of(canonical: &Value, order: Order) -> Digest {
        let text = canonical.to_string();
        let exact = sha256(text.as_bytes());
        let content = match canonical {
            Value::Array(entries) if order == Order::IsNoted => {
                let mut entries: Vec<String> = entries.iter().map(Value::to_string).collect();
                entries.sort_unstable();
                sha256(entries.join("\n").as_bytes())
            }
            _ => exact,
        };
        Digest { content, exact, short: shortened(&text) }
    }
}

/// The answers of one server to one query; `None` for a missing answer.
pub type Digests = Vec<Option<Digest>>;

/// SHA-256 over the digests of all answers in order; `None` if one is missing.
pub fn sha256_of(digests: &Digests) -> Option<String> {
    let mut hasher = Sha256::new();
    for digest in digests {
        hasher.update(&digest.as_ref()?.content);
    }
    Some(to_hex(&hasher.finalize()))
}

/// The number of answers that are not the expected ones.
pub fn wrong(digests: &Digests, expected: &[Digest]) -> u32 {
    count(digests, expected, |given, expected| given.content != expected.content)
}

/// The number of answers with the right entries in another order than the protocol's.
pub fn misordered(digests: &Digests, expected: &[Digest]) -> u32 {
    count(digests, expected, |given, expected| given.content == expected.content && given.exact != expected.exact)
}

fn count(digests: &Digests, expected: &[Digest], is_one: impl Fn(&Digest, &Digest) -> bool) -> u32 {
    let pairs = digests.iter().zip(expected).filter_map(|(given, expected)| Some((given.as_ref()?, expected)));
    u32::try_from(pairs.filter(|(given, expected)| is_one(given, expected)).count()).unwrap_or(u32::MAX)
}

/// One query and the answers of every server.
#[derive(Debug)]
pub struct Compared<'a> {
    pub query: &'a str,
    /// What each question asked for.
    pub whats: &'a [String],
    pub expected: &'a [Digest],
    pub servers: &'a [(&'a str, &'a Digests)],
}

impl Compared<'_> {
    /// The queries with at least one answer that is not the expected one; those that differ in more than their order
    /// come first. At most `limit`.
    pub fn differences(&self, limit: usize) -> Vec<Difference> {
        let of = |(index, what): (usize, &String)| {
            let expected = self.expected.get(index)?;
            let given: Vec<(&str, &Digest)> = self
                .servers
                .iter()
                .filter_map(|(name, digests)| Some((*name, digests.get(index)?.as_ref()?)))
                .collect();
            let other: Vec<&Digest> =
                given.iter().map(|(_, digest)| *digest).filter(|digest| digest.exact != expected.exact).collect();
            if other.is_empty() {
                return None;
            }
            let is_order = other.iter().all(|digest| digest.content == expected.content);
            let mut answers = vec![(FROM_BLOCKS.to_owned(), expected.short.clone())];
            answers.extend(given.iter().map(|(name, digest)| ((*name).to_owned(), digest.short.clone())));
            let order = if is_order { " (the same entries in another order)" } else { "" };
            Some((is_order, Difference { query: self.query.to_owned(), what: format!("{what}{order}"), answers }))
        };
        let (orders, wrongs): (Vec<_>, Vec<_>) =
            self.whats.iter().enumerate().filter_map(of).partition(|(is_order, _)| *is_order);
        let few = orders.into_iter().take(ORDERS_MAX);
        wrongs.into_iter().chain(few).take(limit).map(|(_, difference)| difference).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_difference_says_what_differs_and_whether_it_is_order_alone() {
        let digests = |values: [Value; 3]| values.map(|value| Digest::of(&value, Order::IsNoted));
        let expected = digests([json!([1, 2]), json!([3]), json!({"confirmed": 5})]);
        let right: Digests = expected.iter().cloned().map(Some).collect();
        let mut others: Digests = digests([json!([2, 1]), json!([4]), json!({"confirmed": 5})]).map(Some).into();
        let whats = ["a", "b", "c"].map(str::to_owned);
        let servers = [("one", &right), ("two", &others)];
        let compared = Compared { query: "utxos", whats: &whats, expected: &expected, servers: &servers };
        let found = compared.differences(9);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].what, "b", "what is wrong comes first");
        assert_eq!(found[1].what, "a (the same entries in another order)");
        let answers =
            [("the blocks", "[3]"), ("one", "[3]"), ("two", "[4]")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(found[0].answers, answers);
        assert_eq!(compared.differences(1).len(), 1);
        assert_eq!((wrong(&right, &expected), misordered(&right, &expected)), (0, 0));
        assert_eq!((wrong(&others, &expected), misordered(&others, &expected)), (1, 1));
        assert_ne!(sha256_of(&right), sha256_of(&others));
        others[2] = None;
        assert_eq!(sha256_of(&others), None);
    }

    #[test]
    fn where_the_order_counts_it_is_the_answer() {
        let (one, other) = (json!([1, 2]), json!([2, 1]));
        let digests: Digests = vec![Some(Digest::of(&other, Order::Counts))];
        let expected = [Digest::of(&one, Order::Counts)];
        assert_eq!((wrong(&digests, &expected), misordered(&digests, &expected)), (1, 0));
    }
}
