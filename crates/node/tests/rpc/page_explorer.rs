//! The explorer of the page: its answers are those of Esplora and RPC, with and without indexes; what cannot be found
//! is a sentence.

use crate::esplora::Site;
use crate::page_mempool::{Page, outputs, script, spending};
use lydian_primitives::{OutPoint, Txid, to_hex};
use serde_json::{Value, json};

/// A chain with a branch beside it, and a mempool.
struct World {
    page: Page,
    /// Confirmed, and spent by `child`, which is not.
    parent: String,
    child: String,
    /// The block of the parent.
    block: String,
    /// A block beside the active chain.
    stale: String,
    scripthash: String,
}

impl World {
    fn start(name: &str, options: &[&str]) -> World {
        let page = Page::start(name, options);
        page.generate(101);
        // A branch that is left again.
        let stale = page.generate_to(&[0x51], 1).remove(0);
        page.server.result("invalidateblock", &json!([stale]).to_string());
        page.generate(30);
        page.server.result("reconsiderblock", &json!([stale]).to_string());
        let coins = page.coinbases(4);
        let parent = spending(&coins[..2], 30, 10_000);
        page.send(&parent).unwrap();
        let block = page.generate(1).remove(0);
        let child = spending(&outputs(&parent)[..1], 2, 3_000);
        page.send(&child).unwrap();
        let scripthash = to_hex(&lydian_hash::sha256(&script()));
        let (parent, child) = (parent.txid().to_string(), child.txid().to_string());
        World { page, parent, child, block, stale, scripthash }
    }

    fn explore(&self, path: &str) -> Value {
        self.page.client().result("lydian_explore", &json!([path]))
    }

    fn search(&self, text: &str) -> Result<Value, String> {
        self.page.client().try_result("lydian_search", &json!([text])).map_err(|(code, words)| {
            assert_eq!(code, -8);
            words
        })
    }
}

#[test]
fn the_explorer_answers_as_esplora() {
    let port = lydian_oracle::free_port().unwrap();
    let bind = format!("-esplorabind=127.0.0.1:{port}");
    let world = World::start("page-explorer", &["-esplora", &bind]);
    let site = Site(port);
    let World { parent, child, block, stale, scripthash, .. } = &world;
    let paths = [
        "/blocks".to_owned(),
        "/blocks/20".to_owned(),
        format!("/block/{block}"),
        format!("/block/{block}/status"),
        format!("/block/{block}/txs/0"),
        format!("/block/{stale}"),
        format!("/block/{stale}/status"),
        format!("/block/{stale}/txs"),
        format!("/tx/{parent}"),
        format!("/tx/{parent}/outspends"),
        format!("/tx/{child}"),
        format!("/tx/{child}/outspends"),
        format!("/scripthash/{scripthash}"),
        format!("/scripthash/{scripthash}/txs"),
        format!("/scripthash/{scripthash}/txs/chain"),
        format!("/scripthash/{scripthash}/txs/mempool"),
    ];
    for path in &paths {
        assert_eq!(world.explore(path)["value"], site.json(path), "{path}");
    }
    for path in [format!("/tx/{parent}/hex"), format!("/block/{block}/header"), "/blocks/tip/height".to_owned()] {
        assert_eq!(world.explore(&path)["value"], json!(site.get(&path)), "{path}");
    }
    let history = world.explore(&format!("/scripthash/{scripthash}/txs"));
    let stats = &world.explore(&format!("/scripthash/{scripthash}"))["value"];
    let count = |of: &str| stats[of]["tx_count"].as_u64().unwrap();
    assert_eq!(history["total"].as_u64(), Some(count("chain_stats") + count("mempool_stats")));
    for (path, code) in
        [(format!("/tx/{}", "00".repeat(32)), -5), ("/tx/xyz".to_owned(), -8), ("/broadcast?tx=00".to_owned(), -5)]
    {
        let (of, words) = world.page.client().try_result("lydian_explore", &json!([path])).unwrap_err();
        assert_eq!(of, code, "{path}: {words}");
    }
    check_coins(&world, &site);
    check_pages(&world);
}

