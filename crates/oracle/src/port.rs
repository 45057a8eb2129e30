//! [`free_port`]: a loopback port for a program that is about to be started.
//!
//! A port that the system chose may be given to another connection before the program binds it. These ports lie below
//! the range that the system chooses from (32768 and above on Linux), and a counter in a file, which all processes
//! share under its lock, gives a port again only after [`COUNT`] others.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

/// A loopback port that was free a moment ago, and that nothing else is about to use.
pub fn free_port() -> io::Result<u16> {
    next_port(&std::env::temp_dir().join("lydian-ports"))
}

fn next_port(counter: &Path) -> io::Result<u16> {
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(counter)?;
    file.lock()?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    // An empty or damaged file begins again.
    let start = text.trim().parse().unwrap_or(0);
    for step in 0..COUNT {
        let port = FIRST + (start % COUNT + step) % COUNT;
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(_) => return keep(&mut file, port - FIRST + 1).map(|()| port),
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(
        ErrorKind::AddrInUse,
        format!("all loopback ports from {FIRST} to {} are in use", FIRST + COUNT - 1),
    ))
}

fn keep(file: &mut File, next: u16) -> io::Result<()> {
    file.rewind()?;
    file.set_len(0)?;
    write!(file, "{next}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scratch;

    #[test]
    fn ports_do_not_repeat_soon_and_those_in_use_are_left_out() {
        let scratch = Scratch::new("ports");
        std::fs::create_dir_all(scratch.path()).unwrap();
        let counter = scratch.path().join("ports");
        let next = || next_port(&counter).unwrap();
        let first = next();
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, first + 1)).unwrap();
        assert!(next() > taken.local_addr().unwrap().port());
        for text in ["11999", "12000", "65535", "-1", "x", ""] {
            let mut file = OpenOptions::new().write(true).truncate(true).open(&counter).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            let (a, b) = (next(), next());
            assert!(a != b && [a, b].iter().all(|port| (FIRST..FIRST + COUNT).contains(port)), "{text}: {a}, {b}");
        }
        assert!(next_port(scratch.path()).is_err());
    }
}
