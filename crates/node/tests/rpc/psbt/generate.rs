//! Random PSBTs: inputs of every kind, with as much about them as a program may know, and descriptors that know more.

use super::maps::{Map, Maps, any_field};
use crate::chain::Pair;
use crate::raw::{Key, Lock, keys, lock, seeded};
use lydian_consensus::Chain;
use lydian_descriptor::{Descriptors, TaprootTree};
use lydian_hash::{hash160, ripemd160, sha256, sha256d};
use lydian_primitives::build::{MutInput, MutOutput, MutTx, write_var_bytes};
use lydian_primitives::{Amount, OutPoint, Txid, to_hex, write_compact_size};
use lydian_stdx::SplitMix64;

/// A private root key of test chains.
const ROOT: &str =
    "tprv8ZgxMBicQKsPd9TeAdPADNnSyH9SSUUbTVeFszDE23Ki6TBB5nCefAdHkK8Fm3qMQR6sHwA56zqRmKmxnHk37JkiFzvncDqoKmPWubu7hDF";

/// What hash locks are opened with.
const PREIMAGE: [u8; 32] = [7; 32];

/// Makes PSBTs.
pub(super) struct Generator {
    pub(super) random: SplitMix64,
    keys: Vec<Key>,
}

/// A PSBT, and the descriptors of its inputs, as JSON.
pub(super) struct Made {
    pub(super) maps: Maps,
    pub(super) descriptors: Vec<String>,
}

/// An input before it is written.
struct Planned {
    lock: Lock,
    /// Amount of the output that it spends.
    value: i64,
    /// A transaction that contains the output.
    previous: MutTx,
    vout: u32,
    sequence: u32,
    fields: Map,
}

fn field(kind: u8, data: &[u8], value: impl Into<Vec<u8>>) -> (Vec<u8>, Vec<u8>) {
    ([&[kind][..], data].concat(), value.into())
}

impl Generator {
    pub(super) fn new(pair: &Pair, seed: u64) -> Generator {
        Generator { random: seeded(seed), keys: keys(pair, 8) }
    }

    fn below(&mut self, count: usize) -> usize {
        self.random.below(count)
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.random.below(count) == 0
    }

    /// A compressed key as text: with or without its private key, with or without an origin.
    fn key_text(&mut self, private_per_cent: usize) -> String {
        let index = self.below(self.keys.len() - 2);
        let is_private = self.below(100) < private_per_cent;
        let key = if is_private { self.keys[index].wif.clone() } else { to_hex(&self.keys[index].public) };
        if self.one_in(3) { format!("[0badc0de/44h/{}]{key}", self.below(9)) } else { key }
    }

    /// A descriptor, with a range or not.
    fn descriptor(&mut self) -> String {
        let per_cent = [0, 60, 100][self.below(3)];
        let [a, b, c] = [(); 3].map(|()| self.key_text(per_cent));
        let root = format!("{ROOT}/{}/*", self.below(3));
        let hash = to_hex(&sha256(&PREIMAGE));
        match self.below(22) {
            0 => format!("pkh({a})"),
            1 => format!("wpkh({a})"),
            2 => format!("sh(wpkh({a}))"),
            3 => format!("wsh(multi(2,{a},{b}))"),
            4 => format!("sh(wsh(sortedmulti(1,{a},{b},{c})))"),
            5 => format!("sh(multi(2,{a},{b},{c}))"),
            6 | 7 => format!("tr({a})"),
            8 => format!("tr({a},pk({b}))"),
            9 => format!("tr({a},{{pk({b}),multi_a(2,{b},{c})}})"),
            10 => format!("tr({a},{{and_v(v:pk({b}),older(10)),pkh({c})}})"),
            11 => {
                let other = to_hex(&hash160(&PREIMAGE));
                format!("tr({a},{{and_v(v:pk({b}),hash160({other})),{{pk({b}),and_v(v:pk({c}),sha256({hash}))}}}})")
            }
            12 => format!("rawtr({a})"),
            13 => format!("combo({a})"),
            14 => format!("wsh(and_v(v:pk({a}),or_d(pk({b}),older(5))))"),
            15 => format!("wsh(and_v(v:pk({a}),sha256({hash})))"),
            16 => format!("wpkh({root})"),
            17 => format!("tr({root},pk({ROOT}/7/*))"),
            18 => format!("wsh(sortedmulti(2,{root},{b}))"),
            19 => format!("sh(wpkh({ROOT}/1h/*h))"),
            20 => format!("wsh(thresh(2,pk({a}),s:pk({b}),sln:after(100)))"),
            _ => format!("tr({a},multi_a(1,{a},{b},{c}))"),
        }
    }

