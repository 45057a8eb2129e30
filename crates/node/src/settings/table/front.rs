//! Options of `lydian serve`. Data only: entries of the option table. It also has those of the Electrum server, of the
//! Esplora server, of the chain and of the log, and `-index`, `-feedtoken` and `-feedcert`.

use super::{Opt, TEXT, group, integer};
use crate::settings::front::{self, FILTERS_MB_MAX};
use lydian_options::Set;

const COMMANDS: &[&str] = &[front::COMMAND];

pub(super) const OPTIONS: &[Opt] = &[
    Opt {
        name: "feed",
        argument: "<node>,<node>",
        is_own: true,
        is_list: true,
        group: group::FRONT,
        commands: COMMANDS,
        help: "Follow the mempool of one of these nodes, and ask them for blocks: HOST:PORT on this machine, https://HOST:PORT elsewhere, which is what their -feedbind says. If one fails, the next is used",
        ..TEXT
    },
    Opt {
        name: "healthbind",
        argument: "<addr>[:port]",
        is_own: true,
        is_list: true,
        group: group::FRONT,
        commands: COMMANDS,
        default: "127.0.0.1 and ::1, port 3004, testnet3: 13004, testnet4: 23004, signet: 33004, regtest: 43004",
        help: "Answer GET /health (200 while wallets are served, else 503) and GET /metrics at the given address, to anyone who reaches it",
        ..TEXT
    },
    Opt {
        name: "filters",
        is_own: true,
        group: group::FRONT,
        commands: COMMANDS,
        default: "256",
        help: "Memory for the filters of used scripts in MB, which save reads of the store (0: none)",
        set: Set::Integer(|settings, mb| settings.front.filter_bytes = front::filter_bytes(mb)),
        ..integer(0, FILTERS_MB_MAX)
    },
];
