//! System calls that the standard library does not offer. The only module of this crate with `unsafe`.
//!
//! Input: paths, open files, buffers; output: plain numbers, filled buffers, `io::Result`s. Cost: one system call each, or one for many reads. It must never keep a pointer beyond the call
//! it was made for; for `ring` the call ends when the kernel has answered every read it was given.

#![allow(unsafe_code, reason = "system calls; each site says what it relies on")]

mod ring;

pub(crate) use ring::{Broken, Ring};

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes that a user who is not root may still write on the file system of `path`.
pub(crate) fn free_bytes(path: &Path) -> io::Result<u64> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut answer = MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: `path` ends with a zero byte and `answer` has room for one `statvfs`; both outlive the call.
    if unsafe { libc::statvfs(path.as_ptr(), answer.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so it filled `answer`; it consists of integers, for which any bits are valid.
    let answer = unsafe { answer.assume_init() };
    Ok(answer.f_bavail.saturating_mul(answer.f_frsize))
}

/// Gives memory that is free back to the system: the allocator keeps what was freed between blocks in use, for good. Costs a look at all free memory, so it
/// is for after a peak.
pub fn release_free_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call takes no pointers; it locks the allocator as any allocation does.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Asks the kernel to read ahead; whatever it answers is fine.
pub(crate) fn prefetch(file: &File, offset: u64, size: u64) {
    if let (Ok(offset), Ok(size)) = (i64::try_from(offset), i64::try_from(size)) {
        // SAFETY: the call takes no pointers, and the descriptor is open as long as `file` is borrowed.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), offset, size, libc::POSIX_FADV_WILLNEED) };
    }
}
