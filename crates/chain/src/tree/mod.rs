//! [`HeaderTree`]: all known headers, the positions of their blocks, and the active chain. Input: headers, positions of
//! blocks, verdicts. Output: the best chain to activate, paths, ancestors, and a `HeaderView` of any branch.
//!
//! Corresponds to Core's `m_block_index`, `setBlockIndexCandidates`, `m_blocks_unlinked` and `m_chain` together.
//! Invariants: a parent's id is lower than its children's; ids are assigned in the order in which headers are added;
//! the children of an invalid block are invalid; a block is *linked* (has a sequence number) once its body and those of
//! all its ancestors have arrived; `leaves` are the linked valid blocks without a linked valid child, so the best block
//! is always one of them (a child has more work than its parent).
//!
//! Cost: 176 bytes per header and up to 15 for the table of hashes and the active chain; the cost of choosing the best
//! block does not depend on the number of headers. Accesses no clock and no files.

mod branch;
mod check;
mod node;
mod table;
#[cfg(test)]
mod tests;

pub use branch::Branch;
pub use check::TreeInconsistency;
pub use node::{BlockCounts, ChainTotals, Node};

use crate::position::{BlockPosition, UndoPosition};
use lydian_consensus::pow::{PowCheck, block_proof};
use lydian_consensus::{HeaderRun, Params, Rejected, Rule, U256, Violation, check_header, header};
use lydian_primitives::{BlockHash, HashedHeader, Header, Height};
use node::{INVALID, NONE, Packed, VERIFIED};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use table::Table;

/// A header of the tree. Ids are assigned from 0, the genesis block, in the order in which headers are added.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HeaderId(pub(crate) u32);

impl HeaderId {
    pub const GENESIS: HeaderId = HeaderId(0);

    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Work, then the order of arrival: Core's `CBlockIndexWorkComparator`. Greater is better.
type Merit = (U256, Reverse<i64>);

/// The first of many headers that was refused, and the reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusedAt {
    pub index: usize,
    pub reason: Rejected,
}

/// A chain that is validated, from the root of the tree to its tip. The coins are those at the tip.
#[derive(Clone, Debug)]
struct ActiveChain {
    /// By height above the root.
    blocks: Vec<HeaderId>,
    /// The sum of the counts of its blocks.
    totals: ChainTotals,
}

/// The header tree.
#[derive(Clone, Debug)]
pub struct HeaderTree {
    nodes: Vec<Packed>,
    by_hash: Table,
    /// Height of the root: 0 unless the tree starts in the middle of a chain.
    base: u32,
    active: ActiveChain,
    /// The valid header with the most work, the first among equals.
    best_header: HeaderId,
    /// Linked valid blocks without a linked valid child.
    leaves: BTreeSet<(Merit, HeaderId)>,
    /// Blocks with a body that are not linked, by parent, in the order in which their bodies arrived.
    unlinked: HashMap<HeaderId, Vec<HeaderId>>,
    /// Linked blocks outside the active chain whose body is no longer stored.
    pruned: HashSet<HeaderId>,
    next_sequence: u32,
    /// Precious blocks with their ranks, which are below every sequence number. Until the tip gains work, a later block
    /// gets a lower rank.
    precious: HashMap<HeaderId, i64>,
    /// The work of the tip when a block was last made precious.
    precious_work: U256,
}

impl HeaderTree {
    /// A tree with only the genesis block, which is linked without a position.
    pub fn new(params: &Params) -> HeaderTree {
        let genesis = match params.genesis_block().parse() {
            Ok(block) => block,
            Err(error) => unreachable!("the genesis block is built to parse: {error}"),
        };
        let mut tree = HeaderTree::rooted_at(genesis.header(), Height(0));
        tree.set_counts(HeaderId::GENESIS, BlockCounts::of(&genesis));
        tree
    }

