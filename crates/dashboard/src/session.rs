//! Sessions of browsers, and the links that begin them.
//!
//! Input: links that the node prints, users that have logged in, cookies of requests. Output: the user of a request,
//! and the token that its changes must carry. A session ends after 12 hours or by logout; it outlives a restart of the
//! node, so that an open page goes on by itself: a small file has the hash of each cookie ([`SESSION_FILES`], see
//! docs/formats/page.md). A link logs in once.
//!
//! Invariants: cookies, tokens and links are 32 random bytes or follow from them, and are compared by their hashes; the
//! token follows from the cookie, so it belongs to one session.

use crate::limits::{LINKS_MAX, SESSION_SECONDS, SESSIONS_MAX};
use crate::ports::Host;
use lydian_disk::format::{Format, MOVE_AWAY, NumberPlace};
use lydian_disk::{Disk, OwnDir, OwnFile, Proof, read_whole};
use lydian_hash::sha256;
use lydian_primitives::to_hex;
use lydian_serve::random;
use lydian_stdx::lock;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The file of the sessions, in the folder of the page.
pub const SESSION_FILES: &[OwnFile] = &[OwnFile { name: FILE, proof: Proof::Directory }];

/// Its name.
pub const SESSIONS_FILE: &str = FILE;

const FILE: &str = "sessions.json";

/// The format of the file.
pub const SESSIONS_FORMAT: Format = Format { number: 1, oldest: 1, place: NumberPlace::Json, otherwise: MOVE_AWAY };

const FORMAT: u32 = SESSIONS_FORMAT.number;

/// Larger than 64 sessions with the longest names.
const FILE_SIZE_MAX: u64 = 64 << 10;

/// The longest name of a user that is stored. Sessions of others end with the process.
const USER_SIZE_MAX: usize = 256;

/// The sessions and links of one node.
#[derive(Debug)]
pub(crate) struct Sessions {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    host: Arc<dyn Host>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    sessions: Vec<Session>,
    links: Vec<Link>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Session {
    /// SHA-256 of the cookie, in hex.
    cookie: String,
    user: String,
    /// Seconds since 1970.
    until: u64,
}

#[derive(Debug)]
struct Link {
    hash: [u8; 32],
    user: String,
    /// `None`: until it is used.
    until: Option<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
struct File {
    format: u32,
    sessions: Vec<Session>,
}

/// A session that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Begun {
    pub(crate) cookie: String,
    pub(crate) token: String,
    pub(crate) user: String,
}

/// The session of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) user: String,
    pub(crate) token: String,
    /// Seconds since 1970.
    pub(crate) until: u64,
}

