//! Encodes the requests and decodes the answers of the judge's pipe; the format is `docs/formats/judge.md`.
//!
//! Input -> output: a typed request -> one frame; one frame -> its typed answer. Invariants: encoding fails only
//! because of the frame limit; decoding is total. Cost: one copy of the bytes. Must never interpret a script or a
//! transaction.

use crate::limits::MAX_FRAME_BYTES;

/// A request to the judge and the form of its answer.
pub trait Request {
    /// The answer to a valid request.
    type Reply;
    /// First byte of the request.
    const KIND: u8;
    /// Appends the body that follows the kind.
    fn body(&self, out: &mut Vec<u8>);
    /// Reads the body of a known answer; returns `None` if it is malformed.
    fn reply(body: &mut Body<'_>) -> Option<Self::Reply>;
}

/// The judge's answer to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer<T> {
    /// Core's answer.
    Known(T),
    /// Core cannot decode the transaction: the text of its exception, or that bytes follow the transaction.
    Undecodable(String),
    /// The request is invalid (illegal flags, no such input, wrong number of prevouts): a mistake of the caller.
    Refused(String),
}

impl<T> Answer<T> {
    /// Returns the answer itself, or `None` if there is none.
    pub fn known(self) -> Option<T> {
        if let Self::Known(reply) = self { Some(reply) } else { None }
    }
}

/// Core's `ScriptError` by number; [`crate::Info`] has the names and descriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScriptError(pub u8);

impl ScriptError {
    /// `SCRIPT_ERR_OK`: the script is satisfied.
    pub const OK: Self = Self(0);
}

/// An output that is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prevout<'a> {
    /// In satoshi. Must not be negative if a v0 signature is checked: Core's BIP-0143 checker asserts that, and the
    /// judge would exit.
    pub value: i64,
    pub script_pubkey: &'a [u8],
}

/// `VerifyScript` for one input.
#[derive(Clone, Copy, Debug)]
pub struct ScriptRequest<'a> {
    /// `SCRIPT_VERIFY_*` in Core's bit order ([`crate::Info::flags`]).
    pub flags: u32,
    pub index: u32,
    /// With witness, as in a block.
    pub tx: &'a [u8],
    /// One for each input, in order.
    pub prevouts: &'a [Prevout<'a>],
}

/// `VerifyScript` for every input. The transaction is sent once.
#[derive(Clone, Copy, Debug)]
pub struct SpendRequest<'a> {
    pub flags: u32,
    pub tx: &'a [u8],
    pub prevouts: &'a [Prevout<'a>],
}

/// Core's context-free checks of a transaction, and its sigop cost if the prevouts are known.
#[derive(Clone, Copy, Debug)]
pub struct TxRequest<'a> {
    pub flags: u32,
    pub tx: &'a [u8],
    pub prevouts: Option<&'a [Prevout<'a>]>,
}

/// The answer to a [`TxRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxReport {
    /// In hash byte order, not RPC byte order.
    pub txid: [u8; 32],
    pub wtxid: [u8; 32],
    /// Without witness.
    pub base_size: u32,
    pub total_size: u32,
    /// `GetLegacySigOpCount`.
    pub legacy_sigops: u32,
    /// `GetTransactionSigOpCost`; only if the prevouts are known.
    pub sigop_cost: Option<i64>,
    /// `CheckTransaction`'s reject reason, or `None` if it is valid.
    pub reject_reason: Option<String>,
}

/// Core's `SignatureHash`: legacy or BIP-0143.
#[derive(Clone, Copy, Debug)]
pub struct SighashRequest<'a> {
    pub index: u32,
    pub hash_type: i32,
    pub amount: i64,
    /// 0 `BASE`, 1 `WITNESS_V0`.
    pub sigversion: u8,
    pub script_code: &'a [u8],
    pub tx: &'a [u8],
}

/// Core's `SignatureHashSchnorr`: BIP-0341, and BIP-0342 with a leaf.
#[derive(Clone, Copy, Debug)]
pub struct TaprootSighashRequest<'a> {
    pub index: u32,
    pub hash_type: u8,
    /// Including its `0x50`.
    pub annex: Option<&'a [u8]>,
    /// For a script path: the leaf hash, and the position of the last executed OP_CODESEPARATOR (`u32::MAX` if there is
    /// none).
    pub leaf: Option<([u8; 32], u32)>,
    pub tx: &'a [u8],
    pub prevouts: &'a [Prevout<'a>],
}

