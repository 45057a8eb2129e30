//! All headers that the plain validator knows, and its active chain. Input: headers that were checked. Output: a
//! [`HeaderView`] of any branch. Checks no rules.

use crate::block::CheckedBlock;
use crate::pow::block_proof;
use crate::u256::U256;
use crate::view::{Ancestor, HeaderView};
use lydian_primitives::{BlockHash, Header, Height};
use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};

/// Index of a node in the tree.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct HeaderId(usize);

/// The body of a block, as far as it is known.
#[derive(Clone, Debug)]
pub(super) enum Body {
    /// Only the header is known: the bytes that arrived were not those that the hash commits to.
    Missing,
    Checked(CheckedBlock),
    /// The genesis block, whose coinbase cannot be spent.
    Genesis,
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) hash: BlockHash,
    pub(super) header: Header,
    pub(super) height: Height,
    pub(super) parent: Option<HeaderId>,
    /// Work of the chain up to and including this block.
    pub(super) chain_work: U256,
    pub(super) body: Body,
    /// Breaks a rule or has an ancestor that does.
    pub(super) is_invalid: bool,
    /// Order in which the block and all its ancestors became complete; between chains of equal work the lower number
    /// wins. `None` while a body is missing.
    pub(super) sequence: Option<u64>,
}

#[derive(Clone, Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    by_hash: HashMap<BlockHash, HeaderId>,
    /// The active chain by height. The coins are those at its tip.
    active: Vec<HeaderId>,
    /// Blocks with a body outside the active chain, in the order in which their bodies arrived or they were
    /// disconnected.
    waiting: Vec<HeaderId>,
    next_sequence: u64,
}

impl Tree {
    pub(super) fn new(genesis: &Header, hash: BlockHash) -> Tree {
        let node = Node {
            hash,
            header: *genesis,
            height: Height(0),
            parent: None,
            chain_work: block_proof(genesis.bits),
            body: Body::Genesis,
            is_invalid: false,
            sequence: Some(0),
        };
        Tree {
            nodes: vec![node],
            by_hash: HashMap::from([(hash, HeaderId(0))]),
            active: vec![HeaderId(0)],
            waiting: Vec::new(),
            next_sequence: 1,
        }
    }

    pub(super) fn find(&self, hash: &BlockHash) -> Option<HeaderId> {
        self.by_hash.get(hash).copied()
    }

    pub(super) fn node(&self, id: HeaderId) -> &Node {
        &self.nodes[id.0]
    }

    /// Stores the body of a block with a known header and assigns sequence numbers to all blocks that are complete now;
    /// descendants that waited for it are numbered in the order in which their bodies arrived. Core's
    /// `ReceivedBlockTransactions`.
    pub(super) fn set_body(&mut self, id: HeaderId, checked: CheckedBlock) {
        self.nodes[id.0].body = Body::Checked(checked);
        self.waiting.push(id);
        if self.nodes[id.0].parent.is_some_and(|parent| self.node(parent).sequence.is_none()) {
            return;
        }
        let mut linked = VecDeque::from([id]);
        while let Some(id) = linked.pop_front() {
            self.nodes[id.0].sequence = Some(self.next_sequence);
            self.next_sequence += 1;
            linked.extend(self.waiting.iter().filter(|child| self.node(**child).parent == Some(id)));
        }
    }

    /// Adds a header with parent `parent`.
    pub(super) fn insert(&mut self, hash: BlockHash, header: Header, parent: HeaderId) -> HeaderId {
        let above = self.node(parent);
        let chain_work = above.chain_work.checked_add(block_proof(header.bits)).unwrap_or(U256::MAX);
        let height = Height(above.height.0 + 1);
        let id = HeaderId(self.nodes.len());
        let body = Body::Missing;
        self.nodes.push(Node {
            hash,
            header,
            height,
            parent: Some(parent),
            chain_work,
            body,
            is_invalid: false,
            sequence: None,
        });
        self.by_hash.insert(hash, id);
        id
    }

    /// Marks a block and all its descendants as invalid. A parent always has a lower index than its children.
    pub(super) fn invalidate(&mut self, id: HeaderId) {
        self.nodes[id.0].is_invalid = true;
        for index in id.0 + 1..self.nodes.len() {
            let parent = self.nodes[index].parent;
            self.nodes[index].is_invalid |= parent.is_some_and(|parent| self.nodes[parent.0].is_invalid);
        }
    }

    pub(super) fn tip(&self) -> HeaderId {
        self.active[self.active.len() - 1]
    }

    pub(super) fn push_active(&mut self, id: HeaderId) {
        assert_eq!(self.node(id).parent, Some(self.tip()), "a block is connected to its parent");
        self.active.push(id);
        self.waiting.retain(|waiting| *waiting != id);
    }

    pub(super) fn pop_active(&mut self) {
        assert!(self.active.len() > 1, "the genesis block is never disconnected");
        self.waiting.extend(self.active.pop());
    }

    pub(super) fn is_active(&self, id: HeaderId) -> bool {
        self.active.get(self.node(id).height.0 as usize) == Some(&id)
    }

    /// The blocks between the active chain and `id`, including `id`, lowest first. `None` if one of them has no body or
    /// is known to be invalid.
    pub(super) fn path_to(&self, id: HeaderId) -> Option<Vec<HeaderId>> {
        let mut path = Vec::new();
        let mut at = id;
        while !self.is_active(at) {
            let node = self.node(at);
            if node.is_invalid || matches!(node.body, Body::Missing) {
                return None;
            }
            path.push(at);
            at = node.parent?;
        }
        path.reverse();
        Some(path)
    }

    /// Blocks that would be better tips than the current one, the best first: their chain has more work, or the same
    /// work and was complete earlier (the tip may be the remainder of a better chain in which a block failed). Core's
    /// `CBlockIndexWorkComparator`.
    pub(super) fn candidates(&self) -> Vec<HeaderId> {
        let merit = |id: HeaderId| {
            let node = self.node(id);
            node.sequence.map(|sequence| (node.chain_work, Reverse(sequence)))
        };
        let of_tip = merit(self.tip());
        let is_candidate = |id: &HeaderId| !self.node(*id).is_invalid && merit(*id) > of_tip;
        let mut found: Vec<_> = self.waiting.iter().copied().filter(is_candidate).collect();
        found.sort_by_key(|id| Reverse(merit(*id)));
        found
    }

    /// A view of the chain that ends at `tip`.
    pub(super) fn branch(&self, tip: HeaderId) -> Branch<'_> {
        Branch { tree: self, tip }
    }
}

/// One branch of the tree. A lookup walks to the parents until it reaches the active chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Branch<'a> {
    tree: &'a Tree,
    tip: HeaderId,
}

impl HeaderView for Branch<'_> {
    fn ancestor(&self, height: Height) -> Option<Ancestor> {
        let mut at = self.tip;
        if self.tree.node(at).height < height {
            return None;
        }
        while self.tree.node(at).height > height {
            if self.tree.is_active(at) {
                at = self.tree.active[height.0 as usize];
                break;
            }
            at = self.tree.node(at).parent?;
        }
        let node = self.tree.node(at);
        Some(Ancestor { hash: node.hash, header: node.header })
    }
}
