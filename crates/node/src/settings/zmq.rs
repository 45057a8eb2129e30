//! Settings of the notifications over ZeroMQ. Input: the values of the options. Output: the notifiers.

use lydian_zmq::{HIGH_WATER_MARK_DEFAULT, Notifier, Topic};

/// Core's `ADDR_PREFIX_UNIX` and `ADDR_PREFIX_IPC`: libzmq's name for a Unix domain socket is the latter.
const PREFIX_UNIX: &str = "unix:";
const PREFIX_IPC: &str = "ipc://";

/// For each topic, in the order of [`Topic::ALL`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ZmqSettings {
    pub(crate) addresses: [Vec<String>; Topic::ALL.len()],
    pub(crate) high_water_marks: [i32; Topic::ALL.len()],
}

impl Default for ZmqSettings {
    /// The defaults of the options.
    fn default() -> ZmqSettings {
        ZmqSettings { addresses: Default::default(), high_water_marks: [HIGH_WATER_MARK_DEFAULT; Topic::ALL.len()] }
    }
}

impl ZmqSettings {
    /// The addresses of an option's values.
    pub(super) fn read(texts: Vec<String>) -> Vec<String> {
        let read = |text: String| match text.strip_prefix(PREFIX_UNIX) {
            Some(path) => format!("{PREFIX_IPC}{path}"),
            None => text,
        };
        texts.into_iter().map(read).collect()
    }

    /// The notifiers, in Core's order.
    pub(crate) fn notifiers(&self) -> Vec<Notifier> {
        let of_topic = |topic: Topic| {
            let high_water_mark = self.high_water_marks[topic as usize];
            let addresses = self.addresses[topic as usize].iter().cloned();
            addresses.map(move |address| Notifier { topic, address, high_water_mark })
        };
        Topic::ALL.into_iter().flat_map(of_topic).collect()
    }
}
