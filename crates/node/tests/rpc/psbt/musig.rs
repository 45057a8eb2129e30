//! `musig()` in the descriptors of PSBTs (BIP-0328, 0373, 0390): both programs know the same about such outputs, make
//! nonces at the same places, and finalize rounds of signing to the same bytes.
//!
//! Without a wallet, Core forgets the secret part of a nonce with the call, so no program makes partial signatures:
//! the signers of the test make them.

use super::maps::{Map, Maps};
use super::signer::{Session, Signers};
use crate::chain::Pair;
use lydian_primitives::{Transaction, Txid, hex};
use lydian_stdx::{base64, decode_base64};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Where the value of an output stands in an input's field of BIP-0174.
const WITNESS_UTXO: u8 = 0x01;

/// Fields of an input (BIP-0373): key of the participant, key of the script, leaf.
const NONCE: u8 = 0x1b;
const PARTIAL: u8 = 0x1c;

/// Names stand for keys: a to d are plain, x to z extended.
const FORMS: &[&str] = &[
    "tr(musig(@a,@b))",
    "tr(musig(@c,@a,@b))",
    "tr(musig(@a))",
    "rawtr(musig(@a,@b))",
    "tr(musig(@x/0/*,@y/1/*))",
    "tr(musig(@x,@y,@z)/0/*)",
    "tr(musig(@x,@y)/3,pk(@d))",
    "tr(@d,pk(musig(@a,@b)))",
    "tr(@d,pk(musig(@x,@y)/1/*))",
    "tr(@d,and_v(v:pk(musig(@a,@c)),pk(@b)))",
    "tr(musig(@a,@b),{pk(musig(@a,@c)),pk(musig(@b,@c))})",
    "tr(musig([0badc0de/44h/1]@a,@x/5),multi_a(1,@b,@c))",
    "tr(musig(@a,@a))",
];

/// Each form is paid to at this position, and its next owner at the one behind.
const POSITION: usize = 1;

const HASH_TYPES: &[(&str, u8)] = &[("DEFAULT", 0), ("ALL", 1), ("SINGLE|ANYONECANPAY", 0x83)];

/// Each program's answer.
fn answers(pair: &Pair, method: &str, params: &Value) -> [Value; 2] {
    [&pair.lydian, &pair.core].map(|server| server.result(method, &params.to_string()))
}

/// The answer of Core, if Lydian's is the same.
fn ask(pair: &Pair, method: &str, params: &Value) -> Value {
    let [ours, cores] = [&pair.lydian, &pair.core].map(|server| server.call(method, &params.to_string()).body);
    assert_eq!(ours, cores, "{method} {params}");
    serde_json::from_str::<Value>(&cores).unwrap()["result"].clone()
}

fn decode(psbt: &Value) -> Maps {
    Maps::decode(&decode_base64(psbt.as_str().unwrap().as_bytes()).unwrap())
}

fn text(maps: &Maps) -> String {
    base64(&maps.encode())
}

/// The PSBT without the values of the nonces that it has more than another, and those.
fn without_nonces(psbt: &Value, before: &Maps) -> (Maps, Map) {
    let mut maps = decode(psbt);
    let mut found = Map::new();
    let known = &before.0[1];
    for field in maps.0[1].iter_mut().filter(|field| field.0[0] == NONCE && !known.contains(field)) {
        found.push((field.0.clone(), std::mem::take(&mut field.1)));
    }
    (maps, found)
}

/// A coin of a form, and what both programs said about it.
struct Coin<'t> {
    pair: &'t Pair,
    signers: &'t Signers,
    form: &'static str,
    /// The names of those who sign together.
    participants: Vec<&'static str>,
    /// The transaction that spends it.
    tx: Transaction,
    /// The PSBT with what the descriptor knows.
    updated: Value,
    hash_type: (&'static str, u8),
}

impl<'t> Coin<'t> {
    fn position(form: &str) -> Option<usize> {
        form.contains('*').then_some(POSITION)
    }

    /// The descriptor with these private keys, as an argument of methods.
    fn descriptors(&self, private: &[&str]) -> Value {
        let text = self.signers.descriptor(self.form, private);
        match Coin::position(self.form) {
            Some(position) => json!([{"desc": text, "range": [0, position + 1]}]),
            None => json!([text]),
        }
    }

