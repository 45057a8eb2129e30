//! All headers the plain validator knows, and the chain it stands on. Input: headers that were checked. Output: answers to
//! [`HeaderView`] for any branch. No rule is checked here.

use crate::block::CheckedBlock;
use crate::pow::block_proof;
use crate::u256::U256;
use crate::view::{Ancestor, HeaderView};
use lydian_primitives::{BlockHash, Header, Height};
use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};

/// Index of a node in its tree.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct NodeId(usize);

/// What is known of a block beyond its header.
#[derive(Clone, Debug)]
pub(super) enum Body {
    /// Only the header: the bytes that came were not those its hash commits to.
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
    pub(super) parent: Option<NodeId>,
    /// Work of the chain up to and with this block.
    pub(super) chain_work: U256,
    pub(super) body: Body,
    /// Breaks a rule, or stands on one that does.
    pub(super) is_invalid: bool,
    /// When its body and those of all its ancestors had come; the earlier wins between equal works. `None` until then.
    pub(super) sequence: Option<u64>,
}

#[derive(Clone, Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    by_hash: HashMap<BlockHash, NodeId>,
    /// The chain that coins stand for, by height.
    active: Vec<NodeId>,
    /// Blocks with a body that are not on the active chain, in the order in which their bodies came or they left it.
    waiting: Vec<NodeId>,
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
            by_hash: HashMap::from([(hash, NodeId(0))]),
            active: vec![NodeId(0)],
            waiting: Vec::new(),
            next_sequence: 1,
        }
    }

    pub(super) fn find(&self, hash: &BlockHash) -> Option<NodeId> {
        self.by_hash.get(hash).copied()
    }

    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0]
    }

    /// Enters the body of a block whose header is known, and numbers the blocks to which no body is missing now, those that
    /// waited for it in the order in which their bodies came: Core's `ReceivedBlockTransactions`.
    pub(super) fn set_body(&mut self, id: NodeId, checked: CheckedBlock) {
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

    /// Enters a header that stands on `parent`.
    pub(super) fn insert(&mut self, hash: BlockHash, header: Header, parent: NodeId) -> NodeId {
        let above = self.node(parent);
        let chain_work = above.chain_work.checked_add(block_proof(header.bits)).unwrap_or(U256::MAX);
        let height = Height(above.height.0 + 1);
        let id = NodeId(self.nodes.len());
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

    /// Marks a block and everything that stands on it. A parent is always entered before its children.
    pub(super) fn invalidate(&mut self, id: NodeId) {
        self.nodes[id.0].is_invalid = true;
        for index in id.0 + 1..self.nodes.len() {
            let parent = self.nodes[index].parent;
            self.nodes[index].is_invalid |= parent.is_some_and(|parent| self.nodes[parent.0].is_invalid);
        }
    }

    pub(super) fn tip(&self) -> NodeId {
        self.active[self.active.len() - 1]
    }

    pub(super) fn push_active(&mut self, id: NodeId) {
        assert_eq!(self.node(id).parent, Some(self.tip()), "a block is connected to its parent");
        self.active.push(id);
        self.waiting.retain(|waiting| *waiting != id);
    }

    pub(super) fn pop_active(&mut self) {
        assert!(self.active.len() > 1, "the genesis block is never disconnected");
        self.waiting.extend(self.active.pop());
    }

    pub(super) fn is_active(&self, id: NodeId) -> bool {
        self.active.get(self.node(id).height.0 as usize) == Some(&id)
    }

    /// The blocks from above the active chain up to `id`, lowest first, if every one of them has its body and is not known
    /// to be invalid.
    pub(super) fn path_to(&self, id: NodeId) -> Option<Vec<NodeId>> {
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

    /// Blocks that are better tips than the tip, the best first: their chain has more work, or the same and was here earlier
    /// (the tip may be what is left of a chain that was better before a block of it failed). Core's
    /// `CBlockIndexWorkComparator`.
    pub(super) fn candidates(&self) -> Vec<NodeId> {
        let merit = |id: NodeId| {
            let node = self.node(id);
            node.sequence.map(|sequence| (node.chain_work, Reverse(sequence)))
        };
        let of_tip = merit(self.tip());
        let is_candidate = |id: &NodeId| !self.node(*id).is_invalid && merit(*id) > of_tip;
        let mut found: Vec<_> = self.waiting.iter().copied().filter(is_candidate).collect();
        found.sort_by_key(|id| Reverse(merit(*id)));
        found
    }

    /// The chain that ends with `tip`, as the rules ask for it.
    pub(super) fn branch(&self, tip: NodeId) -> Branch<'_> {
        Branch { tree: self, tip }
    }
}

/// One branch of the tree. Answers by walking to the parents until the active chain is reached.
#[derive(Clone, Copy, Debug)]
pub(super) struct Branch<'a> {
    tree: &'a Tree,
    tip: NodeId,
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
