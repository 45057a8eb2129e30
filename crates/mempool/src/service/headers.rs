//! The headers of the chain that ends with a block, for the rules about time. Input: heights. Output: headers of the
//! engine's tree, each looked up under its lock.

use lydian_consensus::{Ancestor, HeaderView};
use lydian_engine::{Engine, HeaderId};
use lydian_primitives::{BlockHash, Height};

/// The chain below the next block.
pub(super) struct Headers<'a> {
    engine: &'a Engine,
    tip: HeaderId,
}

impl<'a> Headers<'a> {
    /// `None` if there is no such block.
    pub(super) fn up_to(engine: &'a Engine, tip: &BlockHash) -> Option<Headers<'a>> {
        let tip = engine.with_tree(|tree| tree.find(tip))?;
        Some(Headers { engine, tip })
    }
}

impl HeaderView for Headers<'_> {
    fn ancestor(&self, height: Height) -> Option<Ancestor> {
        self.engine.with_tree(|tree| {
            let id = tree.ancestor(self.tip, height)?;
            Some(Ancestor { hash: *tree.hash(id), header: tree.header(id) })
        })
    }
}
