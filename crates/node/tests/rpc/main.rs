//! The RPC interface as programs see it: every answer, every error and every refusal of HTTP is compared with Core's,
//! on the same chain. Core's own `bitcoin-cli` drives Lydian.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and makes its own files"
)]

mod abuse;
mod alerts;
mod building;
mod chain;
mod clients;
mod coinstats;
mod compare;
mod described;
mod drivers;
mod electrum;
mod electrum_floods;
mod electrum_libraries;
mod electrum_model;
mod electrum_operators;
mod electrum_pruned;
mod electrum_wallet;
mod electrum_web;
mod esplora;
mod esplora_added;
mod feed;
mod fees;
mod filters;
mod foreign;
mod front;
mod front_in_memory;
mod front_nodes;
mod front_wallets;
mod http;
mod indexes;
mod interface;
mod light;
#[path = "../../../../testdata/locate.rs"]
#[expect(dead_code, reason = "shared by tests that need different parts")]
mod locate;
mod log;
mod meanwhile;
#[path = "../../../front/tests/all/memory.rs"]
#[allow(unreachable_pub, reason = "the tests of lydian-front use it too")]
mod memory;
mod mempool;
mod metrics;
mod page_blocks;
mod page_client;
mod page_explorer;
mod page_machine;
mod page_mempool;
mod page_peers;
mod page_refusals;
mod peers;
mod programs;
mod psbt;
mod raw;
mod refusals;
mod rest;
mod same;
mod second_opinion;
mod server;
mod shared_index;
mod signet;
mod startup;
mod strange;
#[path = "../../../zmq/tests/common/subscriber.rs"]
mod subscriber;
mod templates;
mod txindex;
mod typed;
mod verify;
mod warnings;
mod zmq;
