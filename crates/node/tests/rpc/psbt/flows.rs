//! Random PSBTs through every method, on both programs.

use super::generate::Generator;
use super::maps::{Maps, mangle_bytes};
use crate::chain::Pair;
use crate::raw::{pick, random_creation, random_tx, seeded};
use lydian_primitives::to_hex;
use lydian_stdx::{base64, decode_base64};
use serde_json::Value;

const HASH_TYPES: &[&str] = &[
    "null",
    "null",
    "null",
    "\"DEFAULT\"",
    "\"ALL\"",
    "\"NONE\"",
    "\"SINGLE\"",
    "\"ALL|ANYONECANPAY\"",
    "\"NONE|ANYONECANPAY\"",
    "\"SINGLE|ANYONECANPAY\"",
    "\"all\"",
];

/// A run over random PSBTs.
struct Run {
    pair: Pair,
    made: Generator,
    /// PSBTs that both programs decided.
    count: usize,
    /// Those that Core can read.
    readable: usize,
    complete: usize,
    /// The last PSBT of version 0, for joining.
    last: Option<String>,
}

impl Run {
    fn new(pair: Pair, seed: u64) -> Run {
        let made = Generator::new(&pair, seed);
        Run { pair, made, count: 0, readable: 0, complete: 0, last: None }
    }

    /// The answer of Core, after both were asked.
    fn ask(&self, method: &str, params: &str) -> Value {
        let cores = self.pair.core.call(method, params);
        let answer: Value = serde_json::from_str(&cores.body).unwrap();
        let is_bug = answer["error"]["message"].as_str().is_some_and(|text| text.starts_with("Internal bug detected"));
        if is_bug {
            // Core did not expect final scripts that do not hold.
            let ours = self.pair.lydian.call(method, params);
            assert_eq!(ours.status, cores.status, "{params}");
            assert!(ours.body.contains("The final scripts of the PSBT cannot be verified"), "{params}: {}", ours.body);
        } else {
            self.pair.ask(method, params);
        }
        answer["result"].clone()
    }

    /// Asks all about one PSBT. Returns whether Core can read it.
    fn look_at(&mut self, text: &str) -> bool {
        self.count += 1;
        let decoded = self.ask("decodepsbt", &format!("[\"{text}\"]"));
        if decoded.is_null() {
            return false;
        }
        self.readable += 1;
        self.pair.ask("analyzepsbt", &format!("[\"{text}\"]"));
        let extract = ["", ",true", ",false"][self.made.random.below(3)];
        let finalized = self.ask("finalizepsbt", &format!("[\"{text}\"{extract}]"));
        self.complete += usize::from(finalized["complete"] == true);
        // Core stops if it has to sign for an output of a transaction without inputs.
        decoded["inputs"].as_array().is_some_and(|inputs| !inputs.is_empty())
    }

    fn descriptorprocess(&mut self, text: &str, descriptors: &[String]) -> Option<String> {
        let chosen: Vec<&str> =
            descriptors.iter().filter(|_| self.made.random.below(4) > 0).map(String::as_str).collect();
        let random = &mut self.made.random;
        let (hash_type, flags) = (pick(random, HASH_TYPES), ["true", "false", "null"]);
        let (derivations, finalize) = (flags[random.below(3)], flags[random.below(3)]);
        let params = format!("[\"{text}\",[{}],{hash_type},{derivations},{finalize}]", chosen.join(","));
        Some(self.ask("descriptorprocesspsbt", &params)["psbt"].as_str()?.to_owned())
    }

    /// One PSBT and what becomes of it.
    fn round(&mut self) {
        let made = self.made.psbt();
        let text = base64(&made.maps.encode());
        if !self.look_at(&text) {
            return;
        }
        let mut variants = vec![text.clone()];
        let descriptors = made.descriptors.join(",");
        let updated = self.ask("utxoupdatepsbt", &format!("[\"{text}\",[{descriptors}]]"));
        variants.extend(updated.as_str().map(str::to_owned));
        for _ in 0..2 {
            let from = variants[self.made.random.below(variants.len())].clone();
            if let Some(signed) = self.descriptorprocess(&from, &made.descriptors) {
                self.look_at(&signed);
                variants.push(signed);
            }
        }
        let mut list: Vec<String> = variants.iter().map(|variant| format!("\"{variant}\"")).collect();
        let first = self.made.random.below(list.len());
        list.swap(0, first);
        let combined = self.ask("combinepsbt", &format!("[[{}]]", list.join(",")));
        if let Some(combined) = combined.as_str() {
            self.look_at(combined);
            variants.push(combined.to_owned());
        }
        self.join(&text);
        for _ in 0..3 {
            let from = variants[self.made.random.below(variants.len())].clone();
            self.mangle(&from, &text, &made.descriptors);
        }
    }

