//! The block solution of signet. Input: a block and the network's challenge. Output: whether the block solves it. Pure.
//!
//! BIP-0325; Core's `CheckSignetBlockSolution` and `SignetTxs::Create` (signet.cpp). The solution follows a tag in the
//! witness commitment. It must spend a synthetic output that commits to the rest of the block.

use crate::params::Params;
use lydian_hash::merkle_root;
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, Block, OutPoint, Output, Reader, Txid};
use lydian_script::{Flags, ScriptBuilder, TxContext, opcodes, ops, verify_input};

/// The tag in front of a solution: `SIGNET_HEADER`.
const SIGNET_HEADER: [u8; 4] = [0xec, 0xc7, 0xda, 0xa2];

/// `BLOCK_SCRIPT_VERIFY_FLAGS` (signet.cpp): fixed for all heights, without taproot.
const SIGNET_FLAGS: Flags = Flags::P2SH.union(Flags::WITNESS).union(Flags::DERSIG).union(Flags::NULLDUMMY);

/// Whether the block solves its network's challenge. True if the network has no challenge, and for the genesis block.
pub fn is_signet_solved(block: &Block, params: &Params) -> bool {
    match &params.signet_challenge {
        Some(challenge) if block.hash() != params.genesis_hash => solves(block, challenge).unwrap_or(false),
        _ => true,
    }
}

fn solves(block: &Block, challenge: &[u8]) -> Option<bool> {
    let commitment = block.witness_commitment()?;
    let mut coinbase = MutTx::from(block.tx(0));
    let carrier = coinbase.outputs.get_mut(commitment.output_index)?;
    let (script_sig, witness) = match take_solution(&mut carrier.script_pubkey) {
        Some(solution) => parse_solution(&solution)?,
        // A trivial challenge (OP_TRUE) can be met without a solution.
        None => (Vec::new(), Vec::new()),
    };
    let spending = to_sign(to_spend(block, &coinbase, challenge).txid(), script_sig, witness).to_transaction()?;
    let spent = [Output { value: Amount(0), script_pubkey: challenge }];
    let context = TxContext::new(spending.view(), &spent)?;
    Some(verify_input(&context, 0, SIGNET_FLAGS).is_ok())
}

/// Removes the first push that starts with the tag and is longer than the tag from the script, but leaves the tag. The
/// script is rebuilt with minimal pushes, as in Core's `FetchAndClearCommitmentSection`.
fn take_solution(script: &mut Vec<u8>) -> Option<Vec<u8>> {
    let mut solution = None;
    let mut replacement = ScriptBuilder::new();
    for op in ops(script) {
        let Ok(op) = op else { break };
        replacement = match op.push {
            [] => replacement.op(op.opcode),
            push if solution.is_none() && push.len() > SIGNET_HEADER.len() && push.starts_with(&SIGNET_HEADER) => {
                solution = Some(push[SIGNET_HEADER.len()..].to_vec());
                replacement.push_slice(&SIGNET_HEADER)
            }
            push => replacement.push_slice(push),
        };
    }
    if solution.is_some() {
        *script = replacement.into_bytes();
    }
    solution
}

type ScriptSigAndWitness = (Vec<u8>, Vec<Vec<u8>>);

/// Parses a serialised scriptSig and witness stack without trailing bytes.
fn parse_solution(bytes: &[u8]) -> Option<ScriptSigAndWitness> {
    let mut reader = Reader::new(bytes);
    let script_sig = reader.var_bytes().ok()?.to_vec();
    let count = reader.compact_size().ok()?;
    let witness = (0..count).map(|_| reader.var_bytes().map(<[u8]>::to_vec)).collect::<Result<_, _>>().ok()?;
    reader.finish().ok()?;
    Some((script_sig, witness))
}

/// The transaction with the challenge as output script, which commits to the block without its solution.
fn to_spend(block: &Block, coinbase: &MutTx, challenge: &[u8]) -> MutTx {
    let mut leaves: Vec<_> = block.txs().map(|tx| tx.txid().0).collect();
    leaves[0] = coinbase.txid().0;
    let header = block.header();
    let mut data = header.version.to_le_bytes().to_vec();
    data.extend_from_slice(&header.prev_block.0);
    data.extend_from_slice(&merkle_root(&mut leaves).0);
    data.extend_from_slice(&header.time.to_le_bytes());
    let script_sig = ScriptBuilder::new().op(opcodes::OP_0).push_slice(&data).into_bytes();
    let input = MutInput { prevout: OutPoint::NULL, script_sig, sequence: 0, witness: Vec::new() };
    let output = MutOutput { value: Amount(0), script_pubkey: challenge.to_vec() };
    MutTx { version: 0, inputs: vec![input], outputs: vec![output], lock_time: 0 }
}

/// The transaction that spends this output with the solution.
fn to_sign(spent: Txid, script_sig: Vec<u8>, witness: Vec<Vec<u8>>) -> MutTx {
    let input = MutInput { prevout: OutPoint { txid: spent, vout: 0 }, script_sig, sequence: 0, witness };
    let output = MutOutput { value: Amount(0), script_pubkey: vec![opcodes::OP_RETURN] };
    MutTx { version: 0, inputs: vec![input], outputs: vec![output], lock_time: 0 }
}