/// Core's policy for a transaction and the scripts that it spends: `IsStandardTx`, `ValidateInputsStandardness`,
/// `IsWitnessStandard` and their neighbours.
#[derive(Clone, Copy, Debug)]
pub struct StandardRequest<'a> {
    /// In satoshi per 1,000 virtual bytes.
    pub dust_relay_fee: i64,
    /// `None` with `-datacarrier=0`.
    pub datacarrier_bytes_max: Option<u32>,
    pub permit_bare_multisig: bool,
    pub bytes_per_sigop: u32,
    pub tx: &'a [u8],
    /// Their values do not matter.
    pub prevouts: &'a [Prevout<'a>],
}

/// The answer to a [`StandardRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandardReport {
    /// `IsStandardTx`'s reason, or `None` if the transaction is standard.
    pub reason: Option<String>,
    /// The number of dust outputs.
    pub dust_count: u32,
    /// Reject reason and message of `ValidateInputsStandardness`, or `None` if the inputs are standard.
    pub inputs: Option<(String, String)>,
    pub is_witness_standard: bool,
    /// `SpendsNonAnchorWitnessProg`.
    pub spends_witness_program: bool,
    /// `GetVirtualTransactionSize` with the sigop cost under the standard flags.
    pub vsize: i64,
}

/// Core's `IsWellFormedPackage` and its neighbours.
#[derive(Clone, Copy, Debug)]
pub struct PackageRequest<'a> {
    pub txs: &'a [&'a [u8]],
}

/// The answer to a [`PackageRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageReport {
    /// `IsWellFormedPackage`'s reject reason, or `None` if the package is well formed.
    pub reason: Option<String>,
    pub is_child_with_parents: bool,
    pub is_child_with_parents_tree: bool,
    /// `GetPackageHash`, in hash byte order.
    pub hash: [u8; 32],
}

/// Double SHA-256, so that tests can seal blocks without any crate of ours.
#[derive(Clone, Copy, Debug)]
pub struct HashRequest<'a>(pub &'a [u8]);

impl Request for ScriptRequest<'_> {
    type Reply = ScriptError;
    const KIND: u8 = 2;
    fn body(&self, out: &mut Vec<u8>) {
        out.extend(self.flags.to_le_bytes());
        out.extend(self.index.to_le_bytes());
        put_bytes(out, self.tx);
        put_prevouts(out, self.prevouts);
    }
    fn reply(body: &mut Body<'_>) -> Option<ScriptError> {
        body.byte().map(ScriptError)
    }
}

impl Request for SpendRequest<'_> {
    type Reply = Vec<ScriptError>;
    const KIND: u8 = 3;
    fn body(&self, out: &mut Vec<u8>) {
        out.extend(self.flags.to_le_bytes());
        put_bytes(out, self.tx);
        put_prevouts(out, self.prevouts);
    }
    fn reply(body: &mut Body<'_>) -> Option<Vec<ScriptError>> {
        let count = usize::try_from(body.u32()?).ok()?;
        Some(body.take(count)?.iter().copied().map(ScriptError).collect())
    }
}

impl Request for TxRequest<'_> {
    type Reply = TxReport;
    const KIND: u8 = 4;
    fn body(&self, out: &mut Vec<u8>) {
        out.extend(self.flags.to_le_bytes());
        out.push(u8::from(self.prevouts.is_some()));
        put_bytes(out, self.tx);
        if let Some(prevouts) = self.prevouts {
            put_prevouts(out, prevouts);
        }
    }
    fn reply(body: &mut Body<'_>) -> Option<TxReport> {
        let (txid, wtxid) = (body.array()?, body.array()?);
        let (base_size, total_size, legacy_sigops) = (body.u32()?, body.u32()?, body.u32()?);
        let cost = i64::from_le_bytes(body.array()?);
        let reason = body.text()?;
        Some(TxReport {
            txid,
            wtxid,
            base_size,
            total_size,
            legacy_sigops,
            sigop_cost: (cost >= 0).then_some(cost),
            reject_reason: (!reason.is_empty()).then_some(reason),
        })
    }
}

impl Request for SighashRequest<'_> {
    type Reply = [u8; 32];
    const KIND: u8 = 5;
    fn body(&self, out: &mut Vec<u8>) {
        out.extend(self.index.to_le_bytes());
        out.extend(self.hash_type.to_le_bytes());
        out.extend(self.amount.to_le_bytes());
        out.push(self.sigversion);
        put_bytes(out, self.script_code);
        put_bytes(out, self.tx);
    }
    fn reply(body: &mut Body<'_>) -> Option<[u8; 32]> {
        body.array()
    }
}

