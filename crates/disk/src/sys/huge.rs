//! [`MemoryBlocks`]: huge pages for memory that is read at random.
//!
//! With pages of 4 KB most such reads also miss the processor's cache of addresses (TLB); one entry of it covers 2 MB
//! in a huge page. Input: blocks of memory. Output: none, and no byte changes. Only pages of which the blocks have at
//! least three quarters become huge, so that the process takes little more memory: free memory of the allocator among
//! the blocks. Cost: two system calls for each contiguous range, and a copy of what is not in huge pages yet, a
//! millisecond for 2 MB.
//!
//! Where the system has no huge pages, or its administrator has set `never` in
//! `/sys/kernel/mm/transparent_hugepage/enabled`, nothing happens.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::Range;

/// Linux's `MADV_COLLAPSE`, which crate `libc` lacks for some C libraries.
const COLLAPSE: libc::c_int = 25;
const SETTINGS: &str = "/sys/kernel/mm/transparent_hugepage";

/// Blocks of memory, such as the buffers of vectors.
#[derive(Clone, Debug, Default)]
pub struct MemoryBlocks {
    /// Addresses. They are never read or written: a block may be freed at any time.
    ranges: Vec<Range<usize>>,
}

impl MemoryBlocks {
    /// Adds `len` values from `start` on.
    pub fn add<T>(&mut self, start: *const T, len: usize) {
        let start = start.addr();
        self.ranges.push(start..start.saturating_add(len.saturating_mul(size_of::<T>())));
    }

    /// Moves the blocks to huge pages now, as far as the kernel has any free. Before Linux 6.1 the kernel moves them
    /// itself, within hours.
    pub fn move_to_huge_pages(self) {
        if let Some(size) = huge_page_bytes() {
            self.collapse(size);
        }
    }

    /// Returns the kernel's answer for each range, up to the first one for which it had no huge page.
    fn collapse(&self, size: usize) -> Vec<io::Result<()>> {
        let is_out_of_memory =
            |answer: &io::Result<()>| answer.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::ENOMEM));
        let mut answers = Vec::new();
        for range in self.pages(size) {
            // Where a range has a hole, such as the end of the heap, both do their work in the rest, and fail with the
            // error that the second also has if no huge page is free. Then do not search for one for each range.
            let has_hole = is_out_of_memory(&advise(&range, libc::MADV_HUGEPAGE));
            let answer = advise(&range, COLLAPSE);
            let is_last = is_out_of_memory(&answer) && !has_hole;
            answers.push(answer);
            if is_last {
                break;
            }
        }
        answers
    }

    /// The ranges of pages of `size` bytes of which the blocks have at least three quarters.
    fn pages(&self, size: usize) -> Vec<Range<usize>> {
        let mut bytes_by_page: BTreeMap<usize, usize> = BTreeMap::new();
        for block in &self.ranges {
            let mut start = block.start;
            while start < block.end {
                let page = start - start % size;
                let end = block.end.min(page.saturating_add(size));
                *bytes_by_page.entry(page).or_default() += end - start;
                start = end;
            }
        }
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for (page, bytes) in bytes_by_page {
            let Some(end) = page.checked_add(size) else { break };
            match ranges.last_mut() {
                _ if bytes < size / 4 * 3 => {}
                Some(last) if last.end == page => last.end = end,
                _ => ranges.push(page..end),
            }
        }
        ranges
    }
}

/// The size of a huge page, if the system has any and lets programs ask for them.
#[allow(clippy::disallowed_methods, reason = "files of the kernel, a few bytes each")]
fn huge_page_bytes() -> Option<usize> {
    let read = |name| fs::read_to_string(format!("{SETTINGS}/{name}")).ok();
    if read("enabled")?.contains("[never]") {
        return None;
    }
    read("hpage_pmd_size")?.trim().parse().ok().filter(|size| *size > 0)
}

fn advise(range: &Range<usize>, advice: libc::c_int) -> io::Result<()> {
    // SAFETY: both kinds of advice keep the content of memory and its permissions, whatever is mapped there; the kernel
    // refuses addresses where nothing is.
    let answer = unsafe { libc::madvise(std::ptr::with_exposed_provenance_mut(range.start), range.len(), advice) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_mostly_in_the_blocks() {
        let pages = |blocks: &[(usize, usize)]| {
            let ranges = blocks.iter().map(|(start, end)| *start..*end).collect();
            let pages = MemoryBlocks { ranges }.pages(100);
            pages.iter().map(|range| (range.start, range.end)).collect::<Vec<_>>()
        };
        assert_eq!(pages(&[]), []);
        assert_eq!(pages(&[(1, 75), (326, 400)]), [], "less than three quarters of each");
        assert_eq!(pages(&[(100, 175)]), [(100, 200)]);
        assert_eq!(pages(&[(530, 560), (500, 525), (570, 590)]), [(500, 600)], "in parts, in any order");
        assert_eq!(pages(&[(20, 310)]), [(0, 300)], "less of the last one");
        assert_eq!(pages(&[(25, 150), (151, 380), (400, 450)]), [(0, 400)]);
        assert_eq!(pages(&[(0, 100), (200, 300), (300, 400)]), [(0, 100), (200, 400)]);
        assert_eq!(pages(&[(usize::MAX - 5, usize::MAX)]), []);
    }

    /// The bytes in huge pages of the memory that contains an address.
    #[allow(clippy::disallowed_methods, reason = "a file of the kernel")]
    fn bytes_in_huge_pages(address: usize) -> usize {
        let text = fs::read_to_string("/proc/self/smaps").unwrap();
        let mut is_here = false;
        for line in text.lines() {
            let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            if let Some((start, end)) = word.split_once('-') {
                let number = |digits| usize::from_str_radix(digits, 16).unwrap();
                is_here = (number(start)..number(end)).contains(&address);
            } else if is_here && word == "AnonHugePages:" {
                return rest.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024;
            }
        }
        panic!("no mapping has the address {address:x}");
    }

    #[test]
    #[allow(clippy::print_stderr, reason = "says what could not be tested")]
    fn memory_is_moved_and_keeps_its_bytes() {
        const TESTED: usize = 32 << 20;
        let Some(size) = huge_page_bytes().filter(|size| *size <= TESTED) else {
            eprintln!("not tested: this system has no huge pages of at most 32 MB, or its administrator wants none");
            return;
        };
        let bytes = vec![7_u8; TESTED + size];
        let whole = &bytes[bytes.as_ptr().align_offset(size)..][..TESTED];
        let mut blocks = MemoryBlocks::default();
        // Nothing is there, which must not end the work.
        blocks.add(std::ptr::without_provenance::<u64>(1 << 46), size);
        blocks.add(whole.as_ptr(), whole.len());
        let mut answers = blocks.collapse(size);
        assert!(bytes.iter().all(|byte| *byte == 7));
        let answer = answers.pop().unwrap();
        assert_eq!(answers.len(), 1, "{answers:?}");
        assert!(answers[0].is_err());
        match answer {
            Ok(()) => {
                let huge = bytes_in_huge_pages(whole.as_ptr().addr() + whole.len() / 2);
                assert!(huge >= whole.len(), "{huge} bytes are in huge pages");
            }
            Err(error) => eprintln!("not tested: the kernel cannot make huge pages now: {error}"),
        }
    }
}
