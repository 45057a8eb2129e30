//! What a PSBT still needs: Core's `AnalyzePSBT` (node/psbt.cpp).
//!
//! Input: a PSBT. Output: for each input what is missing and who is next; the fee and the final weight, if they can be
//! known; or why the PSBT is not valid.

use crate::sign::{Context, Prepared, SignOptions};
use crate::types::{Input, Psbt};
use lydian_consensus::Coin;
use lydian_consensus::spend::sigops_cost;
use lydian_descriptor::{Batch, Keystore, Missing};
use lydian_primitives::build::MutOutput;
use lydian_primitives::{Amount, Height, OutPoint, Output, Transaction};
use lydian_script::{Flags, is_unspendable};
use std::collections::HashMap;

/// Who has to handle a PSBT next: Core's `PSBTRole`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    Creator,
    Updater,
    Signer,
    Finalizer,
    Extractor,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Role::Creator => "creator",
            Role::Updater => "updater",
            Role::Signer => "signer",
            Role::Finalizer => "finalizer",
            Role::Extractor => "extractor",
        }
    }
}

/// One input.
#[derive(Clone, Debug)]
pub struct InputAnalysis {
    pub has_utxo: bool,
    pub is_final: bool,
    pub missing: Missing,
    pub next: Role,
}

/// The size of the final transaction.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    pub weight: usize,
    pub sigops_cost: usize,
}

/// A whole PSBT.
#[derive(Clone, Debug)]
pub struct Analysis {
    pub inputs: Vec<InputAnalysis>,
    pub estimate: Option<Estimate>,
    pub fee: Option<Amount>,
    pub next: Role,
    /// Why the PSBT is not valid; then everything else is empty.
    pub error: Option<String>,
}

/// A sum, if both it and the value are amounts.
fn add(sum: Amount, value: Amount) -> Option<Amount> {
    let sum = value.is_in_money_range().then(|| Amount(sum.0 + value.0));
    sum.filter(|sum| sum.is_in_money_range())
}

fn invalid(error: String) -> Analysis {
    Analysis { inputs: Vec::new(), estimate: None, fee: None, next: Role::Creator, error: Some(error) }
}

impl Psbt {
    /// Core's `AnalyzePSBT`. The inputs are changed as if they were signed without keys.
    pub fn analyze(mut self) -> Analysis {
        let prepared = Prepared::new(&self);
        let Ok(prepared) = prepared else { return invalid("PSBT cannot be made into a valid transaction".to_owned()) };
        let outputs = prepared.outputs();
        let batch = Batch::default();
        let Ok(context) = prepared.context(&outputs, &batch) else {
            return invalid("PSBT cannot be made into a valid transaction".to_owned());
        };
        let (mut total_in, mut inputs) = (Amount(0), Vec::with_capacity(self.inputs.len()));
        for (index, input) in self.inputs.iter_mut().enumerate() {
            match analyze_input(&context, index, input, &mut total_in) {
                Ok(analysis) => inputs.push(analysis),
                Err(error) => return invalid(format!("PSBT is not valid. Input {index} {error}")),
            }
        }
        let next = inputs.iter().map(|input| input.next).min().unwrap_or(Role::Extractor);
        let mut analysis = Analysis { estimate: None, fee: None, next, error: None, inputs };
        if analysis.inputs.iter().all(|input| input.has_utxo) {
            let Some(total_out) = self.outputs.iter().try_fold(Amount(0), |sum, output| add(sum, output.amount)) else {
                return invalid("PSBT is not valid. Output amount invalid".to_owned());
            };
            analysis.fee = Some(Amount(total_in.0 - total_out.0));
            analysis.estimate = self.estimate(&context);
        }
        analysis
    }

    /// The size of the transaction with final scripts of the usual sizes, if all inputs can have them.
    fn estimate(mut self, context: &Context<'_>) -> Option<Estimate> {
        let keys = Keystore::new();
        let mut tx = self.unsigned_tx()?;
        let mut coins: HashMap<OutPoint, &MutOutput> = HashMap::new();
        for (index, input) in self.inputs.iter_mut().enumerate() {
            context.estimate(index, input, &keys).ok()?;
            coins.insert(input.prevout, context.spent.get(index)?.as_ref()?);
            let of_tx = tx.inputs.get_mut(index)?;
            of_tx.script_sig.clone_from(&input.final_script_sig);
            of_tx.witness.clone_from(&input.final_witness);
        }
        let tx = match tx.has_witness() {
            true => Transaction::parse(tx.encode()).ok()?,
            false => Transaction::parse_without_witness(tx.encode()).ok()?,
        };
        let tx = tx.view();
        let coin = |utxo: &MutOutput| {
            let output = Output { value: utxo.value, script_pubkey: &utxo.script_pubkey };
            Coin::new(output, Height(1), true)
        };
        let coins = tx.inputs().filter(|_| !tx.is_coinbase()).map(|input| Some(coin(coins.get(&input.prevout)?)));
        let coins: Vec<Coin> = coins.collect::<Option<_>>()?;
        Some(Estimate { weight: tx.weight(), sigops_cost: sigops_cost(tx, &coins, Flags::STANDARD) })
    }
}

/// Adds the value of the output that the input spends. The error continues a sentence about the input.
fn analyze_input(
    context: &Context<'_>,
    index: usize,
    input: &mut Input,
    total_in: &mut Amount,
) -> Result<InputAnalysis, &'static str> {
    let utxo = context.spent.get(index).and_then(Option::as_ref);
    match utxo {
        Some(utxo) => *total_in = add(*total_in, utxo.value).ok_or("has invalid value")?,
        None if input.non_witness_utxo.is_some() => return Err("specifies invalid prevout"),
        None => {}
    }
    if utxo.is_some_and(|utxo| is_unspendable(&utxo.script_pubkey)) {
        return Err("spends unspendable output");
    }
    let mut analysis = InputAnalysis {
        has_utxo: utxo.is_some(),
        is_final: false,
        missing: Missing::default(),
        next: if utxo.is_some() { Role::Extractor } else { Role::Updater },
    };
    if context.is_verified(index, input) {
        analysis.is_final = true;
        return Ok(analysis);
    }
    let options = SignOptions { sighash_type: None, finalize: true };
    let mut missing = Missing::default();
    analysis.next = match context.sign(index, input, &Keystore::new(), options, Some(&mut missing)) {
        Ok(()) => Role::Finalizer,
        Err(_) => {
            let needs_only_signatures = missing.keys.is_empty()
                && missing.redeem_script.is_none()
                && missing.witness_script.is_none()
                && !missing.signatures.is_empty();
            analysis.missing = missing;
            if needs_only_signatures { Role::Signer } else { Role::Updater }
        }
    };
    Ok(analysis)
}
