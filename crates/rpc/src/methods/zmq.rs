//! The method about ZeroMQ notifications.

use crate::context::Notifier;
use crate::error::RpcError;
use crate::method::{Call, Category, Method, returns};
use crate::result::result;

pub(crate) const METHODS: &[Method] = &[Method {
    name: "getzmqnotifications",
    category: Category::Util,
    help: "Returns information about the active ZeroMQ notifications.",
    args: &[],
    examples: &[""],
    remark: "",
    call: &returns("", getzmqnotifications),
}];

result! {
    /// A notifier: an element of the answer of `getzmqnotifications`.
    struct Notification {
        /// type of notification
        #[name("type")]
        kind: &'static str,
        /// address of the publisher
        address: String,
        /// outbound message high water mark
        hwm: i64,
    }
}

fn getzmqnotifications(call: &Call<'_>) -> Result<Vec<Notification>, RpcError> {
    let of_notifier = |notifier: &Notifier| Notification {
        kind: notifier.kind,
        address: notifier.address.clone(),
        hwm: i64::from(notifier.high_water_mark),
    };
    Ok(call.context.settings.notifiers.iter().map(of_notifier).collect())
}
