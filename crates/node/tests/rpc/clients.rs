//! Clients of others on one node: BDK's over Electrum and over Esplora, with the two clients below them. Each must see
//! what follows from Core's RPC: full scan, sync, replacement, reorganisation.

use crate::chain::Pair;
use crate::electrum::{Paid, pay, script};
use crate::electrum_model::{Model, scripthash, text};
use crate::esplora::{Site, both, coinbase, kinds, wait_for};
use bdk_electrum::BdkElectrumClient;
use bdk_electrum::bdk_core::bitcoin::hex::FromHex;
use bdk_electrum::bdk_core::bitcoin::{BlockHash, ScriptBuf, Transaction, Txid, consensus};
use bdk_electrum::bdk_core::spk_client::{FullScanRequest, SyncRequest};
use bdk_electrum::bdk_core::{BlockId, CheckPoint, ConfirmationBlockTime, TxUpdate};
use bdk_electrum::electrum_client::{Client, ElectrumApi};
use bdk_esplora::EsploraExt;
use bdk_esplora::esplora_client::{BlockingClient, Builder};
use lydian_primitives::build::MutTx;
use lydian_primitives::to_hex;
use serde_json::json;
use std::collections::BTreeSet;

/// What a client knows of the scripts.
#[derive(Debug, PartialEq, Eq)]
struct Known {
    confirmed: BTreeSet<(u32, BlockHash, Txid)>,
    pool: BTreeSet<Txid>,
    tip: BlockHash,
}

impl Known {
    /// By Core's answers.
    fn expected(pair: &Pair) -> (Known, Vec<(ScriptBuf, Txid)>) {
        let model = Model::of(&pair.core);
        let hash = |height: usize| -> BlockHash { model.hashes[height].parse().unwrap() };
        let tip = hash(model.hashes.len() - 1);
        let mut known = Known { confirmed: BTreeSet::new(), pool: BTreeSet::new(), tip };
        let mut pooled = Vec::new();
        for number in 1..=16 {
            let Some(of) = model.scripts.get(&scripthash(&script(number))) else { continue };
            for (height, txid) in &of.confirmed {
                let at = usize::try_from(*height).unwrap();
                known.confirmed.insert((u32::try_from(*height).unwrap(), hash(at), txid.parse().unwrap()));
            }
            for (_, txid, _) in &of.pool {
                known.pool.insert(txid.parse().unwrap());
                pooled.push((ScriptBuf::from(script(number)), txid.parse().unwrap()));
            }
        }
        (known, pooled)
    }

    fn of(update: &TxUpdate<ConfirmationBlockTime>, tip: &CheckPoint) -> Known {
        let known = Known {
            confirmed: update.anchors.iter().map(|(at, txid)| (at.block_id.height, at.block_id.hash, *txid)).collect(),
            pool: update.seen_ats.iter().map(|(txid, _)| *txid).collect(),
            tip: tip.hash(),
        };
        let mut txids: BTreeSet<Txid> = update.txs.iter().map(|tx| tx.compute_txid()).collect();
        // Those of outputs that are spent come as well.
        let wanted: BTreeSet<Txid> = known.confirmed.iter().map(|(.., txid)| *txid).chain(known.pool.clone()).collect();
        txids.retain(|txid| wanted.contains(txid));
        assert_eq!(txids, wanted);
        known
    }
}

fn scripts() -> impl Iterator<Item = ScriptBuf> {
    (1..=16).map(|number| ScriptBuf::from(script(number)))
}

/// The clients, each with the chain that it knows.
struct Clients {
    esplora: BlockingClient,
    electrum: BdkElectrumClient<Client>,
    tips: [CheckPoint; 2],
    /// Transactions of the mempool that the clients know.
    pooled: Vec<(ScriptBuf, Txid)>,
}

