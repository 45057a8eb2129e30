//! The PROXY protocol, version 2: a reverse proxy names the client of a connection in a header before its bytes.
//!
//! Input: the first bytes of a connection. Output: [`Sender`], or [`BadProxyHeader`]. The protocol is described in
//! HAProxy's `proxy-protocol.txt`. Additions to the address (TLVs) are skipped.
//!
//! Invariants: parsing is total; nothing behind the header is read; a header has a maximum size and a time limit.
//! Addresses that are no proxies must not send one, or every client could claim any address: [`Watch`] finds it.

use crate::limits::PROXY_HEADER_SIZE_MAX;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

/// Time for a header. A proxy sends it at once; a lost packet is sent again within 3 seconds.
pub(crate) const HEADER_WAIT_MAX: Duration = Duration::from_secs(5);

/// The beginning of a header.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// Bytes up to and with the length of the rest.
const FIXED_SIZE: usize = 16;

/// The only version of the binary header.
const VERSION: u8 = 2;

/// Commands, families and transports, each in four bits.
const LOCAL: u8 = 0;
const PROXY: u8 = 1;
const INET: u8 = 1;
const INET6: u8 = 2;
const FAMILY_MAX: u8 = 3;
const STREAM: u8 = 1;
const TRANSPORT_MAX: u8 = 2;

/// The client, by its proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    /// A health check of the proxy itself.
    Itself,
    /// Another one, whose address the proxy does not know.
    Unknown,
    Client(SocketAddr),
}

/// Bytes that are not the header of a connection over TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadProxyHeader {
    /// They do not begin like a header.
    NoSignature,
    Version(u8),
    Command(u8),
    /// The address family and the transport.
    Family(u8),
    /// The addresses end early.
    ShortAddress,
    TooLong(usize),
    /// The connection ended in the header.
    Cut,
    Late,
    Failed(io::ErrorKind),
}

impl fmt::Display for BadProxyHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadProxyHeader::NoSignature => f.write_str("the connection does not begin with a PROXY header, version 2"),
            BadProxyHeader::Version(version) => write!(f, "PROXY header: version {version}, expected {VERSION}"),
            BadProxyHeader::Command(command) => write!(f, "PROXY header: unknown command {command}"),
            BadProxyHeader::Family(family) => write!(f, "PROXY header: unknown address family {family:#04x}"),
            BadProxyHeader::ShortAddress => f.write_str("PROXY header: it is shorter than its addresses"),
            BadProxyHeader::TooLong(size) => {
                write!(f, "PROXY header: {size} bytes after the first {FIXED_SIZE}, at most {PROXY_HEADER_SIZE_MAX}")
            }
            BadProxyHeader::Cut => f.write_str("PROXY header: the connection ended in it"),
            BadProxyHeader::Late => f.write_str("PROXY header: it took too long"),
            BadProxyHeader::Failed(kind) => write!(f, "PROXY header: {kind}"),
        }
    }
}

impl std::error::Error for BadProxyHeader {}

/// What the bytes of a connection are so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parsed {
    /// The beginning of a header of at least this size.
    Part {
        size: usize,
    },
    Whole(Sender),
}

/// Parses a header, or the beginning of one.
fn parse(bytes: &[u8]) -> Result<Parsed, BadProxyHeader> {
    if !bytes.iter().zip(&SIGNATURE).all(|(byte, expected)| byte == expected) {
        return Err(BadProxyHeader::NoSignature);
    }
    let fixed = bytes.get(SIGNATURE.len()..).and_then(|rest| rest.split_first_chunk::<4>());
    let Some((&[version_and_command, family, high, low], rest)) = fixed else {
        return Ok(Parsed::Part { size: FIXED_SIZE });
    };
    let (version, command) = (version_and_command >> 4, version_and_command & 0xf);
    if version != VERSION {
        return Err(BadProxyHeader::Version(version));
    }
    let size = usize::from(u16::from_be_bytes([high, low]));
    if size > PROXY_HEADER_SIZE_MAX {
        return Err(BadProxyHeader::TooLong(size));
    }
    let Some(rest) = rest.get(..size) else { return Ok(Parsed::Part { size: FIXED_SIZE + size }) };
    match command {
        LOCAL => Ok(Parsed::Whole(Sender::Itself)),
        PROXY => sender(family, rest).map(Parsed::Whole),
        _ => Err(BadProxyHeader::Command(command)),
    }
}

