//! The taproot and tapscript tests dumped by Core's functional tests (`script_assets_test`, script_tests.cpp): each
//! spends one input, validly and invalidly, under every set of consensus flags that determines the result.

use crate::common::lanes::{Batch, Decided};
use crate::common::*;
use lydian_primitives::build::MutTx;
use lydian_primitives::{Reader, Transaction};
use lydian_script::{Flags, ScriptError, TxContext};
use serde_json::Value;

/// Core's `AllConsensusFlags`: every set of consensus flags in which TAPROOT implies WITNESS and WITNESS implies P2SH.
fn consensus_flag_sets() -> Vec<Flags> {
    let others = [Flags::DERSIG, Flags::NULLDUMMY, Flags::CHECKLOCKTIMEVERIFY, Flags::CHECKSEQUENCEVERIFY];
    let chain = [Flags::P2SH, Flags::WITNESS, Flags::TAPROOT];
    let mut sets = Vec::new();
    for depth in 0..=chain.len() {
        let base = chain[..depth].iter().fold(Flags::NONE, |set, flag| set | *flag);
        for bits in 0..1usize << others.len() {
            let chosen = others.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1);
            sets.push(chosen.fold(base, |set, (_, flag)| set | *flag));
        }
    }
    sets
}

struct AssetTest<'j> {
    json: &'j Value,
    tx: MutTx,
    input: usize,
    spent: Vec<(i64, Vec<u8>)>,
    flags: Flags,
    is_final: bool,
}

impl<'j> AssetTest<'j> {
    fn read(json: &'j Value) -> AssetTest<'j> {
        let prevout = |value: &Value| {
            let bytes = bytes(value);
            let mut reader = Reader::new(&bytes);
            let output = (reader.i64().unwrap(), reader.var_bytes().unwrap().to_vec());
            reader.finish().unwrap();
            output
        };
        AssetTest {
            json,
            tx: MutTx::from(Transaction::parse(bytes(&json["tx"])).unwrap().view()),
            input: usize::try_from(json["index"].as_u64().unwrap()).unwrap(),
            spent: list(&json["prevouts"]).iter().map(prevout).collect(),
            flags: flags(&json["flags"]),
            is_final: json["final"] == true,
        }
    }

    /// Verifies the transaction with the scriptSig and witness of this case under each of the sets. Adds it to `batch`
    /// under the flags of the test.
    fn verify(
        &self,
        case_name: &str,
        sets: impl Iterator<Item = Flags>,
        batch: &mut Batch,
    ) -> Option<Vec<Result<(), ScriptError>>> {
        let case = self.json.get(case_name)?;
        let mut tx = self.tx.clone();
        let input = &mut tx.inputs[self.input];
        input.script_sig = bytes(&case["scriptSig"]);
        input.witness = list(&case["witness"]).iter().map(bytes).collect();
        let tx = tx.to_transaction().unwrap();
        let spent = outputs(&self.spent);
        let context = TxContext::new(tx.view(), &spent).unwrap();
        let of_test = batch.verify(&context, self.input, self.flags);
        assert_eq!(of_test.is_ok(), case_name == "success", "{}", self.json["comment"]);
        Some(sets.map(|flags| verify(&context, self.input, flags)).collect())
    }
}

/// checklist: 37, 48, 49, 50, 52, 53
#[test]
fn core_script_assets_test() {
    let all = consensus_flag_sets();
    let file = testdata_json("vectors/taproot/script_assets_test.json.zst");
    let (mut successes, mut failures, mut verified) = (0, 0, 0);
    let mut batch = Batch::default();
    for json in list(&file) {
        let test = AssetTest::read(json);
        // A spend that succeeds also does so under fewer flags; one marked final, under any.
        let sets = all.iter().copied().filter(|set| test.is_final || test.flags.contains(*set));
        if let Some(results) = test.verify("success", sets, &mut batch) {
            assert!(results.iter().all(Result::is_ok), "{results:?}: {}", json["comment"]);
            successes += 1;
            verified += results.len();
        }
        // A spend that fails also does so under more flags.
        let sets = all.iter().copied().filter(|set| set.contains(test.flags));
        if let Some(results) = test.verify("failure", sets, &mut batch) {
            assert!(!results.is_empty() && results.iter().all(Result::is_err), "{results:?}: {}", json["comment"]);
            failures += 1;
            verified += results.len();
        }
    }
    assert_eq!(list(&file).len(), 2760);
    report(&format!("script_assets_test: {successes} spends, {failures} failures, {verified} verifications"));
    assert_eq!((successes, failures, verified), (2760, 2483, 178_035));
    assert_eq!(batch.settle("script_assets_test"), Decided { inputs: 2961, held: 2760, lanes: 5234, reference: 0 });
}