impl Request for TaprootSighashRequest<'_> {
    /// `None` if the hash type is invalid, or for SINGLE without an output.
    type Reply = Option<[u8; 32]>;
    const KIND: u8 = 7;
    fn body(&self, out: &mut Vec<u8>) {
        out.extend(self.index.to_le_bytes());
        out.push(self.hash_type);
        out.push(2 + u8::from(self.leaf.is_some()));
        out.push(u8::from(self.annex.is_some()));
        put_bytes(out, self.annex.unwrap_or_default());
        let (leaf, position) = self.leaf.unwrap_or_default();
        out.extend(leaf);
        out.extend(position.to_le_bytes());
        put_bytes(out, self.tx);
        put_prevouts(out, self.prevouts);
    }
    fn reply(body: &mut Body<'_>) -> Option<Option<[u8; 32]>> {
        match body.byte()? {
            0 => Some(None),
            1 => body.array().map(Some),
            _ => None,
        }
    }
}

impl Request for HashRequest<'_> {
    type Reply = [u8; 32];
    const KIND: u8 = 6;
    fn body(&self, out: &mut Vec<u8>) {
        put_bytes(out, self.0);
    }
    fn reply(body: &mut Body<'_>) -> Option<[u8; 32]> {
        body.array()
    }
}

impl Request for StandardRequest<'_> {
    type Reply = StandardReport;
    const KIND: u8 = 8;
    fn body(&self, out: &mut Vec<u8>) {
        out.extend(self.dust_relay_fee.to_le_bytes());
        out.extend(self.datacarrier_bytes_max.map_or(-1, i64::from).to_le_bytes());
        out.push(u8::from(self.permit_bare_multisig));
        out.extend(self.bytes_per_sigop.to_le_bytes());
        put_bytes(out, self.tx);
        put_prevouts(out, self.prevouts);
    }
    fn reply(body: &mut Body<'_>) -> Option<StandardReport> {
        let reason = body.text()?;
        let dust_count = body.u32()?;
        let inputs = (body.text()?, body.text()?);
        let (is_witness_standard, spends_witness_program) = (body.byte()? == 1, body.byte()? == 1);
        Some(StandardReport {
            reason: (!reason.is_empty()).then_some(reason),
            dust_count,
            inputs: (!inputs.0.is_empty()).then_some(inputs),
            is_witness_standard,
            spends_witness_program,
            vsize: i64::from_le_bytes(body.array()?),
        })
    }
}

impl Request for PackageRequest<'_> {
    type Reply = PackageReport;
    const KIND: u8 = 9;
    fn body(&self, out: &mut Vec<u8>) {
        put_count(out, self.txs.len());
        self.txs.iter().for_each(|tx| put_bytes(out, tx));
    }
    fn reply(body: &mut Body<'_>) -> Option<PackageReport> {
        let reason = body.text()?;
        Some(PackageReport {
            reason: (!reason.is_empty()).then_some(reason),
            is_child_with_parents: body.byte()? == 1,
            is_child_with_parents_tree: body.byte()? == 1,
            hash: body.array()?,
        })
    }
}

/// Appends the frame of a request. Returns `None` and appends nothing if it exceeds the frame limit.
pub fn encode<R: Request>(request: &R, out: &mut Vec<u8>) -> Option<()> {
    let start = out.len();
    out.extend([0; 4]);
    out.push(R::KIND);
    request.body(out);
    let length = out.len() - start - 4;
    match u32::try_from(length) {
        Ok(prefix) if length <= MAX_FRAME_BYTES => {
            out[start..start + 4].copy_from_slice(&prefix.to_le_bytes());
            Some(())
        }
        _ => {
            out.truncate(start);
            None
        }
    }
}

/// Decodes the payload of an answer; returns `None` if it is malformed.
pub fn decode<R: Request>(payload: &[u8]) -> Option<Answer<R::Reply>> {
    let mut body = Body(payload);
    match body.byte()? {
        0 => {
            let reply = R::reply(&mut body)?;
            body.0.is_empty().then_some(Answer::Known(reply))
        }
        1 => Some(Answer::Undecodable(String::from_utf8_lossy(body.0).into_owned())),
        2 => Some(Answer::Refused(String::from_utf8_lossy(body.0).into_owned())),
        _ => None,
    }
}

/// The unread rest of an answer.
#[derive(Clone, Copy, Debug)]
pub struct Body<'a>(pub(crate) &'a [u8]);

impl<'a> Body<'a> {
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }
    pub fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }
    pub fn text(&mut self) -> Option<String> {
        let length = self.u16()?;
        Some(String::from_utf8_lossy(self.take(usize::from(length))?).into_owned())
    }
}

/// A length that does not fit becomes the maximum: such a request is far above the frame limit and is never sent.
fn put_count(out: &mut Vec<u8>, count: usize) {
    out.extend(u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_count(out, bytes.len());
    out.extend(bytes);
}

fn put_prevouts(out: &mut Vec<u8>, prevouts: &[Prevout<'_>]) {
    put_count(out, prevouts.len());
    for prevout in prevouts {
        out.extend(prevout.value.to_le_bytes());
        put_bytes(out, prevout.script_pubkey);
    }
}
