//! Follows the stream of one node after the other.
//!
//! Input: nodes, and the wish to leave one. Output: messages for [`PoolCopy`], and what is known of the streams
//! ([`Streams`]). A node is left after an error, garbage, [`SILENCE_MAX`] without a byte, or when the front end asks
//! for it; then the next one is followed. When all of them have failed, the next round begins after a pause.

use crate::client::connection::{NodeFault, Sent};
use crate::client::nodes::{Node, Nodes, other_chain};
use crate::front::{FrontEvent, FrontLog};
use crate::limits::SILENCE_MAX;
use crate::message::{FEED_VERSION, Hello, Message};
use crate::pool::PoolCopy;
use crate::wire::{Frames, WireError};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Method;
use lydian_primitives::BlockHash;
use lydian_stdx::{IgnorePoison, lock};
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

const STREAM: &str = "/feed/1/stream";

/// Between two rounds in which no node could be followed for [`LONG`]; twice as long after each, up to the second one.
const PAUSE: (Duration, Duration) = (Duration::from_millis(300), Duration::from_secs(3));

/// How long a stream that was of use is followed at least.
const LONG: Duration = Duration::from_secs(1);

/// [`SILENCE_MAX`] is waited for in so many steps. If this machine stands still for some seconds, as a virtual machine
/// does while it is migrated, only one step has passed, and the node has the others to send something.
const SILENCE_STEPS: u32 = 6;

/// What is known of the streams.
#[derive(Debug)]
pub(crate) struct Standing {
    /// Whether a stream is followed and has sent its greeting.
    pub(crate) is_alive: bool,
    /// Whether the stream has sent a whole mempool.
    pub(crate) is_complete: bool,
    /// Why each node was left last.
    pub(crate) faults: Vec<Option<NodeFault>>,
    /// Whether a mempool was ever applied.
    pub(crate) is_applied: bool,
}

/// The streams as threads see them.
#[derive(Debug)]
pub(crate) struct Streams {
    standing: Mutex<Standing>,
    changed: Condvar,
    leave: Notify,
    /// Why the stream is to be left.
    reason: Mutex<Option<String>>,
}

impl Streams {
    pub(crate) fn new(nodes: usize) -> Streams {
        let standing = Standing { is_alive: false, is_complete: false, faults: vec![None; nodes], is_applied: false };
        Streams {
            standing: Mutex::new(standing),
            changed: Condvar::new(),
            leave: Notify::new(),
            reason: Mutex::default(),
        }
    }

    pub(crate) fn look<T>(&self, look: impl FnOnce(&Standing) -> T) -> T {
        look(&lock(&self.standing))
    }

    pub(crate) fn set(&self, change: impl FnOnce(&mut Standing)) {
        change(&mut lock(&self.standing));
        self.changed.notify_all();
    }

    /// Waits until the condition is met, or the time is over. Returns whether it is met.
    pub(crate) fn wait_until(&self, timeout: Duration, is_met: impl Fn(&Standing) -> bool) -> bool {
        let standing = lock(&self.standing);
        let waited = self.changed.wait_timeout_while(standing, timeout, |standing| !is_met(standing)).ignore_poison();
        is_met(&waited.0)
    }

    /// Has the stream left.
    pub(crate) fn leave(&self, reason: String) {
        *lock(&self.reason) = Some(reason);
        self.leave.notify_one();
    }
}

/// What follows.
#[derive(Debug)]
pub(crate) struct Follower {
    pub(crate) nodes: Arc<Nodes>,
    pub(crate) pool: Arc<PoolCopy>,
    pub(crate) streams: Arc<Streams>,
    pub(crate) genesis: BlockHash,
    pub(crate) log: Arc<dyn FrontLog>,
}

impl Follower {
    /// Runs until the runtime ends.
    pub(crate) async fn run(self) {
        let mut pause = PAUSE.0;
        loop {
            let mut is_useful = false;
            for (number, node) in self.nodes.list.iter().enumerate() {
                let began = Instant::now();
                let fault = self.follow(number, node).await;
                let was_complete = self.streams.look(|standing| standing.is_complete);
                is_useful |= was_complete && began.elapsed() >= LONG;
                let is_news = was_complete
                    || self.streams.look(|standing| standing.faults.get(number) != Some(&Some(fault.clone())));
                self.streams.set(|standing| {
                    (standing.is_alive, standing.is_complete) = (false, false);
                    if let Some(last) = standing.faults.get_mut(number) {
                        *last = Some(fault.clone());
                    }
                });
                if is_news {
                    self.log.event(&FrontEvent::Left { node: node.name(), reason: fault.reason });
                }
            }
            if is_useful {
                pause = PAUSE.0;
            }
            if !is_useful || self.nodes.list.len() == 1 {
                sleep(pause).await;
                pause = (pause * 2).min(PAUSE.1);
            }
        }
    }

