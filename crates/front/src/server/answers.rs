//! [`Answering`]: the answers to questions. Input: a [`Question`]. Output: the [`Answer`] of its kind, or why there is
//! none. An answer is from one moment; a transaction is only sent if its block is the one that the asker knows.

use crate::limits::{HASHES_MAX, HEADERS_MAX, PLACES_MAX, TRANSACTIONS_SIZE_MAX};
use crate::message::{Answer, AnswerError, Question};
use lydian_index::Place;
use lydian_primitives::{BlockHash, Height};
use lydian_query::{Allowance, Chain, Pool, QueryError};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What answers are made from.
#[derive(Debug)]
pub(super) struct Answering {
    pub(super) chain: Arc<dyn Chain>,
    pub(super) pool: Arc<dyn Pool>,
}

impl Answering {
    /// May block.
    pub(super) fn answer(&self, question: Question) -> Answer {
        let answer = check(&question).and_then(|()| {
            let answer = Allowance::new(None).during(|| self.try_answer(question));
            answer.map_err(reason)
        });
        answer.unwrap_or_else(Answer::Failed)
    }

    fn try_answer(&self, question: Question) -> Result<Answer, QueryError> {
        let Answering { chain, pool } = self;
        Ok(match question {
            Question::Headers { from, count } => Answer::Headers(chain.headers(from, size(count))?),
            Question::Hashes { from, count } => Answer::Hashes(chain.hashes(from, size(count))?),
            Question::Txids(height) => Answer::Txids(chain.txids(height)?),
            Question::BlockInfo(hash) => Answer::BlockInfo(chain.block_info(&hash)?),
            Question::Block(hash) => Answer::Block(chain.block(&hash)?.map(|block| block.as_bytes().to_vec())),
            Question::Spent(hash) => Answer::Spent(match chain.block(&hash)? {
                Some(block) => chain.spent(&hash, &block)?,
                None => None,
            }),
            Question::Transactions(places) => Answer::Transactions(self.transactions(places)?),
            Question::Pruned(heights) => {
                Answer::Pruned(heights.into_iter().map(|height| chain.is_pruned(height)).collect())
            }
            Question::PoolTxids => Answer::PoolTxids(pool.txids()),
            Question::PoolChunks => Answer::PoolChunks(pool.chunks()),
            Question::Estimate { target, is_conservative } => Answer::Estimate(pool.estimate(target, is_conservative)),
            Question::Undo { hash, bytes_max } => {
                let undo = chain.undo(&hash, usize::try_from(bytes_max).unwrap_or(usize::MAX))?;
                Answer::Undo(undo.map(|undo| undo.as_bytes().to_vec()))
            }
        })
    }

    /// The bytes of the first transactions, as many as fit in an answer.
    fn transactions(&self, mut places: Vec<(Place, BlockHash)>) -> Result<Vec<Option<Vec<u8>>>, QueryError> {
        places.truncate(fitting(&places));
        let before = self.hashes_at(&places)?;
        let is_known = |hashes: &BTreeMap<Height, BlockHash>, (place, hash): &(Place, BlockHash)| {
            hashes.get(&place.height) == Some(hash)
        };
        let known: Vec<Place> =
            places.iter().filter(|place| is_known(&before, place)).map(|(place, _)| *place).collect();
        let mut found = self.chain.transactions(&known)?.into_iter();
        // A block that was left meanwhile may have been read at the place of another one.
        let after = self.hashes_at(&places)?;
        let one = |place| {
            let tx = if is_known(&before, place) { found.next().flatten() } else { None };
            tx.filter(|_| is_known(&after, place)).map(|tx| tx.as_bytes().to_vec())
        };
        Ok(places.iter().map(one).collect())
    }

    /// The blocks of the active chain at the heights of places.
    fn hashes_at(&self, places: &[(Place, BlockHash)]) -> Result<BTreeMap<Height, BlockHash>, QueryError> {
        let mut hashes = BTreeMap::new();
        for (place, _) in places {
            if !hashes.contains_key(&place.height)
                && let Some(hash) = self.chain.hashes(place.height, 1)?.first()
            {
                hashes.insert(place.height, *hash);
            }
        }
        Ok(hashes)
    }
}

