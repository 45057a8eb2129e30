//! `lydian page`: asks the running node for a link to its page. Input: settings. Output: the link on stdout, which logs
//! in once within a minute, and an exit code.

use crate::client::{self, Bounds};
use crate::daemon::complain;
use crate::exit;
use crate::screen::Screen;
use crate::settings::Settings;
use lydian_disk::Disk;
use lydian_serve::bind_addresses;
use serde::Deserialize;
use std::time::Duration;

/// Of the answer of the node.
const BOUNDS: Bounds = Bounds { wait: Duration::from_secs(10), size_max: 64 << 10 };

#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    Link { link: String },
    Refused { error: Refusal },
}

#[derive(Deserialize)]
struct Refusal {
    message: String,
}

/// Prints the link, or why there is none.
pub(crate) fn run(settings: &Settings, disk: &dyn Disk) -> u8 {
    match link(settings, disk) {
        Ok(link) => {
            Screen::new().line(&link);
            exit::DONE
        }
        Err(words) => {
            complain(&words);
            exit::DIRECTORY
        }
    }
}

fn link(settings: &Settings, disk: &dyn Disk) -> Result<String, String> {
    let page = &settings.page;
    if !page.is_on {
        return Err("the page is switched off (-page=0, or -server=0)".to_owned());
    }
    let credentials = client::credentials(settings, disk)?;
    let addresses = bind_addresses(&page.bind, page.port).map_err(|error| format!("-pagebind: {error}"))?;
    let Some(address) = client::local(&addresses) else {
        return Err("the page is not served on a loopback address: log in there with a user of -rpcauth".to_owned());
    };
    let body = client::post(address, "/api/link", &credentials, "", BOUNDS).map_err(|error| {
        format!("no page answers at {address}: {error}; it is served while the node runs with these settings")
    })?;
    match serde_json::from_str(&body) {
        Ok(Answer::Link { link }) => Ok(format!("http://{address}/#link={link}")),
        Ok(Answer::Refused { error }) => Err(format!("the node gave no link: {}", error.message)),
        Err(_) => Err(format!("what answers at {address} is not the page of Lydian")),
    }
}
