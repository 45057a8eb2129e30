//! Places to listen. Input: an address, and what whoever comes in there is permitted. Output: connections, handed to the [`Dialer`] one by one.
//!
//! An IPv6 address stands for IPv6 alone, so that `::` and `0.0.0.0` may both be listened on with one port, as Core does it by default.

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

/// Until connections are taken again when the system has no room for one.
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);

/// Connections that the system may hold for us: Core's `SOMAXCONN`.
const BACKLOG: i32 = 4096;

/// A place to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen {
    pub address: SocketAddr,
    /// Of whoever comes in there: `-whitebind`.
    pub permissions: Permissions,
    /// Who comes in there comes from the onion service, and has no address that we know.
    pub is_onion: bool,
    /// The system may not have this kind of address, and nobody asked for it: no error then.
    pub is_optional: bool,
}

impl Listen {
    /// A place like any other.
    pub fn at(address: SocketAddr) -> Listen {
        Listen { address, permissions: Permissions::NONE, is_onion: false, is_optional: false }
    }
}

/// Core's `NetworkErrorString`: "Permission denied (13)".
fn fault(error: &io::Error) -> BindFault {
    if error.kind() == io::ErrorKind::AddrInUse {
        return BindFault::InUse;
    }
    BindFault::Other { reason: error.to_string().replace("(os error ", "(") }
}

/// Takes connections at a place from now on; gives the address, where the system chose the port.
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
                // No file descriptors, for instance.
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

    /// Both at once, with one port: what a node does that is told nothing.
    #[test]
    fn all_addresses_of_both_kinds() {
        let four = open((Ipv4Addr::UNSPECIFIED, 0).into()).unwrap();
        let port = four.local_addr().unwrap().port();
        let six = open((Ipv6Addr::UNSPECIFIED, port).into());
        // A system without IPv6 says so; that the port is taken, none does.
        assert!(six.map_err(|error| error.kind()).map_or_else(|kind| kind != io::ErrorKind::AddrInUse, |_| true));
        assert_eq!(open((Ipv4Addr::UNSPECIFIED, port).into()).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }
}
