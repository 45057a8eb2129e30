//! [`RemoteChain`]: the chain as the index has it, with what nodes have of it.
//!
//! Input: heights and hashes. Output: the answers of [`Chain`]. Tip and hashes are those of the index; headers, blocks
//! and transactions are those of nodes, checked against these hashes: a block that the index does not name is never
//! part of an answer. A node that does not have a block yet is asked again for a second, and one that has left it for
//! another branch is asked for it by its hash ([`left`]). Blocks and transactions that the store has are read there,
//! and so is what follows from them if no node answers.
//!
//! Memory: headers and txids of the last blocks that were asked for ([`KEPT_HEADERS_MAX`], [`KEPT_TXIDS_MAX`]), and the
//! blocks of [`left`].

mod left;

use crate::client::nodes::Nodes;
use crate::limits::{HEADERS_MAX, KEPT_HEADERS_MAX, KEPT_TXIDS_MAX, PLACES_MAX};
use crate::message::{Answer, Question};
use crate::recent::Recent;
use crate::stored::{StoredBlocks, or_of_nodes, or_of_store};
use left::{LeftBlocks, take_block};
use lydian_chain::UndoParts;
use lydian_engine::Tip;
use lydian_hash::merkle_root;
use lydian_index::Place;
use lydian_primitives::{Block, BlockHash, Header, Height, Transaction, Txid};
use lydian_query::{BlockInfo, Chain, QueryError, SpentOutput};
use lydian_shared_index::SharedIndex;
use lydian_stdx::lock;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How often, and after which time, nodes are asked again that do not have a block of the index yet.
const TRIES_MAX: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// Blocks of the index which nodes may not have yet.
const LAST_BLOCKS: u32 = 100;

/// Headers around one that is asked for, which are likely to be asked for next.
const HEADERS_AROUND: u32 = 16;

/// Nodes announce a block in their stream only, which leads to the mempool: there is but a short time to wait for.
fn pause() {
    std::thread::park_timeout(PAUSE);
}

/// Whether the txids are those of the block.
fn are_of(txids: &[Txid], header: &Header) -> bool {
    let mut leaves: Vec<[u8; 32]> = txids.iter().map(|txid| txid.0).collect();
    merkle_root(&mut leaves) == (header.merkle_root, false)
}

#[derive(Debug)]
pub(crate) struct RemoteChain {
    index: Arc<SharedIndex>,
    nodes: Arc<Nodes>,
    stored: StoredBlocks,
    left: LeftBlocks,
    headers: Mutex<Recent<BlockHash, Header>>,
    txids: Mutex<Recent<BlockHash, Arc<[Txid]>>>,
    /// Whether the first block was pruned, once a node has said so. A node that has it has all.
    is_pruned: Mutex<Option<bool>>,
}

impl RemoteChain {
    pub(crate) fn new(index: Arc<SharedIndex>, nodes: Arc<Nodes>) -> RemoteChain {
        RemoteChain {
            stored: StoredBlocks::new(Arc::clone(&index)),
            left: LeftBlocks::new(Arc::clone(&nodes)),
            index,
            nodes,
            headers: Mutex::new(Recent::new(KEPT_HEADERS_MAX / 2)),
            txids: Mutex::new(Recent::new(KEPT_TXIDS_MAX / 2)),
            is_pruned: Mutex::default(),
        }
    }

    fn hash_at(&self, height: Height) -> Option<BlockHash> {
        self.index.hashes(height.0, 1).pop()
    }

    /// Asks until a node has what fits, as long as nodes are about to have it. `None`: they are not.
    fn ask_until<T>(
        &self,
        question: &Question,
        take: impl Fn(Answer) -> Option<T>,
        is_due: impl Fn() -> bool,
        of_left: impl Fn() -> Result<Option<T>, QueryError>,
    ) -> Result<Option<T>, QueryError> {
        for _ in 0..TRIES_MAX {
            let (found, is_answered) = self.nodes.ask_each(question, &take);
            if matches!(found, Ok(Some(_))) || !is_due() {
                return found;
            }
            // The nodes are behind the index, or on another branch. If one of them failed, another one may have it.
            match found {
                Err(error) if is_answered => return of_left().ok().flatten().map(Some).ok_or(error),
                Err(error) => return Err(error),
                Ok(_) => {}
            }
            if let Some(found) = of_left()? {
                return Ok(Some(found));
            }
            pause();
        }
        Err(QueryError::Moving)
    }

