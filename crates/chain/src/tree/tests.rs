//! Compares the tree with a naive model: the plain validator's tree, which recomputes everything each time.

use super::*;
use lydian_consensus::{Chain, HeaderView};
use lydian_stdx::SplitMix64;

/// The plain validator's node of a block (`consensus`, `plain/tree.rs`).
#[derive(Clone, Debug)]
struct ModelNode {
    parent: Option<usize>,
    height: usize,
    work: U256,
    has_body: bool,
    is_invalid: bool,
    sequence: Option<u64>,
}

#[derive(Clone, Debug)]
struct Model {
    nodes: Vec<ModelNode>,
    active: Vec<usize>,
    waiting: Vec<usize>,
    next_sequence: u64,
}

impl Model {
    fn new() -> Model {
        let genesis = ModelNode {
            parent: None,
            height: 0,
            work: block_proof(0x207f_ffff),
            has_body: true,
            is_invalid: false,
            sequence: Some(0),
        };
        Model { nodes: vec![genesis], active: vec![0], waiting: Vec::new(), next_sequence: 1 }
    }

    fn tip(&self) -> usize {
        self.active[self.active.len() - 1]
    }

    fn insert(&mut self, parent: usize, bits: u32) {
        let above = &self.nodes[parent];
        self.nodes.push(ModelNode {
            parent: Some(parent),
            height: above.height + 1,
            work: above.work.checked_add(block_proof(bits)).unwrap(),
            has_body: false,
            is_invalid: false,
            sequence: None,
        });
    }

    fn set_body(&mut self, id: usize) {
        self.nodes[id].has_body = true;
        self.waiting.push(id);
        if self.nodes[id].parent.is_some_and(|parent| self.nodes[parent].sequence.is_none()) {
            return;
        }
        let mut linked = VecDeque::from([id]);
        while let Some(id) = linked.pop_front() {
            self.nodes[id].sequence = Some(self.next_sequence);
            self.next_sequence += 1;
            linked.extend(self.waiting.iter().filter(|child| self.nodes[**child].parent == Some(id)));
        }
    }

    fn invalidate(&mut self, id: usize) {
        self.nodes[id].is_invalid = true;
        for index in id + 1..self.nodes.len() {
            let parent = self.nodes[index].parent.unwrap();
            self.nodes[index].is_invalid |= self.nodes[parent].is_invalid;
        }
    }

    fn reconsider(&mut self, id: usize) {
        let is_below = |mut at: usize, top: usize| loop {
            if at == top {
                return true;
            }
            match self.nodes[at].parent {
                Some(parent) => at = parent,
                None => return false,
            }
        };
        let related: Vec<_> =
            (0..self.nodes.len()).filter(|other| is_below(*other, id) || is_below(id, *other)).collect();
        related.into_iter().for_each(|other| self.nodes[other].is_invalid = false);
    }

    fn is_active(&self, id: usize) -> bool {
        self.active.get(self.nodes[id].height) == Some(&id)
    }

    fn path_to(&self, id: usize) -> Option<Vec<usize>> {
        let mut path = Vec::new();
        let mut at = id;
        while !self.is_active(at) {
            if self.nodes[at].is_invalid || !self.nodes[at].has_body {
                return None;
            }
            path.push(at);
            at = self.nodes[at].parent?;
        }
        path.reverse();
        Some(path)
    }

    fn best(&self) -> Option<usize> {
        let merit = |id: usize| self.nodes[id].sequence.map(|sequence| (self.nodes[id].work, Reverse(sequence)));
        let of_tip = merit(self.tip());
        let better = self.waiting.iter().copied().filter(|id| !self.nodes[*id].is_invalid && merit(*id) > of_tip);
        better.filter(|id| self.path_to(*id).is_some()).max_by_key(|id| merit(*id))
    }

    fn push(&mut self, id: usize) {
        assert_eq!(self.nodes[id].parent, Some(self.tip()));
        self.active.push(id);
        self.waiting.retain(|waiting| *waiting != id);
    }

    fn pop(&mut self) {
        self.waiting.extend(self.active.pop());
    }

