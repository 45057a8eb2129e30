//! The judge process: typed requests in, Core's answers out.
//!
//! Invariants: answers are returned in the order of the requests; a second thread writes a batch while the answers are
//! read, so that no batch can block on a full pipe; after any error the judge is not used again. Cost: a script without
//! signatures takes a few microseconds, a signature about 30. Must never decide anything.

use std::collections::BTreeMap;
use std::io::{BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::limits::MAX_FRAME_BYTES;
use crate::wire::{
    Answer, Body, HashRequest, Request, ScriptError, ScriptRequest, SighashRequest, SpendRequest,
    TaprootSighashRequest, TxReport, TxRequest, decode, encode,
};
use crate::{Unavailable, build};

/// Version of the pipe's format, as in `judge.cpp`.
const PROTOCOL_VERSION: u32 = 1;
/// Number of bytes of requests that are collected before they are written.
const WRITE_BYTES: usize = 1 << 16;

/// A running judge. Dropping it ends the process.
#[derive(Debug)]
pub struct Judge {
    process: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    broken: bool,
    info: Info,
}

/// The names of script flags and errors in this source tree of Core.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Info {
    /// `SCRIPT_VERIFY_*` without the prefix -> bit number.
    pub flags: BTreeMap<String, u8>,
    /// By number: `SCRIPT_ERR_*` without the prefix, and `ScriptErrorString`.
    pub errors: Vec<(String, String)>,
}

/// An operating error of the judge. Never a verdict.
#[derive(Debug)]
pub enum JudgeError {
    /// The request at this index is longer than [`MAX_FRAME_BYTES`].
    TooLong { index: usize },
    /// The judge exited (a failed assertion in Core?) after answering this number of requests of the batch.
    Died { answered: usize, error: std::io::Error },
    /// The answer is malformed.
    Form { answered: usize },
    /// An earlier call failed.
    Broken,
}

impl std::fmt::Display for JudgeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooLong { index } => write!(f, "request {index} is longer than {MAX_FRAME_BYTES} bytes"),
            Self::Died { answered, error } => write!(f, "the judge ended at request {answered}: {error}"),
            Self::Form { answered } => write!(f, "the answer to request {answered} has no known form"),
            Self::Broken => write!(f, "the judge failed earlier"),
        }
    }
}

impl std::error::Error for JudgeError {}

impl Judge {
    /// Starts the judge of the build in the cache, and links it first if `judge.cpp` has changed.
    pub fn start() -> Result<Self, Unavailable> {
        let program = build::locate()?.judge;
        let unable = |text: String| Unavailable::Start { program: program.clone(), text };
        let mut process = Command::new(&program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| unable(error.to_string()))?;
        let (requests, answers) = (process.stdin.take(), process.stdout.take());
        let answers = answers.ok_or_else(|| unable("no pipe".into()))?;
        let mut judge =
            Self { process, requests, answers: BufReader::new(answers), broken: false, info: Info::default() };
        match judge.ask(&InfoRequest) {
            Ok(Answer::Known((PROTOCOL_VERSION, info))) => judge.info = info,
            Ok(other) => return Err(unable(format!("unexpected answer {other:?}"))),
            Err(error) => return Err(unable(error.to_string())),
        }
        Ok(judge)
    }

    /// Returns the names and numbers of this source tree.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Returns Core's name of an error without `SCRIPT_ERR_`.
    pub fn error_name(&self, error: ScriptError) -> &str {
        self.info.errors.get(usize::from(error.0)).map_or("", |(name, _)| name)
    }

    /// Returns Core's description of an error, as in `block-script-verify-flag-failed (...)`.
    pub fn error_text(&self, error: ScriptError) -> &str {
        self.info.errors.get(usize::from(error.0)).map_or("", |(_, text)| text)
    }

    /// Returns the flag bits for names such as `P2SH,WITNESS`; empty parts and `NONE` are no flag. Returns `None` if a
    /// name is unknown.
    pub fn flag_bits(&self, names: &str) -> Option<u32> {
        let parts = names.split(',').map(str::trim).filter(|name| !name.is_empty() && *name != "NONE");
        parts.into_iter().try_fold(0, |bits, name| self.info.flags.get(name).map(|bit| bits | 1 << bit))
    }

    /// `VerifyScript` for one input.
    pub fn verify(&mut self, request: &ScriptRequest<'_>) -> Result<Answer<ScriptError>, JudgeError> {
        self.ask(request)
    }