    /// Asks about a block of the index by its height. `of_left` asks by its hash, for nodes that have left the block.
    /// `None`: the index does not have it any more.
    fn ask_about<T>(
        &self,
        (height, hash): (Height, &BlockHash),
        question: &Question,
        take: impl Fn(Answer) -> Option<T>,
        of_left: impl Fn() -> Result<Option<T>, QueryError>,
    ) -> Result<Option<T>, QueryError> {
        self.ask_until(question, take, || self.hash_at(height) == Some(*hash), of_left)
    }

    /// Asks about a block by its hash. `None`: no node has it, and it is none of the index's last blocks, which nodes
    /// are about to have.
    fn ask_by_hash<T>(
        &self,
        hash: &BlockHash,
        question: &Question,
        take: impl Fn(Answer) -> Option<T>,
    ) -> Result<Option<T>, QueryError> {
        let is_due = || {
            let tip = self.index.tip().map_or(0, |tip| tip.height.0);
            self.index.hashes(tip.saturating_sub(LAST_BLOCKS - 1), LAST_BLOCKS as usize).contains(hash)
        };
        self.ask_until(question, take, is_due, || Ok(None))
    }

    /// The headers of the first of these blocks, which follow on each other: at least one. `None` if the chain moved.
    fn fetch_headers(&self, from: u32, hashes: &[BlockHash]) -> Result<Option<Vec<Header>>, QueryError> {
        let Some((first, count)) = hashes.first().zip(u32::try_from(hashes.len()).ok()) else {
            return Ok(Some(Vec::new()));
        };
        let take = |answer: Answer| match answer {
            Answer::Headers(mut headers) => {
                let same = headers.iter().zip(hashes).take_while(|(header, hash)| header.hash() == **hash).count();
                headers.truncate(same);
                (same > 0).then_some(headers)
            }
            _ => None,
        };
        let question = Question::Headers { from: Height(from), count };
        let of_left = || Ok(self.left_header(from, first)?.map(|header| vec![header]));
        let of_nodes = self.ask_about((Height(from), first), &question, take, of_left);
        let found = or_of_store(of_nodes, || self.stored.headers(from, hashes))?;
        if let Some(headers) = &found {
            let mut kept = lock(&self.headers);
            headers.iter().zip(hashes).for_each(|(header, hash)| kept.put(*hash, *header, 1));
        }
        Ok(found)
    }

    /// The header of a block that nodes have left, from the store or from them.
    fn left_header(&self, height: u32, hash: &BlockHash) -> Result<Option<Header>, QueryError> {
        match self.stored.headers(height, &[*hash]) {
            Ok(Some(headers)) => Ok(headers.first().copied()),
            // Nodes are asked, whatever the reason.
            Ok(None) | Err(_) => self.left.header(hash),
        }
    }

    /// The header at a height, asked for with those around it, one of which is likely to be asked for next. `None` if
    /// the chain moved.
    fn fetch_around(&self, height: u32, hash: &BlockHash) -> Result<Option<Header>, QueryError> {
        let first = height - height % HEADERS_AROUND;
        let hashes = self.index.hashes(first, HEADERS_AROUND as usize);
        let at = (height - first) as usize;
        if hashes.get(at) != Some(hash) {
            return Ok(None);
        }
        let count = u32::try_from(hashes.len()).unwrap_or(HEADERS_AROUND);
        // Near the tip, a node may have fewer blocks than the index, or others: those above the one that is asked for
        // do not matter.
        let take = |answer: Answer| match answer {
            Answer::Headers(mut headers) => {
                let same = headers.iter().zip(&hashes).take_while(|(header, hash)| header.hash() == **hash).count();
                headers.truncate(same);
                (same > at).then_some((first, headers))
            }
            _ => None,
        };
        let question = Question::Headers { from: Height(first), count };
        let of_left = || Ok(self.left_header(height, hash)?.map(|header| (height, vec![header])));
        let of_nodes = self.ask_about((Height(height), hash), &question, take, of_left);
        let of_store = || Ok(self.stored.headers(height, &[*hash])?.map(|headers| (height, headers)));
        let found = or_of_store(of_nodes, of_store)?;
        let Some((from, headers)) = found else { return Ok(None) };
        let mut kept = lock(&self.headers);
        let hashes = hashes.iter().skip((from - first) as usize);
        headers.iter().zip(hashes).for_each(|(header, hash)| kept.put(*hash, *header, 1));
        Ok(headers.get((height - from) as usize).copied())
    }

