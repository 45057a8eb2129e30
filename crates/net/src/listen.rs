//! Listening sockets.
//!
//! Input: an address, and the permissions of peers that connect to it. Output: connections, handed to the [`Dialer`].
//!
//! An IPv6 socket accepts IPv6 only, so that `::` and `0.0.0.0` can both be bound to one port, as Core does by default.

use crate::dial::Dialer;
use crate::{BindFault, NetworkError};
use lydian_p2p::peer::Permissions;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::sleep;

/// Time until connections are accepted again after the system had no room for one.
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);

/// Connections that the system may queue for us: Core's `SOMAXCONN`.
const BACKLOG: i32 = 4096;

/// A listening address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen {
    pub address: SocketAddr,
    /// Permissions of peers that connect to it: `-whitebind`.
    pub permissions: Permissions,
    /// Connections come from the onion service; the address of the peer is unknown.
    pub is_onion: bool,
    /// The address was not configured explicitly, so it is no error if the system lacks this kind of address.
    pub is_optional: bool,
}

impl Listen {
    /// An address without special properties.
    pub fn at(address: SocketAddr) -> Listen {
        Listen { address, permissions: Permissions::NONE, is_onion: false, is_optional: false }
    }
}

/// Core's `NetworkErrorString`, for example "Permission denied (13)".
fn fault(error: &io::Error) -> BindFault {
    if error.kind() == io::ErrorKind::AddrInUse {
        return BindFault::InUse;
    }
    BindFault::Other { reason: error.to_string().replace("(os error ", "(") }
}

/// Accepts connections at an address from now on. Returns the bound address, with the port if the system chose it.
pub(crate) fn listen(place: Listen, dialer: &Arc<Dialer>) -> Result<Option<SocketAddr>, NetworkError> {
    let bound = open(place.address).and_then(|listener| {
        let address = listener.local_addr()?;
        Ok((TcpListener::from_std(listener)?, address))
    });
    let (listener, address) = match bound {
        Ok(bound) => bound,
        Err(_) if place.is_optional => return Ok(None),
        Err(error) => return Err(NetworkError::Bind { address: place.address, error: fault(&error) }),
    };
    let dialer = Arc::clone(dialer);
    tokio::spawn(async move {
        loop {
            match listener.accept().await {
                Ok((stream, from)) => dialer.accept(stream, from, place),
                // For example, no file descriptor is free.
                Err(_) => sleep(ACCEPT_PAUSE).await,
            }
        }
    });
    Ok(Some(address))
}

fn open(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    /// Both wildcard addresses can be bound to one port: the default of a node.
    #[test]
    fn all_addresses_of_both_kinds() {
        let four = open((Ipv4Addr::UNSPECIFIED, 0).into()).unwrap();
        let port = four.local_addr().unwrap().port();
        let six = open((Ipv6Addr::UNSPECIFIED, port).into());
        // A system without IPv6 reports that; no system reports that the port is in use.
        assert!(six.map_err(|error| error.kind()).map_or_else(|kind| kind != io::ErrorKind::AddrInUse, |_| true));
        assert_eq!(open((Ipv4Addr::UNSPECIFIED, port).into()).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }
}
