//! An archive of small files in the format of POSIX (ustar). Input: names and bytes. Output: bytes that every `tar`
//! reads.

const BLOCK: usize = 512;

/// An archive that grows.
#[derive(Debug, Default)]
pub(crate) struct Archive(Vec<u8>);

impl Archive {
    /// Adds a file; its name has at most 99 bytes. `time`: seconds since 1970.
    pub(crate) fn add(&mut self, name: &str, bytes: &[u8], time: u32) {
        let mut header = [0; BLOCK];
        put(&mut header, 0, name);
        put(&mut header, 100, "0000600\0");
        put(&mut header, 108, "0000000\0");
        put(&mut header, 116, "0000000\0");
        put(&mut header, 124, &format!("{:011o}\0", bytes.len()));
        put(&mut header, 136, &format!("{time:011o}\0"));
        // The checksum counts itself as spaces.
        put(&mut header, 148, "        ");
        put(&mut header, 156, "0");
        put(&mut header, 257, "ustar\0");
        put(&mut header, 263, "00");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        put(&mut header, 148, &format!("{sum:06o}\0 "));
        self.0.extend_from_slice(&header);
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(BLOCK), 0);
    }

    /// The archive with its end.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 2 * BLOCK, 0);
        self.0
    }
}

fn put(header: &mut [u8; BLOCK], at: usize, text: &str) {
    header.iter_mut().skip(at).zip(text.bytes()).for_each(|(to, from)| *to = from);
}
