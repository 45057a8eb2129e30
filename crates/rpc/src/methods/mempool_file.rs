//! Methods about `mempool.dat`: `importmempool` and `savemempool` (Core's rpc/mempool.cpp). Input: a path. Output: the
//! mempool with the transactions of a file, or the file. `lydian_mempool` reads and writes.

use crate::context::{Context, LogLevel};
use crate::error::{RpcError, code};
use crate::json::Json;
use crate::method::{Arg, Call, Category, Kind, Method, returns};
use crate::result::{Empty, result};
use lydian_mempool::files::Key;
use lydian_mempool::{ImportOptions, Report};
use std::path::Path;

pub(crate) const METHODS: &[Method] = &[
    Method {
        name: "importmempool",
        category: Category::Blockchain,
        help: "Adds the transactions of a mempool.dat file to the mempool.\nA file from an untrusted source is dangerous, \
               especially if its times, fee deltas and unbroadcast set are used.",
        args: &[
            Arg::new("filepath", Kind::Text, "the mempool file"),
            Arg {
                oneline: "options",
                ..Arg::new("options", Kind::Options, "").omitted().of(&[
                    Arg::new(
                        "use_current_time",
                        Kind::Bool,
                        "whether to use the current time as entry time, instead of the time in the file",
                    )
                    .default("true"),
                    Arg::new("apply_fee_delta_priority", Kind::Bool, "whether to add the fee deltas of the file")
                        .default("false"),
                    Arg::new("apply_unbroadcast_set", Kind::Bool, "whether to use the unbroadcast set of the file")
                        .default("false"),
                ])
            },
        ],
        examples: &["/path/to/mempool.dat"],
        remark: "",
        call: &returns("", importmempool),
    },
    Method {
        name: "savemempool",
        category: Category::Blockchain,
        help: "Writes the mempool to mempool.dat. Fails until the mempool has been loaded at startup.",
        args: &[],
        examples: &[""],
        remark: "",
        call: &returns("", savemempool),
    },
];

impl Report for Context {
    fn log(&self, line: String) {
        self.host.log(LogLevel::Info, &line);
    }

    fn steady_micros(&self) -> u64 {
        self.host.steady_micros()
    }

    fn is_stopping(&self) -> bool {
        Context::is_stopping(self)
    }
}

fn importmempool(call: &Call<'_>) -> Result<Empty, RpcError> {
    let mempool = call.context.mempool()?;
    if call.context.is_initial_block_download() {
        let words = "Can only import the mempool after the block download and sync is done.";
        return Err(RpcError::new(code::CLIENT_IN_INITIAL_DOWNLOAD, words));
    }
    let path = call.text(0)?;
    let flag = |name: &str, default: bool| match call.arg(1).field(name) {
        Json::Null => Ok(default),
        value => value.as_bool(),
    };
    let options = ImportOptions {
        use_current_time: flag("use_current_time", true)?,
        apply_fee_delta_priority: flag("apply_fee_delta_priority", false)?,
        apply_unbroadcast_set: flag("apply_unbroadcast_set", false)?,
    };
    let disk = call.context.mempool_file().map(|file| file.disk.as_ref()).filter(|_| !path.is_empty());
    let is_read = disk.is_some_and(|disk| {
        let loaded = lydian_mempool::load(mempool, disk, Path::new(path), options, call.context);
        // Why not is in the log.
        loaded.is_ok()
    });
    match is_read {
        true => Ok(Empty),
        false => Err(RpcError::misc("Unable to import mempool file, see debug log for details.")),
    }
}

result! {
    /// The answer of `savemempool`.
    struct Saved {
        /// the directory and file where the mempool was saved
        filename: String,
    }
}

fn savemempool(call: &Call<'_>) -> Result<Saved, RpcError> {
    let mempool = call.context.mempool()?;
    if !mempool.snapshot().info().is_loaded {
        return Err(RpcError::misc("The mempool was not loaded yet"));
    }
    let failed = || RpcError::misc("Unable to dump mempool to disk");
    let file = call.context.mempool_file().ok_or_else(failed)?;
    let key = (!mempool.settings().persist_v1).then(|| Key((file.new_key)()));
    // Why not is in the log.
    let dumped = lydian_mempool::dump(mempool, file.disk.as_ref(), &file.path, key, call.context);
    dumped.map_err(|_| failed())?;
    Ok(Saved { filename: file.path.display().to_string() })
}
