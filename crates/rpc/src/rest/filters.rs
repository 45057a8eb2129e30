//! `/rest/blockfilter/` and `/rest/blockfilterheaders/`: the filters of `-blockfilterindex` and their headers.

use super::headers::{header_count, header_path};
use super::reply::{Made, Refused};
use super::request::{Request, hash_of};
use crate::context::Context;
use crate::output::Hex;
use crate::result::{Answer, result};
use lydian_engine::Engine;
use lydian_index::{FILTERS_NAME, FilterReader};
use lydian_primitives::{BlockHash, write_compact_size};

/// The index does not have a block of the chain: it is being built, or it failed.
fn still_indexed(engine: &Engine) -> Refused {
    match engine.follower(FILTERS_NAME).and_then(|follower| follower.failure(FILTERS_NAME)) {
        Some(failure) => Refused::unreadable(failure),
        None => Refused::missing("Filter not found. Block filters are still in the process of being indexed."),
    }
}

/// The type of filter, as BIP-0158 numbers it.
const BASIC: u8 = 0;

/// The index of a type of filters.
fn index_of<'a>(context: &'a Context, name: &str) -> Result<&'a FilterReader, Refused> {
    if name != "basic" {
        return Err(Refused::bad(format!("Unknown filtertype {name}")));
    }
    let indexes = context.indexes();
    indexes.filters.as_ref().ok_or_else(|| match indexes.unopened(FILTERS_NAME) {
        Some(reason) => Refused::unreadable(reason),
        None => Refused::bad(format!("Index is not enabled for filtertype {name}")),
    })
}

result! {
    struct FilterAnswer {
        filter: Hex<Vec<u8>>,
    }
}

/// Core's `rest_block_filter`.
pub(super) fn filter(request: &Request<'_>) -> Result<Made, Refused> {
    let engine = request.engine()?;
    let [kind, hash] = request.parts()[..] else {
        let words = "Invalid URI format. Expected /rest/blockfilter/<filtertype>/<blockhash>";
        return Err(Refused::bad(words));
    };
    let block: BlockHash = hash_of(hash)?;
    let index = index_of(request.context, kind)?;
    let info = engine.header_info(&block).ok_or_else(|| Refused::missing(format!("{hash} not found")))?;
    engine.wait_for_follower(FILTERS_NAME, engine.tip().height);
    let found = index.filter_of(&engine, &block).map_err(|error| Refused::unreadable(error.to_string()))?;
    let Some((filter, _)) = found else {
        return Err(match info.node.is_verified {
            true => still_indexed(&engine),
            false => Refused::missing("Filter not found. Block was not connected to active chain."),
        });
    };
    // The type, the hash of the block, and the filter with its length.
    let bytes = || {
        let mut bytes = vec![BASIC];
        bytes.extend_from_slice(&block.0);
        write_compact_size(&mut bytes, filter.len());
        bytes.extend_from_slice(&filter);
        bytes
    };
    request.reply(bytes, |out| {
        FilterAnswer { filter: Hex(filter.clone()) }.write(out);
        Ok(())
    })
}

/// Core's `rest_filter_header`.
pub(super) fn headers(request: &Request<'_>) -> Result<Made, Refused> {
    let engine = request.engine()?;
    let parts = request.parts();
    let Some((kind, (count, hash))) =
        parts.split_first().and_then(|(kind, rest)| Some((kind, header_path(request, rest)?)))
    else {
        let words =
            "Invalid URI format. Expected /rest/blockfilterheaders/<filtertype>/<blockhash>.<ext>?count=<count>";
        return Err(Refused::bad(words));
    };
    let count = header_count(&count)?;
    let block: BlockHash = hash_of(hash)?;
    let index = index_of(request.context, kind)?;
    // At one moment, since a reorganisation may replace the chain meanwhile; the index has the blocks of both chains.
    let blocks = engine.active_infos(&block, usize::try_from(count).unwrap_or(usize::MAX));
    let mut headers: Vec<[u8; 32]> = Vec::new();
    if let (Some(first), Some(last)) = (blocks.first(), blocks.last()) {
        engine.wait_for_follower(FILTERS_NAME, last.node.height);
        let entries = index.entries_to(&engine, first.node.height, &last.node.hash);
        let entries = entries.map_err(|error| Refused::unreadable(error.to_string()))?;
        let entries = entries.ok_or_else(|| still_indexed(&engine))?;
        headers.extend(entries.iter().map(|entry| entry.header));
    }
    request.reply(
        || headers.concat(),
        |out| {
            // Shown as other hashes are.
            headers.iter().map(|header| BlockHash(*header)).collect::<Vec<_>>().write(out);
            Ok(())
        },
    )
}