    /// A tree that starts at any header of a chain, for the parts of real chains in tests and benchmarks. The root
    /// counts as linked, and work, transactions and outputs are counted from it. Headers below the root are unknown, so
    /// a target that depends on them cannot be computed.
    pub fn rooted_at(root: &Header, height: Height) -> HeaderTree {
        let mut tree = HeaderTree {
            nodes: Vec::new(),
            by_hash: Table::new(),
            base: height.0,
            active: ActiveChain { blocks: vec![HeaderId::GENESIS], totals: ChainTotals::default() },
            best_header: HeaderId::GENESIS,
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
        tree.leaves.insert((tree.merit(HeaderId::GENESIS), HeaderId::GENESIS));
        tree
    }

    /// Adds a header, like Core's `AcceptBlockHeader`. `now` is the current time in seconds since 1970. For a known
    /// header it returns the id, or refuses it as a duplicate if it is invalid.
    pub fn accept_header(&mut self, header: &Header, now: i64, params: &Params) -> Result<HeaderId, Rejected> {
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

    /// Adds headers in order like [`HeaderTree::accept_header`], and stops at the first refused one. Calls `entered`
    /// for each new header. Consecutive headers need no walk back: about 0.4 us per header.
    pub fn accept_headers(
        &mut self,
        headers: &[HashedHeader],
        now: i64,
        params: &Params,
        entered: &mut dyn FnMut(HeaderId, &Header),
    ) -> Result<(), RefusedAt> {
        let mut pow = PowCheck::new(params);
        let mut run: Option<(HeaderId, HeaderRun)> = None;
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

    /// Adds a header that was checked before, from a file of this store. Returns `None` if its parent is unknown.
    pub fn restore_header(&mut self, header: &Header) -> Option<HeaderId> {
        let hash = header.hash();
        let parent = self.find(&header.prev_block)?;
        Some(self.find(&hash).unwrap_or_else(|| self.insert(hash, header, parent)))
    }

    fn insert(&mut self, hash: BlockHash, header: &Header, parent: HeaderId) -> HeaderId {
        let above = self.at(parent);
        // The same target means the same work, so a subtraction replaces a long division.
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

    fn push(&mut self, node: Packed) -> HeaderId {
        let id = match u32::try_from(self.nodes.len()) {
            Ok(id) if id != NONE => HeaderId(id),
            _ => unreachable!("4,294,967,295 headers with proof of work"),
        };
        if self.nodes.len() == self.nodes.capacity() {
            // Doubling would leave up to half of the largest allocation unused.
            self.nodes.reserve_exact((self.nodes.len() / 64).max(1024));
        }
        let hash = node.hash;
        self.nodes.push(node);
        let nodes = &self.nodes;
        self.by_hash.insert(id, &hash, |id| &nodes[id.index()].hash);
        id
    }

    /// Stores the position of a block. Links the block if all its ancestors' bodies have arrived, and then the blocks
    /// that waited for it, in the order in which their bodies arrived: Core's `ReceivedBlockTransactions`. A block that
    /// is already linked gets the position and keeps its sequence number.
    pub fn set_block(&mut self, id: HeaderId, position: BlockPosition) {
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

    fn link(&mut self, id: HeaderId) {
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

    /// Removes the position of a block. It stays linked: on the active chain the body is not needed, and outside it no
    /// chain through it is chosen.
    pub fn clear_block(&mut self, id: HeaderId) {
        self.at_mut(id).set_block(None);
        if self.at(id).is_linked() {
            if id != HeaderId::GENESIS && !self.is_active(id) {
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

    pub fn set_undo(&mut self, id: HeaderId, position: UndoPosition) {
        self.at_mut(id).set_undo(Some(position));
    }

    pub fn clear_undo(&mut self, id: HeaderId) {
        self.at_mut(id).set_undo(None);
    }

    /// Stores the numbers of transactions and outputs of a block.
    pub fn set_counts(&mut self, id: HeaderId, counts: BlockCounts) {
        if self.is_active(id) {
            self.active.totals = self.active.totals.without(self.at(id).counts().unwrap_or_default()).with(counts);
        }
        self.at_mut(id).set_counts(counts);
    }

    /// Marks the scripts of a block as verified.
    pub fn set_verified(&mut self, id: HeaderId) {
        self.at_mut(id).flags |= VERIFIED;
    }

    /// Marks a block and all its descendants as invalid. The caller must disconnect those on the active chain.
    pub fn invalidate(&mut self, id: HeaderId) {
        assert!(id != HeaderId::GENESIS, "the genesis block is valid");
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

    /// Removes the invalid mark from a block, its ancestors and its descendants: Core's `ResetBlockFailureFlags`
    /// (`reconsiderblock`).
    pub fn reconsider(&mut self, id: HeaderId) {
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

    /// Treats a block as if its body had arrived before those of all others with the same work: Core's `PreciousBlock`.
    /// Not kept across a restart.
    pub fn set_precious(&mut self, id: HeaderId) {
        let tip_work = self.at(self.tip()).chain_work;
        let lowest = self.precious.values().min().copied().unwrap_or(0);
        // If the chain has grown since, the old ranks are meaningless, and Core starts again.
        let rank = if tip_work > self.precious_work { -1 } else { lowest - 1 };
        self.precious_work = tip_work;
        self.leaves.remove(&(self.merit(id), id));
        self.precious.insert(id, rank);
        self.refresh_leaf(id);
    }

    /// Adds a block to the leaves or removes it, according to its state.
    fn refresh_leaf(&mut self, id: HeaderId) {
        let is_good = |id: HeaderId| self.at(id).is_linked() && !self.at(id).is_invalid();
        let is_leaf = is_good(id) && !self.children(id).any(is_good);
        let entry = (self.merit(id), id);
        if is_leaf {
            self.leaves.insert(entry);
        } else {
            self.leaves.remove(&entry);
        }
    }

    /// The block whose chain should become active: better than the tip (more work, or the same work and complete
    /// earlier), without a block known to be invalid, and with all bodies from the active chain up to it stored. `None`
    /// if the tip is the best. Core's `FindMostWorkChain`.
    pub fn best_candidate(&self) -> Option<HeaderId> {
        let of_tip = self.merit(self.tip());
        let better = self.leaves.iter().rev().take_while(|(merit, _)| *merit > of_tip).map(|(_, id)| *id);
        if self.pruned.is_empty() {
            return better.take(1).next();
        }
        let reachable = better.filter_map(|id| self.highest_reachable(id)).map(|id| (self.merit(id), id));
        reachable.max().filter(|(merit, _)| *merit > of_tip).map(|(_, id)| id)
    }

    /// The last block on the path from the active chain to `id` before the first one without a body.
    fn highest_reachable(&self, id: HeaderId) -> Option<HeaderId> {
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

    pub fn find(&self, hash: &BlockHash) -> Option<HeaderId> {
        self.by_hash.find(hash, |id| &self.nodes[id.index()].hash)
    }

    /// Everything known about a header and its block, as a copy. The methods below are cheaper for single values.
    pub fn node(&self, id: HeaderId) -> Node {
        let packed = self.at(id);
        Node {
            hash: packed.hash,
            header: self.header(id),
            height: Height(packed.height),
            parent: self.parent(id),
            chain_work: packed.chain_work,
            block: packed.block(),
            undo: packed.undo(),
            counts: packed.counts(),
            is_invalid: packed.is_invalid(),
            is_verified: packed.flags & VERIFIED != 0,
            sequence: packed.is_linked().then_some(u64::from(packed.sequence)),
        }
    }

    /// The position of the block; `None` if it has not arrived or was pruned.
    pub fn block(&self, id: HeaderId) -> Option<BlockPosition> {
        self.at(id).block()
    }

    /// The position of its undo data.
    pub fn undo(&self, id: HeaderId) -> Option<UndoPosition> {
        self.at(id).undo()
    }

    /// The numbers of transactions and outputs of a block; `None` if it was never connected.
    pub fn counts(&self, id: HeaderId) -> Option<BlockCounts> {
        self.at(id).counts()
    }

    /// The numbers of transactions and outputs of the active chain.
    pub fn totals(&self) -> ChainTotals {
        self.active.totals
    }

    /// The numbers of transactions and outputs of the chain that ends with a block; `None` if a block of it was never
    /// connected. Cost: a step for each block between it and the active chain's tip.
    pub fn totals_at(&self, id: HeaderId) -> Option<ChainTotals> {
        let fork = self.fork(id, self.tip());
        let mut totals = self.active.totals;
        let mut at = self.tip();
        while at != fork {
            totals = totals.without(self.counts(at)?);
            at = self.parent(at)?;
        }
        self.path(fork, id).into_iter().try_fold(totals, |totals, id| Some(totals.with(self.counts(id)?)))
    }

    pub fn hash(&self, id: HeaderId) -> &BlockHash {
        &self.at(id).hash
    }

    pub fn header(&self, id: HeaderId) -> Header {
        let prev_block = self.parent(id).map_or(BlockHash::ZERO, |parent| self.at(parent).hash);
        self.at(id).header(prev_block)
    }

    pub fn height(&self, id: HeaderId) -> Height {
        Height(self.at(id).height)
    }

    pub fn parent(&self, id: HeaderId) -> Option<HeaderId> {
        Some(self.at(id).parent).filter(|parent| *parent != NONE).map(HeaderId)
    }

    pub(crate) fn time(&self, id: HeaderId) -> u32 {
        self.at(id).time
    }

    /// Number of headers in the tree, including the genesis block. All ids are lower.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Always false: the tree always contains the genesis block.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// All ids, parents before children.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = HeaderId> + use<> {
        let end = u32::try_from(self.nodes.len()).unwrap_or(NONE);
        (0..end).map(HeaderId)
    }

    /// The headers that were entered after the first `count` ones, in the order in which they were entered.
    pub fn ids_after(&self, count: usize) -> impl Iterator<Item = HeaderId> + use<> {
        (u32::try_from(count).unwrap_or(u32::MAX)..u32::try_from(self.len()).unwrap_or(u32::MAX)).map(HeaderId)
    }

    fn children(&self, id: HeaderId) -> impl Iterator<Item = HeaderId> + '_ {
        let some = |id: u32| Some(id).filter(|id| *id != NONE).map(HeaderId);
        std::iter::successors(some(self.at(id).first_child), move |child| some(self.at(*child).next_sibling))
    }

    /// The valid header with the most work, whether or not its block is stored, the first among equals: Core's
    /// `m_best_header`.
    pub fn best_header(&self) -> HeaderId {
        self.best_header
    }

    fn find_best_header(&self) -> HeaderId {
        let valid = self.ids().filter(|id| !self.at(*id).is_invalid());
        valid.max_by_key(|id| (self.at(*id).chain_work, Reverse(*id))).unwrap_or(HeaderId::GENESIS)
    }

    /// The tip of the active chain.
    pub fn tip(&self) -> HeaderId {
        self.active.blocks[self.active.blocks.len() - 1]
    }

    /// The block of the active chain at a height.
    pub fn active(&self, height: Height) -> Option<HeaderId> {
        self.active.blocks.get(height.0.checked_sub(self.base)? as usize).copied()
    }

    pub fn is_active(&self, id: HeaderId) -> bool {
        self.active(self.height(id)) == Some(id)
    }

    /// Makes a child of the tip the new tip.
    pub fn push_active(&mut self, id: HeaderId) {
        assert_eq!(self.parent(id), Some(self.tip()), "a block is connected to its parent");
        self.active.blocks.push(id);
        self.active.totals = self.active.totals.with(self.counts(id).unwrap_or_default());
        self.pruned.remove(&id);
    }

    /// Makes the tip's parent the new tip. Returns the former tip.
    pub fn pop_active(&mut self) -> HeaderId {
        assert!(self.active.blocks.len() > 1, "the genesis block is never disconnected");
        let id = self.tip();
        self.active.blocks.pop();
        self.active.totals = self.active.totals.without(self.counts(id).unwrap_or_default());
        if !self.at(id).has_block() {
            self.pruned.insert(id);
        }
        id
    }

    /// Makes the chain that ends with `id` the active one, regardless of the current one: for the start, when the coins
    /// determine it.
    pub fn activate(&mut self, id: HeaderId) {
        let fork = self.fork(self.tip(), id);
        while self.tip() != fork {
            self.pop_active();
        }
        for id in self.path(fork, id) {
            self.push_active(id);
        }
    }

    /// The last common block of two chains: Core's `LastCommonAncestor`.
    pub fn fork(&self, a: HeaderId, b: HeaderId) -> HeaderId {
        let height = self.height(a).min(self.height(b));
        let (mut a, mut b) = (self.ancestor(a, height).unwrap_or(a), self.ancestor(b, height).unwrap_or(b));
        while a != b {
            let (skip_a, skip_b) = (self.at(a).skip, self.at(b).skip);
            // At equal heights both skip to the same height.
            (a, b) = if skip_a != skip_b {
                (HeaderId(skip_a), HeaderId(skip_b))
            } else {
                (HeaderId(self.at(a).parent), HeaderId(self.at(b).parent))
            };
        }
        a
    }

    /// The blocks after `from_fork` up to `to`, lowest first. Empty unless `from_fork` is a proper ancestor of `to`.
    pub fn path(&self, from_fork: HeaderId, to: HeaderId) -> Vec<HeaderId> {
        let from = self.height(from_fork);
        if self.ancestor(to, from) != Some(from_fork) {
            return Vec::new();
        }
        let mut path = Vec::with_capacity((self.height(to).0 - from.0) as usize);
        let mut at = to;
        while at != from_fork {
            path.push(at);
            at = HeaderId(self.at(at).parent);
        }
        path.reverse();
        path
    }

    /// The ancestor at a height, which may be the block itself. `None` above the block's height.
    pub fn ancestor(&self, id: HeaderId, height: Height) -> Option<HeaderId> {
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

    /// Steps down by the better of the two pointers: Core's `CBlockIndex::GetAncestor`.
    fn step_towards(&self, at: HeaderId, height: u32) -> HeaderId {
        let node = self.at(at);
        let skip = skip_height(node.height);
        let skip_of_parent = skip_height(node.height - 1);
        let is_parents_better = skip_of_parent + 2 < skip && skip_of_parent >= height;
        let is_skip = skip == height || (skip > height && !is_parents_better);
        HeaderId(if is_skip { node.skip } else { node.parent })
    }

    /// A view of the chain that ends with `tip`.
    pub fn branch(&self, tip: HeaderId) -> Branch<'_> {
        Branch::new(self, tip)
    }

    /// Memory of the headers in bytes, without the few rarely used collections.
    pub fn memory_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Packed>()
            + self.by_hash.memory_bytes()
            + self.active.blocks.capacity() * size_of::<HeaderId>()
    }

    fn merit(&self, id: HeaderId) -> Merit {
        // Precious blocks are rare, and this function is called for every block.
        let precious = if self.precious.is_empty() { None } else { self.precious.get(&id).copied() };
        (self.at(id).chain_work, Reverse(precious.unwrap_or_else(|| i64::from(self.at(id).sequence))))
    }

    fn at(&self, id: HeaderId) -> &Packed {
        &self.nodes[id.index()]
    }

    fn at_mut(&mut self, id: HeaderId) -> &mut Packed {
        &mut self.nodes[id.index()]
    }
}

/// The height to which a block's skip pointer leads: Core's `GetSkipHeight`. Any lower height would work; these make
/// walks short.
fn skip_height(height: u32) -> u32 {
    let without_lowest_one = |n: u32| n & n.saturating_sub(1);
    match height {
        0 | 1 => 0,
        odd if odd % 2 == 1 => without_lowest_one(without_lowest_one(odd - 1)) + 1,
        even => without_lowest_one(even),
    }
}