    fn ancestor(&self, id: usize, height: usize) -> usize {
        let mut at = id;
        while self.nodes[at].height > height {
            at = self.nodes[at].parent.unwrap();
        }
        at
    }
}

fn id(index: usize) -> HeaderId {
    HeaderId(u32::try_from(index).unwrap())
}

fn position(index: usize) -> BlockPosition {
    BlockPosition { file: 3, offset: u64::try_from(index).unwrap() << 33, size: 81 }
}

fn params() -> Params {
    Params::new(Chain::Regtest)
}

fn header_on(tree: &HeaderTree, parent: HeaderId, bits: u32, nonce: u32) -> Header {
    Header { version: 4, prev_block: *tree.hash(parent), merkle_root: [7; 32], time: 1 + nonce % 97, bits, nonce }
}

/// The tree and the model. Every operation is applied to both.
struct Pair {
    tree: HeaderTree,
    model: Model,
    /// Number of searches that disconnected blocks, and of those that returned to their start because a block failed.
    reorganisations: usize,
    returns: usize,
}

impl Pair {
    fn new() -> Pair {
        Pair { tree: HeaderTree::new(&params()), model: Model::new(), reorganisations: 0, returns: 0 }
    }

    fn insert(&mut self, parent: usize, bits: u32) -> usize {
        let new = self.model.nodes.len();
        let header = header_on(&self.tree, id(parent), bits, u32::try_from(new).unwrap());
        // A header is accepted only if its parent is valid.
        assert!(!self.model.nodes[parent].is_invalid);
        self.model.insert(parent, bits);
        assert_eq!(self.tree.restore_header(&header), Some(id(new)));
        assert_eq!(self.tree.header(id(new)), header);
        new
    }

    fn set_body(&mut self, index: usize) {
        if !self.model.nodes[index].has_body {
            self.model.set_body(index);
            self.tree.set_block(id(index), position(index));
        }
    }

    /// The loop of the engine and the plain validator. Occasionally a block fails while it is connected.
    fn go_to_best(&mut self, rng: &mut SplitMix64) {
        let start = self.model.tip();
        let (mut has_left, mut has_failed) = (false, false);
        loop {
            let best = self.model.best();
            assert_eq!(self.tree.best_candidate(), best.map(id));
            let Some(best) = best else {
                self.reorganisations += usize::from(has_left);
                self.returns += usize::from(has_left && has_failed && self.model.tip() == start);
                return;
            };
            let path = self.model.path_to(best).unwrap();
            let fork = self.model.nodes[path[0]].parent.unwrap();
            assert_eq!(self.tree.fork(self.tree.tip(), id(best)), id(fork));
            assert_eq!(self.tree.path(id(fork), id(best)), path.iter().copied().map(id).collect::<Vec<_>>());
            while self.model.tip() != fork {
                assert_eq!(self.tree.pop_active(), id(self.model.tip()));
                self.model.pop();
                has_left = true;
            }
            for block in path {
                if rng.below(8) == 0 {
                    self.model.invalidate(block);
                    self.tree.invalidate(id(block));
                    has_failed = true;
                    break;
                }
                self.model.push(block);
                self.tree.push_active(id(block));
            }
        }
    }

    fn check(&self) {
        assert_eq!(self.tree.check(), Ok(()));
        assert_eq!(self.tree.tip(), id(self.model.tip()));
        assert_eq!(self.tree.best_candidate(), self.model.best().map(id));
        assert_eq!(self.tree.best_header(), self.tree.find_best_header());
        for (index, model) in self.model.nodes.iter().enumerate() {
            let node = self.tree.node(id(index));
            assert_eq!(node.chain_work, model.work);
            assert_eq!(node.is_invalid, model.is_invalid, "{index}");
            assert_eq!(node.sequence, model.sequence, "{index}");
            assert_eq!(node.block.is_some(), model.has_body && index != 0);
            assert_eq!(self.tree.is_active(id(index)), self.model.is_active(index));
            assert_eq!(self.tree.find(&node.hash), Some(id(index)));
        }
    }
}