/// The coins of a script, page by page, are those of Esplora and of `scantxoutset`.
fn check_coins(world: &World, site: &Site) {
    let mut coins = Vec::new();
    let mut pages = 0;
    loop {
        let page = world.page.client().result("lydian_scriptcoins", &json!([world.scripthash, coins.len()]));
        pages += 1;
        coins.extend(page["coins"].as_array().unwrap().clone());
        if page["more"] == false {
            break;
        }
    }
    assert!(pages >= 2 && coins.len() > 100, "{} coins on {pages} pages", coins.len());
    let form = |coin: &Value| json!({ "txid": coin["txid"], "vout": coin["vout"], "value": coin["value"], "height": coin["status"]["block_height"] });
    let all = site.json(&format!("/scripthash/{}/utxo", world.scripthash));
    assert_eq!(coins, all.as_array().unwrap().iter().map(form).collect::<Vec<_>>());
    let descriptor = format!("raw({})", to_hex(&script()));
    let scanned = world.page.server.result("scantxoutset", &json!(["start", [descriptor]]).to_string());
    let confirmed = coins.iter().filter(|coin| !coin["height"].is_null()).count();
    // One confirmed coin is spent in the mempool.
    assert_eq!(scanned["unspents"].as_array().unwrap().len(), confirmed + 1);
    let at_end = world.page.client().result("lydian_scriptcoins", &json!([world.scripthash, coins.len()]));
    assert_eq!(at_end, json!({ "coins": [], "more": false }));
    for (params, words) in [
        (json!(["zz"]), "\"zz\" is not a script hash: it has 64 hexadecimal digits."),
        (json!([world.scripthash, -1]), "The number of coins to skip must be a whole number, not -1."),
        (json!([5]), "The script hash must be a text."),
        (
            json!({"a": 1}),
            "The parameters of lydian_scriptcoins must be an array: a script hash, and how many coins to skip.",
        ),
    ] {
        assert_eq!(world.page.client().try_result("lydian_scriptcoins", &params), Err((-8, words.to_owned())));
    }
}

/// The history of a script, page by page, has every transaction once.
fn check_pages(world: &World) {
    let path = format!("/scripthash/{}/txs/chain", world.scripthash);
    let total = usize::try_from(world.explore(&path)["total"].as_u64().unwrap()).unwrap();
    let (mut txids, mut next) = (Vec::new(), path.clone());
    loop {
        let page = world.explore(&next)["value"].as_array().unwrap().clone();
        txids.extend(page.iter().map(|tx| tx["txid"].as_str().unwrap().to_owned()));
        let Some(last) = page.last().filter(|_| page.len() == 25) else { break };
        next = format!("{path}/{}", last["txid"].as_str().unwrap());
    }
    assert_eq!(txids.len(), total);
    txids.sort_unstable();
    txids.dedup();
    assert_eq!(txids.len(), total);
}

#[test]
fn the_search_field_finds_what_rpc_knows() {
    let world = World::start("page-search", &["-addressindex=full"]);
    let rpc = |method: &str, params: Value| world.page.server.result(method, &params.to_string());
    let World { parent, child, block, stale, .. } = &world;
    let tip = rpc("getblockcount", json!([]));
    let hash = rpc("getblockhash", json!([7]));
    assert_eq!(world.search("7"), Ok(json!({ "kind": "block", "hash": hash, "height": 7 })));
    assert_eq!(world.search(" 007\n"), world.search("7"));
    assert_eq!(world.search(block).unwrap()["height"], rpc("getblockheader", json!([block]))["height"]);
    assert_eq!(world.search(stale), Ok(json!({ "kind": "block", "hash": stale, "height": 102 })));
    assert_eq!(world.search(parent), Ok(json!({ "kind": "transaction", "txid": parent, "block": block })));
    assert_eq!(world.search(child), Ok(json!({ "kind": "transaction", "txid": child, "block": null })));
    let found = world.search(&format!("{parent}:3")).unwrap();
    assert_eq!((&found["vout"], &found["txid"]), (&json!(3), &json!(parent)));
    let decoded = rpc("decodescript", json!([to_hex(&script())]));
    let address = decoded["address"].as_str().unwrap();
    for text in [address.to_owned(), to_hex(&script()), address.to_uppercase()] {
        let found = world.search(&text).unwrap();
        assert_eq!((&found["kind"], &found["script"]), (&json!("script"), &json!(to_hex(&script()))));
        assert_eq!(
            (&found["address"], &found["type"], &found["descriptor"]),
            (&decoded["address"], &decoded["type"], &decoded["desc"])
        );
        assert_eq!(found["scripthash"], json!(world.scripthash));
    }
    let descriptor = decoded["desc"].as_str().unwrap();
    let found = world.search(descriptor).unwrap();
    assert_eq!(
        (&found["kind"], &found["descriptors"], &found["ranged"]),
        (&json!("descriptor"), &json!([descriptor]), &json!(false))
    );
    let zeros = "00".repeat(32);
    for (text, words) in [
        ("9999", format!("No block has the height 9999: the tip of the chain is at height {tip}.")),
        (&zeros, format!("No block has the hash {zeros}, and no transaction that the node finds has this txid.")),
        (&format!("{parent}:x"), "\"x\" is not the number of an output.".to_owned()),
        (
            "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
            "\"1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa\" is an address of mainnet; this node follows regtest.".to_owned(),
        ),
        ("", "Type a height, a block hash, a txid, an address, a script in hexadecimal or a descriptor.".to_owned()),
    ] {
        assert_eq!(world.search(text), Err(words));
    }
    let long = "ab".repeat(10_001);
    assert_eq!(world.search(&long), Err("The text has 20002 characters; a search has at most 20000.".to_owned()));
    assert_eq!(world.search(&long[2..]).unwrap()["type"], "nonstandard", "a script of 10,000 bytes");
    assert!(world.page.client().try_result("lydian_unknown", &json!([])).is_err());
}

