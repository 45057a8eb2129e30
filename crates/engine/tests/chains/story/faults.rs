//! Faults of a block at every stage: header, bytes, block, place in the chain, coins, scripts. Input: a draft. Output:
//! the broken draft. Only the validator decides whether and how it is refused.

use super::coin::{OP_CHECKMULTISIG, Opener, Own, open_all};
use super::draft::{Draft, commit, spend};
use super::{NOW, StoryBuilder};
use lydian_chains::rng::Random;
use lydian_primitives::build::{MutBlock, MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint, Txid};

macro_rules! faults {
    ($($name:ident)*) => {
        /// A fault.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Fault { $($name,)* }

        impl Fault {
            pub const ALL: &[Fault] = &[$(Fault::$name,)*];
        }
    };
}

faults! {
    BadBits OldTime FutureTime HighHash OldVersion
    MerkleRoot TxBytes CoinbaseWitness InputWitness TwinTxs
    NoCoinbase TwoCoinbases ShortCoinbase LongCoinbase Sigops DuplicateInput NegativeOutput HugeOutput NoOutputs NullPrevout
    NonFinal CoinbaseHeight UnexpectedWitness WrongCommitment
    MissingInput MissingOutput SpentInBlock SpentBefore SpendLater SpendDead Immature Overspend CoinbaseTooMuch
    SequenceHeight SequenceTime SigopsCost
    FalseSignatureFirst FalseSignatureMiddle FalseSignatureLast FalseScript FalseScriptSig TwoFalseScripts
}

impl Fault {
    /// A random fault; those that only the coins or scripts reveal are more frequent.
    pub(super) fn random(builder: &mut StoryBuilder) -> Fault {
        let first_late = Fault::ALL.iter().position(|fault| *fault == Fault::MissingInput).unwrap_or(0);
        if builder.random.chance(if builder.shape.is_rotten { 500 } else { 100 }) {
            return [Fault::SpentBefore, Fault::SpentBefore, Fault::FalseScript][builder.random.index(3)];
        }
        let from = if builder.shape.is_rotten || builder.random.chance(600) { first_late } else { 0 };
        Fault::ALL[from + builder.random.index(Fault::ALL.len() - from)]
    }

    /// Changes the coinbase before the block is sealed.
    pub(super) fn change_coinbase(self, coinbase: &mut MutTx, random: &mut Random) {
        match self {
            Fault::CoinbaseTooMuch => coinbase.outputs[0].value.0 += 1,
            Fault::ShortCoinbase => coinbase.inputs[0].script_sig.truncate(1),
            Fault::LongCoinbase => coinbase.inputs[0].script_sig.resize(101, 0),
            Fault::CoinbaseHeight => coinbase.inputs[0].script_sig[1] ^= 1,
            Fault::Sigops => {
                let script_pubkey = vec![OP_CHECKMULTISIG; 1_001];
                coinbase.outputs.push(MutOutput { value: Amount(0), script_pubkey });
            }
            Fault::UnexpectedWitness => {
                coinbase.outputs.retain(|output| !output.script_pubkey.starts_with(&[0x6a, 0x24]));
                coinbase.inputs[0].witness = vec![vec![0; 32]];
            }
            Fault::WrongCommitment | Fault::CoinbaseWitness if coinbase.inputs[0].witness.is_empty() => {
                commit(coinbase)
            }
            Fault::NullPrevout if random.chance(500) => coinbase.lock_time = 1,
            _ => {}
        }
    }

    /// Changes the list of transactions before the block is sealed.
    pub(super) fn change_txs(self, block: &mut MutBlock, _builder: &mut StoryBuilder) {
        match self {
            Fault::NoCoinbase => drop(block.txs.remove(0)),
            Fault::TwoCoinbases => {
                let mut second = block.txs[0].clone();
                second.lock_time ^= 3;
                block.txs.push(second);
            }
            _ => {}
        }
    }

