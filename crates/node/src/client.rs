//! A client of the servers of the running node on this machine. Input: settings, a request. Output: the body of the
//! answer. One request for each connection, within bounds of time and size.

use crate::settings::Settings;
use lydian_disk::{Disk, read_whole};
use lydian_stdx::base64;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The largest cookie file.
pub(crate) const COOKIE_SIZE_MAX: u64 = 4 << 10;

/// How long to wait for an answer, and how much of it is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) wait: Duration,
    pub(crate) size_max: u64,
}

/// `user:password` of the cookie, or of `-rpcuser` and `-rpcpassword`.
pub(crate) fn credentials(settings: &Settings, disk: &dyn Disk) -> Result<String, String> {
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

/// The address to ask of those that a server listens at: on this machine, IPv4 first, which everything can reach.
pub(crate) fn local(addresses: &[SocketAddr]) -> Option<SocketAddr> {
    let local = addresses.iter().filter(|address| address.ip().to_canonical().is_loopback());
    local.min_by_key(|address| address.is_ipv6()).copied()
}

/// Sends a POST request, and returns the body of the answer.
pub(crate) fn post(
    address: SocketAddr,
    path: &str,
    credentials: &str,
    body: &str,
    bounds: Bounds,
) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, bounds.wait)?;
    stream.set_read_timeout(Some(bounds.wait))?;
    stream.set_write_timeout(Some(bounds.wait))?;
    let (login, length) = (base64(credentials.as_bytes()), body.len());
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Basic {login}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(bounds.size_max).read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    Ok(answer.split_once("\r\n\r\n").map_or("", |(_, body)| body).to_owned())
}