    /// The output of a descriptor, or one whose scripts the PSBT has to know.
    fn planned_lock(&mut self, descriptors: &mut Vec<String>) -> Lock {
        if self.one_in(2) {
            return lock(&mut self.random, &self.keys);
        }
        let text = self.descriptor();
        let is_range = text.contains("/*");
        let position = if is_range { u32::try_from(self.below(3)).unwrap() } else { 0 };
        // A key twice is not sane in miniscript.
        let Ok(parsed) = Descriptors::parse(&text, Chain::Regtest, false) else {
            return self.planned_lock(descriptors);
        };
        let outputs = parsed.expand(0, position).unwrap();
        let script = outputs[self.random.below(outputs.len())].script.clone();
        if !self.one_in(8) {
            descriptors.push(match is_range {
                true => format!("{{\"desc\":\"{text}\",\"range\":[0,2]}}"),
                false => format!("\"{text}\""),
            });
        }
        Lock { script, redeem_script: None, witness_script: None }
    }

    fn planned(&mut self, descriptors: &mut Vec<String>) -> Planned {
        let lock = self.planned_lock(descriptors);
        let value = [100_000, 1, 0, 2_100_000_000_000_000, -1, 2_100_000_000_000_001][match self.below(20) {
            0 => self.below(6),
            of => of % 3,
        }];
        let vout = u32::try_from(self.below(3)).unwrap();
        let output = |script: Vec<u8>| MutOutput { value: Amount(value), script_pubkey: script };
        let mut outputs: Vec<MutOutput> = (0..vout).map(|_| output(vec![0x51])).collect();
        outputs.push(output(lock.script.clone()));
        let prevout = OutPoint { txid: Txid([self.random.byte(); 32]), vout: 0 };
        let witness = if self.one_in(3) { vec![vec![1, 2, 3]] } else { Vec::new() };
        let input = MutInput { prevout, script_sig: Vec::new(), sequence: 5, witness };
        let lock_time = u32::from(self.random.byte());
        let previous = MutTx { version: 2, inputs: vec![input], outputs, lock_time };
        let sequence = [10, 5, 0, 0x0040_0001, 0xffff_fffd, 0xffff_fffe, 0xffff_ffff][self.below(7)];
        let fields = self.input_fields(&lock, value, &previous);
        Planned { lock, value, previous, vout, sequence, fields }
    }

    fn origin(&mut self) -> Vec<u8> {
        let mut origin = vec![0xde, 0xad, 0xbe, self.random.byte()];
        for _ in 0..self.below(4) {
            let step = u32::try_from(self.below(100)).unwrap() | if self.one_in(2) { 1 << 31 } else { 0 };
            origin.extend(step.to_le_bytes());
        }
        origin
    }

    /// What a program may know about an input.
    fn input_fields(&mut self, lock: &Lock, value: i64, previous: &MutTx) -> Map {
        let mut fields = Map::new();
        let share = self.below(3);
        if self.below(3) < share {
            fields.push(field(0x00, &[], previous.encode()));
        }
        if self.below(3) < 2 {
            let mut utxo = value.to_le_bytes().to_vec();
            write_var_bytes(&mut utxo, &lock.script);
            fields.push(field(0x01, &[], utxo));
        }
        for (kind, script) in [(0x04, &lock.redeem_script), (0x05, &lock.witness_script)] {
            if let Some(script) = script
                && !self.one_in(8)
            {
                fields.push(field(kind, &[], script.clone()));
            }
        }
        if self.one_in(6) {
            let sighash_type = [0_i32, 1, 2, 3, 0x81, 0x82, 0x83, 4, 257, -1][self.below(10)];
            fields.push(field(0x03, &[], sighash_type.to_le_bytes()));
        }
        if self.one_in(3) {
            for index in 0..self.keys.len() {
                if self.one_in(3) {
                    let public = self.keys[index].public.clone();
                    fields.push(field(0x06, &public, self.origin()));
                }
            }
        }
        if self.one_in(4) {
            let hashes: [(u8, Vec<u8>); 4] = [
                (0x0a, ripemd160(&PREIMAGE).to_vec()),
                (0x0b, sha256(&PREIMAGE).to_vec()),
                (0x0c, hash160(&PREIMAGE).to_vec()),
                (0x0d, sha256d(&PREIMAGE).to_vec()),
            ];
            for (kind, hash) in hashes {
                if self.one_in(2) {
                    fields.push(field(kind, &hash, PREIMAGE));
                }
            }
        }
        if self.one_in(4) {
            self.taproot_fields(&mut fields);
        }
        if self.one_in(12) {
            self.musig_fields(&mut fields, true);
        }
        if self.one_in(15) {
            fields.push(field(0x07, &[], [vec![0x51], vec![0, 0x51], vec![1, 7]][self.below(3)].clone()));
        }
        if self.one_in(15) {
            fields.push(field(0x08, &[], [vec![1, 1, 7], vec![2, 0, 1, 0x51], vec![0]][self.below(3)].clone()));
        }
        while self.one_in(4) {
            fields.push(any_field(&mut self.random));
        }
        fields
    }

