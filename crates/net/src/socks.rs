//! The client side of SOCKS5 (RFC 1928 and 1929).
//!
//! Input: a connection to a proxy, and the name or address to reach. Output: a connection to that target, or the reason
//! for the failure. Core's `Socks5` (netbase.cpp): the target is always sent as a name, so that only the proxy resolves
//! it; each answer has its own timeout. Never panics, whatever the proxy sends. Cost: 300 bytes, two or three round
//! trips.

use std::fmt;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// Timeout for each answer: Core's `g_socks5_recv_timeout`. Tor is slow.
const ANSWER_TIME: Duration = Duration::from_secs(20);

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const USER_AND_PASSWORD: u8 = 2;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// Why a proxy did not open the connection. The texts are Core's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SocksError {
    LongName,
    LongCredentials,
    /// The proxy speaks another protocol.
    NotSocks5,
    WrongMethod(u8),
    RefusedCredentials,
    NotAccepted,
    /// The proxy's reply code. Most likely the target cannot be reached.
    Refused(u8),
    Malformed,
    Timeout,
    Broken(String),
}

impl fmt::Display for SocksError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LongName => f.write_str("Hostname too long"),
            Self::LongCredentials => f.write_str("Proxy username or password too long"),
            Self::NotSocks5 => f.write_str("Proxy failed to initialize"),
            Self::WrongMethod(method) => write!(f, "Proxy requested wrong authentication method {method:02x}"),
            Self::RefusedCredentials => f.write_str("Proxy authentication unsuccessful"),
            Self::NotAccepted => f.write_str("Proxy failed to accept request"),
            Self::Refused(reply) => refusal(*reply, f),
            Self::Malformed => f.write_str("Error: malformed proxy response"),
            Self::Timeout => f.write_str("the proxy did not answer in time"),
            Self::Broken(_) => f.write_str("Error reading from proxy"),
        }
    }
}

impl std::error::Error for SocksError {}

/// Core's `Socks5ErrorString`; codes from 0xf0 on are Tor's.
fn refusal(reply: u8, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(match reply {
        0x01 => "general failure",
        0x02 => "connection not allowed",
        0x03 => "network unreachable",
        0x04 => "host unreachable",
        0x05 => "connection refused",
        0x06 => "TTL expired",
        0x07 => "protocol error",
        0x08 => "address type not supported",
        0xf0 => "onion service descriptor can not be found",
        0xf1 => "onion service descriptor is invalid",
        0xf2 => "onion service introduction failed",
        0xf3 => "onion service rendezvous failed",
        0xf4 => "onion service missing client authorization",
        0xf5 => "onion service wrong client authorization",
        0xf6 => "onion service invalid address",
        0xf7 => "onion service introduction timed out",
        _ => return write!(f, "unknown (0x{reply:02x})"),
    })
}

/// Asks the proxy at the other end of `stream` to connect to the target. Afterwards `stream` is that connection.
/// `credentials` are used as both user name and password.
pub(crate) async fn connect(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    host: &str,
    port: u16,
    credentials: Option<&str>,
) -> Result<(), SocksError> {
    let host_size = u8::try_from(host.len()).map_err(|_| SocksError::LongName)?;
    let methods = match credentials {
        Some(_) => vec![VERSION, 2, NO_AUTHENTICATION, USER_AND_PASSWORD],
        None => vec![VERSION, 1, NO_AUTHENTICATION],
    };
    send(stream, &methods).await?;
    match (receive(stream).await?, credentials) {
        ([VERSION, USER_AND_PASSWORD], Some(text)) => authenticate(stream, text).await?,
        ([VERSION, NO_AUTHENTICATION], _) => {}
        ([VERSION, method], _) => return Err(SocksError::WrongMethod(method)),
        _ => return Err(SocksError::NotSocks5),
    }
    let mut request = vec![VERSION, CONNECT, 0, NAME, host_size];
    request.extend_from_slice(host.as_bytes());
    request.extend_from_slice(&port.to_be_bytes());
    send(stream, &request).await?;
    let [version, reply, reserved, kind] = receive(stream).await?;
    match (version, reply, reserved) {
        (VERSION, 0, 0) => {}
        (VERSION, 0, _) => return Err(SocksError::Malformed),
        (VERSION, _, _) => return Err(SocksError::Refused(reply)),
        _ => return Err(SocksError::NotAccepted),
    }
    // The address that the proxy connects from, which is not used, and its port.
    let size = match kind {
        IPV4 => 4,
        IPV6 => 16,
        NAME => usize::from(receive::<1>(stream).await?[0]),
        _ => return Err(SocksError::Malformed),
    };
    let mut rest = [0; 257];
    fill(stream, &mut rest[..size + 2]).await
}

