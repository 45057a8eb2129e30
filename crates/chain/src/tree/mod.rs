//! [`HeaderTree`]: all headers that are known, which of their blocks are here, and the active chain. Input: headers, positions of blocks,
//! verdicts. Output: the best chain to go to, paths, ancestors; answers to `HeaderView` for any branch.
//!
//! What Core's `m_block_index`, `setBlockIndexCandidates`, `m_blocks_unlinked` and `m_chain` are together. Invariants: a parent's id is lower
//! than its children's; ids are given in the order in which headers are entered; a block on an invalid one is invalid; a block is *linked* (has
//! a sequence) once its body and those of all its ancestors came; `leaves` are the linked valid blocks without a linked valid child, so that
//! the best block is always among them (a child has more work than its parent). Cost: 168 bytes a header and up to 15 for the table of hashes
//! and the active chain; choosing the best block does not depend on the number of headers. No clock, no file.

mod branch;
mod check;
mod node;
mod table;
#[cfg(test)]
mod tests;

pub use branch::Branch;
pub use check::TreeInconsistency;
pub use node::Node;

use crate::position::{BlockPosition, UndoPosition};
use lydian_consensus::pow::{PowCheck, block_proof};
use lydian_consensus::{HeaderRun, Params, Rejected, Rule, U256, Violation, check_header, header};
use lydian_primitives::{BlockHash, HashedHeader, Header, Height};
use node::{INVALID, NONE, Packed, VERIFIED};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use table::Table;

/// A header of the tree. Ids are given from 0, the genesis block, in the order in which headers are entered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    pub const GENESIS: NodeId = NodeId(0);

    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Work, then who was here first: Core's `CBlockIndexWorkComparator`. The greater is the better.
type Merit = (U256, Reverse<i64>);

/// The first header of many that was refused, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusedAt {
    pub index: usize,
    pub reason: Rejected,
}

/// The tree.
#[derive(Clone, Debug)]
pub struct HeaderTree {
    nodes: Vec<Packed>,
    by_hash: Table,
    /// Height of the root: 0 but where the tree begins in the middle of a chain.
    base: u32,
    /// The chain that coins stand for, by height above the root.
    active: Vec<NodeId>,
    /// The header with most work that is not invalid, the first between equals.
    best_header: NodeId,
    /// Linked valid blocks without a linked valid child.
    leaves: BTreeSet<(Merit, NodeId)>,
    /// By parent: blocks whose body is here and that are not linked, in the order in which their bodies came.
    unlinked: HashMap<NodeId, Vec<NodeId>>,
    /// Linked blocks off the active chain whose body is no longer here.
    pruned: HashSet<NodeId>,
    next_sequence: u32,
    /// Blocks that were called precious, each with a rank below every sequence; the last is the lowest.
    precious: HashMap<NodeId, i64>,
    /// The work of the tip when that was last done.
    precious_work: U256,
}

impl HeaderTree {
    /// A tree of the genesis block alone, which is linked without a position.
    pub fn new(params: &Params) -> HeaderTree {
        let genesis = match params.genesis_block().parse() {
            Ok(block) => *block.header(),
            Err(error) => unreachable!("the genesis block is built to parse: {error}"),
        };
        HeaderTree::rooted_at(&genesis, Height(0))
    }

    /// A tree that begins at any header of a chain, which counts as linked and as the first work: for parts of real chains, of which tests and
    /// benchmarks have some. Nothing below the root is known, so a target that depends on it cannot be told.
    pub fn rooted_at(root: &Header, height: Height) -> HeaderTree {
        let mut tree = HeaderTree {
            nodes: Vec::new(),
            by_hash: Table::new(),
            base: height.0,
            active: vec![NodeId::GENESIS],
            best_header: NodeId::GENESIS,
            leaves: BTreeSet::new(),
            unlinked: HashMap::new(),
            pruned: HashSet::new(),
            next_sequence: 1,
            precious: HashMap::new(),
            precious_work: U256::ZERO,
        };
        let mut node = Packed::new(root.hash(), root, height.0, block_proof(root.bits));
        node.sequence = 0;
        tree.push(node);
        tree.leaves.insert((tree.merit(NodeId::GENESIS), NodeId::GENESIS));
        tree
    }