const BITS: [u32; 4] = [0x207f_ffff, 0x207f_ffff, 0x203f_ffff, 0x2015_5555];

fn random_tree(seed: u64) -> (usize, usize) {
    let mut rng = SplitMix64::new(seed);
    let mut pair = Pair::new();
    let steps = 10 + rng.below(60);
    for _ in 0..steps {
        let count = pair.model.nodes.len();
        match rng.below(20) {
            0..=8 => {
                // Near the end, so that branches grow.
                let parent = count - 1 - rng.below(count.min(5));
                if !pair.model.nodes[parent].is_invalid {
                    let bits = BITS[rng.below(BITS.len())];
                    let new = pair.insert(parent, bits);
                    if rng.below(2) == 0 {
                        pair.set_body(new);
                    }
                }
            }
            9..=14 => {
                let index = rng.below(count);
                if index != 0 && !pair.model.nodes[index].is_invalid {
                    pair.set_body(index);
                }
            }
            15 => {
                let index = rng.below(count);
                if index != 0 {
                    // Blocks of the active chain are disconnected first, as in `invalidateblock`.
                    while pair.model.ancestor(pair.model.tip(), pair.model.nodes[index].height) == index {
                        pair.tree.pop_active();
                        pair.model.pop();
                    }
                    pair.model.invalidate(index);
                    pair.tree.invalidate(id(index));
                }
            }
            16 => {
                let index = rng.below(count);
                pair.model.reconsider(index);
                pair.tree.reconsider(id(index));
            }
            _ => pair.go_to_best(&mut rng),
        }
        pair.check();
    }
    for _ in 0..20 {
        let (a, b) = (rng.below(pair.model.nodes.len()), rng.below(pair.model.nodes.len()));
        let height = rng.below(pair.model.nodes[a].height + 1);
        let at = Height(u32::try_from(height).unwrap());
        assert_eq!(pair.tree.ancestor(id(a), at), Some(id(pair.model.ancestor(a, height))));
        let mut common = pair.model.ancestor(a, pair.model.nodes[b].height);
        while pair.model.ancestor(b, pair.model.nodes[common].height) != common {
            common = pair.model.nodes[common].parent.unwrap();
        }
        assert_eq!(pair.tree.fork(id(a), id(b)), id(common));
    }
    (pair.reorganisations, pair.returns)
}

/// Ties by order of arrival, bodies in any order, descendants of invalid blocks, and equal work after a failed branch.
/// checklist: 33, 34
#[test]
fn equals_the_plain_validators_tree() {
    let counts: Vec<_> = (0..5_000).map(random_tree).collect();
    let sum = |count: fn(&(usize, usize)) -> usize| counts.iter().map(count).sum::<usize>();
    let (reorganisations, returns) = (sum(|counts| counts.0), sum(|counts| counts.1));
    assert!(reorganisations > 1_000 && returns > 50, "{reorganisations} reorganisations, {returns} returns");
}

/// `-checkblockindex` finds inconsistencies that a bug could leave behind.
#[test]
fn a_tree_that_does_not_hold_together_is_found() {
    let mut pair = Pair::new();
    for parent in [0, 1, 2, 1] {
        let new = pair.insert(parent, BITS[0]);
        pair.set_body(new);
    }
    pair.tree.activate(id(3));
    assert_eq!(pair.tree.check(), Ok(()));
    let found = |spoil: &dyn Fn(&mut HeaderTree)| {
        let mut tree = pair.tree.clone();
        spoil(&mut tree);
        tree.check().map_err(|error| error.what)
    };
    assert_eq!(found(&|tree| tree.leaves.clear()), Err("wrong set of leaves"));
    assert_eq!(found(&|tree| tree.at_mut(id(2)).height = 5), Err("wrong height"));
    assert_eq!(found(&|tree| tree.at_mut(id(2)).chain_work = U256::ZERO), Err("wrong work"));
    assert_eq!(found(&|tree| tree.at_mut(id(2)).flags |= INVALID), Err("it is valid but its parent is invalid"));
    assert_eq!(found(&|tree| tree.at_mut(id(3)).flags |= INVALID), Err("it is active but invalid"));
    assert_eq!(found(&|tree| tree.at_mut(id(2)).sequence = NONE), Err("its block is stored but not waiting"));
    assert_eq!(found(&|tree| tree.active.blocks.swap(2, 3)), Err("the active chain has a gap"));
    assert_eq!(found(&|tree| tree.best_header = id(1)), Err("it has more work than the best header"));
}

