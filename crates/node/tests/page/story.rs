//! What happens in the node is on the open page within two seconds, without a reload.

use crate::busy::busy;
use crate::stage::{PATIENCE, SOON, Stage, expect_no_problems, go, pay, raw};
use lydian_browser::Page;
use serde_json::json;

/// Other tests run at the same time, so the shortest time of some counts.
const TRIES: usize = 3;

/// A value that a reload would lose.
const MARK: &str = "window.mark = 1";

/// The text of a table's body.
fn rows(caption: &str) -> String {
    format!(
        "[...document.querySelectorAll('main table')].find((one) => one.caption.textContent === '{caption}').tBodies[0].textContent"
    )
}

/// Does something several times; each time the page shows what follows, and the shortest time counts.
fn expect_soon(page: &Page, what: &str, mut act: impl FnMut() -> String) {
    let mut times = Vec::new();
    for _ in 0..TRIES {
        let shows = act();
        times.push(page.wait_until(&shows, PATIENCE).unwrap_or_else(|error| panic!("{what}: {error}")));
    }
    assert!(times.iter().min() <= Some(&SOON), "{what}: {times:?}");
}

#[test]
fn blocks_reorganisations_and_refusals_appear_within_two_seconds() {
    let Some(busy) = busy("blocks_reorganisations_and_refusals") else { return };
    let stage = &busy.stage;
    let page = stage.enter();
    page.evaluate(MARK).unwrap();
    let has = |caption: &str, text: &str| format!("{}.includes('{text}')", rows(caption));

    go(&page, "blocks");
    expect_soon(&page, "a block", || has("The last blocks", &stage.mine(1, 1)[0][56..]));

    go(&page, "chain");
    let mut number = 8;
    expect_soon(&page, "a reorganisation", || {
        let old = stage.mine(1, 1).remove(0);
        page.wait_until(&has("Tips", &old[56..]), PATIENCE).unwrap();
        stage.call("invalidateblock", &json!([old]));
        number += 1;
        let new = stage.mine(2, number).remove(1);
        let (reorganised, invalid) = (has("Reorganisations", &old[56..]), has("Invalid blocks", &old[56..]));
        format!("{reorganised} && {invalid} && {}", has("Tips", &new[56..]))
    });

    go(&page, "mempool");
    let mut coins = busy.coins.iter();
    expect_soon(&page, "a refusal", || {
        let (tx, _) = pay(*coins.next().unwrap(), 1, 9, 1);
        let refused = stage.server.call("sendrawtransaction", &json!([raw(&tx)]).to_string());
        assert!(refused.body.contains("min relay fee not met"), "{}", refused.body);
        let rejected = has("Rejected transactions", &tx.txid().to_string()[56..]);
        format!("{rejected} && {}", has("Rejected transactions", "min relay fee not met"))
    });
    assert_eq!(page.evaluate("window.mark").unwrap(), 1, "without a reload");
    expect_no_problems(&page, "story");
}

#[test]
fn a_ban_by_click_ends_the_connection() {
    let Some(busy) = busy("a_ban_by_click_ends_the_connection") else { return };
    let page = busy.stage.enter();
    page.evaluate(MARK).unwrap();
    go(&page, "peers");
    page.wait_until(&format!("{}.includes('second')", rows("Connected peers")), PATIENCE).unwrap();
    busy.stage.call("clearbanned", &json!([]));
    page.click("main table button.link").unwrap();
    page.click_text("dialog button", "Ban…").unwrap();
    page.click_text("dialog.confirm button", "Ban").unwrap();
    page.wait_until(&format!("{}.includes('127.0.0.1/32')", rows("Bans")), PATIENCE).unwrap();
    let banned = busy.stage.call("listbanned", &json!([]));
    assert_eq!((banned.as_array().unwrap().len(), &banned[0]["address"]), (1, &json!("127.0.0.1/32")));
    for peer in ["first", "second"] {
        page.wait_until(&format!("!{}.includes('{peer}')", rows("Connected peers")), PATIENCE).unwrap();
    }
    assert_eq!(busy.stage.call("getpeerinfo", &json!([])), json!([]));
    assert_eq!(page.evaluate("window.mark").unwrap(), 1, "without a reload");
    expect_no_problems(&page, "a ban");
}

#[test]
fn the_page_goes_on_after_a_kill_and_a_restart() {
    let name = "the_page_goes_on_after_a_kill_and_a_restart";
    let Some(mut stage) = Stage::start(name, &[]) else { return };
    stage.mine(5, 1);
    let page = stage.enter();
    page.evaluate(MARK).unwrap();
    let headline = |words: &str| format!("document.querySelector('#headline').textContent.includes('{words}')");
    let is_up =
        "!document.body.classList.contains('lost') && document.querySelector('#headline').textContent.length > 10";
    page.wait_until(is_up, PATIENCE).unwrap();
    expect_no_problems(&page, "before");
    let mut times = Vec::new();
    for _ in 0..TRIES {
        stage.server.kill();
        page.wait_until("document.body.classList.contains('lost')", PATIENCE).unwrap();
        page.wait_until(&headline("connecting"), PATIENCE).unwrap();
        let port = format!("-pageport={}", stage.port);
        stage.server.start_again(&["-page", &port]);
        times.push(page.wait_until("!document.body.classList.contains('lost')", PATIENCE).unwrap());
    }
    assert!(times.iter().min() <= Some(&SOON), "{times:?}");
    stage.mine(2, 1);
    go(&page, "overview");
    page.wait_until("document.querySelector('main').textContent.includes('7')", PATIENCE).unwrap();
    assert_eq!(page.evaluate("window.mark").unwrap(), 1, "without a reload");
    let problems = page.take_problems().unwrap();
    assert!(problems.iter().all(|one| one.contains("net::ERR_")), "{problems:#?}");
}
