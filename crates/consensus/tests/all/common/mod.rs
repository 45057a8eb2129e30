//! A small regtest chain for tests: blocks are built by hand on a plain validator and sealed again after every change.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

pub(crate) mod prevouts;

use lydian_consensus::{Accepted, Chain, Params, PlainValidator, Rejected, Rule, block_subsidy};
use lydian_primitives::build::{MutBlock, MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, Block, BlockHash, Header, Height, OutPoint, RawBlock, Txid};
use lydian_script::{ScriptBuilder, opcodes};

/// The current time of the chain, well after the times of all its blocks.
pub const NOW: u32 = 1_700_000_000;
const START: u32 = NOW - 1_000_000;

pub struct World {
    pub validator: PlainValidator,
    /// Coinbase of each height, from 1 on.
    pub coinbases: Vec<Txid>,
    pub times: Vec<u32>,
    pub tip: BlockHash,
}

impl World {
    /// A chain of `blocks` empty blocks whose coinbases pay to OP_TRUE.
    pub fn new(params: Params, blocks: u32) -> World {
        let genesis = params.genesis_block().parse().unwrap();
        let mut world = World {
            tip: genesis.hash(),
            times: vec![genesis.header().time],
            validator: PlainValidator::new(params),
            coinbases: Vec::new(),
        };
        for _ in 0..blocks {
            let block = world.next_block();
            world.must_accept(block);
        }
        world
    }

    pub fn regtest(blocks: u32) -> World {
        World::new(Params::new(Chain::Regtest), blocks)
    }

    pub fn height(&self) -> u32 {
        self.validator.tip().0.0
    }

    /// An unsealed block on the tip: a coinbase with the height, OP_TRUE and a witness commitment.
    pub fn next_block(&self) -> MutBlock {
        let height = self.height() + 1;
        let header = Header {
            version: 0x2000_0000,
            prev_block: self.tip,
            merkle_root: [0; 32],
            time: START + height * 600,
            bits: 0x207f_ffff,
            nonce: 0,
        };
        let value = block_subsidy(Height(height), self.validator.params());
        MutBlock { header, txs: vec![coinbase(height, value)] }
    }

    pub fn submit(&mut self, block: &MutBlock) -> Result<Accepted, Rejected> {
        self.validator.accept_block(parse(block), NOW)
    }

    /// Seals and submits the block, which must become the new tip.
    pub fn must_accept(&mut self, mut block: MutBlock) -> BlockHash {
        block.seal_on_regtest();
        let accepted = self.submit(&block).unwrap_or_else(|error| panic!("refused: {error}"));
        assert!(accepted.is_active);
        self.coinbases.push(block.txs[0].txid());
        self.times.push(block.header.time);
        self.tip = accepted.hash;
        accepted.hash
    }

    /// Submits the block unsealed and returns the rule by which it is rejected, if any.
    pub fn refusal(&mut self, block: &MutBlock) -> Option<Rule> {
        match self.submit(block) {
            Ok(accepted) => {
                assert!(accepted.is_active, "accepted, but not on the active chain");
                None
            }
            Err(Rejected::Violation(violation)) => Some(violation.rule),
            Err(other) => panic!("{other}"),
        }
    }

    /// The output of the coinbase at `height`.
    pub fn coinbase_outpoint(&self, height: u32) -> OutPoint {
        OutPoint { txid: self.coinbases[height as usize - 1], vout: 0 }
    }
}

pub fn parse(block: &MutBlock) -> Block {
    RawBlock::new(block.encode()).parse().unwrap()
}

pub fn true_script() -> Vec<u8> {
    vec![opcodes::OP_1]
}

pub fn coinbase(height: u32, value: Amount) -> MutTx {
    let script_sig = ScriptBuilder::new().push_int(i64::from(height)).push_slice(&[0; 4]).into_bytes();
    let input = MutInput { prevout: OutPoint::NULL, script_sig, sequence: u32::MAX, witness: vec![vec![0; 32]] };
    let mut commitment = vec![0x6a, 0x24, 0xaa, 0x21, 0xa9, 0xed];
    commitment.extend_from_slice(&[0; 32]);
    let outputs = vec![
        MutOutput { value, script_pubkey: true_script() },
        MutOutput { value: Amount(0), script_pubkey: commitment },
    ];
    MutTx { version: 2, inputs: vec![input], outputs, lock_time: 0 }
}

/// A transaction that spends outpoints with OP_TRUE scripts and pays `value` to one output.
pub fn spend(prevouts: &[OutPoint], value: i64) -> MutTx {
    let input = |prevout: &OutPoint| MutInput {
        prevout: *prevout,
        script_sig: Vec::new(),
        sequence: u32::MAX,
        witness: Vec::new(),
    };
    let output = MutOutput { value: Amount(value), script_pubkey: true_script() };
    MutTx { version: 2, inputs: prevouts.iter().map(input).collect(), outputs: vec![output], lock_time: 0 }
}
