//! [`Users`]: names and passwords, as Core's httprpc.cpp reads and checks them.
//!
//! Input: names with passwords, and `USER:SALT$HASH` (`-rpcauth`); the `Authorization` header of a request. Output: the
//! user, or nothing. Passwords are stored as salted HMAC-SHA256 and compared in constant time.

use super::cookie::{CookieError, random};
use lydian_hash::{Sha256, sha256};
use lydian_primitives::to_hex;
use lydian_stdx::decode_base64;
use std::fmt;
use std::hint::black_box;

/// Core's `COOKIEAUTH_USER`.
pub(super) const COOKIE_USER: &str = "__cookie__";

/// A user and the expected hash of the password.
#[derive(Clone)]
struct User {
    name: String,
    salt: String,
    hash: String,
    /// The password is 32 random bytes and cannot be guessed.
    is_random: bool,
}

/// The users that may log in.
#[derive(Clone, Default)]
pub struct Users(Vec<User>);

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|user| &user.name)).finish()
    }
}

/// A string that is not `USER:SALT$HASH`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadRpcAuth;

impl fmt::Display for BadRpcAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a user with a salted hash (USER:SALT$HASH)")
    }
}

impl std::error::Error for BadRpcAuth {}

impl Users {
    /// Adds a user with a password. The password itself is not stored.
    pub fn add(&mut self, name: &str, password: &str) -> Result<(), CookieError> {
        let salt = to_hex(&random::<16>()?);
        let hash = to_hex(&hmac_sha256(salt.as_bytes(), password.as_bytes()));
        self.0.push(User { name: name.to_owned(), salt, hash, is_random: false });
        Ok(())
    }

    /// Adds the cookie user with its password.
    pub fn add_cookie(&mut self, password: &str) -> Result<(), CookieError> {
        self.add(COOKIE_USER, password)?;
        if let Some(user) = self.0.last_mut() {
            user.is_random = true;
        }
        Ok(())
    }

    /// Adds `USER:SALT$HASH`.
    pub fn add_rpcauth(&mut self, text: &str) -> Result<(), BadRpcAuth> {
        let fields: Vec<&str> = text.split(':').collect();
        let parts: Vec<&str> = fields.last().map(|last| last.split('$').collect()).unwrap_or_default();
        let ([name, _], [salt, hash]) = (&fields[..], &parts[..]) else { return Err(BadRpcAuth) };
        let (name, salt, hash) = ((*name).to_owned(), (*salt).to_owned(), (*hash).to_owned());
        self.0.push(User { name, salt, hash, is_random: false });
        Ok(())
    }

    /// Returns whether there is a user of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|user| user.name == name)
    }

    /// Returns whether a header names a user with a password that cannot be guessed.
    pub(super) fn is_unguessable(&self, header: &[u8]) -> bool {
        let Some((plain, colon)) = credentials(header) else { return false };
        let mut users = self.0.iter().filter(|user| user.name.as_bytes() == &plain[..colon]).peekable();
        users.peek().is_some() && users.all(|user| user.is_random)
    }

    /// Returns the user of a `Basic ...` header if the password is correct.
    pub(super) fn authorize(&self, header: &[u8]) -> Option<String> {
        let (plain, colon) = credentials(header)?;
        let (name, password) = (&plain[..colon], &plain[colon + 1..]);
        let is_right = |user: &User| {
            is_equal(user.name.as_bytes(), name) && {
                let hash = to_hex(&hmac_sha256(user.salt.as_bytes(), password));
                is_equal(hash.as_bytes(), user.hash.as_bytes())
            }
        };
        let is_known = self.0.iter().any(is_right);
        is_known.then(|| String::from_utf8_lossy(name).into_owned())
    }
}

/// `name:password` from a `Basic ...` header, and the position of the colon.
fn credentials(header: &[u8]) -> Option<(Vec<u8>, usize)> {
    let plain = decode_base64(header.strip_prefix(b"Basic ")?.trim_ascii())?;
    let colon = plain.iter().position(|byte| *byte == b':')?;
    Some((plain, colon))
}

/// RFC 2104.
fn hmac_sha256(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut block = [0; 64];
    if key.len() > block.len() {
        block[..32].copy_from_slice(&sha256(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let inner = Sha256::new().update(&block.map(|byte| byte ^ 0x36)).update(message).finalize();
    Sha256::new().update(&block.map(|byte| byte ^ 0x5c)).update(&inner).finalize()
}

/// Takes a time that depends only on the length of `a`: Core's `TimingResistantEqual`.
fn is_equal(a: &[u8], b: &[u8]) -> bool {
    if b.is_empty() {
        return a.is_empty();
    }
    let mut difference = a.len() ^ b.len();
    for (index, byte) in a.iter().enumerate() {
        difference |= usize::from(byte ^ b[index % b.len()]);
    }
    black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_stdx::base64;

    /// The second test case of RFC 4231, and a line made by Core's share/rpcauth/rpcauth.py.
    #[test]
    fn passwords_are_hashed_as_core_hashes_them() {
        let mac = to_hex(&hmac_sha256(b"Jefe", b"what do ya want for nothing?"));
        assert_eq!(mac, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
        let long = to_hex(&hmac_sha256(&[0xaa; 131], b"Test Using Larger Than Block-Size Key - Hash Key First"));
        assert_eq!(long, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
        let mut users = Users::default();
        // From Core's test/functional/rpc_users.py.
        users
            .add_rpcauth(
                "rt:93648e835a54c573682c2eb19f882535$7681e9c5b74bdd85e78166031d2058e1069b3ed7ed967c93fc63abba06f31144",
            )
            .unwrap();
        let header = |plain: &str| format!("Basic {}", base64(plain.as_bytes()));
        let password = "cA773lm788buwYe4g4WT+05pKyNruVKjQ25x3n0DQcM=";
        assert_eq!(users.authorize(header(&format!("rt:{password}")).as_bytes()).as_deref(), Some("rt"));
        for wrong in [format!("rt:{password}x"), format!("rtx:{password}"), "rt:".to_owned(), "rt".to_owned()] {
            assert_eq!(users.authorize(header(&wrong).as_bytes()), None, "{wrong}");
        }
        let cookie = header("__cookie__:x");
        assert!(!users.is_unguessable(cookie.as_bytes()), "no cookie was added");
        users.add_cookie("y").unwrap();
        assert!(users.is_unguessable(cookie.as_bytes()) && !users.is_unguessable(header("rt:x").as_bytes()));
        users.add(COOKIE_USER, "z").unwrap();
        assert!(!users.is_unguessable(cookie.as_bytes()), "a person chose the name too");
        users.add("a", "b:c").unwrap();
        assert_eq!(users.authorize(header("a:b:c").as_bytes()).as_deref(), Some("a"));
        for wrong in [&b"Basic"[..], b"basic YTpiOmM=", b"Basic YTpiOmM", b"Basic Y===", b"Basic ____", b""] {
            assert_eq!(users.authorize(wrong), None);
        }
        for bad in ["", "a", "a:b", "a:b$c$d", "a:b:c$d"] {
            assert_eq!(users.add_rpcauth(bad), Err(BadRpcAuth), "{bad}");
        }
    }

    #[test]
    fn equal_is_equal() {
        for (a, b, equal) in
            [("", "", true), ("a", "", false), ("", "a", false), ("ab", "ab", true), ("abab", "ab", false)]
        {
            assert_eq!(is_equal(a.as_bytes(), b.as_bytes()), equal, "{a} {b}");
        }
    }
}