/// The client of a header: source address, destination address, source port, destination port, additions.
fn sender(family_and_transport: u8, bytes: &[u8]) -> Result<Sender, BadProxyHeader> {
    match (family_and_transport >> 4, family_and_transport & 0xf) {
        (INET, STREAM) => {
            let [a, b, c, d, _, _, _, _, high, low, _, _] =
                *bytes.first_chunk::<12>().ok_or(BadProxyHeader::ShortAddress)?;
            let address = SocketAddr::from((Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([high, low])));
            Ok(Sender::Client(address))
        }
        (INET6, STREAM) => {
            let (source, rest) = bytes.split_first_chunk::<16>().ok_or(BadProxyHeader::ShortAddress)?;
            let (_, ports) = rest.split_first_chunk::<16>().ok_or(BadProxyHeader::ShortAddress)?;
            let [high, low, _, _] = *ports.first_chunk::<4>().ok_or(BadProxyHeader::ShortAddress)?;
            let address = Ipv6Addr::from(*source).to_canonical();
            Ok(Sender::Client(SocketAddr::new(address, u16::from_be_bytes([high, low]))))
        }
        // The client of the proxy came by other ways than TCP.
        (0..=FAMILY_MAX, 0..=TRANSPORT_MAX) => Ok(Sender::Unknown),
        _ => Err(BadProxyHeader::Family(family_and_transport)),
    }
}

/// Reads the header, and nothing behind it.
pub(crate) async fn read(stream: &mut (impl AsyncRead + Unpin), wait_max: Duration) -> Result<Sender, BadProxyHeader> {
    timeout(wait_max, read_whole(stream)).await.unwrap_or(Err(BadProxyHeader::Late))
}

async fn read_whole(stream: &mut (impl AsyncRead + Unpin)) -> Result<Sender, BadProxyHeader> {
    let mut bytes = Vec::with_capacity(FIXED_SIZE);
    loop {
        let size = match parse(&bytes)? {
            Parsed::Whole(sender) => return Ok(sender),
            Parsed::Part { size } => size,
        };
        let missing = u64::try_from(size.saturating_sub(bytes.len())).unwrap_or(0);
        let read = (&mut *stream).take(missing).read_buf(&mut bytes).await;
        if read.map_err(|error| BadProxyHeader::Failed(error.kind()))? == 0 {
            return Err(BadProxyHeader::Cut);
        }
    }
}

/// Finds a header at the beginning of a stream that must not have one.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Bytes of the signature that were seen.
    matched: usize,
    /// The stream begins otherwise.
    is_over: bool,
}

impl Watch {
    /// Takes the next bytes of the stream. Returns whether it begins with a header.
    pub(crate) fn finds(&mut self, bytes: &[u8]) -> bool {
        if self.is_over {
            return false;
        }
        let rest = SIGNATURE.get(self.matched..).unwrap_or_default();
        self.is_over = !bytes.iter().zip(rest).all(|(byte, expected)| byte == expected);
        self.matched += rest.len().min(bytes.len());
        !self.is_over && self.matched == SIGNATURE.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncWriteExt, duplex};

    /// A header: version and command, family and transport, the rest.
    fn header(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let size = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [&SIGNATURE[..], &[0x20 | command, family], &size, rest].concat()
    }

    /// 203.0.113.7:1234 to 192.0.2.1:50002.
    const V4: [u8; 12] = [203, 0, 113, 7, 192, 0, 2, 1, 0x04, 0xd2, 0xc3, 0x52];

    fn v6(source: &str) -> Vec<u8> {
        let octets = |text: &str| text.parse::<Ipv6Addr>().unwrap().octets();
        [&octets(source)[..], &octets("2001:db8::2"), &[0x04, 0xd2, 0xc3, 0x52]].concat()
    }

    fn client(text: &str) -> Result<Parsed, BadProxyHeader> {
        Ok(Parsed::Whole(Sender::Client(text.parse().unwrap())))
    }