/// The stages of a reorganisation: equal work keeps the tip, more work moves it, and equal work returns to the chain
/// seen first.
/// checklist: 33
#[test]
fn the_first_seen_of_equals_wins() {
    let mut pair = Pair::new();
    let [a1, b1] = [0, 0].map(|parent| pair.insert(parent, BITS[0]));
    pair.set_body(b1);
    pair.set_body(a1);
    assert_eq!(pair.tree.best_candidate(), Some(id(b1)), "bodies count, not headers");
    pair.tree.push_active(id(b1));
    assert_eq!(pair.tree.best_candidate(), None, "equal work does not move the tip");
    let a2 = pair.insert(a1, BITS[0]);
    assert_eq!(pair.tree.best_candidate(), None, "a header alone does not");
    pair.set_body(a2);
    assert_eq!(pair.tree.best_candidate(), Some(id(a2)));
    // The branch fails at its last block: the remainder has as much work as the old tip but arrived later.
    pair.tree.pop_active();
    pair.tree.push_active(id(a1));
    pair.tree.invalidate(id(a2));
    assert_eq!(pair.tree.best_candidate(), Some(id(b1)));
}

#[test]
fn headers_are_taken_by_the_rules() {
    let params = params();
    let mut tree = HeaderTree::new(&params);
    let now = i64::from(u32::MAX / 2);
    let mut next = header_on(&tree, HeaderId::GENESIS, 0x207f_ffff, 0);
    next.time = tree.time(HeaderId::GENESIS) + 1;
    let seal = |header: &mut Header, is_good: bool| {
        while check_header(header, &header.hash(), &params).is_ok() != is_good {
            header.nonce += 1;
        }
    };
    let reason = |answer: Result<HeaderId, Rejected>| answer.unwrap_err().reason();
    seal(&mut next, false);
    assert_eq!(reason(tree.accept_header(&next, now, &params)), "high-hash");
    seal(&mut next, true);
    let first = tree.accept_header(&next, now, &params).unwrap();
    assert_eq!(tree.accept_header(&next, now, &params), Ok(first), "known");
    assert_eq!(tree.height(first), Height(1));

    let mut orphan = Header { prev_block: BlockHash([9; 32]), ..next };
    seal(&mut orphan, true);
    assert_eq!(reason(tree.accept_header(&orphan, now, &params)), "prev-blk-not-found");
    let mut old = Header { prev_block: *tree.hash(first), time: tree.time(HeaderId::GENESIS), ..next };
    seal(&mut old, true);
    assert_eq!(reason(tree.accept_header(&old, now, &params)), "time-too-old");
    let mut second = Header { prev_block: *tree.hash(first), time: next.time + 7201, ..next };
    seal(&mut second, true);
    assert_eq!(reason(tree.accept_header(&second, i64::from(next.time), &params)), "time-too-new");
    tree.accept_header(&second, i64::from(second.time), &params).unwrap();

    tree.invalidate(first);
    assert_eq!(reason(tree.accept_header(&next, now, &params)), "duplicate-invalid");
    assert_eq!(reason(tree.accept_header(&second, now, &params)), "duplicate-invalid");
    old.time += 1;
    seal(&mut old, true);
    assert_eq!(reason(tree.accept_header(&old, now, &params)), "bad-prevblk");
}

