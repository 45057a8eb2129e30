//! `docs/rpc.md` and `docs/core-interface.md`, made from the table of methods and that of the paths of REST.

use crate::limits::{REST_HEADERS_MAX, REST_OUTPOINTS_MAX};
use crate::method::{Category, Method};
use crate::rest::ROUTES;
use crate::table::{METHODS, NO_WALLET, OWN, REFUSED};
use lydian_stdx::wrap;

/// The width of documents.
const DOCUMENT_WIDTH: usize = 100;

/// `docs/rpc.md`.
pub fn document() -> String {
    let mut text = "<!-- Generated from the table of methods in crates/rpc by `make generate`. -->\n# RPC methods\n\n\
        JSON-RPC over HTTP as Bitcoin Core speaks it: names, arguments, fields and errors are Core's.\n\
        Differences are listed with each method; the others are in\n\
        [known-differences.md](known-differences.md).\n"
        .to_owned();
    for category in Category::ALL {
        let mut methods: Vec<&Method> = METHODS.iter().filter(|method| method.category == category).collect();
        if methods.is_empty() {
            continue;
        }
        methods.sort_by_key(|method| method.name);
        text += &format!("\n## {}\n", category.name());
        for method in methods {
            text += &format!("\n### {}\n\n```\n{}```\n", method.name, method.help_text());
            if !method.remark.is_empty() {
                text += &format!("\n{}\n", wrap(method.remark, DOCUMENT_WIDTH, ""));
            }
        }
    }
    text += "\n## Refused\n\nMethods of Core that are answered with \"Method not found\", and why.\n\n| method | reason |\n|---|---|\n";
    for (name, reason) in REFUSED {
        text += &format!("| `{name}` | {reason} |\n");
    }
    text + &paths()
}

const ABOUT_REST: &str = "With `-rest`, the paths below are answered at the port of JSON-RPC, without a login, whether \
    the request is a GET, HEAD, POST or PUT: bytes (`.bin`), the same in hex with a newline (`.hex`), or the JSON of the \
    methods above (`.json`). Statuses, headers, bytes and errors are Core's. Every client that may connect to the port \
    (`-rpcallowip`) may ask.";

const ABOUT_BODIES: &str = "The outpoints of `getutxos` may also be the body of a request for `/rest/getutxos.bin` or, in hex, `.hex`: a \
    byte for their number, and 36 bytes each. Core reads this form, which has no byte for the mempool, unlike that of \
    BIP-0064: a body always takes the mempool into account, and it may have up to 252 bytes, that is 6 outpoints.";

/// The section about REST.
fn paths() -> String {
    let mut text = format!("\n## REST\n\n{}\n\n| path | answer |\n|---|---|\n", wrap(ABOUT_REST, DOCUMENT_WIDTH, ""));
    for route in ROUTES.iter().filter(|route| !route.words.is_empty()) {
        // A bar ends a cell.
        let path = format!("{}{}", route.prefix, route.rest).replace('|', "\\|");
        text += &format!("| `{path}` | {} |\n", route.words);
    }
    let limits = format!(
        "A request may ask for up to {REST_HEADERS_MAX} headers and {REST_OUTPOINTS_MAX} outpoints. {ABOUT_BODIES}"
    );
    text + &format!("\n{}\n", wrap(&limits, DOCUMENT_WIDTH, ""))
}

const ABOUT_THE_INTERFACE: &str = "Every RPC method, REST path and ZMQ topic of Bitcoin Core 31, and whether Lydian has it: \"here\", or \
    \"refused\" with the reason. A test compares this list with Core's source in both directions, and asks a running node. \
    Programs that our tests run on Lydian are in [clients.md](clients.md).";

const ABOUT_REFUSED: &str = "A refused method is answered with \"Method not found\" (-32601), as Core answers what it does not know. Methods of \
    Core's wallet are not listed: Lydian has no wallet and refuses them all, as Core does with `-disablewallet`.";

/// `docs/core-interface.md`. `topics`: what is published over ZMQ.
pub fn interface(topics: &[&str]) -> String {
    let mut methods: Vec<(&str, Option<&str>)> = METHODS
        .iter()
        .map(|method| (method.name, None))
        .filter(|(name, _)| OWN.iter().all(|own| own.name != *name))
        .chain(REFUSED.iter().filter(|(_, reason)| *reason != NO_WALLET).map(|(name, reason)| (*name, Some(*reason))))
        .collect();
    methods.sort_unstable();
    let mut text = format!(
        "<!-- Generated from the tables in crates/rpc and crates/zmq by `make generate`. -->\n# Bitcoin Core's interface\n\n{}\n\n\
         ## RPC\n\n{}\n\n| method | Lydian |\n|---|---|\n",
        wrap(ABOUT_THE_INTERFACE, DOCUMENT_WIDTH, ""),
        wrap(ABOUT_REFUSED, DOCUMENT_WIDTH, "")
    );
    for (name, refused) in methods {
        text += &match refused {
            None => format!("| [`{name}`](rpc.md#{name}) | here |\n"),
            Some(reason) => format!("| `{name}` | refused: {reason} |\n"),
        };
    }
    text += "\n## REST\n\nWith `-rest`; [rpc.md](rpc.md#rest) has the forms of each path.\n\n| path | Lydian |\n|---|---|\n";
    for route in ROUTES {
        text += &format!("| `{}` | here |\n", route.prefix);
    }
    text += "\n## ZMQ\n\nEach with `-zmqpub<topic>=<address>`.\n\n| topic | Lydian |\n|---|---|\n";
    for topic in topics {
        text += &format!("| `{topic}` | here |\n");
    }
    text
}
