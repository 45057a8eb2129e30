//! What every server of the node needs, whatever its protocol.
#![forbid(unsafe_code)]

mod allow;
mod bind;
mod budget;
mod login;

pub use allow::{BadSubnet, Subnet};
pub use bind::{BadAddress, bind_addresses, listen};
pub use budget::{Budget, FREE_BYTES, Room};
pub use login::{BadRpcAuth, COOKIE_FILES, Cookie, CookieError, CookiePermissions, Users};
