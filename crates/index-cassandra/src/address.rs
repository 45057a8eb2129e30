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
        let form = format!("{SCHEME}HOST[:PORT],HOST/KEYSPACE");
        match self {
            AddressError::Scheme => write!(f, "the address of a store must start with {SCHEME}; write {form}"),
            AddressError::NoKeyspace => {
                write!(f, "the address of a store must end with the name of a keyspace; write {form}")
            }
            AddressError::EmptyHost => write!(f, "a host in the address of a store is empty; write {form}"),
            AddressError::Credentials => write!(
                f,
                "the address of a store has no user name and no password, which this program cannot send; write {form}"
            ),
            AddressError::HostName(name) => write!(
                f,
                "`{name}` in the address of a store is no host; write a host name, an IPv4 address, or an IPv6 address \
                 in brackets"
            ),
            AddressError::Port(port) => write!(
                f,
                "`{port}` in the address of a store is no port; write a number from 1 to 65535, or leave it out for \
                 {DEFAULT_PORT}"
            ),
            AddressError::Keyspace(name) => write!(
                f,
                "`{name}` in the address of a store is no keyspace; write up to {KEYSPACE_LENGTH_MAX} lower-case \
                 letters, digits and underscores, a letter first"
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
    fn errors_name_the_part_and_say_what_to_write() {
        let form = "write cassandra://HOST[:PORT],HOST/KEYSPACE";
        let host = "write a host name, an IPv4 address, or an IPv6 address in brackets";
        let port = "write a number from 1 to 65535, or leave it out for 9042";
        let keyspace = "write up to 48 lower-case letters, digits and underscores, a letter first";
        let (start, end) =
            ("the address of a store must start with cassandra://", "must end with the name of a keyspace");
        let (empty, user) = ("a host in the address of a store is empty", "has no user name and no password");
        for (text, error, advice) in [
            ("127.0.0.1/a", start, form),
            ("cassandra://h", end, form),
            ("cassandra://h/", end, form),
            ("cassandra:///a", empty, form),
            ("cassandra://h,,i/a", empty, form),
            ("cassandra://:9042/a", empty, form),
            ("cassandra://h:0/a", "`0` in the address of a store is no port", port),
            ("cassandra://h:65536/a", "`65536` in the address of a store is no port", port),
            ("cassandra://h:/a", "`` in the address of a store is no port", port),
            ("cassandra://user:secret@h/a", user, form),
            ("cassandra://user@h/a", user, form),
            ("cassandra://[::1/a", "`[::1` in the address of a store is no host", host),
            ("cassandra://[::1]x/a", "`[::1]x` in the address of a store is no host", host),
            ("cassandra://[h]/a", "`[h]` in the address of a store is no host", host),
            ("cassandra://h/A", "`A` in the address of a store is no keyspace", keyspace),
            ("cassandra://h/1a", "`1a` in the address of a store is no keyspace", keyspace),
            ("cassandra://h/a/b", "`a/b` in the address of a store is no keyspace", keyspace),
            ("cassandra://h/a?x=1", "`a?x=1` in the address of a store is no keyspace", keyspace),
        ] {
            let found = text.parse::<Address>().unwrap_err().to_string();
            assert!(found.contains(error) && found.ends_with(advice), "{text}: {found}");
            assert!(!found.contains("secret"), "{found}");
        }
        let keyspace = |length| format!("cassandra://h/{}", "a".repeat(length)).parse::<Address>();
        assert!(keyspace(KEYSPACE_LENGTH_MAX).is_ok() && keyspace(KEYSPACE_LENGTH_MAX + 1).is_err());
    }
}
