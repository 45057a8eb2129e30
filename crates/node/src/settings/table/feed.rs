//! Options of the feed for front ends. Data only: entries of the option table.

use super::{Opt, PATH, TEXT, group};
use crate::settings::rpc::Secret;
use lydian_options::Set;

pub(super) const OPTIONS: &[Opt] = &[
    Opt {
        name: "feedbind",
        argument: "<addr>[:port]",
        is_own: true,
        is_list: true,
        group: group::FEED,
        default: "none; port 3003, testnet3: 13003, testnet4: 23003, signet: 33003, regtest: 43003",
        help: "Serve the mempool and blocks to front ends (lydian serve) at the given address. Beyond this machine, -feedtoken, -feedcert and -feedkey are needed",
        ..TEXT
    },
    Opt {
        name: "feedtoken",
        argument: "<text>",
        is_own: true,
        is_secret: true,
        group: group::FEED,
        default: "none",
        help: "A secret that front ends must send, of at least 16 characters",
        set: Set::Value(|settings, setting| {
            settings.feed.token = Secret(setting.text().to_owned());
            Ok(())
        }),
        ..TEXT
    },
    Opt {
        name: "feedcert",
        is_own: true,
        group: group::FEED,
        default: "none",
        help: "Certificate for TLS in PEM, with those that certify it behind it; with it, all addresses of -feedbind speak TLS",
        set: Set::Path(|settings, path| settings.feed.certificate = path),
        ..PATH
    },
    Opt {
        name: "feedkey",
        is_own: true,
        group: group::FEED,
        default: "none",
        help: "Private key of -feedcert in PEM",
        set: Set::Path(|settings, path| settings.feed.key = path),
        ..PATH
    },
];
