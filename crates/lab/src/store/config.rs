//! The files and the command line of one node of a cluster.
//!
//! Input: the place of the node, the ports and memory of the cluster. Output: `cassandra.yaml`, the settings of its
//! log, and the command. Everything a node writes is below its own folder; it listens on its loopback address only, and
//! on no port for JMX. Must never: name a file outside the folder, or an address outside 127.0.0.0/8.

use super::install::Installed;
use crate::error::LabError;
use lydian_disk::{Disk, RealDisk};
use std::fmt::Write;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Tokens are signed 64-bit numbers; each node has one.
const TOKENS: u128 = 1 << 64;
/// The main class of a node.
const MAIN_CLASS: &str = "org.apache.cassandra.service.CassandraDaemon";

/// What all nodes of a cluster have in common.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub nodes: u8,
    /// For clients; the same on every address.
    pub cql_port: u16,
    /// Between the nodes.
    pub storage_port: u16,
    pub heap_mib: u32,
    /// Limits of the memory outside the heap: buffers of files, of the network, and other direct memory.
    pub off_heap_mib: u32,
}

/// One node: its number from 0, and its folder.
#[derive(Clone, Debug)]
pub struct Place {
    pub number: u8,
    pub folder: PathBuf,
}

/// How a node joins the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// With its own data, or as one of the first nodes.
    Plainly,
    /// In place of a node of the same address that lost its data, which the others stream to it.
    AsReplacement,
}

impl Place {
    pub fn address(&self) -> Ipv4Addr {
        Ipv4Addr::new(127, 0, 0, self.number.saturating_add(1))
    }

    pub fn log(&self) -> PathBuf {
        self.folder.join("system.log")
    }

    /// The folder of the tables, one folder for each keyspace.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Folders that a wiped node loses.
    pub fn folders(&self) -> [PathBuf; 5] {
        ["data", "commitlog", "hints", "saved_caches", "cdc_raw"].map(|name| self.folder.join(name))
    }

    /// Writes the files that the node reads at its start.
    pub fn write_files(&self, shape: &Shape, join: Join) -> Result<(), LabError> {
        RealDisk.write_whole(&self.folder.join("cassandra.yaml"), self.yaml(shape, join).as_bytes())?;
        RealDisk.write_whole(&self.folder.join("logback.xml"), logback(&self.log()).as_bytes())?;
        Ok(())
    }

    /// The nodes of whom this one asks for the members of the cluster. A node that is replaced may not be one of them.
    fn seeds(&self, shape: &Shape, join: Join) -> String {
        let is_seed =
            |number: &u8| join == Join::Plainly && *number == 0 || join != Join::Plainly && *number != self.number;
        let numbers = (0..shape.nodes).filter(is_seed);
        let of = |number| format!("{}:{}", Place { number, folder: PathBuf::new() }.address(), shape.storage_port);
        numbers.map(of).collect::<Vec<_>>().join(",")
    }

    /// The token of a node, so that each has the same share of the keys.
    fn token(&self, shape: &Shape) -> i128 {
        let share = TOKENS / u128::from(shape.nodes.max(1));
        let from_zero = share * u128::from(self.number);
        i128::try_from(from_zero).unwrap_or_default() + i128::from(i64::MIN)
    }

    fn yaml(&self, shape: &Shape, join: Join) -> String {
        let mut text = String::new();
        let mut set = |name: &str, value: &dyn std::fmt::Display| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name}: {value}");
        };
        set("cluster_name", &"lydian");
        set("num_tokens", &1);
        set("auto_bootstrap", &(join == Join::AsReplacement));
        if join == Join::Plainly {
            set("initial_token", &format!("\"{}\"", self.token(shape)));
        }
        set("partitioner", &"org.apache.cassandra.dht.Murmur3Partitioner");
        // A node asks itself before the others: the name of its datacenter is `0`, from its address.
        set("endpoint_snitch", &"RackInferringSnitch");
        set("dynamic_snitch", &false);
        set("listen_address", &self.address());
        set("rpc_address", &self.address());
        set("native_transport_port", &shape.cql_port);
        set("storage_port", &shape.storage_port);
        let folder = |name: &str| quoted(&self.folder.join(name));
        set("data_file_directories", &format!("[{}]", folder("data")));
        set("commitlog_directory", &folder("commitlog"));
        set("hints_directory", &folder("hints"));
        set("saved_caches_directory", &folder("saved_caches"));
        set("cdc_raw_directory", &folder("cdc_raw"));
        set("commitlog_sync", &"periodic");
        set("commitlog_sync_period", &"1000ms");
        // A mutation may have half the size of a segment.
        set("commitlog_segment_size", &"32MiB");
        set("commitlog_total_space", &"256MiB");
        set("memtable_heap_space", &format!("{}MiB", shape.heap_mib / 8));
        set("memtable_offheap_space", &format!("{}MiB", shape.off_heap_mib / 4));
        set("memtable_flush_writers", &1);
        set("file_cache_size", &format!("{}MiB", shape.off_heap_mib / 4));
        set("networking_cache_size", &format!("{}MiB", shape.off_heap_mib / 8));
        set("key_cache_size", &"8MiB");
        set("counter_cache_size", &"0MiB");
        set("concurrent_compactors", &1);
        set("concurrent_reads", &8);
        set("concurrent_writes", &16);
        set("auto_snapshot", &false);
        set("disk_failure_policy", &"stop");
        set("commit_failure_policy", &"stop");
        let parameters = format!("[{{seeds: \"{}\"}}]", self.seeds(shape, join));
        let provider =
            format!("[{{class_name: org.apache.cassandra.locator.SimpleSeedProvider, parameters: {parameters}}}]");
        set("seed_provider", &provider);
        text
    }

    /// The command that runs the node in the foreground.
    pub fn command(&self, installed: &Installed, shape: &Shape, join: Join) -> Result<Command, LabError> {
        let mut command = Command::new(&installed.java);
        command.current_dir(&self.folder);
        command.arg(format!("-Xms{0}M", shape.heap_mib / 2)).arg(format!("-Xmx{}M", shape.heap_mib));
        command.arg(format!("-XX:MaxDirectMemorySize={}M", shape.off_heap_mib));
        command.args(JVM_ARGUMENTS);
        for (kind, names) in MODULES {
            command.args(names.iter().map(|name| format!("--add-{kind}={name}=ALL-UNNAMED")));
        }
        command.arg(format!("-javaagent:{}", installed.agent().display()));
        let mut set = |name: &str, value: &str| {
            command.arg(format!("-D{name}={value}"));
        };
        set("cassandra.config", &format!("file://{}", self.folder.join("cassandra.yaml").display()));
        set("cassandra.storagedir", &self.folder.display().to_string());
        set("logback.configurationFile", &self.folder.join("logback.xml").display().to_string());
        set("java.io.tmpdir", &self.folder.display().to_string());
        // The settling of gossip after a start is for large clusters.
        set("cassandra.skip_wait_for_gossip_to_settle", "0");
        if join == Join::AsReplacement {
            set("cassandra.replace_address_first_boot", &self.address().to_string());
        }
        command.arg("-classpath").arg(installed.class_path()?).arg(MAIN_CLASS);
        Ok(command)
    }
}