impl Clients {
    /// Scans all, as a wallet that is restored.
    fn scan(&mut self, pair: &Pair) {
        let (expected, pooled) = Known::expected(pair);
        let request = |tip: &CheckPoint| {
            let spks: Vec<(u32, ScriptBuf)> = (0..).zip(scripts()).collect();
            FullScanRequest::builder().chain_tip(tip.clone()).spks_for_keychain(7_u8, spks).build()
        };
        let by_esplora = self.esplora.full_scan(request(&self.tips[0]), 16, 3).unwrap();
        let by_electrum = self.electrum.full_scan(request(&self.tips[1]), 16, 5, true).unwrap();
        for (update, last, tip, place) in [
            (by_esplora.tx_update, by_esplora.last_active_indices, by_esplora.chain_update.unwrap(), 0),
            (by_electrum.tx_update, by_electrum.last_active_indices, by_electrum.chain_update.unwrap(), 1),
        ] {
            assert!(Known::of(&update, &tip) == expected, "client {place}");
            let active = (0..16_u32).filter(|index| {
                let of =
                    Model::of(&pair.core).scripts.get(&scripthash(&script(u8::try_from(*index + 1).unwrap()))).cloned();
                of.is_some_and(|of| !of.confirmed.is_empty() || !of.pool.is_empty())
            });
            assert_eq!(last.get(&7).copied(), active.last());
            self.tips[place] = tip;
        }
        self.pooled = pooled;
    }

    /// Syncs what is known, as a wallet does all the time. Returns those that are known to be gone.
    fn sync(&mut self, pair: &Pair, what: &str) -> BTreeSet<Txid> {
        let (expected, pooled) = Known::expected(pair);
        let request = |tip: &CheckPoint| {
            let known = self.pooled.clone();
            SyncRequest::builder().chain_tip(tip.clone()).spks(scripts()).expected_spk_txids(known).build()
        };
        let height = u32::try_from(pair.core.result("getblockcount", "[]").as_u64().unwrap()).unwrap();
        let by_esplora = self.esplora.sync(request(&self.tips[0]), 3).unwrap();
        let by_electrum = self.electrum.sync(request(&self.tips[1]), 5, true).unwrap();
        let evicted = |update: &TxUpdate<ConfirmationBlockTime>| -> BTreeSet<Txid> {
            update.evicted_ats.iter().map(|(txid, _)| *txid).collect()
        };
        let gone = evicted(&by_esplora.tx_update);
        assert_eq!(gone, evicted(&by_electrum.tx_update), "{what}");
        for (update, tip, place) in [
            (by_esplora.tx_update, by_esplora.chain_update.unwrap(), 0),
            (by_electrum.tx_update, by_electrum.chain_update.unwrap(), 1),
        ] {
            let known = Known::of(&update, &tip);
            // BDK's client over Electrum keeps its tip until the server's is at least as high.
            let tip_of = if tip.height() > height { known.tip } else { expected.tip };
            assert!(tip.height() == height || place == 1, "{what}");
            let expected = Known { confirmed: expected.confirmed.clone(), pool: expected.pool.clone(), tip: tip_of };
            assert!(known == expected, "{what}, client {place}: {:?} {:?}", known.pool, expected.pool);
            self.tips[place] = tip;
        }
        self.pooled = pooled;
        gone
    }

    fn send(&self, pair: &Pair, tx: &MutTx, by_esplora: bool) -> Txid {
        let raw = to_hex(&tx.encode());
        let parsed: Transaction = consensus::deserialize(&Vec::from_hex(&raw).unwrap()).unwrap();
        match by_esplora {
            true => self.esplora.broadcast(&parsed).unwrap(),
            false => drop(self.electrum.transaction_broadcast(&parsed).unwrap()),
        }
        pair.core.result("sendrawtransaction", &json!([raw]).to_string());
        parsed.compute_txid()
    }
}

