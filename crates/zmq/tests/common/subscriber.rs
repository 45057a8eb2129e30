//! A subscriber for tests, built on the crate `zeromq`: an implementation of ZeroMQ that we did not write.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use zeromq::{Socket, SocketRecv, SubSocket};

/// Longer than a message takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// One message: topic, body, number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Message {
    pub(crate) topic: String,
    pub(crate) body: Vec<u8>,
    pub(crate) number: u32,
}

pub(crate) struct Subscriber {
    runtime: Runtime,
    socket: SubSocket,
}

impl Subscriber {
    /// Connects and subscribes to prefixes of topics. The publisher may notice this later than the next message.
    pub(crate) fn connect(address: &str, prefixes: &[&str]) -> Subscriber {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let socket = runtime.block_on(async {
            let mut socket = SubSocket::new();
            socket.connect(address).await.unwrap();
            for prefix in prefixes {
                socket.subscribe(prefix).await.unwrap();
            }
            socket
        });
        Subscriber { runtime, socket }
    }

    /// The next message, if one comes in this time.
    pub(crate) fn next_within(&mut self, longest: Duration) -> Option<Message> {
        let socket = &mut self.socket;
        let received = self.runtime.block_on(async { timeout(longest, socket.recv()).await.ok() })?;
        let frames: Vec<Vec<u8>> = received.unwrap().into_vec().into_iter().map(|frame| frame.to_vec()).collect();
        let [topic, body, number] = frames.try_into().expect("three frames");
        let topic = String::from_utf8(topic).unwrap();
        Some(Message { topic, body, number: u32::from_le_bytes(number.try_into().expect("four bytes")) })
    }

    #[allow(dead_code, reason = "used by some of the tests that include this file")]
    pub(crate) fn next(&mut self) -> Message {
        self.next_within(PATIENCE).expect("a message")
    }

    /// The messages until none comes for a while.
    #[allow(dead_code, reason = "used by some of the tests that include this file")]
    pub(crate) fn drain(&mut self) -> Vec<Message> {
        std::iter::from_fn(|| self.next_within(Duration::from_millis(500))).collect()
    }

    /// Makes events until the publisher has noticed the subscription, and receives their messages.
    pub(crate) fn wait_until_subscribed(&mut self, mut event: impl FnMut()) {
        for _ in 0..100 {
            event();
            if self.next_within(Duration::from_millis(200)).is_some() {
                while self.next_within(Duration::from_millis(300)).is_some() {}
                return;
            }
        }
        panic!("the subscription has no effect");
    }
}