    /// Takes a header in, as Core's `AcceptBlockHeader` does. `now` is the clock's time, in seconds since 1970. A header that is known gives
    /// its id, or is refused as a duplicate if it is invalid.
    pub fn accept_header(&mut self, header: &Header, now: i64, params: &Params) -> Result<NodeId, Rejected> {
        let hash = header.hash();
        if let Some(id) = self.find(&hash) {
            return if self.at(id).is_invalid() { Err(Rejected::DuplicateInvalid) } else { Ok(id) };
        }
        check_header(header, &hash, params)?;
        let parent = self.find(&header.prev_block).ok_or(Violation::of(Rule::PrevBlkNotFound))?;
        if self.at(parent).is_invalid() {
            return Err(Violation::of(Rule::BadPrevblk).into());
        }
        header::check_header_in_chain(header, self.height(parent), &self.branch(parent), now, params)?;
        Ok(self.insert(hash, header, parent))
    }

    /// Takes headers in, one after the other, as [`HeaderTree::accept_header`] does, and stops at the first that is refused. `entered` is told
    /// each that is new. Where they follow each other none of them walks back: about 0.4 us a header.
    pub fn accept_headers(
        &mut self,
        headers: &[HashedHeader],
        now: i64,
        params: &Params,
        entered: &mut dyn FnMut(NodeId, &Header),
    ) -> Result<(), RefusedAt> {
        let mut pow = PowCheck::new(params);
        let mut run: Option<(NodeId, HeaderRun)> = None;
        for (index, hashed) in headers.iter().enumerate() {
            let refuse = |reason| RefusedAt { index, reason };
            let (header, hash) = (hashed.header(), hashed.hash());
            if let Some(id) = self.find(&hash) {
                if self.at(id).is_invalid() {
                    return Err(refuse(Rejected::DuplicateInvalid));
                }
                continue;
            }
            let broken = |rule| refuse(Violation::of(rule).into());
            if !pow.holds(&hash, header.bits) {
                return Err(broken(Rule::HighHash));
            }
            let follows = run.take().filter(|(last, _)| self.at(*last).hash == header.prev_block);
            let (parent, mut chain) = match follows {
                Some(follows) => follows,
                None => {
                    let parent = self.find(&header.prev_block).ok_or_else(|| broken(Rule::PrevBlkNotFound))?;
                    let chain = HeaderRun::at(self.height(parent), &self.branch(parent), params);
                    (parent, chain.ok_or_else(|| broken(Rule::PrevBlkNotFound))?)
                }
            };
            if self.at(parent).is_invalid() {
                return Err(broken(Rule::BadPrevblk));
            }
            chain.check(header, &self.branch(parent), now, params).map_err(|violation| refuse(violation.into()))?;
            let id = self.insert(hash, header, parent);
            chain.push(header, params);
            run = Some((id, chain));
            entered(id, header);
        }
        Ok(())
    }

    /// Enters a header that was checked before and whose parent is here: what a file of this store says. `None` if the parent is not.
    pub fn restore_header(&mut self, header: &Header) -> Option<NodeId> {
        let hash = header.hash();
        let parent = self.find(&header.prev_block)?;
        Some(self.find(&hash).unwrap_or_else(|| self.insert(hash, header, parent)))
    }

    fn insert(&mut self, hash: BlockHash, header: &Header, parent: NodeId) -> NodeId {
        let above = self.at(parent);
        // The same target is the same work: a subtraction in place of a long division.
        let proof = match self.parent(parent) {
            Some(grandparent) if above.bits == header.bits => {
                above.chain_work.checked_sub(self.at(grandparent).chain_work).unwrap_or(U256::ZERO)
            }
            _ => block_proof(header.bits),
        };
        let chain_work = above.chain_work.checked_add(proof).unwrap_or(U256::MAX);
        let height = above.height + 1;
        let mut node = Packed::new(hash, header, height, chain_work);
        (node.parent, node.next_sibling) = (parent.0, above.first_child);
        node.skip = self.ancestor(parent, Height(skip_height(height))).unwrap_or(parent).0;
        let id = self.push(node);
        self.at_mut(parent).first_child = id.0;
        if chain_work > self.at(self.best_header).chain_work {
            self.best_header = id;
        }
        id
    }

    fn push(&mut self, node: Packed) -> NodeId {
        let id = match u32::try_from(self.nodes.len()) {
            Ok(id) if id != NONE => NodeId(id),
            _ => unreachable!("4,294,967,295 headers with proof of work"),
        };
        if self.nodes.len() == self.nodes.capacity() {
            // Doubling would leave up to half of the largest thing in memory unused.
            self.nodes.reserve_exact((self.nodes.len() / 64).max(1024));
        }
        let hash = node.hash;
        self.nodes.push(node);
        let nodes = &self.nodes;
        self.by_hash.insert(id, &hash, |id| &nodes[id.index()].hash);
        id
    }

