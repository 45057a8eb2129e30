//! [`Direct`]: the answers of the routes without HTTP, for the page of this process.
//!
//! Input: the path of a route about blocks, transactions, addresses or scripts. Output: its answer as text, which is
//! JSON or, for a few routes, the text itself. Nothing that changes the node can be asked.

use crate::call::Call;
use crate::fault::Fault;
use crate::routes::{ROUTES, Route, Verb};
use crate::server::Sources;
use lydian_consensus::Chain;
use lydian_query::{Allowance, Source};

/// The first parts of the paths that are answered. None of them changes anything.
const SUBJECTS: &[&str] = &["address", "block", "block-height", "blocks", "scripthash", "tx"];

/// The answers of this process.
#[derive(Debug)]
pub struct Direct(Sources);

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub text: String,
    pub is_json: bool,
    /// How many elements the whole list has, if the answer is a part of one.
    pub total: Option<usize>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The status code of HTTP.
    pub status: u16,
    /// A sentence.
    pub message: String,
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Refusal {
        Refusal { status: fault.code.as_u16(), message: fault.message }
    }
}

impl Direct {
    /// `chain`: that of the addresses.
    pub fn new(source: Source, chain: Chain) -> Direct {
        Direct(Sources::new(source, chain))
    }

    /// Answers what `GET` of the path would. May wait for peers, if blocks were pruned.
    pub fn get(&self, path: &str) -> Result<Answer, Refusal> {
        let found = find(path).ok_or_else(|| Fault::not_found(format!("endpoint does not exist: {path}")));
        let (route, values) = found?;
        let call = Call { shared: &self.0, values: &values, options: &[], body: &[] };
        let reply = Allowance::new(None).during(|| (route.answer)(&call))?;
        let is_json = match reply.kind {
            "application/octet-stream" => return Err(Fault::bad("the answer is not text: ask for /hex").into()),
            kind => kind == "application/json",
        };
        let (text, total) = reply.into_text();
        Ok(Answer { text, is_json, total })
    }
}

/// The route of a path, and its variable parts. If several fit, that with the fewest variable parts.
fn find(path: &str) -> Option<(&'static Route, Vec<(String, String)>)> {
    let parts: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
    if !SUBJECTS.contains(parts.first()?) {
        return None;
    }
    let fitting = ROUTES.iter().filter(|route| route.verb == Verb::Get).filter_map(|route| {
        let values = values(route.path, &parts)?;
        Some((route, values))
    });
    fitting.min_by_key(|(_, values)| values.len())
}

/// The variable parts of a route's path; `None` if it is another path.
fn values(pattern: &str, parts: &[&str]) -> Option<Vec<(String, String)>> {
    let mut names = pattern.trim_start_matches('/').split('/');
    let mut values = Vec::new();
    for part in parts {
        let name = names.next()?;
        match name.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            Some(_) if part.is_empty() => return None,
            Some(name) => values.push((name.to_owned(), (*part).to_owned())),
            None if name != *part => return None,
            None => {}
        }
    }
    names.next().is_none().then_some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_the_route_with_the_fewest_variable_parts() {
        let of = |path: &str| {
            let (route, values) = find(path)?;
            Some((route.path, values.into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()))
        };
        let expected = |path, values: &[&str]| Some((path, values.iter().map(|value| (*value).to_owned()).collect()));
        assert_eq!(of("/tx/ab"), expected("/tx/{txid}", &["txid=ab"]));
        assert_eq!(of("/block/h/txs/25"), expected("/block/{hash}/txs/{start}", &["hash=h", "start=25"]));
        assert_eq!(of("/blocks/tip/hash"), expected("/blocks/tip/hash", &[]));
        let last = "/scripthash/{scripthash}/txs/chain/{last_seen}";
        assert_eq!(of("/scripthash/s/txs/chain/t"), expected(last, &["scripthash=s", "last_seen=t"]));
        for path in ["", "/", "tx/ab", "/tx", "/tx/", "/tx/ab/", "/tx/ab/none", "/broadcast", "/mempool", "/blocks//"] {
            assert_eq!(of(path), None, "{path}");
        }
    }

    #[test]
    fn no_route_that_is_answered_changes_the_node() {
        let first = |route: &Route| route.path.split('/').nth(1).unwrap_or_default().to_owned();
        for route in
            ROUTES.iter().filter(|route| route.purpose.contains("broadcast") || route.purpose.contains("submit"))
        {
            assert!(route.verb == Verb::Post || !SUBJECTS.contains(&&*first(route)), "{}", route.path);
        }
    }
}