fn start(test: &str) -> Option<(Pair, Clients)> {
    let mut pair = Pair::start(test, &["-acceptnonstdtxn=0"])?;
    let [electrum, site] = [(); 2].map(|()| lydian_oracle::free_port().unwrap());
    let options = [format!("-electrumbind=127.0.0.1:{electrum}"), format!("-esplorabind=127.0.0.1:{site}")];
    let own = ["-electrumtlsbind=0", "-electrumwsbind=0", "-electrum", "-esplora", &options[0], &options[1]];
    let own = [&["-acceptnonstdtxn=0"][..], &own].concat();
    pair.lydian.restart(&own);
    wait_for(&Site(site));
    let genesis: BlockHash = text(&pair.core.result("getblockhash", "[0]")).parse().unwrap();
    let tip = CheckPoint::new(BlockId { height: 0, hash: genesis });
    let client = Client::new(&format!("tcp://127.0.0.1:{electrum}")).unwrap();
    let clients = Clients {
        esplora: Builder::new(&format!("http://127.0.0.1:{site}")).build_blocking(),
        electrum: BdkElectrumClient::new(client),
        tips: [tip.clone(), tip],
        pooled: Vec::new(),
    };
    Some((pair, clients))
}

#[test]
fn bdk_follows_the_chain_over_electrum_and_esplora() {
    let Some((pair, mut clients)) = start("bdk_follows_the_chain_over_electrum_and_esplora") else { return };
    both(&pair, "setmocktime", &json!([1_750_000_000]));
    let descriptor = format!("raw({})", to_hex(&script(1)));
    both(&pair, "generatetodescriptor", &json!([130, descriptor]));
    let (first, paid) = pay(&[coinbase(&pair, 1)], &[2, 3], 1_000);
    clients.send(&pair, &first, true);
    clients.scan(&pair);
    let (second, _) = pay(&paid[..1], &[4, 2], 1_000);
    clients.send(&pair, &second, false);
    assert!(clients.sync(&pair, "a chained transaction").is_empty());
    // Replaced: the clients are told that the first one is gone.
    let (twice, _) = pay(&[coinbase(&pair, 2)], &[5, 5], 1_000);
    let replaced = clients.send(&pair, &twice, true);
    assert!(clients.sync(&pair, "before the replacement").is_empty());
    let (replacing, _) = pay(&[coinbase(&pair, 2)], &[6], 50_000);
    clients.send(&pair, &replacing, false);
    assert_eq!(clients.sync(&pair, "a replacement"), BTreeSet::from([replaced]));
    // Confirmed, in a block that leaves the chain for two others.
    both(&pair, "generatetodescriptor", &json!([1, descriptor]));
    assert!(clients.sync(&pair, "a block").is_empty());
    let hash = pair.core.result("getbestblockhash", "[]");
    both(&pair, "invalidateblock", &json!([hash]));
    assert!(clients.sync(&pair, "the block leaves").is_empty());
    let (late, _) = pay(&[coinbase(&pair, 3)], &[7], 1_000);
    clients.send(&pair, &late, true);
    both(&pair, "generatetodescriptor", &json!([2, descriptor]));
    assert!(clients.sync(&pair, "two other blocks").is_empty());
    clients.scan(&pair);
}

