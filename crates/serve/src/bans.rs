//! [`Bans`]: subnets whose clients are refused until a moment.
//!
//! Input: an operator's bans; addresses of new clients. Output: whether a ban covers an address. They
//! are in memory only; a caller that saves the list makes them again after a restart. Cost: a walk over the bans for
//! each new connection.

use crate::allow::Subnet;
use crate::limits::BANS_MAX;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;
use tokio::time::Instant;

/// A subnet, and how long its ban still lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ban {
    pub subnet: Subnet,
    pub left: Duration,
}

/// Why a ban is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BanError {
    TooMany,
    TooLong,
}

impl fmt::Display for BanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BanError::TooMany => write!(f, "there are {BANS_MAX} bans already"),
            BanError::TooLong => f.write_str("the ban would be too long"),
        }
    }
}

impl std::error::Error for BanError {}

/// The bans of a server.
#[derive(Debug, Default)]
pub(crate) struct Bans(Vec<(Subnet, Instant)>);

impl Bans {
    fn forget_old(&mut self, now: Instant) {
        self.0.retain(|(_, until)| *until > now);
    }

    /// Replaces an earlier ban of the same subnet.
    pub(crate) fn add(&mut self, subnet: Subnet, time: Duration, now: Instant) -> Result<(), BanError> {
        self.forget_old(now);
        let until = now.checked_add(time).ok_or(BanError::TooLong)?;
        if let Some((_, known)) = self.0.iter_mut().find(|(known, _)| *known == subnet) {
            *known = until;
            return Ok(());
        }
        if self.0.len() >= BANS_MAX {
            return Err(BanError::TooMany);
        }
        self.0.push((subnet, until));
        Ok(())
    }

    /// Whether there was a ban of exactly this subnet.
    pub(crate) fn remove(&mut self, subnet: &Subnet, now: Instant) -> bool {
        self.forget_old(now);
        let before = self.0.len();
        self.0.retain(|(known, _)| known != subnet);
        self.0.len() < before
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn cover(&self, address: IpAddr, now: Instant) -> bool {
        self.0.iter().any(|(subnet, until)| *until > now && subnet.contains(address))
    }

    /// In the order in which they were made.
    pub(crate) fn list(&mut self, now: Instant) -> Vec<Ban> {
        self.forget_old(now);
        self.0.iter().map(|(subnet, until)| Ban { subnet: *subnet, left: *until - now }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subnet(text: &str) -> Subnet {
        Subnet::parse(text, false).unwrap()
    }

    #[test]
    fn bans_end() {
        let (mut bans, now) = (Bans::default(), Instant::now());
        let (inside, outside) = ("192.0.2.7".parse().unwrap(), "192.0.3.7".parse().unwrap());
        let second = Duration::from_secs(1);
        assert_eq!(bans.add(subnet("192.0.2.0/24"), 5 * second, now), Ok(()));
        assert!(bans.cover(inside, now) && !bans.cover(outside, now));
        assert!(bans.cover(inside, now + 4 * second) && !bans.cover(inside, now + 5 * second));
        // Another ban of the subnet replaces the first.
        assert_eq!(bans.add(subnet("192.0.2.0/24"), 9 * second, now), Ok(()));
        let left = Ban { subnet: subnet("192.0.2.0/24"), left: 8 * second };
        assert_eq!(bans.list(now + second), [left]);
        assert!(!bans.remove(&subnet("192.0.2.7"), now), "a part of it");
        assert!(bans.remove(&subnet("192.0.2.0/24"), now) && !bans.cover(inside, now));
        assert_eq!(bans.add(subnet("192.0.2.0/24"), second, now), Ok(()));
        assert!(!bans.remove(&subnet("192.0.2.0/24"), now + second), "it is over");
        assert_eq!(bans.add(subnet("::/0"), Duration::MAX, now), Err(BanError::TooLong));
    }

    /// limit: BANS_MAX at
    /// limit: BANS_MAX above
    #[test]
    fn there_is_room_for_so_many() {
        let (mut bans, now, minute) = (Bans::default(), Instant::now(), Duration::from_secs(60));
        let of = |index: usize| subnet(&format!("10.{}.{}.0/24", index / 256, index % 256));
        for index in 0..BANS_MAX {
            assert_eq!(bans.add(of(index), minute, now), Ok(()));
        }
        assert_eq!(bans.add(of(BANS_MAX), minute, now), Err(BanError::TooMany));
        assert_eq!(bans.add(of(0), minute, now), Ok(()), "it replaces one");
        assert_eq!(bans.add(of(BANS_MAX), minute, now + minute), Ok(()), "the others are over");
        bans.clear();
        assert!(bans.list(now).is_empty());
    }
}
