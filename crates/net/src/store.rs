//! The thread that stores blocks.
//!
//! It parses them, has the engine check what can be checked without coins, and wakes the validator. Input: bytes as
//! peers sent them. Output: the result for each block, reported to the manager.

use crate::event::Event;
use crate::validate::Validator;
use crate::{Events, Host};
use lydian_consensus::{Rejected, Rule};
use lydian_engine::{Engine, EngineError};
use lydian_p2p::manager::{PeerId, StoreOutcome};
use lydian_p2p::memory::Charge;
use lydian_primitives::{BlockHash, RawBlock};
use lydian_wire::message::block_size;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// A block that waits to be stored.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) from: PeerId,
    pub(crate) hash: BlockHash,
    pub(crate) bytes: Vec<u8>,
    /// The bytes count as the peer's until they are stored.
    pub(crate) _charge: Option<Charge>,
}

/// State of the thread that stores blocks.
#[derive(Debug)]
pub(crate) struct Storer {
    engine: Arc<Engine>,
    validator: Arc<Validator>,
    host: Arc<dyn Host>,
    events: Events,
}

impl Storer {
    pub(crate) fn new(engine: Arc<Engine>, validator: Arc<Validator>, host: Arc<dyn Host>, events: Events) -> Storer {
        Storer { engine, validator, host, events }
    }

    /// Stores blocks until all senders are gone.
    pub(crate) fn work(&self, deliveries: &Receiver<Delivery>) {
        for Delivery { from, hash, bytes, _charge } in deliveries {
            match self.store(bytes) {
                Ok(outcome) => {
                    if outcome == StoreOutcome::Stored {
                        self.validator.wake();
                    }
                    if self.events.blocking_send(Event::Stored { from, hash, outcome }).is_err() {
                        return;
                    }
                }
                Err(error) => return self.validator.fail(error),
            }
        }
    }

    fn store(&self, mut bytes: Vec<u8>) -> Result<StoreOutcome, EngineError> {
        // Core reads a block from the start of the message and ignores what follows it.
        match block_size(&bytes) {
            Ok(size) => bytes.truncate(size),
            Err(error) => return Ok(StoreOutcome::Malformed { reason: error.to_string() }),
        }
        let block = match RawBlock::new(bytes).parse() {
            Ok(block) => block,
            Err(error) => return Ok(StoreOutcome::Malformed { reason: error.to_string() }),
        };
        let now = i64::try_from(self.host.now().unix.0).unwrap_or(i64::MAX);
        Ok(match self.engine.store_block(block, now)? {
            Ok(_) => StoreOutcome::Stored,
            Err(Rejected::Duplicate) => StoreOutcome::Known,
            Err(rejected @ Rejected::DuplicateInvalid) => StoreOutcome::KnownInvalid { reason: rejected.to_string() },
            Err(Rejected::Violation(violation)) => match violation.rule {
                Rule::TimeTooNew => StoreOutcome::TooEarly,
                rule => StoreOutcome::Invalid { reason: violation.to_string(), is_mutated: rule.is_of_the_bytes() },
            },
        })
    }
}
