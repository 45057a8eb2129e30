//! The thread that parses, checks and stores blocks.
//!
//! It has the driver do this, which also puts compact blocks together, and wakes the validator. Input: blocks as peers
//! sent them. Output: the result for each, reported to the manager.

use crate::validate::Validator;
use crate::{Events, Host};
use lydian_engine::Engine;
use lydian_p2p::driver::{Delivery, Event};
use lydian_p2p::manager::StoreOutcome;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

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
    pub(crate) fn work(&self, deliveries: &Receiver<Box<Delivery>>) {
        for mut delivery in deliveries {
            match delivery.store(&self.engine, self.host.now()) {
                Ok(event) => {
                    if matches!(event, Event::Stored { outcome: StoreOutcome::Stored, .. }) {
                        self.validator.wake();
                    }
                    if self.events.blocking_send(event.into()).is_err() {
                        return;
                    }
                }
                Err(error) => return self.validator.fail(error),
            }
        }
    }
}