    /// Changes the block after it was sealed; reseals what the header commits to if the fault requires it.
    pub(super) fn change_sealed(self, block: &mut MutBlock, builder: &mut StoryBuilder, parent: usize) {
        match self {
            Fault::BadBits => block.header.bits = 0x207f_fffe,
            Fault::OldTime => block.header.time = builder.median_time_past(parent),
            Fault::FutureTime => block.header.time = NOW + 2 * 3_600 + 1,
            Fault::OldVersion => block.header.version = i32::try_from(builder.random.below(4)).unwrap(),
            Fault::MerkleRoot => block.header.merkle_root[3] ^= 1,
            Fault::WrongCommitment => {
                let outputs = block.txs.first_mut().into_iter().flat_map(|tx| tx.outputs.iter_mut());
                for output in outputs.filter(|output| output.script_pubkey.starts_with(&[0x6a, 0x24])) {
                    output.script_pubkey[9] ^= 1;
                }
                block.seal_merkle_root();
            }
            Fault::TxBytes => {
                if let Some(output) = block.txs.last_mut().and_then(|tx| tx.outputs.first_mut()) {
                    output.value.0 ^= 1;
                }
                return;
            }
            Fault::CoinbaseWitness => {
                if let Some(item) = block.txs.first_mut().and_then(|tx| tx.inputs[0].witness.first_mut()) {
                    item[5] ^= 1;
                }
                return;
            }
            Fault::InputWitness => return flip_witness(block, &mut builder.random),
            Fault::TwinTxs => return twin_txs(block),
            Fault::HighHash => {
                while block.header.hash().0[31] < 0x80 {
                    block.header.nonce = block.header.nonce.wrapping_add(1);
                }
                return;
            }
            _ => return,
        }
        block.seal_work_on_regtest();
    }
}

/// Other bytes with the same header.
pub(super) fn twin(block: &MutBlock, random: &mut Random) -> MutBlock {
    let mut twin = block.clone();
    match random.below(4) {
        0 => twin_txs(&mut twin),
        1 => flip_witness(&mut twin, random),
        2 => {
            if let Some(output) = twin.txs.last_mut().and_then(|tx| tx.outputs.first_mut()) {
                output.value.0 ^= 1;
            }
        }
        _ => change_coinbase_witness(&mut twin),
    }
    twin
}

/// The same block with another coinbase witness, so that only its header can be accepted.
pub fn header_only(block: &MutBlock) -> MutBlock {
    let mut twin = block.clone();
    change_coinbase_witness(&mut twin);
    twin
}

fn change_coinbase_witness(block: &mut MutBlock) {
    if let Some(input) = block.txs.first_mut().and_then(|tx| tx.inputs.first_mut()) {
        match input.witness.first_mut() {
            Some(item) if !item.is_empty() => item[0] ^= 1,
            _ => input.witness = vec![vec![1; 32]],
        }
    }
}

fn flip_witness(block: &mut MutBlock, random: &mut Random) {
    let items: Vec<&mut Vec<u8>> = block
        .txs
        .iter_mut()
        .flat_map(|tx| tx.inputs.iter_mut())
        .flat_map(|input| input.witness.iter_mut())
        .filter(|item| !item.is_empty())
        .collect();
    let count = items.len();
    if let Some(item) = items.into_iter().nth(random.index(count)) {
        item[0] ^= 1;
    }
}

/// CVE-2012-2459: repeats the last transaction, which keeps the merkle root if the number of transactions is odd.
fn twin_txs(block: &mut MutBlock) {
    if block.txs.len() % 2 == 1
        && let Some(last) = block.txs.last().cloned()
    {
        block.txs.push(last);
    }
}

impl Draft {
    /// Breaks the transactions of the draft, for faults of that kind. Returns false if that is impossible.
    pub(super) fn apply(&mut self, fault: Fault, builder: &mut StoryBuilder) -> bool {
        self.note.push_str(&format!("{fault:?} "));
        match fault {
            Fault::DuplicateInput
            | Fault::NegativeOutput
            | Fault::HugeOutput
            | Fault::NoOutputs
            | Fault::NullPrevout => self.break_form(fault, builder),
            Fault::NonFinal | Fault::SequenceHeight | Fault::SequenceTime => self.break_lock(fault, builder),
            Fault::MissingInput
            | Fault::MissingOutput
            | Fault::SpentInBlock
            | Fault::SpentBefore
            | Fault::SpendDead
            | Fault::Immature => self.spend_what_is_not_there(fault, builder).is_some(),
            Fault::SpendLater => self.spend_later(builder),
            Fault::Overspend => self.with_tx(builder, |tx, spent| {
                tx.outputs[0].value.0 += spent.iter().map(|coin| coin.value).sum::<i64>();
            }),
            Fault::SigopsCost => self.cost_sigops(builder).is_some(),
            Fault::FalseSignatureFirst | Fault::FalseSignatureMiddle | Fault::FalseSignatureLast => {
                self.sign_falsely(fault, builder)
            }
            Fault::FalseScript => self.fail_script(builder).is_some(),
            Fault::TwoFalseScripts => self.fail_script(builder).is_some() && self.fail_script(builder).is_some(),
            Fault::FalseScriptSig => self.with_tx(builder, |tx, _| tx.inputs[0].script_sig = vec![0x6a]),
            Fault::CoinbaseHeight => !builder.shape.repeats,
            _ => true,
        }
    }

