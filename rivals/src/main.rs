//! RocksDB under the workload of the coin store's benchmark.
//!
//! Usage: `tools/rivals.sh [--coins N] [--operations N] [--cache-mb N]`, by default 20 million coins and 50 million
//! operations. Input and output are those of `crates/coins/benches/mix`; this program includes its workload and
//! measurement.
//!
//! RocksDB's settings, to the best of our knowledge: as much memory as our store's young coins get, half of it for
//! memtables (at most 1 GB) and half for the block cache; bloom filters of 10 bits on whole keys, kept in the cache;
//! blocks of 4 KiB with a hash index; LZ4; levels with dynamic sizes; 2 background threads. The lookups of a block are
//! one `multi_get`, its spends and creations one write batch. There is no write-ahead log (our store has none either: a
//! kill loses everything since the last flush). Keys are outpoints, values what Core's chainstate stores.

#[allow(dead_code, reason = "parts of it are for the store's own benchmark")]
#[path = "../../crates/coins/benches/mix/run.rs"]
mod run;
#[allow(dead_code, reason = "parts of it are for the store's own benchmark")]
#[path = "../../crates/coins/benches/mix/workload.rs"]
mod workload;

use lydian_consensus::codec::{read_coin, write_coin};
use lydian_primitives::Reader;
use rocksdb::{BlockBasedIndexType, BlockBasedOptions, Cache, DB, DBCompressionType, DataBlockIndexType, Options};
use rocksdb::{ReadOptions, WriteBatch, WriteOptions};
use run::{Sizes, Subject, gb, time};
use std::path::{Path, PathBuf};
use workload::Block;

fn main() {
    let sizes = Sizes::from_arguments_or(20_000_000, 50_000_000);
    let parent = std::env::var_os("LYDIAN_BENCH_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let dir = parent.join(format!("lydian-bench-rocksdb-{}", std::process::id()));
    let mut rocks = Rocks::open(&dir, sizes);
    run::run(&mut rocks, sizes);
    drop(rocks);
    let (rocks, spent) = time(|| Rocks::open(&dir, sizes));
    println!("  open      {:8.2} s after a clean stop, {:.2} GB of memory", spent.as_secs_f64(), gb(rocks.sizes().0));
    drop(rocks);
    std::fs::remove_dir_all(&dir).expect("the folder was made above");
}

struct Rocks {
    db: DB,
    write: WriteOptions,
    dir: PathBuf,
}

impl Rocks {
    fn open(dir: &Path, sizes: Sizes) -> Rocks {
        let memtables = (sizes.cache_bytes / 2).min(1 << 30) as usize;
        let cache = Cache::new_lru_cache(sizes.cache_bytes as usize - memtables).expect("there is memory");
        let mut table = BlockBasedOptions::default();
        table.set_block_cache(&cache);
        table.set_block_size(4 << 10);
        table.set_bloom_filter(10.0, false);
        table.set_whole_key_filtering(true);
        table.set_cache_index_and_filter_blocks(true);
        table.set_pin_l0_filter_and_index_blocks_in_cache(true);
        table.set_index_type(BlockBasedIndexType::BinarySearch);
        table.set_data_block_index_type(DataBlockIndexType::BinaryAndHash);
        table.set_format_version(5);
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_block_based_table_factory(&table);
        options.set_compression_type(DBCompressionType::Lz4);
        options.set_write_buffer_size(memtables / 4);
        options.set_max_write_buffer_number(4);
        options.set_level_compaction_dynamic_level_bytes(true);
        options.set_target_file_size_base(128 << 20);
        options.set_max_bytes_for_level_base(512 << 20);
        options.set_max_background_jobs(2);
        options.set_max_open_files(-1);
        options.set_bytes_per_sync(1 << 20);
        let mut write = WriteOptions::default();
        write.disable_wal(true);
        Rocks { db: DB::open_cf(&options, dir, ["default"]).expect("the database opens"), write, dir: dir.to_owned() }
    }

    fn number(&self, property: &str) -> u64 {
        self.db.property_int_value(property).ok().flatten().unwrap_or(0)
    }
}

impl Subject for Rocks {
    fn name(&self) -> &'static str {
        "RocksDB"
    }

    fn apply(&mut self, block: &Block) -> i64 {
        let value = self.get(block);
        let mut batch = WriteBatch::default();
        block.spends.iter().for_each(|outpoint| batch.delete(outpoint.to_bytes()));
        let mut bytes = Vec::new();
        for (outpoint, coin) in &block.creates {
            bytes.clear();
            write_coin(coin.as_ref(), &mut bytes);
            batch.put(outpoint.to_bytes(), &bytes);
        }
        self.db.write_opt(batch, &self.write).expect("the batch is written");
        value
    }

    fn get(&mut self, block: &Block) -> i64 {
        let mut keys: Vec<[u8; 36]> = block.spends.iter().map(|outpoint| outpoint.to_bytes()).collect();
        keys.sort_unstable();
        let family = self.db.cf_handle("default").expect("there is a default family");
        let found = self.db.batched_multi_get_cf_opt(&family, &keys, true, &ReadOptions::default());
        let value = |bytes: &[u8]| read_coin(&mut Reader::new(bytes)).expect("a coin").value.0;
        found.into_iter().map(|one| one.expect("a read").map_or(0, |bytes| value(&bytes))).sum()
    }

    fn sync(&mut self) {
        self.db.flush().expect("the memtables are flushed");
    }

    fn sizes(&self) -> (u64, u64) {
        let memory =
            ["rocksdb.cur-size-all-mem-tables", "rocksdb.estimate-table-readers-mem", "rocksdb.block-cache-usage"];
        let files = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let disk = files.filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum();
        (memory.iter().map(|property| self.number(property)).sum(), disk)
    }
}