    #[test]
    fn headers_name_the_client() {
        let whole = |sender| Ok(Parsed::Whole(sender));
        let tlvs = [&V4[..], &[0x03, 0, 4, 1, 2, 3, 4, 0x20, 0xff, 0xff]].concat();
        for (bytes, expected) in [
            (header(PROXY, 0x11, &V4), client("203.0.113.7:1234")),
            (header(PROXY, 0x11, &tlvs), client("203.0.113.7:1234")),
            (header(PROXY, 0x21, &v6("2001:db8::1")), client("[2001:db8::1]:1234")),
            (header(PROXY, 0x21, &v6("::ffff:203.0.113.7")), client("203.0.113.7:1234")),
            (header(LOCAL, 0x00, b""), whole(Sender::Itself)),
            (header(LOCAL, 0x11, &V4), whole(Sender::Itself)),
            (header(LOCAL, 0xff, b"anything"), whole(Sender::Itself)),
            (header(PROXY, 0x00, b""), whole(Sender::Unknown)),
            (header(PROXY, 0x12, &V4), whole(Sender::Unknown)),
            (header(PROXY, 0x31, &[0; 216]), whole(Sender::Unknown)),
            (header(2, 0x11, &V4), Err(BadProxyHeader::Command(2))),
            (header(PROXY, 0x41, &V4), Err(BadProxyHeader::Family(0x41))),
            (header(PROXY, 0x13, &V4), Err(BadProxyHeader::Family(0x13))),
            (header(PROXY, 0x11, &V4[..11]), Err(BadProxyHeader::ShortAddress)),
            (header(PROXY, 0x21, &v6("::1")[..35]), Err(BadProxyHeader::ShortAddress)),
            (header(PROXY, 0x21, &V4), Err(BadProxyHeader::ShortAddress)),
            (header(0x10 | PROXY, 0x11, &V4), Err(BadProxyHeader::Version(3))),
            (b"PROXY TCP4 203.0.113.7 192.0.2.1 1 2\r\n".to_vec(), Err(BadProxyHeader::NoSignature)),
        ] {
            assert_eq!(parse(&bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn a_header_that_is_cut_anywhere_waits_for_the_rest() {
        for rest in [&V4[..], &v6("2001:db8::1")] {
            let family = if rest.len() == V4.len() { 0x11 } else { 0x21 };
            let bytes = header(PROXY, family, rest);
            for cut in 0..bytes.len() {
                let size = if cut < FIXED_SIZE { FIXED_SIZE } else { bytes.len() };
                assert_eq!(parse(&bytes[..cut]), Ok(Parsed::Part { size }), "{cut}");
            }
        }
    }

    /// No bytes cause a panic, and one wrong bit in the signature or the version is an error.
    #[test]
    fn any_bytes_are_parsed() {
        let bytes = header(PROXY, 0x11, &V4);
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut other = bytes.clone();
                other[at] ^= 1 << bit;
                let parsed = parse(&other);
                let is_version = at == SIGNATURE.len() && bit >= 4;
                assert!(parsed.is_err() || at >= SIGNATURE.len() && !is_version, "{at} {bit}");
            }
        }
        let mut state = 1_u32;
        for size in 0..2_000 {
            let mut any: Vec<u8> = (0..size % 64)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    state.to_le_bytes()[3]
                })
                .collect();
            // Half of them with a signature.
            if size % 2 == 0 {
                any.splice(..0, SIGNATURE);
            }
            let _ = parse(&any);
        }
    }

    /// limit: PROXY_HEADER_SIZE_MAX at
    /// limit: PROXY_HEADER_SIZE_MAX above
    #[test]
    fn a_header_has_a_maximum_size() {
        let mut rest = V4.to_vec();
        rest.resize(PROXY_HEADER_SIZE_MAX, 0);
        assert_eq!(parse(&header(PROXY, 0x11, &rest)), client("203.0.113.7:1234"));
        rest.push(0);
        let oversized = header(PROXY, 0x11, &rest);
        // As soon as the length is known.
        assert_eq!(parse(&oversized[..FIXED_SIZE]), Err(BadProxyHeader::TooLong(PROXY_HEADER_SIZE_MAX + 1)));
    }

    #[tokio::test]
    async fn nothing_behind_the_header_is_read() {
        let bytes = [&header(PROXY, 0x11, &V4)[..], b"{}\n"].concat();
        // In one piece, and byte by byte.
        for capacity in [100, 1] {
            let (mut proxy, mut server) = duplex(capacity);
            let sent = bytes.clone();
            let sending = tokio::spawn(async move { proxy.write_all(&sent).await.unwrap() });
            let sender = read(&mut server, HEADER_WAIT_MAX).await;
            assert_eq!(sender, Ok(Sender::Client("203.0.113.7:1234".parse().unwrap())));
            let mut rest = String::new();
            server.read_to_string(&mut rest).await.unwrap();
            sending.await.unwrap();
            assert_eq!(rest, "{}\n");
        }
    }

    #[tokio::test]
    async fn a_header_that_does_not_come_is_an_error() {
        let bytes = header(PROXY, 0x11, &V4);
        let (mut proxy, mut server) = duplex(100);
        proxy.write_all(&bytes[..20]).await.unwrap();
        assert_eq!(read(&mut server, Duration::from_millis(20)).await, Err(BadProxyHeader::Late));
        for cut in 0..bytes.len() {
            assert_eq!(read(&mut &bytes[..cut], HEADER_WAIT_MAX).await, Err(BadProxyHeader::Cut), "{cut}");
        }
        // It is refused at its first wrong byte.
        let (mut other, mut server) = duplex(100);
        other.write_all(b"{").await.unwrap();
        assert_eq!(read(&mut server, HEADER_WAIT_MAX).await, Err(BadProxyHeader::NoSignature));
    }

    #[test]
    fn a_header_is_found_where_none_may_be() {
        let bytes = header(PROXY, 0x11, &V4);
        for step in [1, 5, 12, 28] {
            let mut watch = Watch::default();
            assert!(bytes.chunks(step).any(|part| watch.finds(part)), "{step}");
            assert!(watch.finds(b""), "nothing more is read");
        }
        for other in [&b"\r\n\r\n{}"[..], b"{}", b"\r\n\r\n\0\r\nQUIT "] {
            let mut watch = Watch::default();
            assert!(!other.chunks(1).chain([&bytes[..]]).any(|part| watch.finds(part)));
        }
    }
}
