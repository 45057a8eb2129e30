//! Options of the page. Data only: entries of the option table.

use super::{Opt, PATH, SWITCH, TEXT, group, integer};
use lydian_options::Set;

/// The highest port.
const PORT_MAX: i64 = 65_535;

pub(super) const OPTIONS: &[Opt] = &[
    Opt {
        name: "page",
        is_own: true,
        group: group::START,
        default: "1 unless -server=0",
        help: "Serve a page that shows what the node does, on this machine only unless -pagebind is set",
        set: Set::Switch(|settings, is_on| settings.page.is_on = is_on),
        ..SWITCH
    },
    Opt {
        name: "pagebind",
        argument: "<addr>[:port]",
        is_own: true,
        is_list: true,
        group: group::PAGE,
        default: "127.0.0.1 and ::1",
        help: "Serve the page at the given address, to anyone who reaches it and logs in. Beyond this machine it is encrypted (TLS)",
        ..TEXT
    },
    Opt {
        name: "pageport",
        argument: "<port>",
        is_own: true,
        group: group::PAGE,
        default: "8380, testnet3: 18380, testnet4: 28380, signet: 38380, regtest: 48380",
        help: "The port of addresses without one",
        set: Set::Integer(|settings, port| settings.page.port = u16::try_from(port).unwrap_or(0)),
        ..integer(1, PORT_MAX)
    },
    Opt {
        name: "pagehost",
        argument: "<name>",
        is_own: true,
        is_list: true,
        group: group::PAGE,
        help: "A name under which browsers may open the page, beside the names of this machine. Others are refused, so that a web site cannot point its own name here",
        ..TEXT
    },
    Opt {
        name: "pageactions",
        is_own: true,
        group: group::PAGE,
        default: "0",
        help: "Let users who have logged in change the node on the page: disconnect and ban peers, add nodes, switch log categories, send transactions",
        set: Set::Switch(|settings, is_on| settings.page.has_actions = is_on),
        ..SWITCH
    },
    Opt {
        name: "pageopen",
        is_own: true,
        group: group::PAGE,
        default: "0",
        help: "Let everyone on this machine read the page without a login, but not the log and the settings",
        set: Set::Switch(|settings, is_on| settings.page.is_open = is_on),
        ..SWITCH
    },
    Opt {
        name: "pagecert",
        is_own: true,
        group: group::PAGE,
        default: "self-made, in the data directory",
        help: "Certificate of addresses beyond this machine in PEM, with those that certify it behind it",
        set: Set::Path(|settings, path| settings.page.certificate = path),
        ..PATH
    },
    Opt {
        name: "pagekey",
        is_own: true,
        group: group::PAGE,
        default: "self-made, in the data directory",
        help: "Private key of -pagecert in PEM",
        set: Set::Path(|settings, path| settings.page.key = path),
        ..PATH
    },
];