/// The optimised branch returns the same as one that walks over every parent.
#[test]
fn median_time_past_of_a_branch() {
    struct Slow<'a>(&'a HeaderTree, HeaderId);
    impl HeaderView for Slow<'_> {
        fn ancestor(&self, height: Height) -> Option<lydian_consensus::Ancestor> {
            self.0.branch(self.1).ancestor(height)
        }
    }
    let mut pair = Pair::new();
    let mut tip = 0;
    for _ in 0..40 {
        tip = pair.insert(tip, BITS[0]);
    }
    for height in 0..=41 {
        let (branch, height) = (pair.tree.branch(id(tip)), Height(height));
        assert_eq!(branch.median_time_past(height), Slow(&pair.tree, id(tip)).median_time_past(height));
        assert_eq!(branch.ancestor(height).is_some(), height.0 <= 40);
    }
}

/// No chain through a block with a pruned body is chosen. The part below that block may be chosen, and the whole chain
/// once the body is stored again.
#[test]
fn pruned_branches_are_left_out() {
    let mut pair = Pair::new();
    let a1 = pair.insert(0, BITS[0]);
    let mut b = vec![0];
    for _ in 0..3 {
        let parent = b[b.len() - 1];
        b.push(pair.insert(parent, BITS[0]));
    }
    pair.set_body(a1);
    pair.tree.push_active(id(a1));
    b[1..].iter().for_each(|block| pair.set_body(*block));
    assert_eq!(pair.tree.best_candidate(), Some(id(b[3])));
    pair.tree.clear_block(id(b[3]));
    assert_eq!(pair.tree.best_candidate(), Some(id(b[2])), "up to the one that is gone");
    pair.tree.clear_block(id(b[2]));
    assert_eq!(pair.tree.best_candidate(), None, "what is left has no more work");
    pair.tree.set_block(id(b[2]), position(b[2]));
    assert_eq!(pair.tree.best_candidate(), Some(id(b[2])));
    pair.tree.set_block(id(b[3]), position(b[3]));
    assert_eq!(pair.tree.best_candidate(), Some(id(b[3])));
    // On the active chain pruning does not matter until the chain is disconnected.
    pair.tree.activate(id(b[3]));
    pair.tree.clear_block(id(b[1]));
    assert_eq!(pair.tree.best_candidate(), None);
    pair.tree.activate(id(a1));
    assert_eq!(pair.tree.best_candidate(), None);
    // A body that waits for its parent and is pruned no longer waits.
    let c1 = pair.insert(a1, BITS[0]);
    let c2 = pair.insert(c1, BITS[0]);
    pair.set_body(c2);
    pair.tree.clear_block(id(c2));
    pair.set_body(c1);
    assert_eq!(pair.tree.best_candidate(), Some(id(c1)));
}

/// 1,000,000 headers: at most about 180 bytes each, and choosing the best block does not scan them.
#[test]
fn a_million_headers_are_cheap() {
    let mut tree = HeaderTree::new(&params());
    let mut tip = HeaderId::GENESIS;
    for nonce in 0..1_000_000 {
        let header = header_on(&tree, tip, 0x207f_ffff, nonce);
        tip = tree.restore_header(&header).unwrap();
        tree.set_block(tip, BlockPosition { file: 0, offset: u64::from(nonce), size: 1 });
    }
    assert_eq!(tree.leaves.len(), 1, "one leaf however long the chain");
    assert_eq!(tree.best_candidate(), Some(tip));
    let fork = tree.ancestor(tip, Height(123_456)).unwrap();
    assert_eq!(tree.height(fork), Height(123_456));
    let mut steps = 0;
    let mut at = tip;
    while tree.height(at) > Height(123_456) {
        at = tree.step_towards(at, 123_456);
        steps += 1;
    }
    assert!(steps < 120, "{steps} steps");
    tree.activate(tip);
    assert_eq!(tree.best_candidate(), None);
    let bytes = tree.memory_bytes() / tree.len();
    assert!(bytes <= node::PACKED_SIZE + 16, "{bytes} bytes a header");
}