    /// The body of a block is here. Links the block if all its ancestors' bodies came, and then those that waited for it, in the order in
    /// which their bodies came: Core's `ReceivedBlockTransactions`. A block that is linked already gets the position and keeps its place.
    pub fn set_block(&mut self, id: NodeId, position: BlockPosition) {
        let was_here = self.at(id).has_block();
        self.at_mut(id).set_block(Some(position));
        self.pruned.remove(&id);
        if was_here || self.at(id).is_linked() {
            return;
        }
        match self.parent(id) {
            Some(parent) if !self.at(parent).is_linked() => self.unlinked.entry(parent).or_default().push(id),
            _ => self.link(id),
        }
    }

    fn link(&mut self, id: NodeId) {
        let mut linked = VecDeque::from([id]);
        while let Some(id) = linked.pop_front() {
            self.at_mut(id).sequence = self.next_sequence;
            self.next_sequence += 1;
            if !self.at(id).is_invalid() {
                if let Some(parent) = self.parent(id) {
                    self.leaves.remove(&(self.merit(parent), parent));
                }
                self.leaves.insert((self.merit(id), id));
            }
            linked.extend(self.unlinked.remove(&id).unwrap_or_default());
        }
    }

    /// The body of a block is no longer here. It stays linked: on the active chain nobody needs it, off it no chain through it is chosen.
    pub fn clear_block(&mut self, id: NodeId) {
        self.at_mut(id).set_block(None);
        if self.at(id).is_linked() {
            if id != NodeId::GENESIS && !self.is_active(id) {
                self.pruned.insert(id);
            }
        } else if let Some(parent) = self.parent(id)
            && let Some(waiting) = self.unlinked.get_mut(&parent)
        {
            waiting.retain(|waiting| *waiting != id);
            if waiting.is_empty() {
                self.unlinked.remove(&parent);
            }
        }
    }

    pub fn set_undo(&mut self, id: NodeId, position: UndoPosition) {
        self.at_mut(id).set_undo(Some(position));
    }

    pub fn clear_undo(&mut self, id: NodeId) {
        self.at_mut(id).set_undo(None);
    }

    /// The scripts of the block succeeded once.
    pub fn set_verified(&mut self, id: NodeId) {
        self.at_mut(id).flags |= VERIFIED;
    }