/// Every call of the client that has an answer to compare.
#[test]
fn the_clients_read_every_answer() {
    let Some((pair, clients)) = start("the_clients_read_every_answer") else { return };
    both(&pair, "setmocktime", &json!([1_750_000_000]));
    let descriptor = format!("raw({})", to_hex(&script(1)));
    both(&pair, "generatetodescriptor", &json!([110, descriptor]));
    let (mut tx, _) = pay(&[coinbase(&pair, 1)], &[2], 910_000);
    tx.outputs.extend(kinds());
    let txid = clients.send(&pair, &tx, true);
    let esplora = &clients.esplora;
    let stats = esplora.get_mempool_stats().unwrap();
    assert_eq!((stats.count, stats.total_fee), (1, 110_000));
    assert_eq!(esplora.get_mempool_txids().unwrap(), [txid]);
    assert_eq!(esplora.get_mempool_recent_txs().unwrap()[0].txid, txid);
    assert!(!esplora.get_tx_status(&txid).unwrap().confirmed);
    assert!(esplora.get_tx_info(&"11".repeat(32).parse().unwrap()).unwrap().is_none());
    assert!(esplora.get_tx(&"11".repeat(32).parse().unwrap()).unwrap().is_none());
    both(&pair, "generatetodescriptor", &json!([1, descriptor]));
    let own: Paid = coinbase(&pair, 1);
    let tip: BlockHash = text(&pair.core.result("getbestblockhash", "[]")).parse().unwrap();
    assert_eq!((esplora.get_height().unwrap(), esplora.get_tip_hash().unwrap()), (111, tip));
    assert_eq!(esplora.get_block_hash(111).unwrap(), tip);
    let block = esplora.get_block_by_hash(&tip).unwrap().unwrap();
    assert_eq!((block.block_hash(), block.txdata[1].compute_txid()), (tip, txid));
    assert_eq!(esplora.get_header_by_hash(&tip).unwrap(), block.header);
    assert_eq!(esplora.get_block_txids(&tip).unwrap()[1], txid);
    assert_eq!(esplora.get_block_txs(&tip, None).unwrap()[1].to_tx(), block.txdata[1]);
    let infos = esplora.get_block_infos(None).unwrap();
    assert_eq!((infos.len(), infos[0].id, infos[0].tx_count), (10, tip, 2));
    assert_eq!(esplora.get_block_info(&tip).unwrap(), infos[0]);
    assert!(esplora.get_block_status(&tip).unwrap().in_best_chain);
    let info = esplora.get_tx_info(&txid).unwrap().unwrap();
    assert_eq!((info.to_tx(), info.fee, info.status.block_height), (block.txdata[1].clone(), 110_000, Some(111)));
    let mut matches = Vec::new();
    let proof = esplora.get_merkle_block(&txid).unwrap().unwrap();
    proof.extract_matches(&mut matches, &mut Vec::new()).unwrap();
    assert_eq!(matches, [txid]);
    assert_eq!(esplora.get_merkle_proof(&txid).unwrap().unwrap().pos, 1);
    let funding: Txid = own.0.txid.to_string().parse().unwrap();
    let spent = esplora.get_output_status(&funding, 0).unwrap().unwrap();
    assert_eq!((spent.txid, spent.vin), (Some(txid), Some(0)));
    let of = ScriptBuf::from(script(2));
    assert_eq!(esplora.get_scripthash_stats(&of).unwrap().chain_stats.funded_txo_count, 1);
    assert_eq!(esplora.get_scripthash_utxos(&of).unwrap()[0].txid, txid);
    assert_eq!(esplora.scripthash_txs(&of, None).unwrap()[0].txid, txid);
    assert!(esplora.get_fee_estimates().unwrap().is_empty());
    // The same over Electrum.
    let electrum = &clients.electrum.inner;
    assert_eq!(electrum.script_get_history(&of).unwrap()[0].tx_hash, txid);
    assert_eq!(electrum.script_list_unspent(&of).unwrap()[0].tx_hash, txid);
    assert_eq!(electrum.transaction_get(&txid).unwrap(), block.txdata[1]);
    assert_eq!(electrum.transaction_get_merkle(&txid, 111).unwrap().pos, 1);
    assert_eq!(electrum.block_header(111).unwrap(), block.header);
    let many: Vec<ScriptBuf> = scripts().collect();
    let balances = electrum.batch_script_get_balance(many.iter().map(ScriptBuf::as_script)).unwrap();
    assert_eq!(balances.len(), 16);
    // Assembly text is that of the crate from which Esplora has it.
    for tx in &block.txdata {
        let raw = Site::of(esplora.url()).json(&format!("/tx/{}", tx.compute_txid()));
        for (output, got) in tx.output.iter().zip(raw["vout"].as_array().unwrap()) {
            assert_eq!(got["scriptpubkey_asm"], output.script_pubkey.to_asm_string());
        }
        for (input, got) in tx.input.iter().zip(raw["vin"].as_array().unwrap()) {
            assert_eq!(got["scriptsig_asm"], input.script_sig.to_asm_string());
        }
    }
}
