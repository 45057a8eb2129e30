//! Options of the Esplora server. Data only: entries of the option table.

use super::{Opt, SWITCH, TEXT, group};
use crate::settings::electrum;
use lydian_options::Set;

pub(super) const OPTIONS: &[Opt] = &[
    Opt {
        name: "esplora",
        is_own: true,
        group: group::START,
        help: "Serve Esplora's REST API over HTTP, on this machine only unless -esplorabind is set. Implies -addressindex",
        set: Set::Switch(|settings, is_on| settings.esplora.is_on = is_on),
        ..SWITCH
    },
    Opt {
        name: "esplorabind",
        argument: "<addr>[:port]",
        is_own: true,
        is_list: true,
        group: group::ESPLORA,
        default: "127.0.0.1 and ::1, port 3002, testnet3: 13002, testnet4: 23002, signet: 33002, regtest: 43002",
        help: "Listen for requests at the given address, for anyone who reaches it. Connections are not encrypted",
        ..TEXT
    },
    Opt {
        name: "esploracors",
        argument: "<origin>",
        is_own: true,
        group: group::ESPLORA,
        default: "none",
        help: "Let web pages of this origin read the answers (Access-Control-Allow-Origin); * for every origin",
        set: Set::Value(|settings, setting| {
            electrum::origin("esploracors", setting).map(|cors| settings.esplora.cors = cors)
        }),
        ..TEXT
    },
];
