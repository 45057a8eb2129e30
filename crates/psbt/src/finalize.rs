//! Final scripts from signatures, and the finished transaction: Core's `FinalizeAndExtractPSBT`.

use crate::sign::{Prepared, SignOptions};
use crate::types::Psbt;
use lydian_descriptor::{Batch, Keystore};
use lydian_primitives::build::MutTx;

impl Psbt {
    /// Makes final scripts of all inputs that are complete. Returns the transaction if all are. `batch` verifies the
    /// signatures.
    pub fn finalize(&mut self, batch: &Batch<'_>) -> Option<MutTx> {
        let prepared = Prepared::new(self).ok()?;
        let outputs = prepared.outputs();
        let context = prepared.context(&outputs, batch).ok()?;
        let (keys, mut is_complete) = (Keystore::new(), true);
        context.plan(&self.inputs, &keys, |input| input.sighash_type);
        for (index, input) in self.inputs.iter_mut().enumerate() {
            let options = SignOptions { sighash_type: input.sighash_type, finalize: true };
            is_complete &= context.sign(index, input, &keys, options, None).is_ok();
        }
        if !is_complete {
            return None;
        }
        let mut tx = self.unsigned_tx()?;
        for (input, known) in tx.inputs.iter_mut().zip(&self.inputs) {
            input.script_sig.clone_from(&known.final_script_sig);
            input.witness.clone_from(&known.final_witness);
        }
        Some(tx)
    }
}