/// Blocks and their transactions are found without an index; the rest is a sentence that names the option.
#[test]
fn without_an_index_blocks_have_their_transactions() {
    let mut world = World::start("page-plain", &[]);
    let World { parent, child, block, .. } = &world;
    let listed = world.explore(&format!("/block/{block}/txs/0"));
    let core_form = world.page.server.result("getblock", &json!([block, 3]).to_string());
    let (listed, of_rpc) = (listed["value"].as_array().unwrap(), core_form["tx"].as_array().unwrap());
    assert_eq!(listed.len(), of_rpc.len());
    for (ours, tx) in listed.iter().zip(of_rpc) {
        assert_eq!((&ours["txid"], &ours["size"], &ours["weight"]), (&tx["txid"], &tx["size"], &tx["weight"]));
        for (ours, input) in ours["vin"].as_array().unwrap().iter().zip(tx["vin"].as_array().unwrap()) {
            assert_eq!(ours["prevout"]["scriptpubkey"], input["prevout"]["scriptPubKey"]["hex"]);
        }
    }
    assert_eq!(world.search(child).unwrap()["block"], Value::Null, "the mempool is searched");
    let words = world.search(parent).unwrap_err();
    assert!(words.ends_with("-txindex or -addressindex adds the rest."), "{words}");
    let no_index = "the node keeps no index of scripts: start it with -addressindex";
    let asked = [format!("/scripthash/{}", world.scripthash), format!("/tx/{parent}")];
    for path in &asked {
        let (code, words) = world.page.client().try_result("lydian_explore", &json!([path])).unwrap_err();
        assert_eq!((code, words.as_str()), (-1, no_index), "{path}");
    }
    let (_, words) = world.page.client().try_result("lydian_scriptcoins", &json!([world.scripthash])).unwrap_err();
    assert_eq!(words, no_index);
    // RPC says the rest, as the panel asks for it.
    let found = world.page.client().result("getrawtransaction", &json!([parent, 2, block]));
    assert!(found["fee"].is_number() && found["vin"][0]["prevout"]["value"].is_number());
    let (parent, block) = (parent.clone(), block.clone());
    let spent = world.page.client().result("gettxspendingprevout", &json!([[{ "txid": parent, "vout": 0 }]]));
    assert_eq!(spent[0]["spendingtxid"], json!(world.child));
    world.page.restart(&["-txindex"]);
    let is_synced = |_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        world.page.server.result("getindexinfo", "[]")["txindex"]["synced"] == true
    };
    assert!((0..2_400).any(is_synced));
    assert_eq!(world.search(&parent), Ok(json!({ "kind": "transaction", "txid": parent, "block": block })));
    let unknown = OutPoint { txid: Txid([9; 32]), vout: 0 }.txid.to_string();
    let words = world.search(&unknown).unwrap_err();
    assert_eq!(
        words,
        format!("No block has the hash {unknown}, and no transaction that the node finds has this txid.")
    );
}