    /// The headers that are kept, if all are.
    fn kept_headers(&self, hashes: &[BlockHash]) -> Option<Vec<Header>> {
        let kept = lock(&self.headers);
        hashes.iter().map(|hash| kept.get(hash)).collect()
    }

    /// Transactions at places, with the hashes of their blocks.
    fn fetch_transactions(&self, places: &[(Place, BlockHash)]) -> Result<Option<Vec<Transaction>>, QueryError> {
        let mut all = Vec::with_capacity(places.len());
        while let Some(rest) = places.get(all.len()..).filter(|rest| !rest.is_empty()) {
            let some = rest.get(..rest.len().min(PLACES_MAX)).unwrap_or(rest);
            // Those before the first one that the node does not have.
            let take = |answer: Answer| match answer {
                Answer::Transactions(found) if found.len() <= some.len() => {
                    let parse = |bytes: Option<Vec<u8>>| Transaction::parse(bytes?).ok();
                    let found: Vec<Transaction> = found.into_iter().map_while(parse).collect();
                    (!found.is_empty()).then_some(found)
                }
                _ => None,
            };
            let Some((place, hash)) = some.first() else { break };
            let question = Question::Transactions(some.to_vec());
            match self.ask_about((place.height, hash), &question, take, || self.left.transactions(some))? {
                Some(found) => all.extend(found),
                None => return Ok(None),
            }
        }
        Ok(Some(all))
    }
}

impl Chain for RemoteChain {
    fn tip(&self) -> Result<Tip, QueryError> {
        self.index
            .tip()
            .ok_or_else(|| QueryError::Failed("the index in the store has no block yet: try again".to_owned()))
    }

    fn headers(&self, from: Height, count: usize) -> Result<Vec<Header>, QueryError> {
        let mut all = Vec::new();
        while all.len() < count {
            let Some(start) = u32::try_from(all.len()).ok().and_then(|done| from.0.checked_add(done)) else { break };
            let step = (count - all.len()).min(HEADERS_MAX as usize);
            let hashes = self.index.hashes(start, step);
            if hashes.is_empty() {
                break;
            }
            if let Some(kept) = self.kept_headers(&hashes) {
                all.extend(kept);
                continue;
            }
            let found = match hashes[..] {
                [hash] => self.fetch_around(start, &hash)?.map(|header| vec![header]),
                _ => self.fetch_headers(start, &hashes)?,
            };
            match found {
                Some(found) => all.extend(found),
                None => return Err(QueryError::Moving),
            }
        }
        Ok(all)
    }

    fn hashes(&self, from: Height, count: usize) -> Result<Vec<BlockHash>, QueryError> {
        Ok(self.index.hashes(from.0, count))
    }

    fn txids(&self, height: Height) -> Result<Option<(BlockHash, Vec<Txid>)>, QueryError> {
        let Some(hash) = self.hash_at(height) else { return Ok(None) };
        if let Some(kept) = lock(&self.txids).get(&hash) {
            return Ok(Some((hash, kept.to_vec())));
        }
        let header = self.headers(height, 1)?.pop().filter(|header| header.hash() == hash).ok_or(QueryError::Moving)?;
        let take = |answer: Answer| match answer {
            Answer::Txids(Some((of, txids))) => (of == hash && are_of(&txids, &header)).then_some(txids),
            _ => None,
        };
        let of_nodes = self.ask_about((height, &hash), &Question::Txids(height), take, || self.left.txids(&hash));
        let of_store = || Ok(self.stored.block(&hash)?.map(|block| block.txs().map(|tx| tx.txid()).collect()));
        let found: Option<Vec<Txid>> = or_of_store(of_nodes, of_store)?;
        let Some(txids) = found else { return Err(QueryError::Moving) };
        lock(&self.txids).put(hash, txids.as_slice().into(), txids.len());
        Ok(Some((hash, txids)))
    }