/// A path as a string of YAML.
fn quoted(path: &Path) -> String {
    format!("\"{}\"", path.display().to_string().replace('\\', "\\\\").replace('"', "\\\""))
}

fn logback(log: &Path) -> String {
    let path = log.display().to_string().replace('&', "&amp;").replace('<', "&lt;");
    format!(
        r#"<configuration>
  <appender name="FILE" class="ch.qos.logback.core.FileAppender">
    <file>{path}</file>
    <encoder><pattern>%d %-5level [%thread] %logger{{0}}: %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="FILE"/></root>
</configuration>
"#
    )
}

/// One collector thread and no further compilation levels: three nodes share the cores of one machine with what is
/// tested.
const JVM_ARGUMENTS: &[&str] = &[
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:-UsePerfData",
    "-Xss512k",
    "-Dfile.encoding=UTF-8",
    "-Djava.net.preferIPv4Stack=true",
    "-Djdk.attach.allowAttachSelf=true",
    "-Dio.netty.tryReflectionSetAccessible=true",
];

/// What Cassandra uses of Java's own modules, as its file `jvm17-server.options` lists it.
const MODULES: &[(&str, &[&str])] = &[
    (
        "exports",
        &[
            "java.base/jdk.internal.misc",
            "java.base/jdk.internal.ref",
            "java.base/java.lang.ref",
            "java.base/java.lang.reflect",
            "java.base/sun.nio.ch",
            "java.management.rmi/com.sun.jmx.remote.internal.rmi",
            "java.rmi/sun.rmi.registry",
            "java.rmi/sun.rmi.server",
            "java.sql/java.sql",
            "jdk.unsupported/sun.misc",
        ],
    ),
    (
        "opens",
        &[
            "java.base/java.io",
            "java.base/java.lang",
            "java.base/java.lang.module",
            "java.base/java.lang.reflect",
            "java.base/java.math",
            "java.base/java.net",
            "java.base/java.nio",
            "java.base/java.util",
            "java.base/java.util.concurrent",
            "java.base/java.util.concurrent.atomic",
            "java.base/jdk.internal.loader",
            "java.base/jdk.internal.math",
            "java.base/jdk.internal.module",
            "java.base/jdk.internal.ref",
            "java.base/jdk.internal.reflect",
            "java.base/jdk.internal.util.jar",
            "java.base/sun.nio.ch",
            "jdk.management/com.sun.management.internal",
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> Shape {
        Shape { nodes: 3, cql_port: 9042, storage_port: 7000, heap_mib: 512, off_heap_mib: 256 }
    }

    fn place(number: u8) -> Place {
        Place { number, folder: PathBuf::from("/a \"b\"") }
    }

    #[test]
    fn nodes_share_the_keys_equally_and_stay_on_loopback() {
        let tokens: Vec<i128> = (0..3).map(|number| place(number).token(&shape())).collect();
        assert_eq!(tokens, [-9_223_372_036_854_775_808, -3_074_457_345_618_258_603, 3_074_457_345_618_258_602]);
        let yaml = place(2).yaml(&shape(), Join::Plainly);
        for line in [
            "listen_address: 127.0.0.3",
            "rpc_address: 127.0.0.3",
            "native_transport_port: 9042",
            "initial_token: \"3074457345618258602\"",
            "auto_bootstrap: false",
            "commitlog_directory: \"/a \\\"b\\\"/commitlog\"",
        ] {
            assert!(yaml.lines().any(|one| one == line), "{line} in {yaml}");
        }
        assert!(yaml.contains("[{seeds: \"127.0.0.1:7000\"}]"), "{yaml}");
    }

    #[test]
    fn a_replaced_node_asks_the_others() {
        let yaml = place(0).yaml(&shape(), Join::AsReplacement);
        assert!(yaml.contains("seeds: \"127.0.0.2:7000,127.0.0.3:7000\""), "{yaml}");
        assert!(yaml.contains("auto_bootstrap: true") && !yaml.contains("initial_token"), "{yaml}");
    }
}
