//! Helpers for this crate's tests: hex, shared vectors, and a block that can be changed and sealed again.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses only some of them")]
#![allow(clippy::unwrap_used, clippy::print_stderr, clippy::disallowed_methods, reason = "helpers of tests")]

#[path = "../../../../testdata/locate.rs"]
mod locate;

use lydian_oracle::{Judge, TxReport, TxRequest};

pub fn unhex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2), "{text}");
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns a hash in RPC byte order.
pub fn shown(hash: &[u8; 32]) -> String {
    let mut reversed = *hash;
    reversed.reverse();
    hex(&reversed)
}

/// Reads a vector file of the checkout as text.
pub fn testdata(path: &str) -> String {
    String::from_utf8(locate::read(&locate::testdata(path))).unwrap()
}

pub fn report(judge: &mut Judge, tx: &[u8]) -> TxReport {
    judge.tx(&TxRequest { flags: 0, tx, prevouts: None }).unwrap().known().unwrap()
}

/// A block with few transactions, which are kept separately.
#[derive(Clone)]
pub struct TestBlock {
    pub header: [u8; 80],
    pub txs: Vec<Vec<u8>>,
}

impl TestBlock {
    /// Parses a block that contains only a coinbase.
    pub fn of_one(bytes: &[u8]) -> Self {
        assert_eq!(bytes[80], 1);
        Self { header: bytes[..80].try_into().unwrap(), txs: vec![bytes[81..].to_vec()] }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.header.to_vec();
        bytes.push(u8::try_from(self.txs.len()).unwrap());
        bytes.extend(self.txs.concat());
        bytes
    }

    pub fn hash(&self, judge: &mut Judge) -> [u8; 32] {
        judge.sha256d(&self.header).unwrap()
    }

    /// Replaces a byte string that occurs once in the coinbase with another of the same length.
    pub fn replace(&mut self, old: &[u8], new: &[u8]) {
        assert_eq!(old.len(), new.len());
        let at: Vec<_> = self.txs[0].windows(old.len()).enumerate().filter(|(_, found)| *found == old).collect();
        assert_eq!(at.len(), 1, "{} in {}", hex(old), hex(&self.txs[0]));
        let at = at[0].0;
        self.txs[0][at..at + new.len()].copy_from_slice(new);
    }

    /// Recomputes the witness commitment and the merkle root (for at most two transactions).
    pub fn commit(&mut self, judge: &mut Judge) {
        let root = |judge: &mut Judge, leaves: &[[u8; 32]]| match leaves {
            [one] => *one,
            [a, b] => judge.sha256d(&[*a, *b].concat()).unwrap(),
            _ => panic!("not needed here"),
        };
        let reports: Vec<_> = self.txs.iter().map(|tx| report(judge, tx)).collect();
        let mut wtxids: Vec<_> = reports.iter().map(|report| report.wtxid).collect();
        wtxids[0] = [0; 32];
        let commitment = [root(judge, &wtxids), [0; 32]].concat();
        let commitment = judge.sha256d(&commitment).unwrap();
        let head = unhex("6a24aa21a9ed");
        let at = self.txs[0].windows(head.len()).position(|found| found == head).unwrap() + head.len();
        self.txs[0][at..at + 32].copy_from_slice(&commitment);
        let txids: Vec<_> = self.txs.iter().map(|tx| report(judge, tx).txid).collect();
        let root = root(judge, &txids);
        self.header[36..68].copy_from_slice(&root);
    }

    /// Recomputes the proof of work for regtest's target, or searches for a nonce that does not meet it.
    pub fn grind(&mut self, judge: &mut Judge, valid: bool) {
        for nonce in 0u32.. {
            self.header[76..].copy_from_slice(&nonce.to_le_bytes());
            // The target is 7fffff00...: a top byte below 7f meets it, one of 80 or above does not.
            let top = self.hash(judge)[31];
            if (valid && top < 0x7f) || (!valid && top >= 0x80) {
                return;
            }
        }
    }

    /// [`Self::commit`] and [`Self::grind`].
    pub fn seal(&mut self, judge: &mut Judge) {
        self.commit(judge);
        self.grind(judge, true);
    }
}