    fn x_only(&mut self) -> Vec<u8> {
        let index = self.below(self.keys.len());
        self.keys[index].public[1..33].to_vec()
    }

    fn taproot_origin(&mut self) -> (Vec<u8>, Vec<u8>) {
        let mut value = Vec::new();
        let leaves = self.below(3);
        write_compact_size(&mut value, leaves);
        (0..leaves).for_each(|_| value.extend([self.random.byte(); 32]));
        value.extend(self.origin());
        (self.x_only(), value)
    }

    fn taproot_fields(&mut self, fields: &mut Map) {
        let x_only = self.x_only();
        let leaf = scripts_pk(&x_only);
        if self.one_in(2) {
            fields.push(field(0x17, &[], x_only.clone()));
        }
        if self.one_in(3) {
            fields.push(field(0x18, &[], [[7; 32], [0; 32]][self.below(2)]));
        }
        if self.one_in(5) {
            let size = 64 + self.below(2);
            fields.push(field(0x13, &[], vec![1; size]));
        }
        if self.one_in(3) {
            let size = 64 + self.below(2);
            fields.push(field(0x14, &[&x_only[..], &[7; 32]].concat(), vec![1; size]));
        }
        for _ in 0..self.below(3) {
            let nodes = vec![self.random.byte(); 32 * self.below(3)];
            let version = [0xc0, 0xc0, 0xc2, 0x50][self.below(4)];
            let control = [&[0xc0][..], &x_only, &nodes].concat();
            fields.push(field(0x15, &control, [&leaf[..], &[version]].concat()));
        }
        for _ in 0..self.below(3) {
            let (key, value) = self.taproot_origin();
            fields.push(field(0x16, &key, value));
        }
    }

    /// Participants of a key that none of them has, with nonces and partial signatures.
    fn musig_fields(&mut self, fields: &mut Map, is_input: bool) {
        let keys: Vec<Vec<u8>> = self.keys[..6].iter().map(|key| key.public.clone()).collect();
        let aggregate = keys[self.below(6)].clone();
        let participants: Vec<u8> = (0..self.below(4)).flat_map(|_| keys[self.random.below(6)].clone()).collect();
        fields.push(field(if is_input { 0x1a } else { 0x08 }, &aggregate, participants));
        if !is_input {
            return;
        }
        for _ in 0..self.below(4) {
            let leaf = if self.one_in(2) { vec![7; 32] } else { Vec::new() };
            let data = [keys[self.below(6)].clone(), aggregate.clone(), leaf].concat();
            let nonce = [&keys[self.below(6)][..], &keys[self.below(6)][..]].concat();
            match self.one_in(2) {
                true => fields.push(field(0x1b, &data, nonce)),
                false => fields.push(field(0x1c, &data, [self.random.byte(); 32])),
            }
        }
    }

    fn output_fields(&mut self) -> Map {
        let mut fields = Map::new();
        if self.one_in(3) {
            fields.push(field(0x00, &[], vec![0x51]));
        }
        if self.one_in(3) {
            fields.push(field(0x01, &[], scripts_pk(&[2; 33])));
        }
        if self.one_in(3) {
            let index = self.below(self.keys.len());
            let public = self.keys[index].public.clone();
            fields.push(field(0x02, &public, self.origin()));
        }
        if self.one_in(3) {
            fields.push(field(0x05, &[], self.x_only()));
        }
        if self.one_in(3) {
            let depths: &[u8] = [&[0][..], &[1, 1], &[1, 2, 2], &[1], &[2, 2, 1], &[0, 0]][self.below(6)];
            let mut value = Vec::new();
            for depth in depths {
                value.extend([*depth, 0xc0]);
                let script = scripts_pk(&self.x_only());
                write_var_bytes(&mut value, &script);
            }
            fields.push(field(0x06, &[], value));
        }
        if self.one_in(3) {
            let (key, value) = self.taproot_origin();
            fields.push(field(0x07, &key, value));
        }
        if self.one_in(8) {
            self.musig_fields(&mut fields, false);
        }
        while self.one_in(5) {
            fields.push(any_field(&mut self.random));
        }
        fields
    }

