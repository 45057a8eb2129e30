//! The block filters that are served to peers (BIP-0157), from the index of `-blockfilterindex`.
//!
//! Input: requests that the peer manager has checked. Output: the messages that answer them.

use lydian_engine::Engine;
use lydian_index::FilterReader;
use lydian_p2p::filters::{BASIC_FILTER, CHECKPOINT_INTERVAL, FilterRequest, FilterSource};
use lydian_primitives::{BlockHash, Height};
use lydian_wire::{CFCheckpt, CFHeaders, CFilter, Message};
use std::sync::{Arc, Weak};

pub(crate) fn source(reader: FilterReader, engine: &Arc<Engine>) -> Arc<dyn FilterSource> {
    Arc::new(Source { reader, engine: Arc::downgrade(engine) })
}

#[derive(Debug)]
struct Source {
    reader: FilterReader,
    /// Weak, since what has this may outlive the engine.
    engine: Weak<Engine>,
}

impl Source {
    /// The filter header at a height of the chain up to a block.
    fn header(&self, engine: &Engine, height: Height, stop: &BlockHash) -> Option<[u8; 32]> {
        self.reader.headers_at(engine, std::iter::once(height), stop).ok()??.pop()
    }
}

impl FilterSource for Source {
    fn answer(&self, request: &FilterRequest) -> Option<Message> {
        let engine = self.engine.upgrade()?;
        match *request {
            FilterRequest::Filter(block_hash) => {
                let (filter, _) = self.reader.filter_of(&engine, &block_hash).ok()??;
                Some(Message::CFilter(CFilter { filter_type: BASIC_FILTER, block_hash, filter }))
            }
            FilterRequest::Headers { from, stop } => {
                let previous_header = match from.0.checked_sub(1) {
                    Some(before) => self.header(&engine, Height(before), &stop)?,
                    None => [0; 32],
                };
                let entries = self.reader.entries_to(&engine, from, &stop).ok()??;
                let filter_hashes = entries.into_iter().map(|entry| entry.hash).collect();
                let filter_type = BASIC_FILTER;
                Some(Message::CFHeaders(CFHeaders { filter_type, stop_hash: stop, previous_header, filter_hashes }))
            }
            FilterRequest::Checkpoints { height, stop } => {
                let heights = (1..=height.0 / CHECKPOINT_INTERVAL).map(|number| Height(number * CHECKPOINT_INTERVAL));
                let headers = self.reader.headers_at(&engine, heights, &stop).ok()??;
                Some(Message::CFCheckpt(CFCheckpt { filter_type: BASIC_FILTER, stop_hash: stop, headers }))
            }
        }
    }
}