    /// Creates the transaction that spends an output of `txid`, and has both programs update it.
    fn new(pair: &'t Pair, signers: &'t Signers, form: &'static str, number: usize, txid: &Value) -> Coin<'t> {
        let calls: Vec<&str> = form.split("musig(").skip(1).filter_map(|call| call.split(')').next()).collect();
        let takes_part = |name: &&str| calls.iter().any(|call| call.contains(&format!("@{name}")));
        let participants = ["a", "b", "c", "x", "y", "z"].into_iter().filter(takes_part).collect();
        let address = address(pair, &signers.descriptor(form, &[]), Coin::position(form).map(|at| at + 1));
        let (inputs, outputs) = (json!([{"txid": txid, "vout": 0}]), json!([{address: 49.9999}]));
        let tx = pair.core.result("createrawtransaction", &json!([inputs, outputs]).to_string());
        let created = ask(pair, "createpsbt", &json!([inputs, outputs, 0, true, 2, number % 2 * 2]));
        let tx = Transaction::parse(hex(tx.as_str().unwrap()).unwrap()).unwrap();
        let hash_type = HASH_TYPES[number % HASH_TYPES.len()];
        let mut coin = Coin { pair, signers, form, participants, tx, updated: Value::Null, hash_type };
        coin.updated = ask(pair, "utxoupdatepsbt", &json!([created, coin.descriptors(&[])]));
        coin
    }

    fn params(&self, psbt: &Value, private: &[&str], finalize: bool) -> Value {
        json!([psbt, self.descriptors(private), self.hash_type.0, true, finalize])
    }

    /// Has both programs process a PSBT. Returns both answers, which are the same but for nonces.
    fn process(&self, psbt: &Value, private: &[&str]) -> [Value; 2] {
        let (params, before) = (self.params(psbt, private, true), decode(psbt));
        let both = answers(self.pair, "descriptorprocesspsbt", &params);
        let [(ours, our_nonces), (cores, core_nonces)] = both.each_ref().map(|of| without_nonces(&of["psbt"], &before));
        assert_eq!(ours, cores, "{params}");
        for name in ["complete", "hex"] {
            assert_eq!(both[0][name], both[1][name], "{params}");
        }
        for (ours, cores) in our_nonces.iter().zip(&core_nonces) {
            assert!(ours.0 == cores.0 && ours.1 != cores.1, "{params}: nonces by chance, at the same places");
        }
        let is_nonce = |field: &(Vec<u8>, Vec<u8>)| Session::is_nonce(&field.1);
        assert!(our_nonces.iter().chain(&core_nonces).all(is_nonce), "{params}");
        both
    }

    /// Nonces of all participants, made by each program and by both together. Returns the PSBT of Core.
    fn nonces(&self) -> Value {
        let count = self.participants.len();
        let answers: Vec<[Value; 2]> = (0..1_usize << count)
            .map(|chosen| {
                let is_chosen = |at: &usize| chosen >> at & 1 == 1;
                let private: Vec<&str> = (0..count).filter(is_chosen).map(|at| self.participants[at]).collect();
                self.process(&self.updated, &private)
            })
            .collect();
        self.process(&self.updated, &["a", "b", "c", "x", "y", "z"]);
        // Lydian is the first signer, Core all others.
        let [ours, cores] = [&answers[1][0]["psbt"], &answers[answers.len() - 2][1]["psbt"]];
        for psbt in [ours, cores] {
            ask(self.pair, "decodepsbt", &json!([psbt]));
            ask(self.pair, "analyzepsbt", &json!([psbt]));
        }
        let combined = ask(self.pair, "combinepsbt", &json!([[ours, cores]]));
        let all = &answers[answers.len() - 1][1];
        assert_eq!(all["complete"], false, "{}", self.form);
        let before = decode(&self.updated);
        let places = |psbt: &Value| -> BTreeSet<Vec<u8>> {
            without_nonces(psbt, &before).1.into_iter().map(|(key, _)| key).collect()
        };
        assert_eq!(places(&combined), places(&all["psbt"]), "{}", self.form);
        all["psbt"].clone()
    }

    /// A round of signing in each session: the nonces are those of the signers. Returns the transactions.
    fn sign(&self, with_nonces: &Value) -> Vec<Value> {
        let maps = decode(with_nonces);
        let input = &maps.0[1];
        let of_key = |field: &&(Vec<u8>, Vec<u8>)| field.0[0] == NONCE;
        let sessions: BTreeSet<Vec<u8>> = input.iter().filter(of_key).map(|field| field.0[34..].to_vec()).collect();
        let utxo = &input.iter().find(|field| field.0 == [WITNESS_UTXO]).unwrap().1;
        let mut complete = Vec::new();
        for place in sessions {
            let session = Session::new(input, &place, &self.tx, utxo, self.hash_type.1);
            let (nonces, partials) = session.run(self.signers);
            let field = |kind: u8, key: &[u8], value: &[u8]| ([&[kind][..], key, &place].concat(), value.to_vec());
            let nonces: Map = nonces.iter().map(|(key, nonce)| field(NONCE, key, nonce)).collect();
            let partials: Map = partials.iter().map(|(key, partial)| field(PARTIAL, key, partial)).collect();
            let mut agreed = maps.clone();
            agreed.0[1].retain(|field| field.0[0] != NONCE);
            agreed.0[1].extend(nonces);
            // A program that has the keys does not have the secret part of these nonces.
            let answers = self.process(&json!(text(&agreed)), &self.participants);
            assert_eq!(answers[1]["complete"], false, "{}", self.form);
            assert!(!decode(&answers[1]["psbt"]).0[1].iter().any(|field| field.0[0] == PARTIAL), "{}", self.form);
            let mut signed = agreed;
            signed.0[1].extend(partials);
            complete.push(self.finish(&signed));
            self.spoil(&signed);
        }
        complete
    }

    /// The transaction of a PSBT with all partial signatures, which both accept.
    fn finish(&self, signed: &Maps) -> Value {
        let psbt = json!(text(signed));
        ask(self.pair, "decodepsbt", &json!([psbt]));
        ask(self.pair, "analyzepsbt", &json!([psbt]));
        for extract in [true, false] {
            ask(self.pair, "finalizepsbt", &json!([psbt, extract]));
        }
        ask(self.pair, "descriptorprocesspsbt", &self.params(&psbt, &[], false));
        ask(self.pair, "descriptorprocesspsbt", &self.params(&psbt, &[], true));
        // Another key may have to sign.
        let [_, answer] = self.process(&psbt, &["b"]);
        assert_eq!(answer["complete"], true, "{}", self.form);
        let accepted = ask(self.pair, "testmempoolaccept", &json!([[answer["hex"]], 0]));
        assert_eq!(accepted[0]["allowed"], true, "{}: {accepted}", self.form);
        answer["hex"].clone()
    }

    /// Partial signatures and nonces that are wrong, at the wrong place or missing.
    fn spoil(&self, signed: &Maps) {
        let places = |kind: u8| -> Vec<usize> {
            let fields = signed.0[1].iter().enumerate();
            fields.filter(|(_, field)| field.0[0] == kind).map(|(at, _)| at).collect()
        };
        let (nonce, partial) = (places(NONCE), places(PARTIAL));
        let last = |value: &mut Vec<u8>| *value.last_mut().unwrap() ^= 1;
        let changes: [&dyn Fn(&mut Map); 7] = [
            &|map| last(&mut map[partial[0]].1),
            &|map| drop(map.remove(partial[0])),
            &|map| drop(map.remove(nonce[0])),
            &|map| map[partial[0]].1.fill(0xff),
            &|map| {
                let other = map[*nonce.last().unwrap()].1.clone();
                map[nonce[0]].1 = other;
            },
            &|map| {
                let other = map[*partial.last().unwrap()].1.clone();
                map[partial[0]].1 = other;
            },
            // The participants in another order make another key.
            &|map| {
                for field in map.iter_mut().filter(|field| field.0[0] == 0x1a) {
                    let mut keys: Vec<&[u8]> = field.1.chunks(33).collect();
                    keys.reverse();
                    field.1 = keys.concat();
                }
            },
        ];
        for change in changes {
            let mut maps = signed.clone();
            change(&mut maps.0[1]);
            let psbt = json!(text(&maps));
            for method in ["decodepsbt", "analyzepsbt", "finalizepsbt"] {
                ask(self.pair, method, &json!([psbt]));
            }
            ask(self.pair, "descriptorprocesspsbt", &self.params(&psbt, &[], true));
            self.process(&psbt, &self.participants);
        }
    }
}

fn address(pair: &Pair, descriptor: &str, position: Option<usize>) -> String {
    let known = ask(pair, "getdescriptorinfo", &json!([descriptor]))["descriptor"].clone();
    let position = position.map(|at| json!([at, at]));
    let params = position.map_or(json!([known]), |range| json!([known, range]));
    ask(pair, "deriveaddresses", &params)[0].as_str().unwrap().to_owned()
}

#[test]
fn outputs_of_several_signers() {
    let Some(pair) = Pair::start("psbt-musig", &[]) else { return };
    let signers = Signers::new();
    let mut coinbases = Vec::new();
    ask(&pair, "setmocktime", &json!([1_750_000_000]));
    for form in FORMS {
        let address = address(&pair, &signers.descriptor(form, &[]), Coin::position(form));
        let hash = ask(&pair, "generatetoaddress", &json!([1, address]))[0].clone();
        coinbases.push(ask(&pair, "getblock", &json!([hash]))["tx"][0].clone());
    }
    ask(&pair, "generatetodescriptor", &json!([100, "raw(51)"]));
    let (mut spent, mut sessions) = (BTreeSet::new(), 0);
    for (number, (form, txid)) in FORMS.iter().zip(&coinbases).enumerate() {
        // A participant that occurs twice has one nonce, which is not enough.
        let is_twice = form.contains("(@a,@a)");
        let coin = Coin::new(&pair, &signers, form, number, txid);
        let with_nonces = coin.nonces();
        if is_twice {
            ask(&pair, "finalizepsbt", &json!([with_nonces]));
            continue;
        }
        let complete = coin.sign(&with_nonces);
        sessions += complete.len();
        let answer = ask(&pair, "sendrawtransaction", &json!([complete.last().unwrap(), 0]));
        spent.insert(answer.as_str().unwrap().parse::<Txid>().unwrap());
    }
    // One form has three keys of several signers.
    assert_eq!((spent.len(), sessions), (FORMS.len() - 1, FORMS.len() + 1));
    ask(&pair, "generatetodescriptor", &json!([1, "raw(51)"]));
    assert_eq!(ask(&pair, "getrawmempool", &json!([])), json!([]));
}
