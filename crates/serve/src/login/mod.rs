//! Logging in: users with passwords, and the cookie.

mod cookie;
mod users;

pub use cookie::{COOKIE_FILES, Cookie, CookieError, CookiePermissions};
pub use users::{BadRpcAuth, Users};