    /// Marks a block and everything that stands on it. Blocks of the active chain must be taken off it by the caller.
    pub fn invalidate(&mut self, id: NodeId) {
        assert!(id != NodeId::GENESIS, "the genesis block is valid");
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            if self.at(id).is_linked() {
                self.leaves.remove(&(self.merit(id), id));
            }
            self.at_mut(id).flags |= INVALID;
            open.extend(self.children(id).filter(|child| !self.at(*child).is_invalid()));
        }
        if let Some(parent) = self.parent(id) {
            self.refresh_leaf(parent);
        }
        if self.at(self.best_header).is_invalid() {
            self.best_header = self.find_best_header();
        }
    }

    /// Takes the mark off a block, its ancestors and its descendants: Core's `ResetBlockFailureFlags` (`reconsiderblock`).
    pub fn reconsider(&mut self, id: NodeId) {
        let mut cleared = Vec::new();
        let mut at = self.parent(id);
        while let Some(id) = at.filter(|id| self.at(*id).is_invalid()) {
            cleared.push(id);
            at = self.parent(id);
        }
        let top = at;
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            cleared.push(id);
            open.extend(self.children(id));
        }
        cleared.iter().for_each(|id| self.at_mut(*id).flags &= !INVALID);
        cleared.into_iter().chain(top).for_each(|id| self.refresh_leaf(id));
        self.best_header = self.find_best_header();
    }

    /// Treats a block as if its body had come before those of all others with its work: Core's `PreciousBlock`. Not kept by a restart.
    pub fn set_precious(&mut self, id: NodeId) {
        let tip_work = self.at(self.tip()).chain_work;
        let lowest = self.precious.values().min().copied().unwrap_or(0);
        // A chain that has grown since makes the old ranks meaningless: Core begins anew.
        let rank = if tip_work > self.precious_work { -1 } else { lowest - 1 };
        self.precious_work = tip_work;
        self.leaves.remove(&(self.merit(id), id));
        self.precious.insert(id, rank);
        self.refresh_leaf(id);
    }

    /// Enters a block among the leaves, or takes it out, by what it is.
    fn refresh_leaf(&mut self, id: NodeId) {
        let is_good = |id: NodeId| self.at(id).is_linked() && !self.at(id).is_invalid();
        let is_leaf = is_good(id) && !self.children(id).any(is_good);
        let entry = (self.merit(id), id);
        if is_leaf {
            self.leaves.insert(entry);
        } else {
            self.leaves.remove(&entry);
        }
    }

    /// The block whose chain is to be the active one: better than the tip (more work, or the same and here earlier), no block of its chain
    /// known to be invalid, the bodies from the active chain up to it all here. `None` if the tip is the best. Core's `FindMostWorkChain`.
    pub fn best_candidate(&self) -> Option<NodeId> {
        let of_tip = self.merit(self.tip());
        let better = self.leaves.iter().rev().take_while(|(merit, _)| *merit > of_tip).map(|(_, id)| *id);
        if self.pruned.is_empty() {
            return better.take(1).next();
        }
        let reachable = better.filter_map(|id| self.highest_reachable(id)).map(|id| (self.merit(id), id));
        reachable.max().filter(|(merit, _)| *merit > of_tip).map(|(_, id)| id)
    }

    /// The last block on the way from the active chain to `id` before one whose body is gone.
    fn highest_reachable(&self, id: NodeId) -> Option<NodeId> {
        let (mut found, mut at) = (Some(id), id);
        while !self.is_active(at) {
            let parent = self.parent(at)?;
            if !self.at(at).has_block() {
                found = Some(parent);
            }
            at = parent;
        }
        found
    }

    pub fn find(&self, hash: &BlockHash) -> Option<NodeId> {
        self.by_hash.find(hash, |id| &self.nodes[id.index()].hash)
    }

    /// Everything known of a header and its block. A copy; where one thing is asked for, the methods below are cheaper.
    pub fn node(&self, id: NodeId) -> Node {
        let packed = self.at(id);
        Node {
            hash: packed.hash,
            header: self.header(id),
            height: Height(packed.height),
            parent: self.parent(id),
            chain_work: packed.chain_work,
            block: packed.block(),
            undo: packed.undo(),
            is_invalid: packed.is_invalid(),
            is_verified: packed.flags & VERIFIED != 0,
            sequence: packed.is_linked().then_some(u64::from(packed.sequence)),
        }
    }

    /// Where the block lies; `None` if it has not come, or was pruned.
    pub fn block(&self, id: NodeId) -> Option<BlockPosition> {
        self.at(id).block()
    }

    /// Where its undo data lies.
    pub fn undo(&self, id: NodeId) -> Option<UndoPosition> {
        self.at(id).undo()
    }

    pub fn hash(&self, id: NodeId) -> &BlockHash {
        &self.at(id).hash
    }

    pub fn header(&self, id: NodeId) -> Header {
        let prev_block = self.parent(id).map_or(BlockHash::ZERO, |parent| self.at(parent).hash);
        self.at(id).header(prev_block)
    }

    pub fn height(&self, id: NodeId) -> Height {
        Height(self.at(id).height)
    }

    pub fn parent(&self, id: NodeId) -> Option<NodeId> {
        Some(self.at(id).parent).filter(|parent| *parent != NONE).map(NodeId)
    }

    pub(crate) fn time(&self, id: NodeId) -> u32 {
        self.at(id).time
    }

    /// Headers in the tree, the genesis block's included. Ids are below it.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Never: there is always the genesis block.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// All ids, parents before children.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        let end = u32::try_from(self.nodes.len()).unwrap_or(NONE);
        (0..end).map(NodeId)
    }

    fn children(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let some = |id: u32| Some(id).filter(|id| *id != NONE).map(NodeId);
        std::iter::successors(some(self.at(id).first_child), move |child| some(self.at(*child).next_sibling))
    }

    /// The header with most work that is not invalid, whether or not its block is here; the first between equals: Core's `m_best_header`.
    pub fn best_header(&self) -> NodeId {
        self.best_header
    }

    fn find_best_header(&self) -> NodeId {
        let valid = self.ids().filter(|id| !self.at(*id).is_invalid());
        valid.max_by_key(|id| (self.at(*id).chain_work, Reverse(*id))).unwrap_or(NodeId::GENESIS)
    }

    /// The last block of the active chain.
    pub fn tip(&self) -> NodeId {
        self.active[self.active.len() - 1]
    }

    /// The block of the active chain at a height.
    pub fn active(&self, height: Height) -> Option<NodeId> {
        self.active.get(height.0.checked_sub(self.base)? as usize).copied()
    }

    pub fn is_active(&self, id: NodeId) -> bool {
        self.active(self.height(id)) == Some(id)
    }

    /// The tip's child becomes the tip.
    pub fn push_active(&mut self, id: NodeId) {
        assert_eq!(self.parent(id), Some(self.tip()), "a block is connected to its parent");
        self.active.push(id);
        self.pruned.remove(&id);
    }

    /// The tip's parent becomes the tip; gives the former tip.
    pub fn pop_active(&mut self) -> NodeId {
        assert!(self.active.len() > 1, "the genesis block is never disconnected");
        let id = self.tip();
        self.active.pop();
        if !self.at(id).has_block() {
            self.pruned.insert(id);
        }
        id
    }

    /// Makes the chain that ends with `id` the active one, whatever was: for a start, where the coins say which it is.
    pub fn activate(&mut self, id: NodeId) {
        let fork = self.fork(self.tip(), id);
        while self.tip() != fork {
            self.pop_active();
        }
        for id in self.path(fork, id) {
            self.push_active(id);
        }
    }

    /// The last block that two chains have in common: Core's `LastCommonAncestor`.
    pub fn fork(&self, a: NodeId, b: NodeId) -> NodeId {
        let height = self.height(a).min(self.height(b));
        let (mut a, mut b) = (self.ancestor(a, height).unwrap_or(a), self.ancestor(b, height).unwrap_or(b));
        while a != b {
            let (skip_a, skip_b) = (self.at(a).skip, self.at(b).skip);
            // At equal heights both skip to equal heights.
            (a, b) = if skip_a != skip_b {
                (NodeId(skip_a), NodeId(skip_b))
            } else {
                (NodeId(self.at(a).parent), NodeId(self.at(b).parent))
            };
        }
        a
    }

    /// The blocks from above `from_fork` up to `to`, lowest first. Empty unless `from_fork` is a proper ancestor of `to`.
    pub fn path(&self, from_fork: NodeId, to: NodeId) -> Vec<NodeId> {
        let from = self.height(from_fork);
        if self.ancestor(to, from) != Some(from_fork) {
            return Vec::new();
        }
        let mut path = Vec::with_capacity((self.height(to).0 - from.0) as usize);
        let mut at = to;
        while at != from_fork {
            path.push(at);
            at = NodeId(self.at(at).parent);
        }
        path.reverse();
        path
    }

    /// The ancestor at a height, which may be the block itself. `None` above it.
    pub fn ancestor(&self, id: NodeId, height: Height) -> Option<NodeId> {
        let mut at = id;
        if self.height(at) < height || height.0 < self.base {
            return None;
        }
        while self.height(at) > height {
            if self.is_active(at) {
                return self.active(height);
            }
            at = self.step_towards(at, height.0);
        }
        Some(at)
    }

    /// A step down by the pointer that brings nearer: Core's `CBlockIndex::GetAncestor`.
    fn step_towards(&self, at: NodeId, height: u32) -> NodeId {
        let node = self.at(at);
        let skip = skip_height(node.height);
        let skip_of_parent = skip_height(node.height - 1);
        let is_parents_better = skip_of_parent + 2 < skip && skip_of_parent >= height;
        let is_skip = skip == height || (skip > height && !is_parents_better);
        NodeId(if is_skip { node.skip } else { node.parent })
    }

    /// The chain that ends with `tip`, as the rules ask for it.
    pub fn branch(&self, tip: NodeId) -> Branch<'_> {
        Branch::new(self, tip)
    }

    /// Bytes that the headers take, without the few that are unusual.
    pub fn memory_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Packed>()
            + self.by_hash.memory_bytes()
            + self.active.capacity() * size_of::<NodeId>()
    }

    fn merit(&self, id: NodeId) -> Merit {
        // Next to nobody calls a block precious, and this is asked for each block.
        let precious = if self.precious.is_empty() { None } else { self.precious.get(&id).copied() };
        (self.at(id).chain_work, Reverse(precious.unwrap_or_else(|| i64::from(self.at(id).sequence))))
    }

    fn at(&self, id: NodeId) -> &Packed {
        &self.nodes[id.index()]
    }

    fn at_mut(&mut self, id: NodeId) -> &mut Packed {
        &mut self.nodes[id.index()]
    }
}

/// The height a block's second pointer leads to: Core's `GetSkipHeight`. Any lower one would do; these make walks short.
fn skip_height(height: u32) -> u32 {
    let without_lowest_one = |n: u32| n & n.saturating_sub(1);
    match height {
        0 | 1 => 0,
        odd if odd % 2 == 1 => without_lowest_one(without_lowest_one(odd - 1)) + 1,
        even => without_lowest_one(even),
    }
}
