//! Writes every message to files for Bitcoin Core's `message-capture-parser.py` (`-capturemessages`).
//!
//! Input: messages, as connections send them and hand them to the manager. Output:
//! `message_capture/ADDRESS/msgs_recv.dat` and `msgs_sent.dat`. A message is stored as its time (8 bytes,
//! microseconds), type (12 bytes), size (4 bytes) and payload; numbers are little endian. A disk failure is logged once
//! and has no other effect.

use crate::Host;
use crate::files::DataFolder;
use lydian_disk::{DiskError, OwnDir, OwnFile, Proof};
use lydian_engine::LogLevel;
use lydian_stdx::lock;
use lydian_wire::{Command, Endpoint};
use std::path::Path;
use std::sync::Mutex;

const FOLDER: &str = "message_capture";

const RECEIVED_FILE: &str = "msgs_recv.dat";
const SENT_FILE: &str = "msgs_sent.dat";

/// The capture files of one peer, in `message_capture/ADDRESS`.
pub const CAPTURE_FILES: &[OwnFile] =
    &[OwnFile { name: RECEIVED_FILE, proof: Proof::Directory }, OwnFile { name: SENT_FILE, proof: Proof::Directory }];

/// Direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Received,
    Sent,
}

/// The capture files of all peers.
#[derive(Debug)]
pub(crate) struct Capture {
    data: DataFolder,
    /// Whether a failure was logged. Locked while a message is written, so that messages of different threads do not
    /// mix.
    has_failed: Mutex<bool>,
}

impl Capture {
    pub(crate) fn new(data: DataFolder) -> Capture {
        Capture { data, has_failed: Mutex::new(false) }
    }

    /// Appends a message: Core's `CaptureMessageToFile`.
    pub(crate) fn write(
        &self,
        peer: &Endpoint,
        direction: Direction,
        command: Command,
        payload: &[u8],
        host: &dyn Host,
    ) {
        let mut has_failed = lock(&self.has_failed);
        let folder = self.data.folder.join(FOLDER).join(peer.to_string().replace(':', "_"));
        let record = record(host.unix_micros(), command, payload);
        if let Err(error) = self.append(&folder, direction, &record)
            && !std::mem::replace(&mut *has_failed, true)
        {
            host.log(LogLevel::Error, format!("Cannot write captured messages: {error}"));
        }
    }

    fn append(&self, folder: &Path, direction: Direction, record: &[u8]) -> Result<(), DiskError> {
        let name = match direction {
            Direction::Received => RECEIVED_FILE,
            Direction::Sent => SENT_FILE,
        };
        self.data.disk.create_dir(folder)?;
        OwnDir::new(folder, CAPTURE_FILES).append(self.data.disk.as_ref(), &folder.join(name))?.write(record)
    }
}

fn record(micros: u64, command: Command, payload: &[u8]) -> Vec<u8> {
    let mut record = Vec::with_capacity(24 + payload.len());
    record.extend_from_slice(&micros.to_le_bytes());
    record.extend_from_slice(&command.to_wire());
    record.extend_from_slice(&u32::try_from(payload.len()).unwrap_or(u32::MAX).to_le_bytes());
    record.extend_from_slice(payload);
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_disk::{Disk, SimDisk, read_whole};
    use lydian_engine::LogLine;
    use lydian_p2p::{Moment, UnixTime};
    use std::sync::Arc;

    #[derive(Debug)]
    struct Clock;

    impl Host for Clock {
        fn now(&self) -> Moment {
            Moment { unix: UnixTime(7), ..Moment::default() }
        }

        fn log_line(&self, line: &LogLine) {
            panic!("{}", line.text);
        }

        fn fill_random(&self, _: &mut [u8]) {}
    }

    /// The format that Core's parser expects: `TIME_SIZE` 8, `MSGTYPE_SIZE` 12, `LENGTH_SIZE` 4, then the payload.
    #[test]
    fn messages_are_appended_in_cores_form() {
        let disk = SimDisk::new(0);
        disk.create_dir(Path::new("/data")).unwrap();
        let capture = Capture::new(DataFolder { disk: Arc::new(disk.clone()), folder: "/data".into() });
        let peer: Endpoint = Endpoint::parse("127.0.0.1:18444", 0).unwrap();
        capture.write(&peer, Direction::Received, Command::PING, &[1; 8], &Clock);
        capture.write(&peer, Direction::Received, Command::VERACK, &[], &Clock);
        capture.write(&peer, Direction::Sent, Command::VERACK, &[], &Clock);
        let read = |name: &str| {
            let folder = Path::new("/data/message_capture/127.0.0.1_18444");
            read_whole(&disk, &folder.join(name), 1 << 20).unwrap()
        };
        let verack = [&7_000_000_u64.to_le_bytes()[..], b"verack\0\0\0\0\0\0", &[0; 4]].concat();
        let ping = [&7_000_000_u64.to_le_bytes()[..], b"ping\0\0\0\0\0\0\0\0", &[8, 0, 0, 0], &[1; 8]].concat();
        assert_eq!(read("msgs_recv.dat"), [ping, verack.clone()].concat());
        assert_eq!(read("msgs_sent.dat"), verack);
    }
}