    fn output_script(&mut self, descriptors: &mut Vec<String>) -> Vec<u8> {
        match self.below(4) {
            0 => vec![0x6a, 1, 7],
            1 => {
                let key = self.x_only().try_into().unwrap();
                let tree = TaprootTree::new(key, vec![(0, 0xc0, scripts_pk(&key))]).unwrap();
                [&[0x51, 32][..], &tree.output_key()].concat()
            }
            _ => self.planned_lock(descriptors).script,
        }
    }

    /// A PSBT of either version.
    pub(super) fn psbt(&mut self) -> Made {
        let mut descriptors = Vec::new();
        let inputs: Vec<Planned> = (0..1 + self.below(3)).map(|_| self.planned(&mut descriptors)).collect();
        let count = self.below(4);
        let mut outputs: Vec<MutOutput> = Vec::new();
        for _ in 0..count {
            let script_pubkey = self.output_script(&mut descriptors);
            let value = Amount([1_000, 0, 2_100_000_000_000_001, -1][if self.one_in(15) { self.below(4) } else { 0 }]);
            outputs.push(MutOutput { value, script_pubkey });
        }
        let tx = MutTx {
            version: [1, 2, 2, 3, 0xffff_ffff][self.below(5)],
            lock_time: [0, 100, 101, 500_000_001][self.below(4)],
            inputs: inputs.iter().map(spend).collect(),
            outputs,
        };
        for key in &self.keys {
            if self.random.below(3) == 0 {
                descriptors.push(format!("\"pk({})\"", key.wif));
            }
        }
        Made { maps: self.maps(tx, inputs), descriptors }
    }

    fn maps(&mut self, tx: MutTx, inputs: Vec<Planned>) -> Maps {
        let is_version_2 = self.one_in(2);
        let mut maps = vec![self.global(&tx, is_version_2)];
        for input in inputs {
            let mut fields = input.fields;
            if is_version_2 {
                fields.push(field(0x0e, &[], input.previous.txid().0));
                fields.push(field(0x0f, &[], input.vout.to_le_bytes()));
                if !self.one_in(4) {
                    fields.push(field(0x10, &[], input.sequence.to_le_bytes()));
                }
                if self.one_in(6) {
                    let time = 500_000_000 + u32::from(self.random.byte());
                    fields.push(field(0x11, &[], time.to_le_bytes()));
                }
                if self.one_in(6) {
                    let height = 1 + u32::from(self.random.byte());
                    fields.push(field(0x12, &[], height.to_le_bytes()));
                }
            }
            debug_assert!(input.value < i64::MAX && !input.lock.script.is_empty());
            maps.push(fields);
        }
        for output in &tx.outputs {
            let mut fields = self.output_fields();
            if is_version_2 {
                fields.push(field(0x03, &[], output.value.0.to_le_bytes()));
                fields.push(field(0x04, &[], output.script_pubkey.clone()));
            }
            maps.push(fields);
        }
        Maps(maps)
    }

    fn global(&mut self, tx: &MutTx, is_version_2: bool) -> Map {
        let mut global = Map::new();
        if is_version_2 {
            global.push(field(0x02, &[], tx.version.to_le_bytes()));
            if self.one_in(2) {
                global.push(field(0x03, &[], tx.lock_time.to_le_bytes()));
            }
            for (kind, count) in [(0x04, tx.inputs.len()), (0x05, tx.outputs.len())] {
                let mut value = Vec::new();
                write_compact_size(&mut value, count);
                global.push(field(kind, &[], value));
            }
            if self.one_in(2) {
                global.push(field(0x06, &[], vec![self.random.byte() % 9]));
            }
            global.push(field(0xfb, &[], 2_u32.to_le_bytes()));
        } else {
            global.push(field(0x00, &[], tx.encode_stripped()));
            if self.one_in(4) {
                global.push(field(0xfb, &[], 0_u32.to_le_bytes()));
            }
        }
        for _ in 0..self.below(3) {
            let key = self.keys[self.random.below(6)].public.clone();
            let depth = [0, 1, 3][self.below(3)];
            let parent = if depth == 0 && !self.one_in(8) { [0; 8] } else { [self.random.byte() % 2; 8] };
            let xpub = [&[4, 0x35, 0x87, 0xcf, depth][..], &parent, &[self.random.byte() % 2; 32], &key].concat();
            global.push(field(0x01, &xpub, self.origin()));
        }
        while self.one_in(4) {
            global.push(any_field(&mut self.random));
        }
        global
    }
}

fn spend(input: &Planned) -> MutInput {
    let prevout = OutPoint { txid: input.previous.txid(), vout: input.vout };
    MutInput { prevout, script_sig: Vec::new(), sequence: input.sequence, witness: Vec::new() }
}

fn scripts_pk(key: &[u8]) -> Vec<u8> {
    lydian_script::builder::scripts::p2pk(key)
}
