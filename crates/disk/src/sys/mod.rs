//! System calls that the standard library does not provide; the only module of this crate with `unsafe`.
//!
//! Input: paths, open files, buffers. Output: plain numbers, filled buffers, `io::Result`s. Cost: one system call each,
//! or one for many reads. Must never: keep a pointer beyond the call it was created for; for `ring` the call ends when
//! the kernel has completed every read that was submitted.

#![allow(unsafe_code, reason = "system calls; each site says what it relies on")]

mod huge;
mod ring;
mod wiping;

pub use huge::MemoryBlocks;
pub(crate) use ring::{Broken, Ring};
pub use wiping::{WipingAllocator, wiping};

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Returns the number of bytes that an unprivileged user can still write to the file system of `path`.
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

/// Bytes from which glibc maps an allocation by itself, and free bytes at the end of a heap that it keeps.
#[cfg(target_env = "gnu")]
const ALLOCATOR_BYTES: libc::c_int = 1 << 20;

/// Bounds the free memory that the allocator keeps at the end of each heap. Call it once, before threads start.
///
/// glibc has a heap for each of many threads and raises both limits to what was freed: after messages of 4 MB, 8 MB at
/// the end of each heap stay, also if [`release_free_memory`] is called, which does not reach them.
pub fn bound_free_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the calls take no pointers and change limits of the allocator. If it refuses one, it keeps its own.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, ALLOCATOR_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, ALLOCATOR_BYTES);
    }
}

/// Returns free memory to the system: otherwise the allocator keeps freed memory between allocated blocks indefinitely.
/// Call it after a peak only, because it scans all free memory.
pub fn release_free_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call takes no pointers; it locks the allocator as any allocation does.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Asks the kernel to read ahead; the result is ignored.
pub(crate) fn prefetch(file: &File, offset: u64, size: u64) {
    if let (Ok(offset), Ok(size)) = (i64::try_from(offset), i64::try_from(size)) {
        // SAFETY: the call takes no pointers, and the descriptor is open as long as `file` is borrowed.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), offset, size, libc::POSIX_FADV_WILLNEED) };
    }
}

/// Asks the kernel to begin writing the changed pages of a file; the result is ignored, because a later `fsync` reports
/// what could not be written.
pub(crate) fn write_back(file: &File) {
    // SAFETY: the call takes no pointers, and the descriptor is open as long as `file` is borrowed. A size of zero
    // means up to the end.
    unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE) };
}

/// Fills the buffer if the page cache has all of it; false if not, or if the system cannot tell.
pub(crate) fn read_cached(file: &File, offset: u64, buffer: &mut [u8]) -> bool {
    let Ok(offset) = i64::try_from(offset) else { return false };
    let part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: the call reads one `iovec`, which outlives it, and writes at most the bytes of `buffer`, which is
    // borrowed; the descriptor is open as long as `file` is.
    let read = unsafe { libc::preadv2(file.as_raw_fd(), &raw const part, 1, offset, libc::RWF_NOWAIT) };
    usize::try_from(read) == Ok(buffer.len())
}

/// Locks a whole file against every process that locks it with `fcntl`, as Bitcoin Core does.
///
/// Returns false if another process holds the lock. The lock belongs to this open file description if the kernel
/// supports it: a lock of the process would be released as soon as any descriptor of the file is closed.
pub(crate) fn lock_records(file: &File) -> io::Result<bool> {
    match set_lock(file, libc::F_OFD_SETLK) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => set_lock(file, libc::F_SETLK),
        locked => locked,
    }
}

/// Asks who holds a lock that would keep this process from locking the whole file; takes none. The process is -1 if the
/// lock belongs to an open file description.
pub(crate) fn record_lock(file: &File) -> io::Result<Option<i32>> {
    let mut lock = whole_file();
    // SAFETY: the descriptor is open as long as `file` is borrowed, and the command reads and writes one `flock`, which
    // outlives the call.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &raw mut lock) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((i32::from(lock.l_type) != libc::F_UNLCK).then_some(lock.l_pid))
}

/// Whether the kernel's clock is kept by a time service; `None` if the system does not say.
pub fn is_clock_synchronized() -> Option<bool> {
    // SAFETY: the structure consists of integers, for which zeros are valid: no mode, so the call changes nothing.
    let mut answer: libc::timex = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: the call reads and writes one `timex`, which outlives it.
    let state = unsafe { libc::adjtimex(&raw mut answer) };
    (state >= 0).then_some(answer.status & libc::STA_UNSYNC == 0)
}

/// A write lock on a whole file.
#[allow(clippy::cast_possible_truncation, reason = "the constants are 0 and 1, and the fields are of the C type")]
fn whole_file() -> libc::flock {
    // SAFETY: the structure consists of integers, for which zeros are valid: the whole file, and no process.
    let mut lock: libc::flock = unsafe { MaybeUninit::zeroed().assume_init() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock
}

fn set_lock(file: &File, command: libc::c_int) -> io::Result<bool> {
    let lock = whole_file();
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

    /// Regression: the lock was taken with `flock` only. Bitcoin Core, which uses `fcntl`, did not see it, so that both
    /// programs ran on one directory.
    #[test]
    fn locks_of_both_kinds_exclude_each_other() {
        let path = std::env::temp_dir().join(format!("lydian-disk-lock-{}", std::process::id()));
        let open = || OpenOptions::new().append(true).create(true).open(&path).unwrap();
        let is_locked = || RealDisk.lock(&path).is_err_and(|error| error.kind == DiskErrorKind::Locked);
        let ours = RealDisk.lock(&path).unwrap();
        assert!(!set_lock(&open(), libc::F_SETLK).unwrap(), "as Core asks");
        assert!(open().try_lock().is_err());
        assert!(!set_lock(&open(), libc::F_SETLK).unwrap(), "closing other descriptors does not release the lock");
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