impl Sessions {
    /// Reads the sessions of an earlier process. `is_user`: whether a user may still log in.
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        directory: &Path,
        host: Arc<dyn Host>,
        is_user: impl Fn(&str) -> bool,
    ) -> Sessions {
        let now = host.now();
        let sessions = match read(disk.as_ref(), directory) {
            Ok(sessions) => sessions,
            Err(reason) => {
                host.note(format!("the sessions of an earlier start are not used: {reason}"));
                Vec::new()
            }
        };
        let is_valid = |session: &Session| session.until > now && is_user(&session.user);
        let sessions: Vec<Session> = sessions.into_iter().filter(is_valid).take(SESSIONS_MAX).collect();
        let state = Mutex::new(State { sessions, links: Vec::new() });
        Sessions { disk, directory: directory.to_owned(), host, state }
    }

    /// Returns a new link for a user. It is valid for this many seconds, or until it is used.
    pub(crate) fn link(&self, user: &str, seconds: Option<u64>) -> Option<String> {
        let secret = self.secret()?;
        let until = seconds.map(|seconds| self.host.now() + seconds);
        let mut state = lock(&self.state);
        if state.links.len() >= LINKS_MAX {
            state.links.remove(0);
        }
        state.links.push(Link { hash: sha256(secret.as_bytes()), user: user.to_owned(), until });
        Some(secret)
    }

    /// Begins the session of a link, which cannot be used again.
    pub(crate) fn follow(&self, link: &str) -> Option<Begun> {
        let (now, hash) = (self.host.now(), sha256(link.as_bytes()));
        let user = {
            let mut state = lock(&self.state);
            state.links.retain(|link| link.until.is_none_or(|until| until > now));
            let place = state.links.iter().position(|link| link.hash == hash)?;
            state.links.remove(place).user
        };
        self.begin(&user)
    }

    /// Begins a session. `None` if the system has no random numbers, which is in the log.
    pub(crate) fn begin(&self, user: &str) -> Option<Begun> {
        let cookie = self.secret()?;
        let now = self.host.now();
        let session = Session { cookie: hash_of(&cookie), user: user.to_owned(), until: now + SESSION_SECONDS };
        self.change(|sessions| {
            sessions.retain(|session| session.until > now);
            if sessions.len() >= SESSIONS_MAX {
                sessions.remove(0);
            }
            sessions.push(session);
        });
        Some(Begun { token: token_of(&cookie), cookie, user: user.to_owned() })
    }

    /// The session of a cookie.
    pub(crate) fn find(&self, cookie: &str) -> Option<Found> {
        let (now, hash) = (self.host.now(), hash_of(cookie));
        let state = lock(&self.state);
        let session = state.sessions.iter().find(|session| session.cookie == hash && session.until > now)?;
        Some(Found { user: session.user.clone(), token: token_of(cookie), until: session.until })
    }

    /// Ends the session of a cookie.
    pub(crate) fn end(&self, cookie: &str) {
        let hash = hash_of(cookie);
        self.change(|sessions| sessions.retain(|session| session.cookie != hash));
    }

    fn secret(&self) -> Option<String> {
        match random::<32>() {
            Ok(bytes) => Some(to_hex(&bytes)),
            Err(error) => {
                self.host.note(error.to_string());
                None
            }
        }
    }

    /// Changes the sessions, and writes the file. If that fails, the sessions end with the process.
    fn change(&self, change: impl FnOnce(&mut Vec<Session>)) {
        // The lock is held while the file is written, so that its order is that of the changes.
        let mut state = lock(&self.state);
        change(&mut state.sessions);
        let kept = state.sessions.iter().filter(|session| session.user.len() <= USER_SIZE_MAX);
        let file = File { format: FORMAT, sessions: kept.cloned().collect() };
        let text = match serde_json::to_string(&file) {
            Ok(text) => text,
            Err(error) => unreachable!("structures of numbers and texts are JSON: {error}"),
        };
        let path = self.directory.join(FILE);
        let own = OwnDir::new(&self.directory, SESSION_FILES);
        let disk = self.disk.as_ref();
        if let Err(error) = disk.create_dir(&self.directory).and_then(|()| own.replace(disk, &path, text.as_bytes())) {
            self.host.note(format!("sessions will end with this process: {error}"));
        }
    }
}