    fn mangle(&mut self, from: &str, other: &str, descriptors: &[String]) {
        let mut maps = Maps::decode(&decode_base64(from.as_bytes()).unwrap());
        let random = &mut self.made.random;
        for _ in 0..random.below(3) {
            maps.mangle(random);
        }
        let mut bytes = maps.encode();
        if random.below(3) == 0 {
            mangle_bytes(random, &mut bytes);
        }
        let text = base64(&bytes);
        if self.look_at(&text) {
            self.descriptorprocess(&text, descriptors);
        }
        self.pair.ask("combinepsbt", &format!("[[\"{other}\",\"{text}\"]]"));
        let letters = text.replacen(['A', '='], ["B", "", "*", "=="][self.made.random.below(4)], 1);
        if self.made.random.below(5) == 0 {
            self.pair.ask("decodepsbt", &format!("[\"{letters}\"]"));
        }
    }

    /// Joins with the PSBT before. The order is random, so inputs and outputs are compared as sets.
    fn join(&mut self, text: &str) {
        let last = self.last.replace(text.to_owned());
        let Some(last) = last else { return };
        let params = format!("[[\"{last}\",\"{text}\"]]");
        let [ours, cores] = [&self.pair.lydian, &self.pair.core].map(|server| {
            let answer: Value = serde_json::from_str(&server.call("joinpsbts", &params).body).unwrap();
            answer["result"].as_str().map(str::to_owned)
        });
        let (Some(ours), Some(cores)) = (ours, cores) else {
            self.pair.ask("joinpsbts", &params);
            return;
        };
        let [ours, cores] = [ours, cores].map(|joined| sorted(&joined));
        assert_eq!(ours, cores, "{params}");
    }
}

/// The maps of a joined PSBT and the parts of its transaction, in an order that does not depend on chance.
fn sorted(text: &str) -> (Vec<Vec<u8>>, Maps) {
    let mut all = Maps::decode(&decode_base64(text.as_bytes()).unwrap());
    let maps = &mut all.0;
    let (key, tx) = maps[0].remove(0);
    assert_eq!(key, [0]);
    let tx = lydian_primitives::Transaction::parse_without_witness(tx).unwrap();
    let tx = lydian_primitives::build::MutTx::from(tx.view());
    let mut parts: Vec<Vec<u8>> = tx.inputs.iter().map(|input| input.prevout.to_bytes().to_vec()).collect();
    parts.extend(tx.outputs.iter().map(|output| [&output.value.0.to_le_bytes()[..], &output.script_pubkey].concat()));
    parts.push([tx.version.to_le_bytes(), tx.lock_time.to_le_bytes()].concat());
    parts.sort();
    maps[1..].sort();
    (parts, all)
}

fn run(test: &str, seed: u64, count: usize) {
    let Some(pair) = Pair::start(test, &[]) else { return };
    let mut run = Run::new(pair, seed);
    while run.count < count {
        run.round();
    }
    let Run { pair, readable, complete, count, .. } = run;
    pair.comparison.finish();
    assert!(readable > count / 2 && complete > count / 100, "{count} PSBTs, {readable} readable, {complete} complete");
}

#[test]
fn psbts_are_decided_as_in_core() {
    run("psbts_are_decided", 51, 800);
}

/// The same for many more.
#[test]
#[ignore = "100,000 PSBTs take half an hour: cargo test -p lydian-node --test rpc many_psbts -- --ignored, which make test-peers runs at its end"]
fn many_psbts_are_decided_as_in_core() {
    run("many_psbts_are_decided", 52, 100_000);
}

