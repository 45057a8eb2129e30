//! The five topics. Data only.

/// What a notifier publishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    HashBlock,
    HashTx,
    RawBlock,
    RawTx,
    Sequence,
}

impl Topic {
    /// In the order in which Core's notifiers act on one event.
    pub const ALL: [Topic; 5] = [Topic::HashBlock, Topic::HashTx, Topic::RawBlock, Topic::RawTx, Topic::Sequence];

    /// The first frame of a message.
    pub fn name(self) -> &'static str {
        match self {
            Topic::HashBlock => "hashblock",
            Topic::HashTx => "hashtx",
            Topic::RawBlock => "rawblock",
            Topic::RawTx => "rawtx",
            Topic::Sequence => "sequence",
        }
    }

    /// The name of the notifier in `getzmqnotifications`, and of its option after `-zmq`.
    pub fn notifier(self) -> &'static str {
        match self {
            Topic::HashBlock => "pubhashblock",
            Topic::HashTx => "pubhashtx",
            Topic::RawBlock => "pubrawblock",
            Topic::RawTx => "pubrawtx",
            Topic::Sequence => "pubsequence",
        }
    }
}
