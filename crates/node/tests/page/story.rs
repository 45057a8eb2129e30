//! What happens in the node is on the open page within two seconds, without a reload.

use crate::stage::{PATIENCE, SOON, Stage, expect_no_problems, go};

/// Other tests run at the same time, so the shortest time of some counts.
const TRIES: usize = 3;

/// A value that a reload would lose.
const MARK: &str = "window.mark = 1";

#[test]
fn the_page_goes_on_after_a_kill_and_a_restart() {
    let name = "the_page_goes_on_after_a_kill_and_a_restart";
    let Some(mut stage) = Stage::start(name, &[]) else { return };
    stage.mine(5, 1);
    let page = stage.enter();
    page.evaluate(MARK).unwrap();
    let headline = |words: &str| format!("document.querySelector('#headline').textContent.includes('{words}')");
    page.wait_until("document.querySelector('#headline').textContent.length > 10", PATIENCE).unwrap();
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