    fn block_info(&self, hash: &BlockHash) -> Result<Option<BlockInfo>, QueryError> {
        let take = |answer: Answer| match answer {
            Answer::BlockInfo(Some(info)) if info.hash == *hash && info.header.hash() == *hash => Some(info),
            _ => None,
        };
        let of_nodes = self.ask_by_hash(hash, &Question::BlockInfo(*hash), take);
        let Some(info) = or_of_store(of_nodes, || self.stored.info(hash))? else { return Ok(None) };
        let tip = self.tip()?;
        let around = self.index.hashes(info.height, 2);
        let is_active = around.first() == Some(hash);
        if !is_active && info.is_active && info.height > tip.height.0 {
            // The index does not have it yet.
            return Ok(None);
        }
        let next = around.get(1).copied().filter(|_| is_active);
        Ok(Some(BlockInfo { is_active, next, ..info }))
    }

    fn block(&self, hash: &BlockHash) -> Result<Option<Block>, QueryError> {
        let take = |answer| take_block(answer, hash);
        or_of_nodes(self.stored.block(hash), || self.ask_by_hash(hash, &Question::Block(*hash), take))
    }

    fn spent(&self, hash: &BlockHash, block: &Block) -> Result<Option<Vec<SpentOutput>>, QueryError> {
        let inputs: usize = block.txs().filter(|tx| !tx.is_coinbase()).map(|tx| tx.input_count()).sum();
        let take = |answer: Answer| match answer {
            Answer::Spent(Some(spent)) if spent.len() == inputs => Some(spent),
            _ => None,
        };
        match self.ask_by_hash(hash, &Question::Spent(*hash), take) {
            // The outputs are looked up one by one.
            Err(QueryError::Failed(_)) if self.stored.height_of(hash).is_some() => Ok(None),
            found => found,
        }
    }

    fn undo(&self, hash: &BlockHash, bytes_max: usize) -> Result<Option<UndoParts>, QueryError> {
        let txs = lock(&self.txids).get(hash).map(|txids| txids.len());
        let most = u64::try_from(bytes_max).unwrap_or(u64::MAX);
        let question = Question::Undo { hash: *hash, bytes_max: most };
        // A node that has none, or too much, is not asked again, and no other one: transactions are looked up then.
        let take = |answer: Answer| match answer {
            Answer::Undo(None) => Some(None),
            Answer::Undo(Some(bytes)) if bytes.len() <= bytes_max => {
                let undo = UndoParts::parse(bytes).ok()?;
                let is_of_block = txs.is_none_or(|txs| undo.transactions() + 1 == txs);
                is_of_block.then_some(Some(undo))
            }
            _ => None,
        };
        match self.nodes.ask(&question, take) {
            Ok(found) => Ok(found.flatten()),
            Err(_) if self.stored.height_of(hash).is_some() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn transaction(&self, place: Place) -> Result<Option<Transaction>, QueryError> {
        Ok(self.transactions(&[place])?.pop().flatten())
    }

    fn transactions(&self, places: &[Place]) -> Result<Vec<Option<Transaction>>, QueryError> {
        let hashes: Option<Vec<BlockHash>> = places.iter().map(|place| self.hash_at(place.height)).collect();
        let Some(hashes) = hashes else { return Ok(vec![None; places.len()]) };
        let known: Vec<(Place, BlockHash)> = places.iter().copied().zip(hashes).collect();
        let stored = self.stored.transactions(&known);
        Ok(match or_of_nodes(stored, || self.fetch_transactions(&known))? {
            Some(found) => found.into_iter().map(Some).collect(),
            None => vec![None; places.len()],
        })
    }

    fn is_pruned(&self, height: Height) -> bool {
        if self.stored.has(height) {
            return false;
        }
        let ask = |height: Height| {
            let take = |answer: Answer| match answer {
                Answer::Pruned(pruned) => <[bool; 1]>::try_from(pruned).ok().map(|[is_pruned]| is_pruned),
                _ => None,
            };
            self.nodes.ask(&Question::Pruned(vec![height]), take).ok().flatten()
        };
        let kept = *lock(&self.is_pruned);
        let is_first_pruned = kept.or_else(|| {
            let asked = ask(Height(1));
            *lock(&self.is_pruned) = asked;
            asked
        });
        is_first_pruned == Some(true) && ask(height).unwrap_or(true)
    }
}
