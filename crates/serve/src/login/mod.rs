//! [`Login`]: users, passwords and the cookie, with protection against guessing.
//!
//! Input: the `Authorization` header of a request. Output: the user, or a refusal. A wrong password is answered after
//! 250 ms, and one address has only so many of them at once, see [`guesses`]. The cookie cannot be guessed, and a
//! password that was accepted on the connection is no guess: neither waits.

mod cookie;
mod guesses;
mod users;

pub use cookie::{COOKIE_FILES, Cookie, CookieError, CookiePermissions, random};
pub use users::{BadRpcAuth, Users};

use crate::connection::Connection;
use crate::event::ClientEvent;
use crate::places::Group;
use guesses::{Guesses, Turn};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// Core's delay to deter guessing.
const WRONG_PASSWORD_DELAY: Duration = Duration::from_millis(250);

/// Checks the credentials of requests.
#[derive(Debug)]
pub struct Login {
    users: Users,
    guesses: Arc<Guesses>,
}

/// Why a request has no user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// The credentials are wrong.
    Wrong,
    /// Too many passwords of the address wait to be checked.
    Busy,
}

impl Login {
    pub fn new(users: Users) -> Login {
        Login { users, guesses: Arc::default() }
    }

    /// Returns whether there is a user of this name.
    pub fn knows(&self, user: &str) -> bool {
        self.users.has(user)
    }

    /// Returns the user of an `Authorization` header.
    pub async fn authorize(&self, connection: &Connection, header: &[u8]) -> Result<String, Denied> {
        if let Some(user) = connection.known_user(header) {
            return Ok(user);
        }
        if self.users.is_unguessable(header)
            && let Some(user) = self.check(connection, header)
        {
            return Ok(user);
        }
        let group = Group::of(connection.address.ip());
        let turn = self.guesses.turn(group).await.ok_or(Denied::Busy)?;
        if let Some(user) = self.check(connection, header) {
            return Ok(user);
        }
        connection.report(ClientEvent::WrongPassword);
        let _ = tokio::spawn(hold(turn)).await;
        Err(Denied::Wrong)
    }

    /// Returns the user of a header, which the connection remembers.
    fn check(&self, connection: &Connection, header: &[u8]) -> Option<String> {
        let user = self.users.authorize(header)?;
        connection.set_user(header, &user);
        Some(user)
    }
}

/// Keeps a turn for its full time, even if the client disconnects.
async fn hold(turn: Turn) {
    sleep(WRONG_PASSWORD_DELAY).await;
    drop(turn);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::Client;
    use crate::event::Silent;
    use crate::places::Places;
    use std::net::SocketAddr;

    /// A wrong password takes its time; after a correct one, the connection has a user.
    #[tokio::test]
    async fn a_wrong_password_takes_time() {
        let mut users = Users::default();
        users.add("a", "b").unwrap();
        let login = Login::new(users);
        let places = Arc::new(Places::new(Arc::new(Silent)));
        let place = places.take(Client::direct(SocketAddr::from(([192, 0, 2, 1], 5)), true)).unwrap();
        let connection = &place.connection;
        let began = tokio::time::Instant::now();
        assert_eq!(login.authorize(connection, b"Basic YTpj").await, Err(Denied::Wrong));
        assert!(began.elapsed() >= WRONG_PASSWORD_DELAY);
        assert!(!connection.has_user());
        assert_eq!(login.authorize(connection, b"Basic YTpi").await.as_deref(), Ok("a"));
        assert_eq!(login.authorize(connection, b"Basic YTpi").await.as_deref(), Ok("a"));
        assert!(connection.has_user());
    }
}