    /// Follows a node until it is left. Returns why.
    async fn follow(&self, number: usize, node: &Node) -> NodeFault {
        self.pool.begin(number);
        // A wish to leave another stream is over.
        lock(&self.streams.reason).take();
        tokio::select! {
            fault = self.read(node) => fault,
            fault = self.wish() => fault,
        }
    }

    async fn wish(&self) -> NodeFault {
        loop {
            self.streams.leave.notified().await;
            if let Some(reason) = lock(&self.streams.reason).take() {
                return NodeFault::passing(reason);
            }
        }
    }

    async fn read(&self, node: &Node) -> NodeFault {
        match self.try_read(node).await {
            Ok(()) => NodeFault::passing("the node has ended the stream"),
            Err(fault) => fault,
        }
    }

    async fn try_read(&self, node: &Node) -> Result<(), NodeFault> {
        let mut sender = node.route.connect().await?;
        let asked = node.route.send(&mut sender, Method::GET, STREAM, Bytes::new(), "application/octet-stream");
        let response = before_silence(asked).await?.map_err(Sent::into_fault)?;
        let mut body = response.into_body();
        let mut frames = Frames::default();
        let mut is_greeted = false;
        while let Some(frame) = before_silence(body.frame()).await? {
            let frame = frame.map_err(|error| NodeFault::passing(format!("the connection broke: {error}")))?;
            let Ok(bytes) = frame.into_data() else { continue };
            frames.push(&bytes);
            while let Some(message) = frames.next().map_err(garbage)? {
                if !std::mem::replace(&mut is_greeted, true) {
                    self.greet(&message)?;
                    continue;
                }
                let is_state = matches!(message, Message::State(_));
                self.pool.receive(message).map_err(NodeFault::passing)?;
                if is_state {
                    self.streams.set(|standing| standing.is_complete = true);
                }
            }
        }
        Ok(())
    }

    fn greet(&self, message: &Message) -> Result<(), NodeFault> {
        match message {
            Message::Hello(Hello { version: FEED_VERSION, genesis, .. }) if *genesis == self.genesis => {
                self.streams.set(|standing| standing.is_alive = true);
                Ok(())
            }
            Message::Hello(Hello { version: FEED_VERSION, genesis, .. }) => Err(other_chain(genesis, &self.genesis)),
            Message::Hello(Hello { version, .. }) => Err(NodeFault::lasting(format!(
                "the feed has version {version}, and this program reads version {FEED_VERSION}"
            ))),
            _ => Err(NodeFault::passing("the stream does not begin with a greeting")),
        }
    }
}

/// Waits for at most [`SILENCE_MAX`], not counting time in which this machine stands still.
async fn before_silence<T>(coming: impl Future<Output = T>) -> Result<T, NodeFault> {
    let mut coming = pin!(coming);
    for _ in 0..SILENCE_STEPS {
        if let Ok(come) = timeout(SILENCE_MAX / SILENCE_STEPS, &mut coming).await {
            return Ok(come);
        }
    }
    Err(NodeFault::passing(format!("the node was silent for {} seconds", SILENCE_MAX.as_secs())))
}

/// A version that this program does not know does not change while it runs.
fn garbage(error: WireError) -> NodeFault {
    match error {
        WireError::Version(_) => NodeFault::lasting(error),
        _ => NodeFault::passing(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};
    use tokio::runtime::{Builder, Runtime};

    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_time().build().unwrap()
    }

    /// Regression test. The timer of the whole silence and what the node sent came due together.
    #[test]
    fn a_stop_of_this_machine_is_no_silence_of_the_node() {
        let stop = SILENCE_MAX + Duration::from_secs(1);
        let came = runtime().block_on(async {
            // The runtime has one thread, which sleeps for so long.
            tokio::spawn(async move { std::thread::sleep(stop) });
            before_silence(sleep(stop + Duration::from_millis(200))).await
        });
        assert!(came.is_ok());
    }

    #[test]
    fn a_silence_ends() {
        let began = Instant::now();
        let fault = runtime().block_on(before_silence(pending::<()>())).unwrap_err();
        assert!(began.elapsed() >= SILENCE_MAX);
        assert!(fault.to_string().contains("the node was silent for 3 seconds"), "{fault}");
        assert!(runtime().block_on(before_silence(ready(()))).is_ok());
    }
}
