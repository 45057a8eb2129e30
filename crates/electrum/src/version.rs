//! [`Version`]: versions of the protocol, and their negotiation.

use std::fmt;

/// A version, such as 1.4.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(pub(crate) u32, pub(crate) u32, pub(crate) u32);

pub(crate) const V1_4: Version = Version(1, 4, 0);
pub(crate) const V1_4_2: Version = Version(1, 4, 2);
pub(crate) const V1_6: Version = Version(1, 6, 0);
pub(crate) const V1_7: Version = Version(1, 7, 0);

/// The versions that are served.
pub(crate) const MIN: Version = V1_4;
pub(crate) const MAX: Version = V1_7;

impl Version {
    pub(crate) fn parse(text: &str) -> Option<Version> {
        let mut parts = [0; 3];
        for (index, part) in text.split('.').enumerate() {
            let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            *parts.get_mut(index)? = part.parse().ok().filter(|_| is_number)?;
        }
        Some(Version(parts[0], parts[1], parts[2]))
    }

    /// The version to speak with a client that speaks those from `min` to `max`.
    pub(crate) fn agree(min: Version, max: Version) -> Option<Version> {
        let version = max.min(MAX);
        (version >= min.max(MIN)).then_some(version)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Version(major, minor, 0) => write!(f, "{major}.{minor}"),
            Version(major, minor, patch) => write!(f, "{major}.{minor}.{patch}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_agreed_on() {
        let of = |text: &str| Version::parse(text);
        assert_eq!((of("1.4"), of("1.4.0"), of("1")), (Some(V1_4), Some(V1_4), Some(Version(1, 0, 0))));
        assert_eq!([of(""), of("1."), of("1.-4"), of("1.+4"), of("1.2.3.4"), of("a"), of("99999999999")], [None; 7]);
        assert_eq!([V1_4.to_string(), V1_4_2.to_string()], ["1.4", "1.4.2"]);
        assert_eq!(Version::agree(Version(1, 1, 0), V1_4_2), Some(V1_4_2));
        assert_eq!(Version::agree(V1_4, Version(2, 0, 0)), Some(MAX));
        assert_eq!(Version::agree(Version(1, 8, 0), Version(1, 8, 0)), None);
        assert_eq!(Version::agree(Version(1, 0, 0), Version(1, 3, 0)), None);
    }
}
