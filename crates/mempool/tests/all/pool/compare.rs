//! Everything that Core's RPC tells about its pool, compared with ours.

use super::world::World;
use lydian_mempool::graph::FeeSize;
use lydian_mempool::pool::{BAND_COUNT, Band, Member, Snapshot, band_of};
use serde_json::{Value, json};
use std::sync::Arc;

/// An amount of Core's, -1 if there is none.
pub(crate) fn satoshi(value: &Value) -> i64 {
    #[allow(clippy::cast_possible_truncation, reason = "eight decimals")]
    let satoshi = (value.as_f64().unwrap_or(-1e-8) * 1e8).round() as i64;
    satoshi
}

/// An entry as `getrawmempool true` has it, with amounts in satoshi.
fn entry(snapshot: &Snapshot, member: &Member) -> Value {
    let entry = member.entry();
    let cluster = member.cluster();
    let ancestors = cluster.sums(&cluster.ancestors(member.position()));
    let descendants = cluster.sums(&cluster.descendants(member.position()));
    let chunk = cluster.chunk_of(member.position()).unwrap();
    let ids = |txids: Vec<String>| {
        let mut txids = txids;
        txids.sort_unstable();
        txids
    };
    json!({
        "vsize": entry.vsize(),
        "weight": entry.tx().view().weight(),
        "time": entry.time(),
        "height": entry.height().0,
        "descendantcount": descendants.count,
        "descendantsize": descendants.vsize,
        "ancestorcount": ancestors.count,
        "ancestorsize": ancestors.vsize,
        "wtxid": entry.wtxid().to_string(),
        "chunkweight": chunk.feerate.size,
        "fees": {
            "base": entry.fee().0,
            "modified": member.modified_fee(),
            "ancestor": ancestors.fees,
            "descendant": descendants.fees,
            "chunk": chunk.feerate.fee,
        },
        "depends": ids(snapshot.parents(entry).iter().map(|parent| parent.entry().txid().to_string()).collect()),
        "spentby": ids(snapshot.children(entry).iter().map(|child| child.txid().to_string()).collect()),
        "unbroadcast": false,
    })
}

fn cores_entry(value: &Value) -> Value {
    let mut value = value.clone();
    let fields = value.as_object_mut().unwrap();
    fields.remove("bip125-replaceable");
    // Every transaction that is sent by RPC is one that no peer has.
    fields.insert("unbroadcast".to_owned(), json!(false));
    for name in ["base", "modified", "ancestor", "descendant", "chunk"] {
        let amount = satoshi(&fields["fees"][name]);
        fields["fees"][name] = json!(amount);
    }
    for name in ["depends", "spentby"] {
        let mut ids: Vec<String> =
            fields[name].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect();
        ids.sort_unstable();
        fields[name] = json!(ids);
    }
    value
}

/// The fee bands, counted from what `getrawmempool true` says of each transaction.
fn cores_bands<'a>(entries: impl Iterator<Item = &'a Value>) -> [Band; BAND_COUNT] {
    let mut bands = [Band::default(); BAND_COUNT];
    for entry in entries {
        let size = i32::try_from(entry["chunkweight"].as_i64().unwrap()).unwrap();
        let band = &mut bands[band_of(FeeSize::new(satoshi(&entry["fees"]["chunk"]), size))];
        band.count += 1;
        band.vsize += entry["vsize"].as_u64().unwrap();
        band.fees += satoshi(&entry["fees"]["base"]);
    }
    bands
}

/// Compares content, every field, order and sums. Returns the number of transactions.
pub(crate) fn compare(world: &mut World, when: &str) -> usize {
    let snapshot: Arc<Snapshot> = world.pool.snapshot();
    let theirs = world.ask("getrawmempool", json!([true]));
    let theirs = theirs.as_object().unwrap();
    let members: Vec<&Member> = snapshot.members().collect();
    for member in &members {
        let txid = member.entry().txid().to_string();
        let Some(their) = theirs.get(&txid) else {
            let log = world.core.log_tail(1 << 20).unwrap();
            let lines: Vec<&str> = log.lines().rev().filter(|line| line.contains(&txid)).take(9).collect();
            let info = world.ask("getmempoolinfo", json!([]));
            panic!("{txid} is not in Core's pool {when}: {:?}, {info}, {lines:?}", snapshot.info());
        };
        let (ours, their) = (entry(&snapshot, member), cores_entry(their));
        assert_eq!(ours, their, "{txid} {when}");
    }
    for txid in theirs.keys() {
        let is_ours = members.iter().any(|member| member.entry().txid().to_string() == *txid);
        assert!(is_ours, "{txid} is only in Core's pool {when}");
    }
    let info = world.ask("getmempoolinfo", json!([]));
    assert_eq!(snapshot.len() as u64, info["size"].as_u64().unwrap(), "size {when}");
    assert_eq!(snapshot.info().vsize, info["bytes"].as_u64().unwrap(), "bytes {when}");
    assert_eq!(snapshot.info().fees, satoshi(&info["total_fee"]), "total_fee {when}");
    let min_fee = world.pool.min_fee().max(world.pool.settings().min_relay_fee);
    assert_eq!(min_fee.fee_per_kvb(), satoshi(&info["mempoolminfee"]), "mempoolminfee {when}");
    assert_eq!(snapshot.info().usage, info["usage"].as_u64().unwrap(), "usage {when}");
    assert_eq!(*snapshot.bands().all(), cores_bands(theirs.values()), "fee bands {when}");
    if info["optimal"] == json!(true) {
        let order = world.ask("getrawmempool", json!([false]));
        let order: Vec<&str> = order.as_array().unwrap().iter().map(|txid| txid.as_str().unwrap()).collect();
        let ours: Vec<String> =
            snapshot.in_mining_order().iter().map(|member| member.entry().txid().to_string()).collect();
        assert_eq!(ours, order, "order {when}");
    }
    members.len()
}