#[test]
fn psbts_are_created_as_in_core() {
    let Some(pair) = Pair::start("psbts_are_created", &[]) else { return };
    let mut random = seeded(53);
    for _ in 0..400 {
        let params = random_creation(&mut random);
        pair.ask_about_help("createpsbt", &params);
        let version = pick(&mut random, &["0", "2", "1", "null", "-1", "3", "\"2\"", "4294967296"]);
        let inputs = format!("[{{\"txid\":\"{}\",\"vout\":1}}]", "07".repeat(32));
        let params = format!("[{inputs},[{{\"data\":\"00\"}}],7,false,2,{version}]");
        pair.ask_about_help("createpsbt", &params);
        let mut tx = random_tx(&mut random);
        if random.below(3) > 0 {
            tx.inputs.iter_mut().for_each(|input| {
                input.script_sig.clear();
                input.witness.clear();
            });
        }
        let flags = ["null", "true", "false"];
        let (permits, is_witness) = (flags[random.below(3)], flags[random.below(3)]);
        let params = format!("[\"{}\",{permits},{is_witness},{version}]", to_hex(&tx.encode()));
        pair.ask_about_help("converttopsbt", &params);
    }
    pair.comparison.finish();
}

/// Outputs of the chain and of the mempool are found; -txindex finds the whole transaction.
#[test]
fn spent_outputs_are_found_as_in_core() {
    let Some(pair) = Pair::start("spent_outputs_are_found", &["-txindex"]) else { return };
    let tip = pair.feed_mix();
    let mut inputs = Vec::new();
    for height in [1, 150, tip - 1, tip] {
        let hash = pair.core.result("getblockhash", &format!("[{height}]"));
        let block = pair.core.result("getblock", &format!("[{hash},1]"));
        let txs = block["tx"].as_array().unwrap();
        inputs.extend(txs.iter().take(4).map(|txid| format!("{{\"txid\":{txid},\"vout\":0}}")));
    }
    for version in [0, 2] {
        for input in &inputs {
            let created = pair.core.result("createpsbt", &format!("[[{input}],[],0,true,2,{version}]"));
            pair.ask("utxoupdatepsbt", &format!("[{created}]"));
        }
        let created = pair.core.result("createpsbt", &format!("[[{}],[],0,true,2,{version}]", inputs.join(",")));
        pair.ask("utxoupdatepsbt", &format!("[{created}]"));
        pair.ask("descriptorprocesspsbt", &format!("[{created},[]]"));
    }
    pair.comparison.finish();
}

#[test]
fn wrong_arguments_about_psbts() {
    let Some(pair) = Pair::start("wrong_arguments_about_psbts", &[]) else { return };
    let psbt = "cHNidP8BAAoCAAAAAAAAAAAAAA==";
    for method in ["decodepsbt", "analyzepsbt", "finalizepsbt", "combinepsbt", "joinpsbts", "utxoupdatepsbt"] {
        for params in ["[]", "[5]", "[null]", "[\"\"]", "[[]]", "[[\"\"]]", "[[5,5]]", "[[\"\",\"\"]]", "[\"x\",5]"] {
            pair.ask_about_help(method, params);
        }
        pair.ask_about_help(method, &format!("[\"{psbt}\"]"));
        pair.ask_about_help(method, &format!("[[\"{psbt}\",\"{psbt}\"]]"));
    }
    for descriptors in [
        "null",
        "5",
        "[5]",
        "[[]]",
        "[{}]",
        "[{\"desc\":5}]",
        "[\"\"]",
        "[\"pk(x)\"]",
        "[{\"desc\":\"pk(x)\"}]",
        "[{\"desc\":\"raw(51)\",\"range\":\"x\"}]",
        "[{\"desc\":\"raw(51)\",\"range\":[2,1]}]",
        "[{\"desc\":\"raw(51)\",\"range\":2147483648}]",
        "[{\"desc\":\"raw(51)\",\"range\":[0,1000000]}]",
        "[{\"desc\":\"wpkh(tpubD6NzVbkrYhZ4WaWSyoBvQwbpLkojyoTZPRsgXELWz3Popb3qkjcJyJUGLnL4qHHoQvao8ESaAstxYSnhyswJ76uZPStJRJCTKvosUCJZL5B/1h)\"}]",
    ] {
        pair.ask_about_help("utxoupdatepsbt", &format!("[\"{psbt}\",{descriptors}]"));
        for rest in ["", ",\"ALL\"", ",\"all\"", ",5", ",null,5", ",null,null,5"] {
            pair.ask_about_help("descriptorprocesspsbt", &format!("[\"{psbt}\",{descriptors}{rest}]"));
        }
    }
    pair.comparison.finish();
}