    /// An ordinary transaction that spends these coins. Its fee is not counted, since the block is invalid.
    fn paid_and_opened(&mut self, spent: &[Own], builder: &mut StoryBuilder) -> MutTx {
        let mut tx = spend(spent);
        let fees = self.fees;
        self.pay(&mut tx, spent, builder);
        self.fees = fees;
        open_all(&mut tx, spent);
        tx
    }

    /// Adds an ordinary transaction, changed after its inputs are satisfied.
    fn with_tx(&mut self, builder: &mut StoryBuilder, change: impl FnOnce(&mut MutTx, &[Own])) -> bool {
        let count = [1, 2, 3][builder.random.index(3)];
        let spent: Vec<Own> = (0..count).filter_map(|_| self.take_open(&mut builder.random)).collect();
        if spent.is_empty() {
            return false;
        }
        let mut tx = self.paid_and_opened(&spent, builder);
        change(&mut tx, &spent);
        self.push_opened(tx, spent);
        true
    }

    fn break_form(&mut self, fault: Fault, builder: &mut StoryBuilder) -> bool {
        self.with_tx(builder, |tx, _| match fault {
            Fault::DuplicateInput => tx.inputs.push(tx.inputs[0].clone()),
            Fault::NegativeOutput => tx.outputs[0].value = Amount(-1),
            Fault::HugeOutput => tx.outputs[0].value = Amount(21_000_001 * Amount::COIN.0),
            Fault::NoOutputs => tx.outputs.clear(),
            _ => tx.inputs.push(MutInput {
                prevout: OutPoint::NULL,
                script_sig: vec![1, 1],
                sequence: u32::MAX,
                witness: Vec::new(),
            }),
        })
    }

    fn break_lock(&mut self, fault: Fault, builder: &mut StoryBuilder) -> bool {
        let Some(coin) = self.take(&mut builder.random, |coin| coin.opener == Opener::Nothing) else { return false };
        let spent = vec![coin];
        let mut tx = spend(&spent);
        match fault {
            Fault::NonFinal => {
                tx.lock_time = self.height;
                tx.inputs[0].sequence = u32::MAX - 1;
            }
            Fault::SequenceHeight => tx.inputs[0].sequence = self.height - spent[0].height + 1,
            _ => tx.inputs[0].sequence = 1 << 22 | ((self.passed_seconds(&spent[0], builder) >> 9) + 1).min(0xffff),
        }
        self.pay(&mut tx, &spent, builder);
        self.push(tx, spent);
        true
    }

    fn spend_what_is_not_there(&mut self, fault: Fault, builder: &mut StoryBuilder) -> Option<()> {
        let coin = match fault {
            Fault::MissingInput => {
                let mut txid = Txid::ZERO;
                builder.random.fill(&mut txid.0);
                nonexistent(OutPoint { txid, vout: 0 })
            }
            Fault::MissingOutput => {
                let node = &builder.nodes[self.parent];
                let txs = if self.txs.is_empty() { &node.txs[..] } else { &self.txs[..] };
                let tx = txs.last()?;
                nonexistent(OutPoint { txid: tx.txid(), vout: u32::try_from(tx.outputs.len()).ok()? })
            }
            Fault::SpentInBlock => pick(&self.spent, &mut builder.random)?,
            Fault::SpentBefore => {
                let back = [0, 0, 0, 1, 1, 2, 5][builder.random.index(7)];
                let node = (0..back).fold(self.parent, |node, _| builder.nodes[node].parent);
                let spent = std::rc::Rc::clone(&builder.nodes[node].spent);
                // Mostly a coin that existed for only a short time: the window sees it created and spent.
                let last = builder.nodes[node].height;
                let young: Vec<Own> =
                    spent.iter().filter(|coin| coin.height < last && coin.height + 3 > last).cloned().collect();
                let from = if young.is_empty() || builder.random.chance(200) { &spent[..] } else { &young[..] };
                pick(from, &mut builder.random)?
            }
            Fault::SpendDead => {
                let at = builder.random.index(self.dead.len());
                nonexistent(*self.dead.get(at)?)
            }
            _ => {
                // A coinbase that lacks a single block of maturity, or any immature one.
                let edge = (self.height + 1).checked_sub(100)?;
                let is_edge = builder.random.chance(500);
                let young = |coin: &Own| {
                    coin.is_coinbase
                        && coin.value > 1_000
                        && if is_edge { coin.height == edge } else { coin.height >= edge }
                };
                let found: Vec<usize> = (0..self.coins.len()).filter(|index| young(&self.coins[*index])).collect();
                let index = *found.get(builder.random.index(found.len()))?;
                self.coins.remove(index)
            }
        };
        let mut spent = vec![coin];
        if builder.random.chance(400) {
            spent.extend(self.take_open(&mut builder.random));
        }
        let at = builder.random.index(spent.len());
        spent.swap(0, at);
        let mut tx = spend(&spent);
        let fees = self.fees;
        self.pay(&mut tx, &spent, builder);
        self.fees = fees;
        self.push(tx, spent);
        Some(())
    }

