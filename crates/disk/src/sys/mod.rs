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

/// Gives memory that is free back to the system: the allocator keeps what was freed between blocks in use, for good.
/// Costs a look at all free memory, so it is for after a peak.
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

/// Locks a whole file against every process that locks it with `fcntl`, as Bitcoin Core does; false if one holds it.
/// The lock is that of this opening of the file where the kernel can do that: a lock of the process would go as soon as
/// any descriptor of the file is closed.
pub(crate) fn lock_records(file: &File) -> io::Result<bool> {
    match set_lock(file, libc::F_OFD_SETLK) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => set_lock(file, libc::F_SETLK),
        locked => locked,
    }
}

#[allow(clippy::cast_possible_truncation, reason = "the constants are 0 and 1, and the fields are of the C type")]
fn set_lock(file: &File, command: libc::c_int) -> io::Result<bool> {
    // SAFETY: the structure consists of integers, for which zeros are valid: the whole file, and no process.
    let mut lock: libc::flock = unsafe { MaybeUninit::zeroed().assume_init() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    // SAFETY: the descriptor is open as long as `file` is borrowed, and the command reads one `flock`, which outlives
    // the call.
    if unsafe { libc::fcntl(file.as_raw_fd(), command, &raw const lock) } == 0 {
        return Ok(true);
    }
    match io::Error::last_os_error() {
        error if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        error => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Disk, DiskErrorKind, RealDisk};
    use std::fs::OpenOptions;

    /// The story: the lock was `flock`'s alone, of which Bitcoin Core, which takes one with `fcntl`, sees nothing, so
    /// that both ran on one directory.
    #[test]
    fn locks_of_both_kinds_exclude_each_other() {
        let path = std::env::temp_dir().join(format!("lydian-disk-lock-{}", std::process::id()));
        let open = || OpenOptions::new().append(true).create(true).open(&path).unwrap();
        let is_locked = || RealDisk.lock(&path).is_err_and(|error| error.kind == DiskErrorKind::Locked);
        let ours = RealDisk.lock(&path).unwrap();
        assert!(!set_lock(&open(), libc::F_SETLK).unwrap(), "as Core asks");
        assert!(open().try_lock().is_err());
        assert!(!set_lock(&open(), libc::F_SETLK).unwrap(), "descriptors that were closed took nothing away");
        drop(ours);
        let theirs = open();
        assert!(set_lock(&theirs, libc::F_SETLK).unwrap());
        assert!(is_locked(), "as Core holds it");
        drop(theirs);
        let theirs = open();
        theirs.try_lock().unwrap();
        assert!(is_locked());
        drop(theirs);
        assert!(!is_locked());
        std::fs::remove_file(&path).unwrap();
    }
}
