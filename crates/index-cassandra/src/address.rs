//! The address of a store: `cassandra://HOST[:PORT],HOST/KEYSPACE`.
//!
//! Input: text of the user. Output: hosts to ask first (the others are found through them) and a keyspace, or what is
//! wrong with it. User names, passwords and options are refused: the command line is no place for secrets.

use std::fmt;
use std::str::FromStr;

pub const SCHEME: &str = "cassandra://";

/// The port of Cassandra's native protocol.
pub const DEFAULT_PORT: u16 = 9042;

/// Cassandra's limit of the name of a keyspace.
const KEYSPACE_LENGTH_MAX: usize = 48;

/// Hosts, not empty, and a keyspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    hosts: Vec<Host>,
    keyspace: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// A host name or an IP address, without brackets.
    pub name: String,
    pub port: u16,
}

impl Address {
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// Letters, digits and underscores: it can stand in a statement as it is.
    pub fn keyspace(&self) -> &str {
        &self.keyspace
    }
}

/// What is wrong with an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressError {
    Scheme,
    /// Neither a host nor a keyspace may be missing.
    NoKeyspace,
    EmptyHost,
    Credentials,
    HostName(String),
    Port(String),
    Keyspace(String),
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddressError::Scheme => write!(f, "an address of a store starts with {SCHEME}"),
            AddressError::NoKeyspace => write!(f, "the keyspace is missing: {SCHEME}HOST[:PORT],HOST/KEYSPACE"),
            AddressError::EmptyHost => write!(f, "a host is empty: {SCHEME}HOST[:PORT],HOST/KEYSPACE"),
            AddressError::Credentials => f.write_str("a user name and password have no place in an address of a store"),
            AddressError::HostName(name) => write!(f, "`{name}` is no host name or IP address"),
            AddressError::Port(port) => write!(f, "`{port}` is no port from 1 to 65535"),
            AddressError::Keyspace(name) => write!(
                f,
                "`{name}` is no keyspace: up to {KEYSPACE_LENGTH_MAX} lower-case letters, digits and underscores, a \
                 letter first"
            ),
        }
    }
}

impl std::error::Error for AddressError {}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Address, AddressError> {
        let rest = text.strip_prefix(SCHEME).ok_or(AddressError::Scheme)?;
        let (hosts, keyspace) = rest.split_once('/').ok_or(AddressError::NoKeyspace)?;
        if keyspace.is_empty() {
            return Err(AddressError::NoKeyspace);
        }
        if hosts.contains('@') {
            return Err(AddressError::Credentials);
        }
        let hosts = hosts.split(',').map(Host::from_str).collect::<Result<Vec<_>, _>>()?;
        if !is_keyspace(keyspace) {
            return Err(AddressError::Keyspace(keyspace.to_owned()));
        }
        Ok(Address { hosts, keyspace: keyspace.to_owned() })
    }
}

/// Upper case would need quotes in every statement.
fn is_keyspace(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.len() <= KEYSPACE_LENGTH_MAX
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(is_letter)
}

impl FromStr for Host {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Host, AddressError> {
        let (name, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (name, after) = rest.split_once(']').ok_or_else(|| AddressError::HostName(text.to_owned()))?;
                let port = match after.strip_prefix(':') {
                    Some(port) => Some(port),
                    None if after.is_empty() => None,
                    None => return Err(AddressError::HostName(text.to_owned())),
                };
                name.parse::<std::net::Ipv6Addr>().map_err(|_| AddressError::HostName(text.to_owned()))?;
                (name, port)
            }
            None => match text.split_once(':') {
                Some((name, port)) => (name, Some(port)),
                None => (text, None),
            },
        };
        if name.is_empty() {
            return Err(AddressError::EmptyHost);
        }
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
        if !name.chars().all(is_part) {
            return Err(AddressError::HostName(name.to_owned()));
        }
        let port = match port {
            None => DEFAULT_PORT,
            Some(port) => match port.parse() {
                Ok(0) | Err(_) => return Err(AddressError::Port(port.to_owned())),
                Ok(port) => port,
            },
        };
        Ok(Host { name: name.to_owned(), port })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.contains(':') {
            write!(f, "[{}]:{}", self.name, self.port)
        } else {
            write!(f, "{}:{}", self.name, self.port)
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<String> = self.hosts.iter().map(Host::to_string).collect();
        write!(f, "{SCHEME}{}/{}", hosts.join(","), self.keyspace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_ports_and_keyspace_are_read() {
        let address: Address = "cassandra://db-1.example:9142,10.0.0.2,[::1]:9000,[fe80::2]/lydian_1".parse().unwrap();
        let text = "cassandra://db-1.example:9142,10.0.0.2:9042,[::1]:9000,[fe80::2]:9042/lydian_1";
        assert_eq!((address.to_string().as_str(), address.keyspace()), (text, "lydian_1"));
        assert_eq!(address.hosts()[2], Host { name: "::1".to_owned(), port: 9000 });
        assert_eq!(text.parse(), Ok(address));
    }

    #[test]
    fn errors_name_the_part() {
        for (text, error) in [
            ("127.0.0.1/a", "an address of a store starts with cassandra://"),
            ("cassandra://h", "the keyspace is missing"),
            ("cassandra://h/", "the keyspace is missing"),
            ("cassandra:///a", "a host is empty"),
            ("cassandra://h,,i/a", "a host is empty"),
            ("cassandra://:9042/a", "a host is empty"),
            ("cassandra://h:0/a", "`0` is no port"),
            ("cassandra://h:65536/a", "`65536` is no port"),
            ("cassandra://h:/a", "`` is no port"),
            ("cassandra://user:secret@h/a", "a user name and password have no place in an address"),
            ("cassandra://user@h/a", "a user name and password have no place in an address"),
            ("cassandra://[::1/a", "`[::1` is no host name"),
            ("cassandra://[::1]x/a", "`[::1]x` is no host name"),
            ("cassandra://[h]/a", "`[h]` is no host name"),
            ("cassandra://h/A", "`A` is no keyspace"),
            ("cassandra://h/1a", "`1a` is no keyspace"),
            ("cassandra://h/a/b", "`a/b` is no keyspace"),
            ("cassandra://h/a?x=1", "`a?x=1` is no keyspace"),
        ] {
            let found = text.parse::<Address>().unwrap_err().to_string();
            assert!(found.starts_with(error), "{text}: {found}");
        }
        let keyspace = |length| format!("cassandra://h/{}", "a".repeat(length)).parse::<Address>();
        assert!(keyspace(KEYSPACE_LENGTH_MAX).is_ok() && keyspace(KEYSPACE_LENGTH_MAX + 1).is_err());
    }
}