/// Batches with duplicates, forks and broken rules in the middle: the tree, the results and the ids are the same as for
/// single headers.
/// checklist: 60
#[test]
fn many_headers_are_taken_as_one_after_the_other() {
    let params = params();
    let mut random = 1u64;
    let mut draw = move |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(random >> 33).unwrap() % below
    };
    let (mut one, mut many) = (HeaderTree::new(&params), HeaderTree::new(&params));
    let mut made = vec![one.header(HeaderId::GENESIS)];
    let mut refusals = HashSet::new();
    for _ in 0..400 {
        let mut batch = Vec::new();
        let near_end = made.len().saturating_sub(1 + draw(30));
        let mut parent = made[near_end + draw(made.len() - near_end)];
        for _ in 0..1 + draw(20) {
            if draw(8) == 0 {
                batch.push(made[draw(made.len())]);
            }
            let merkle_root = [u8::try_from(draw(256)).unwrap(); 32];
            let (prev_block, time) = (parent.hash(), parent.time + 600);
            let mut header = Header { prev_block, merkle_root, time, version: 4, ..parent };
            match draw(60) {
                0 => header.time = parent.time.saturating_sub(10_000),
                1 => header.bits = 0x207f_fffe,
                2 => header.prev_block = BlockHash([7; 32]),
                3 => header.time = 3_000_000_000,
                _ => {}
            }
            let is_good = draw(60) != 0;
            while check_header(&header, &header.hash(), &params).is_ok() != is_good {
                header.nonce += 1;
            }
            batch.push(header);
            parent = header;
        }
        let now = i64::from(parent.time);
        let mut expected = Ok(());
        let mut entered = Vec::new();
        for (index, header) in batch.iter().enumerate() {
            let is_known = one.find(&header.hash()).is_some();
            match one.accept_header(header, now, &params) {
                Ok(id) if !is_known => {
                    entered.push((id, *header));
                    made.push(*header);
                }
                Ok(_) => {}
                Err(reason) => {
                    refusals.insert(reason.reason());
                    expected = Err(RefusedAt { index, reason });
                    break;
                }
            }
        }
        let mut told = Vec::new();
        let hashed = HashedHeader::many(&batch);
        let answer = many.accept_headers(&hashed, now, &params, &mut |id, header| told.push((id, *header)));
        assert_eq!(answer, expected);
        assert_eq!(told, entered);
        assert_eq!(many.best_header(), one.best_header());
        if draw(10) == 0 && one.len() > 1 {
            let victim = HeaderId(u32::try_from(one.len() - 1 - draw(5.min(one.len() - 1))).unwrap());
            one.invalidate(victim);
            many.invalidate(victim);
            // Most later headers should have a valid parent.
            made.retain(|header| draw(9) == 0 || !one.node(one.find(&header.hash()).unwrap()).is_invalid);
        }
    }
    assert!(one.ids().all(|id| one.node(id) == many.node(id)));
    assert!(one.len() > 1_000 && refusals.len() >= 6, "{} headers, {refusals:?}", one.len());
}

/// A tree that starts in the middle of a chain returns the same as one from the genesis block, as far as it has the
/// headers.
#[test]
fn a_tree_may_begin_anywhere() {
    let mut whole = HeaderTree::new(&params());
    let mut tip = HeaderId::GENESIS;
    for nonce in 0..500 {
        let header = header_on(&whole, tip, 0x207f_ffff, nonce);
        tip = whole.restore_header(&header).unwrap();
    }
    let root = whole.ancestor(tip, Height(123)).unwrap();
    let mut part = HeaderTree::rooted_at(&whole.header(root), Height(123));
    let mut last = HeaderId::GENESIS;
    for height in 124..=500 {
        last = part.restore_header(&whole.header(whole.ancestor(tip, Height(height)).unwrap())).unwrap();
    }
    for is_active in [false, true] {
        if is_active {
            part.activate(last);
        }
        for height in 0..=501 {
            let found = part.ancestor(last, Height(height)).map(|id| *part.hash(id));
            let expected = whole.ancestor(tip, Height(height)).map(|id| *whole.hash(id));
            assert_eq!(found, expected.filter(|_| height >= 123), "height {height}");
        }
    }
    assert_eq!(part.active(Height(122)), None);
    assert_eq!(part.tip(), last);
}
