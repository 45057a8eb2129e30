//! Removes from a text what a stranger must not see: secrets of the settings, addresses of peers, wallets' addresses
//! and keys, transactions. Input: the secrets, a text. Output: the text with words in square brackets in their place.
//!
//! It errs on the safe side: a hash of a block stays only if it begins with eight zeros, as those of public chains do,
//! because others look like a txid; and a long word that looks like a key goes, whatever it is.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Texts that are replaced wherever they occur.
#[derive(Debug, Default)]
pub(crate) struct Redactor {
    /// The longest first, so that no part of one is left.
    secrets: Vec<String>,
}

/// A shorter text would also be found in words that have nothing to do with it.
const SECRET_LENGTH_MIN: usize = 4;

/// Hexadecimal digits of a hash, and of a shorter text that may be a key, a token or a script.
const HASH_DIGITS: usize = 64;
const SECRET_DIGITS: usize = 32;

/// Letters and digits of the shortest address or key in base 58, and of the shortest address of a witness program.
const KEY_LENGTH_MIN: usize = 25;

impl Redactor {
    pub(crate) fn new(secrets: impl IntoIterator<Item = String>) -> Redactor {
        let mut secrets: Vec<String> = secrets.into_iter().filter(|text| text.len() >= SECRET_LENGTH_MIN).collect();
        secrets.sort_by_key(|text| std::cmp::Reverse(text.len()));
        secrets.dedup();
        Redactor { secrets }
    }

    pub(crate) fn text(&self, text: &str) -> String {
        let mut plain = text.to_owned();
        for secret in &self.secrets {
            plain = plain.replace(secret.as_str(), "[secret]");
        }
        let lines: Vec<String> = plain.split('\n').map(line).collect();
        lines.join("\n")
    }
}

/// A line, word by word; what is between words stays.
fn line(text: &str) -> String {
    let text = without_logins(text);
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "._:-[]/%".contains(letter);
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let end = rest.find(is_part).unwrap_or(rest.len());
        out += &rest[..end];
        rest = &rest[end..];
        let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        out += &word(&rest[..end]);
        rest = &rest[end..];
    }
    out
}

/// The text without what stands between `://` and `@`.
fn without_logins(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out += before;
        let host = after.find(|letter: char| letter.is_whitespace() || "/\"'".contains(letter)).unwrap_or(after.len());
        rest = match after[..host].rfind('@') {
            Some(end) => {
                out += "[login]";
                &after[end..]
            }
            None => after,
        };
    }
    out + rest
}

/// A word of letters, digits and the signs of addresses and paths.
fn word(word: &str) -> String {
    let bare = word.trim_end_matches(['.', ':', '-']);
    if is_foreign_address(bare) {
        return format!("[address]{}", &word[bare.len()..]);
    }
    // A path, or several texts with a sign between them.
    let mut out = String::with_capacity(word.len());
    let mut rest = word;
    while !rest.is_empty() {
        let end = rest.find(['/', ':', '[', ']', '%']).unwrap_or(rest.len());
        out += part(&rest[..end]);
        let sign = rest[end..].chars().next().map_or(0, char::len_utf8);
        out += &rest[end..end + sign];
        rest = &rest[end + sign..];
    }
    out
}

fn part(text: &str) -> &str {
    let core = text.trim_matches(['.', '-', '_']);
    match () {
        () if is_foreign_address(core) => "[address]",
        () if core.split(['.', '-', '_']).any(is_secret) => "[removed]",
        () => text,
    }
}

/// Whether it is an address of another machine, with or without a port.
fn is_foreign_address(text: &str) -> bool {
    // Without the zone.
    let text = text.split('%').next().unwrap_or(text);
    let lower = text.to_ascii_lowercase();
    if lower.contains(".onion") || lower.contains(".b32.i2p") {
        return true;
    }
    let ip = text.parse::<IpAddr>().ok();
    let with_port = text.parse::<SocketAddr>().ok().map(|socket| socket.ip());
    let in_brackets = text.trim_matches(['[', ']']).parse::<Ipv6Addr>().ok().map(IpAddr::from);
    // A network, as in -whitelist.
    let network = text.split_once('/').and_then(|(ip, _)| ip.parse::<IpAddr>().ok());
    // An address of IPv4 with something behind it.
    let first = text.split([':', '/']).next().and_then(|ip| ip.parse::<IpAddr>().ok());
    let found = ip.or(with_port).or(in_brackets).or(network).or(first);
    found.is_some_and(|ip| !ip.to_canonical().is_loopback() && !ip.is_unspecified())
}

/// Whether a word of letters and digits may be a hash, a key, an address of a wallet or a token.
fn is_secret(word: &str) -> bool {
    let is_hex = word.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hex && word.len() >= SECRET_DIGITS {
        return word.len() != HASH_DIGITS || !word.starts_with("00000000");
    }
    let lower = word.to_ascii_lowercase();
    let is_witness = ["bc1", "tb1", "bcrt1", "sp1", "tsp1"].iter().any(|prefix| lower.starts_with(prefix));
    let has = |kind: fn(&u8) -> bool| word.as_bytes().iter().any(kind);
    let is_mixed = has(u8::is_ascii_digit) && has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    word.len() >= KEY_LENGTH_MIN && (is_witness || is_mixed) || is_witness && word.len() >= 14
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(Redactor::new(["hunter2".to_owned(), "a".to_owned()]).text(text), expected);
    }

    #[test]
    fn secrets_addresses_and_keys_go() {
        check("password hunter2, a", "password [secret], a");
        check("peer=203.0.113.5:8333, from 203.0.113.5.", "peer=[address], from [address].");
        check("[2001:db8::7]:8333 2001:db8::7 fe80::1%eth0", "[address] [address] [address]");
        check("abcdefghijklmnopqrstuvwxyz234567abcdefghijklmnopqrstuvwx.onion:8333 x", "[address] x");
        check("http://user:pass@10.1.2.3:80/x", "http://[login]@[address]");
        check("127.0.0.1:8332 0.0.0.0:8333 [::1]:8332 ::", "127.0.0.1:8332 0.0.0.0:8333 [::1]:8332 ::");
        check("to bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4;", "to [removed];");
        check(
            "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa, L1aW4aubDFB7yfras2S1mN3bqg9nwySY8nkoLmJebSLD5BWv3ENZ",
            "[removed], [removed]",
        );
        let txid = "4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b";
        let block = "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f";
        check(&format!("tx {txid}:0 block {block} height=0"), &format!("tx [removed]:0 block {block} height=0"));
        check(&format!("{txid}_x-{txid}"), "[removed]");
    }

    #[test]
    fn other_texts_stay() {
        for text in [
            "2026-11-27T08:00:00Z UpdateTip: new best=00000000839a8e6886ab5951d76f411475428afc90947ee320161bbf18eb6048 height=1",
            "/data/.lydian/debug.log: 12.5 MB, version v0.1.0",
            "Lydian 0.1.0 in /data (chain main; no node runs)",
            "crates/node/src/a_long_name_of_a_file_in_a_directory.rs",
            "äöü — ✓ [warning] 50 %",
            "",
        ] {
            check(text, text);
        }
    }
}