    /// Puts a child before its parent.
    fn spend_later(&mut self, builder: &mut StoryBuilder) -> bool {
        if !self.with_tx(builder, |_, _| ()) {
            return false;
        }
        let parent = self.txs[self.txs.len() - 1].txid();
        let Some(coin) = self.take(&mut builder.random, |coin| coin.outpoint.txid == parent) else { return false };
        let spent = vec![coin];
        let mut tx = spend(&spent);
        self.pay(&mut tx, &spent, builder);
        self.push(tx, spent);
        let last = self.txs.len() - 1;
        self.txs.swap(last - 1, last);
        true
    }

    /// Puts more signature operations into a witness than a block may have.
    fn cost_sigops(&mut self, builder: &mut StoryBuilder) -> Option<()> {
        let spent = vec![self.take_open(&mut builder.random)?];
        let mut tx = spend(&spent);
        let script_pubkey = Opener::ManySigops.script_pubkey(&mut builder.random);
        tx.outputs.push(MutOutput { value: Amount(spent[0].value), script_pubkey });
        self.push(tx, spent);
        let coin = self.coins.pop()?;
        let mut tx = spend(std::slice::from_ref(&coin));
        tx.outputs.push(MutOutput { value: Amount(coin.value), script_pubkey: vec![0x51] });
        self.push(tx, vec![coin]);
        Some(())
    }

    /// Several inputs that need signatures, one of which is false.
    fn sign_falsely(&mut self, fault: Fault, builder: &mut StoryBuilder) -> bool {
        let is_key = |coin: &Own| matches!(coin.opener, Opener::Key(_));
        let count = 1 + builder.random.index(6);
        let spent: Vec<Own> = (0..count).filter_map(|_| self.take(&mut builder.random, is_key)).collect();
        if spent.is_empty() {
            return false;
        }
        let mut tx = self.paid_and_opened(&spent, builder);
        let at = match fault {
            Fault::FalseSignatureFirst => 0,
            Fault::FalseSignatureMiddle => spent.len() / 2,
            _ => spent.len() - 1,
        };
        let input = &mut tx.inputs[at];
        // The middle of the first signature, wherever it is.
        match input.witness.iter_mut().find(|item| item.len() > 60) {
            Some(signature) => signature[40] ^= 1,
            None => input.script_sig[42] ^= 1,
        }
        self.push_opened(tx, spent);
        true
    }

    /// Spends an unspendable coin.
    fn fail_script(&mut self, builder: &mut StoryBuilder) -> Option<()> {
        let coin = match self.take(&mut builder.random, |coin| coin.opener == Opener::Never) {
            Some(coin) => coin,
            None => {
                let spent = vec![self.take_open(&mut builder.random)?];
                let mut tx = spend(&spent);
                tx.outputs.push(MutOutput { value: Amount(spent[0].value), script_pubkey: vec![0] });
                self.push(tx, spent);
                self.coins.pop()?
            }
        };
        let mut spent = vec![coin];
        spent.extend((0..builder.random.index(3)).filter_map(|_| self.take_open(&mut builder.random)));
        let at = builder.random.index(spent.len());
        spent.swap(0, at);
        let mut tx = spend(&spent);
        self.pay(&mut tx, &spent, builder);
        self.push(tx, spent);
        Some(())
    }
}

fn pick(coins: &[Own], random: &mut Random) -> Option<Own> {
    coins.get(random.index(coins.len())).cloned()
}

/// A coin that does not exist.
fn nonexistent(outpoint: OutPoint) -> Own {
    Own {
        outpoint,
        value: 10_000,
        script_pubkey: vec![0x51].into(),
        opener: Opener::Nothing,
        height: 0,
        is_coinbase: false,
    }
}