    /// `VerifyScript` for each request, in order, without a round trip for each.
    pub fn verify_many(&mut self, requests: &[ScriptRequest<'_>]) -> Result<Vec<Answer<ScriptError>>, JudgeError> {
        self.ask_many(requests)
    }

    /// `VerifyScript` for all inputs of a transaction.
    pub fn spend(&mut self, request: &SpendRequest<'_>) -> Result<Answer<Vec<ScriptError>>, JudgeError> {
        self.ask(request)
    }

    /// Returns identifiers, sizes, sigops and the result of `CheckTransaction`.
    pub fn tx(&mut self, request: &TxRequest<'_>) -> Result<Answer<TxReport>, JudgeError> {
        self.ask(request)
    }

    /// `SignatureHash`, legacy or BIP-0143.
    pub fn sighash(&mut self, request: &SighashRequest<'_>) -> Result<Answer<[u8; 32]>, JudgeError> {
        self.ask(request)
    }

    /// `SignatureHashSchnorr`; `None` if Core defines no digest (invalid hash type, SINGLE without an output).
    pub fn taproot_sighash(
        &mut self,
        request: &TaprootSighashRequest<'_>,
    ) -> Result<Answer<Option<[u8; 32]>>, JudgeError> {
        self.ask(request)
    }

    /// Double SHA-256, computed by Core.
    pub fn sha256d(&mut self, bytes: &[u8]) -> Result<[u8; 32], JudgeError> {
        self.ask(&HashRequest(bytes))?.known().ok_or(JudgeError::Form { answered: 0 })
    }

    /// Sends one request of any kind.
    pub fn ask<R: Request>(&mut self, request: &R) -> Result<Answer<R::Reply>, JudgeError> {
        if self.broken {
            return Err(JudgeError::Broken);
        }
        let mut frame = Vec::new();
        encode(request, &mut frame).ok_or(JudgeError::TooLong { index: 0 })?;
        let result = write(self.requests.as_mut(), &frame)
            .map_err(|error| JudgeError::Died { answered: 0, error })
            .and_then(|()| read_answer::<R>(&mut self.answers, 0));
        self.broken = result.is_err();
        result
    }

    /// Sends many requests of one kind. Either all of them are answered, or the result is an error.
    pub fn ask_many<R: Request + Sync>(&mut self, requests: &[R]) -> Result<Vec<Answer<R::Reply>>, JudgeError> {
        if self.broken {
            return Err(JudgeError::Broken);
        }
        let Self { requests: pipe, answers, broken, .. } = self;
        *broken = true;
        let (written, read) = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let result = write_all(pipe.as_mut(), requests);
                if result.is_err() {
                    // No more requests will come: the judge exits, and the reading below ends.
                    *pipe = None;
                }
                result
            });
            let read: Result<Vec<_>, _> = (0..requests.len()).map(|index| read_answer::<R>(answers, index)).collect();
            (writer.join().unwrap_or(Err(JudgeError::Broken)), read)
        });
        // If a request was too long, that is the cause of the missing answers; if the judge died, the reader's error
        // describes it best.
        if let Err(error @ JudgeError::TooLong { .. }) = written {
            return Err(error);
        }
        let read = read?;
        written?;
        *broken = false;
        Ok(read)
    }
}

impl Drop for Judge {
    fn drop(&mut self) {
        self.requests = None; // end of input: the judge exits by itself, unless it is busy
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

struct InfoRequest;

impl Request for InfoRequest {
    type Reply = (u32, Info);
    const KIND: u8 = 1;
    fn body(&self, _: &mut Vec<u8>) {}
    fn reply(body: &mut Body<'_>) -> Option<(u32, Info)> {
        let version = body.u32()?;
        let mut info = Info::default();
        for _ in 0..body.u16()? {
            let bit = body.byte()?;
            info.flags.insert(body.text()?, bit);
        }
        for number in 0..body.u16()? {
            if u16::from(body.byte()?) != number {
                return None;
            }
            info.errors.push((body.text()?, body.text()?));
        }
        Some((version, info))
    }
}

fn write(pipe: Option<&mut ChildStdin>, bytes: &[u8]) -> std::io::Result<()> {
    pipe.ok_or_else(|| std::io::Error::from(std::io::ErrorKind::BrokenPipe))?.write_all(bytes)
}

fn write_all<R: Request>(mut pipe: Option<&mut ChildStdin>, requests: &[R]) -> Result<(), JudgeError> {
    let mut bytes = Vec::with_capacity(2 * WRITE_BYTES);
    for (index, request) in requests.iter().enumerate() {
        encode(request, &mut bytes).ok_or(JudgeError::TooLong { index })?;
        if bytes.len() >= WRITE_BYTES || index + 1 == requests.len() {
            write(pipe.as_deref_mut(), &bytes).map_err(|error| JudgeError::Died { answered: index, error })?;
            bytes.clear();
        }
    }
    Ok(())
}

fn read_answer<R: Request>(from: &mut impl Read, answered: usize) -> Result<Answer<R::Reply>, JudgeError> {
    let died = |error| JudgeError::Died { answered, error };
    let mut prefix = [0; 4];
    from.read_exact(&mut prefix).map_err(died)?;
    let length = usize::try_from(u32::from_le_bytes(prefix)).unwrap_or(usize::MAX);
    if length > MAX_FRAME_BYTES {
        return Err(JudgeError::Form { answered });
    }
    let mut payload = vec![0; length];
    from.read_exact(&mut payload).map_err(died)?;
    decode::<R>(&payload).ok_or(JudgeError::Form { answered })
}
