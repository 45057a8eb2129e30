//! The methods, by topic. Each module has a list of [`crate::Method`]s.

pub(crate) mod address;
pub(crate) mod block;
pub(crate) mod blockchain;
pub(crate) mod blockstats;
pub(crate) mod control;
pub(crate) mod descriptor;
pub(crate) mod electrum;
pub(crate) mod filters;
pub(crate) mod keys;
pub(crate) mod mempool;
pub(crate) mod mempool_fees;
pub(crate) mod mempool_file;
pub(crate) mod mempool_submit;
pub(crate) mod mining;
pub(crate) mod net;
pub(crate) mod net_addresses;
pub(crate) mod net_bans;
pub(crate) mod net_peers;
pub(crate) mod rawtransaction;
mod rawtransaction_create;
mod rawtransaction_sign;
pub(crate) mod scan;
pub(crate) mod submit;
pub(crate) mod testing;
pub(crate) mod txoutproof;
pub(crate) mod waiting;
pub(crate) mod zmq;
