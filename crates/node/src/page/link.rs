//! `lydian page`: asks the running node for a link to its page. Input: settings. Output: the link on stdout, which logs
//! in once within a minute, and an exit code.

use crate::daemon::complain;
use crate::exit;
use crate::screen::Screen;
use crate::settings::Settings;
use lydian_disk::{Disk, read_whole};
use lydian_serve::bind_addresses;
use lydian_stdx::base64;
use serde::Deserialize;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Time for the answer of the node.
const ANSWER_WAIT: Duration = Duration::from_secs(10);

/// The largest cookie file, and the largest answer.
const COOKIE_SIZE_MAX: u64 = 4 << 10;
const ANSWER_SIZE_MAX: u64 = 64 << 10;

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
    let credentials = credentials(settings, disk)?;
    let addresses = bind_addresses(&page.bind, page.port).map_err(|error| format!("-pagebind: {error}"))?;
    // IPv4 first, which every browser can open.
    let local = addresses.iter().filter(|address| address.ip().to_canonical().is_loopback());
    let Some(address) = local.min_by_key(|address| address.is_ipv6()) else {
        return Err("the page is not served on a loopback address: log in there with a user of -rpcauth".to_owned());
    };
    let answer = ask(*address, &credentials).map_err(|error| {
        format!("no page answers at {address}: {error}; it is served while the node runs with these settings")
    })?;
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    match serde_json::from_str(body) {
        Ok(Answer::Link { link }) => Ok(format!("http://{address}/#link={link}")),
        Ok(Answer::Refused { error }) => Err(format!("the node gave no link: {}", error.message)),
        Err(_) => Err(format!("what answers at {address} is not the page of Lydian")),
    }
}

/// `user:password` of the cookie, or of `-rpcuser` and `-rpcpassword`.
fn credentials(settings: &Settings, disk: &dyn Disk) -> Result<String, String> {
    let rpc = &settings.rpc;
    if !rpc.password.0.is_empty() {
        return Ok(format!("{}:{}", rpc.user.0, rpc.password.0));
    }
    let Some(path) = &rpc.cookie else {
        return Err("there is no cookie file (-norpccookiefile): log in with a user of -rpcauth".to_owned());
    };
    let bytes = read_whole(disk, path, COOKIE_SIZE_MAX)
        .map_err(|error| format!("the cookie of a running node cannot be read: {error}"))?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{} is not a cookie", path.display()))?;
    Ok(text.trim().to_owned())
}

fn ask(address: SocketAddr, credentials: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_WAIT)?;
    stream.set_read_timeout(Some(ANSWER_WAIT))?;
    stream.set_write_timeout(Some(ANSWER_WAIT))?;
    let login = base64(credentials.as_bytes());
    let request = format!(
        "POST /api/link HTTP/1.1\r\nHost: {address}\r\nAuthorization: Basic {login}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(ANSWER_SIZE_MAX).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