/// How many of the places have transactions for one answer: at least one.
fn fitting(places: &[(Place, BlockHash)]) -> usize {
    let mut bytes = 0_usize;
    let is_room = |(place, _): &&(Place, BlockHash)| {
        let has_room = bytes < TRANSACTIONS_SIZE_MAX;
        bytes = bytes.saturating_add(size(place.size));
        has_room
    };
    places.iter().take_while(is_room).count()
}

/// Fails if a question asks for too much.
fn check(question: &Question) -> Result<(), AnswerError> {
    let (asked, most, what) = match question {
        Question::Headers { count, .. } => (size(*count), size(HEADERS_MAX), "headers"),
        Question::Hashes { count, .. } => (size(*count), size(HASHES_MAX), "hashes"),
        Question::Transactions(places) => (places.len(), PLACES_MAX, "transactions"),
        Question::Pruned(heights) => (heights.len(), PLACES_MAX, "heights"),
        _ => return Ok(()),
    };
    match asked <= most {
        true => Ok(()),
        false => Err(AnswerError::Final(format!("a question may name {most} {what}, not {asked}"))),
    }
}

fn size(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Why there is no answer, and whether another node may have one.
fn reason(error: QueryError) -> AnswerError {
    let words = error.to_string();
    match error {
        QueryError::NoHeight { .. }
        | QueryError::NoTransaction(_)
        | QueryError::NotInBlock { .. }
        | QueryError::NoPosition { .. }
        | QueryError::ProofHeight { .. } => AnswerError::Final(words),
        QueryError::NoIndex
        | QueryError::IndexBehind { .. }
        | QueryError::Pruned(_)
        | QueryError::NotFetched { .. }
        | QueryError::FetchesBusy { .. }
        | QueryError::TooManyFetches { .. }
        | QueryError::FetchRefused(_)
        | QueryError::Moving
        | QueryError::Stopping
        | QueryError::Failed(_) => AnswerError::TryAnother(words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// limit: HEADERS_MAX at
    /// limit: HEADERS_MAX above
    /// limit: HASHES_MAX at
    /// limit: HASHES_MAX above
    /// limit: PLACES_MAX at
    /// limit: PLACES_MAX above
    #[test]
    fn a_question_asks_for_as_much_as_it_may() {
        let place = (Place { height: Height(1), offset: 81, size: 10 }, BlockHash([1; 32]));
        let questions = |more: u32| {
            let places = PLACES_MAX + size(more);
            [
                Question::Headers { from: Height(5), count: HEADERS_MAX + more },
                Question::Hashes { from: Height(5), count: HASHES_MAX + more },
                Question::Transactions(vec![place; places]),
                Question::Pruned(vec![Height(1); places]),
            ]
        };
        for question in questions(0) {
            assert_eq!(check(&question), Ok(()));
            assert!(question.encode().len() <= crate::limits::QUESTION_SIZE_MAX);
        }
        let words: Vec<String> = questions(1)
            .iter()
            .map(|question| match check(question) {
                Err(AnswerError::Final(words)) => words,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(words[0], "a question may name 10000 headers, not 10001");
        assert_eq!(words[3], "a question may name 10000 heights, not 10001");
    }

    /// limit: TRANSACTIONS_SIZE_MAX at
    /// limit: TRANSACTIONS_SIZE_MAX above
    #[test]
    fn an_answer_ends_when_it_is_large() {
        let places = |sizes: &[usize]| -> Vec<(Place, BlockHash)> {
            let size = |size: &usize| u32::try_from(*size).unwrap();
            let place = |bytes| (Place { height: Height(1), offset: 81, size: size(bytes) }, BlockHash([1; 32]));
            sizes.iter().map(place).collect()
        };
        let half = TRANSACTIONS_SIZE_MAX / 2;
        assert_eq!(fitting(&places(&[half, half - 1, 1, 7])), 3);
        assert_eq!(fitting(&places(&[half, half - 1, 0, 7, 7])), 4);
        assert_eq!(fitting(&places(&[usize::try_from(u32::MAX).unwrap(); 3])), 1);
        assert_eq!(fitting(&[]), 0);
    }

    #[test]
    fn another_node_may_have_what_this_one_has_not() {
        let no_height = QueryError::NoHeight { height: 5, tip: 4 };
        assert_eq!(reason(no_height), AnswerError::Final("height 5 is above the tip 4".to_owned()));
        let pruned = AnswerError::TryAnother("the block at height 5 was pruned".to_owned());
        assert_eq!(reason(QueryError::Pruned(Height(5))), pruned);
    }
}
