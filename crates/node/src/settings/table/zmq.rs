//! Options of the notifications over ZeroMQ. Data only: entries of the option table.

use super::{Opt, TEXT, group, integer};
use crate::settings::zmq::ZmqSettings;
use lydian_options::Set;
use lydian_zmq::Topic;

/// Sets the addresses of a topic.
macro_rules! addresses {
    ($name:literal, $topic:ident, $help:literal) => {
        Opt {
            name: $name,
            argument: "<address>",
            is_list: true,
            group: group::ZMQ,
            help: $help,
            set: Set::List(|settings, texts| settings.zmq.addresses[Topic::$topic as usize] = ZmqSettings::read(texts)),
            ..TEXT
        }
    };
}

/// Sets the high-water mark of a topic.
macro_rules! high_water_mark {
    ($name:literal, $topic:ident, $help:literal) => {
        Opt {
            name: $name,
            group: group::ZMQ,
            default: "1000",
            help: $help,
            set: Set::Integer(|settings, mark| {
                settings.zmq.high_water_marks[Topic::$topic as usize] = i32::try_from(mark).unwrap_or(i32::MAX);
            }),
            ..integer(i32::MIN as i64, i32::MAX as i64)
        }
    };
}

pub(super) const OPTIONS: &[Opt] = &[
    addresses!(
        "zmqpubhashblock",
        HashBlock,
        "Publish the hash of each new tip at <address> (tcp://<ip>:<port> or unix:<path>)"
    ),
    addresses!(
        "zmqpubhashtx",
        HashTx,
        "Publish the id of each transaction that enters the mempool, and of those in blocks that join or leave the chain at <address>"
    ),
    addresses!("zmqpubrawblock", RawBlock, "Publish each block that is a new tip at <address>"),
    addresses!(
        "zmqpubrawtx",
        RawTx,
        "Publish each transaction that enters the mempool, and those in blocks that join or leave the chain at <address>"
    ),
    addresses!(
        "zmqpubsequence",
        Sequence,
        "Publish each block that joins or leaves the chain, and each transaction that enters or leaves the mempool at <address>"
    ),
    high_water_mark!(
        "zmqpubhashblockhwm",
        HashBlock,
        "Let <n> messages of hashblock wait for a subscriber; further ones are dropped; 0 = no limit"
    ),
    high_water_mark!("zmqpubhashtxhwm", HashTx, "Let <n> messages of hashtx wait for a subscriber"),
    high_water_mark!("zmqpubrawblockhwm", RawBlock, "Let <n> messages of rawblock wait for a subscriber"),
    high_water_mark!("zmqpubrawtxhwm", RawTx, "Let <n> messages of rawtx wait for a subscriber"),
    high_water_mark!("zmqpubsequencehwm", Sequence, "Let <n> messages of sequence wait for a subscriber"),
];
