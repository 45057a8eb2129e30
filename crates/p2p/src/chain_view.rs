//! [`ChainView`]: what this crate asks of the chain.
//!
//! Input: headers from peers, hashes. Output: the header tree for a look at it, stored blocks. The engine implements
//! it. Otherwise the manager uses only the engine's log lines and its state of the initial download. Invariant: no call
//! waits for validation. Cost: a look at the tree holds its lock only for that look.

use lydian_chain::HeaderTree;
use lydian_engine::{AcceptedHeaders, Engine, EngineError, HeaderInfo};
use lydian_primitives::{Block, BlockHash, HashedHeader};

/// The chain, as seen by the peers' state machines.
pub trait ChainView: Send + Sync + std::fmt::Debug {
    /// Calls `look` once with the header tree. `with_tree` is more convenient.
    fn look(&self, look: &mut dyn FnMut(&HeaderTree));

    /// Inserts headers of a chain with enough work into the tree; `unix` is the time in seconds since 1970.
    fn accept_headers(&self, headers: &[HashedHeader], unix: i64) -> Result<AcceptedHeaders, EngineError>;

    /// Returns a header and its place in the chain; `None` if it is unknown.
    fn header_info(&self, hash: &BlockHash) -> Option<HeaderInfo>;

    /// Returns a stored block; `None` if it is missing.
    fn block(&self, info: &HeaderInfo) -> Result<Option<Block>, EngineError>;
}

impl dyn ChainView {
    /// Returns what `look` returns for the header tree.
    pub fn with_tree<T>(&self, look: impl FnOnce(&HeaderTree) -> T) -> T {
        let (mut look, mut seen) = (Some(look), None);
        self.look(&mut |tree| {
            if let Some(look) = look.take() {
                seen = Some(look(tree));
            }
        });
        match seen {
            Some(seen) => seen,
            None => unreachable!("a chain shows its header tree"),
        }
    }
}

impl ChainView for Engine {
    fn look(&self, look: &mut dyn FnMut(&HeaderTree)) {
        self.with_tree(|tree| look(tree));
    }

    fn accept_headers(&self, headers: &[HashedHeader], unix: i64) -> Result<AcceptedHeaders, EngineError> {
        self.accept_hashed_headers(headers, unix)
    }

    fn header_info(&self, hash: &BlockHash) -> Option<HeaderInfo> {
        Engine::header_info(self, hash)
    }

    fn block(&self, info: &HeaderInfo) -> Result<Option<Block>, EngineError> {
        Engine::block(self, info)
    }
}
