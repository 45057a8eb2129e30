//! A peer whose chain grows by several blocks at once, which it announces with headers.
//!
//! The node must request at once as many blocks as it has room for.

use crate::actor::{Body, Nature, Shown, Stage};
use lydian_wire::Message;
use std::time::Duration;

/// Number of blocks announced; the node has room for all of them.
pub const ANNOUNCED: u32 = 4;

/// Grows to a height.
#[derive(Debug)]
pub struct Announcing {
    after: Duration,
    height: u32,
    /// Number of blocks in the first request.
    asked: Option<usize>,
}

impl Announcing {
    pub fn new(after: Duration, height: u32) -> Announcing {
        Announcing { after, height, asked: None }
    }
}

impl Nature for Announcing {
    fn begin(&mut self, _: &mut Body, stage: &mut Stage<'_>) {
        stage.wake(self.after, 0);
    }

    fn woken(&mut self, _: u32, body: &mut Body, stage: &mut Stage<'_>) {
        let first = body.shown.height + 1;
        body.shown = Shown { height: self.height, ..body.shown.clone() };
        let headers = (first..=self.height).map(|height| body.shown.chain.at(height).header);
        stage.send(Message::Headers(headers.collect()));
    }

    fn message(&mut self, message: &Message, body: &mut Body, _: &mut Stage<'_>) -> bool {
        if let Message::GetData(inventory) = message
            && body.shown.height == self.height
        {
            self.asked.get_or_insert(inventory.len());
        }
        false
    }

    fn is_done(&self) -> bool {
        self.asked == Some(ANNOUNCED as usize)
    }
}