fn read(disk: &dyn Disk, directory: &Path) -> Result<Vec<Session>, String> {
    let path = directory.join(FILE);
    if disk.kind(&path).is_err() {
        return Ok(Vec::new());
    }
    let bytes = read_whole(disk, &path, FILE_SIZE_MAX).map_err(|error| error.to_string())?;
    let file: File = serde_json::from_slice(&bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    if let Some(error) = SESSIONS_FORMAT.newer(&path, file.format) {
        return Err(error.to_string());
    }
    match file.format {
        FORMAT => Ok(file.sessions),
        other => Err(format!("{} has format {other}; this program supports format {FORMAT}", path.display())),
    }
}

fn hash_of(cookie: &str) -> String {
    to_hex(&sha256(cookie.as_bytes()))
}

fn token_of(cookie: &str) -> String {
    to_hex(&sha256(format!("token {cookie}").as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::LINK_SECONDS;
    use lydian_disk::SimDisk;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[derive(Debug, Default)]
    struct Clock {
        now: AtomicU64,
        notes: Mutex<Vec<String>>,
    }

    impl Host for Clock {
        fn now(&self) -> u64 {
            self.now.load(Ordering::Relaxed)
        }

        fn steady_millis(&self) -> u64 {
            0
        }

        fn note(&self, words: String) {
            lock(&self.notes).push(words);
        }

        fn debug(&self, _: String) {}
    }

    fn open(disk: &Arc<SimDisk>, clock: &Arc<Clock>) -> Sessions {
        let (disk, host): (Arc<dyn Disk>, Arc<dyn Host>) = (disk.clone(), clock.clone());
        Sessions::open(disk, Path::new("/d"), host, |user| user != "gone")
    }

    fn new() -> (Arc<SimDisk>, Arc<Clock>) {
        let disk = SimDisk::new(0);
        disk.create_dir(Path::new("/d")).unwrap();
        (Arc::new(disk), Arc::default())
    }

    #[test]
    fn a_link_logs_in_once() {
        let (disk, clock) = new();
        let sessions = open(&disk, &clock);
        let link = sessions.link("a", Some(LINK_SECONDS)).unwrap();
        let begun = sessions.follow(&link).unwrap();
        assert_eq!(sessions.follow(&link), None, "it was used");
        let found = sessions.find(&begun.cookie).unwrap();
        assert_eq!((found.user.as_str(), found.token), ("a", begun.token));
        assert_eq!(sessions.find("x"), None);
        sessions.end(&begun.cookie);
        assert_eq!(sessions.find(&begun.cookie), None);
    }

    /// limit: LINK_SECONDS at
    /// limit: LINK_SECONDS above
    /// limit: SESSION_SECONDS at
    /// limit: SESSION_SECONDS above
    #[test]
    fn links_and_sessions_end() {
        let (disk, clock) = new();
        let sessions = open(&disk, &clock);
        let links = [(); 2].map(|()| sessions.link("a", Some(LINK_SECONDS)).unwrap());
        let unlimited = sessions.link("a", None).unwrap();
        clock.now.store(LINK_SECONDS - 1, Ordering::Relaxed);
        let begun = sessions.follow(&links[0]).unwrap();
        clock.now.store(LINK_SECONDS, Ordering::Relaxed);
        assert_eq!(sessions.follow(&links[1]), None);
        assert!(sessions.follow(&unlimited).is_some());
        clock.now.store(LINK_SECONDS - 1 + SESSION_SECONDS - 1, Ordering::Relaxed);
        assert!(sessions.find(&begun.cookie).is_some());
        clock.now.store(LINK_SECONDS - 1 + SESSION_SECONDS, Ordering::Relaxed);
        assert_eq!(sessions.find(&begun.cookie), None);
    }

    /// limit: SESSIONS_MAX at
    /// limit: SESSIONS_MAX above
    /// limit: LINKS_MAX at
    /// limit: LINKS_MAX above
    #[test]
    fn the_oldest_is_replaced() {
        let (disk, clock) = new();
        let sessions = open(&disk, &clock);
        let begun: Vec<Begun> = (0..SESSIONS_MAX).map(|_| sessions.begin("a").unwrap()).collect();
        assert!(sessions.find(&begun[0].cookie).is_some());
        sessions.begin("a").unwrap();
        assert_eq!(sessions.find(&begun[0].cookie), None);
        assert!(sessions.find(&begun[1].cookie).is_some());
        let links: Vec<String> = (0..LINKS_MAX).map(|_| sessions.link("a", None).unwrap()).collect();
        assert!(sessions.follow(&links[0]).is_some());
        for _ in 0..2 {
            sessions.link("a", None).unwrap();
        }
        assert_eq!(sessions.follow(&links[1]), None);
        assert!(sessions.follow(&links[2]).is_some());
    }

    #[test]
    fn sessions_outlive_a_restart() {
        let (disk, clock) = new();
        let sessions = open(&disk, &clock);
        let [kept, of_gone, ended] = ["a", "gone", "b"].map(|user| sessions.begin(user).unwrap());
        sessions.end(&ended.cookie);
        let sessions = open(&disk, &clock);
        assert_eq!(sessions.find(&kept.cookie).unwrap().token, kept.token);
        assert_eq!(sessions.find(&of_gone.cookie), None, "the user may not log in any more");
        assert_eq!(sessions.find(&ended.cookie), None);
        for (bytes, reason) in [(&b"{"[..], "sessions.json"), (b"{\"format\":2,\"sessions\":[]}", "has format 2")] {
            disk.write_whole(&Path::new("/d").join(FILE), bytes).unwrap();
            assert_eq!(open(&disk, &clock).find(&kept.cookie), None);
            assert!(lock(&clock.notes).pop().unwrap().contains(reason));
        }
    }
}