async fn authenticate(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), text: &str) -> Result<(), SocksError> {
    let size = u8::try_from(text.len()).map_err(|_| SocksError::LongCredentials)?;
    let mut request = vec![1];
    for _ in 0..2 {
        request.push(size);
        request.extend_from_slice(text.as_bytes());
    }
    send(stream, &request).await?;
    if receive(stream).await? == [1, 0] { Ok(()) } else { Err(SocksError::RefusedCredentials) }
}

async fn send(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> Result<(), SocksError> {
    match timeout(ANSWER_TIME, stream.write_all(bytes)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(SocksError::Broken(error.to_string())),
        Err(_) => Err(SocksError::Timeout),
    }
}

async fn receive<const N: usize>(stream: &mut (impl AsyncRead + Unpin)) -> Result<[u8; N], SocksError> {
    let mut bytes = [0; N];
    fill(stream, &mut bytes).await?;
    Ok(bytes)
}

async fn fill(stream: &mut (impl AsyncRead + Unpin), bytes: &mut [u8]) -> Result<(), SocksError> {
    match timeout(ANSWER_TIME, stream.read_exact(bytes)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(SocksError::Broken(error.to_string())),
        Err(_) => Err(SocksError::Timeout),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::runtime::Builder;

    /// Connects through a proxy that gives these answers. Returns the result and what was sent to the proxy.
    fn ask(host: &str, credentials: Option<&str>, answers: &[u8]) -> (Result<(), SocksError>, Vec<u8>) {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let (mut ours, mut proxy) = tokio::io::duplex(4096);
            proxy.write_all(answers).await.unwrap();
            let (mut reader, mut writer) = tokio::io::split(proxy);
            // All sent bytes can be read once our side is dropped; a missing answer reads as end of file.
            writer.shutdown().await.unwrap();
            let result = connect(&mut ours, host, 8333, credentials).await;
            drop(ours);
            let mut sent = Vec::new();
            reader.read_to_end(&mut sent).await.unwrap();
            (result, sent)
        })
    }

    const NAMED: &[u8] = b"\x05\x01\x00\x03\x09a.example\x20\x8d";

    #[test]
    fn messages_are_cores() {
        let (result, sent) = ask("a.example", None, b"\x05\x00\x05\x00\x00\x01\x01\x02\x03\x04\x00\x00");
        assert_eq!((result, &sent[..]), (Ok(()), &[b"\x05\x01\x00", NAMED].concat()[..]));
        let (result, sent) = ask("a.example", Some("me-0"), b"\x05\x02\x01\x00\x05\x00\x00\x03\x02hi\x00\x00");
        assert_eq!(result, Ok(()));
        assert_eq!(&sent[..], &[b"\x05\x02\x00\x02\x01\x04me-0\x04me-0", NAMED].concat()[..]);
        let six = [b"\x05\x00\x05\x00\x00\x04", &[0; 18][..]].concat();
        assert_eq!(ask("a.example", Some("me-0"), &six).0, Ok(()), "a proxy that wants no credentials");
    }

    /// Answers of every length, including the longest name of 255 bytes: lengths are unsigned and within the buffer
    /// (CVE-2017-18350).
    /// checklist: 75
    #[test]
    fn every_answer_that_is_none_is_an_error() {
        for (answers, expected) in [
            (&b"\x04\x00"[..], "Proxy failed to initialize"),
            (b"\x05\xff", "Proxy requested wrong authentication method ff"),
            (b"\x05\x02\x01\x01", "Proxy authentication unsuccessful"),
            (b"\x05\x00\x04\x00\x00\x01", "Proxy failed to accept request"),
            (b"\x05\x00\x05\x05\x00\x01", "connection refused"),
            (b"\x05\x00\x05\xf0\x00\x01", "onion service descriptor can not be found"),
            (b"\x05\x00\x05\x77\x00\x01", "unknown (0x77)"),
            (b"\x05\x00\x05\x00\x01\x01", "Error: malformed proxy response"),
            (b"\x05\x00\x05\x00\x00\x02", "Error: malformed proxy response"),
        ] {
            assert_eq!(ask("a", Some("me"), answers).0.unwrap_err().to_string(), expected);
        }
        let whole = b"\x05\x02\x01\x00\x05\x00\x00\x03\x02hi\x00\x00";
        for end in 0..whole.len() {
            let cut = ask("a", Some("me"), &whole[..end]).0;
            assert!(matches!(cut, Err(SocksError::Broken(_))), "cut after {end}: {cut:?}");
        }
        assert_eq!(ask(&"a".repeat(256), None, b"").0, Err(SocksError::LongName));
        assert_eq!(ask("a", Some(&"a".repeat(256)), b"\x05\x02").0, Err(SocksError::LongCredentials));
        assert!(ask("a", None, b"\x05\x02").0 == Err(SocksError::WrongMethod(2)), "without credentials");
        let longest = [b"\x05\x00\x05\x00\x00\x03\xff", &[b'x'; 257][..]].concat();
        assert_eq!(ask(&"a".repeat(255), None, &longest).0, Ok(()));
    }
}
