//! The graph answers like Bitcoin Core's `TxGraph`, change for change.
//!
//! Input: `testdata/vectors/core/txgraph.txt`, random changes and the answers that Core's own `TxGraph` gave after each
//! of them, with all clusters optimal. A line without `=` is a change, a line with `=` an answer. Transactions are
//! numbered in the order of `add`; `chunk@fee/size` is a chunk.

use crate::graph::{Diagram, FeeSize, Graph, Level, Limits, TxRef};
use std::cmp::Ordering;

/// The graph under test and the handles of the transactions, by number.
struct Replay {
    graph: Graph,
    ids: Vec<TxRef>,
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("not a number: {text}"))
}

impl Replay {
    fn number_of(&self, id: TxRef) -> usize {
        self.ids.iter().position(|&other| other == id).unwrap()
    }

    fn ids(&self, numbers: &[&str]) -> Vec<TxRef> {
        numbers.iter().map(|text| self.ids[number::<usize>(text)]).collect()
    }

    fn sorted(&self, ids: &[TxRef]) -> String {
        let mut numbers: Vec<usize> = ids.iter().map(|&id| self.number_of(id)).collect();
        numbers.sort_unstable();
        numbers.iter().map(|number| format!(" {number}")).collect()
    }

    fn in_order(&self, ids: &[TxRef], separator: &str) -> String {
        ids.iter().map(|&id| self.number_of(id).to_string()).collect::<Vec<_>>().join(separator)
    }

    /// Makes a change; returns the line that Core's graph would have caused.
    fn change(&mut self, name: &str, words: &[&str]) -> String {
        match name {
            "add" => {
                let mut key = [0; 32];
                key[..8].copy_from_slice(&u64::from_str_radix(words[2], 16).unwrap().to_be_bytes());
                self.ids.push(self.graph.add(FeeSize::new(number(words[0]), number(words[1])), key));
            }
            "depend" => {
                let pairs: Vec<_> = self.ids(words).chunks(2).map(|pair| (pair[0], pair[1])).collect();
                self.graph.add_dependencies(&pairs);
            }
            "remove" => self.graph.remove(&self.ids(words)),
            "fee" => self.graph.set_fee(self.ids(&words[..1])[0], number(words[1])),
            "start" => self.graph.start_staging(),
            "abort" => self.graph.abort_staging(),
            "commit" => self.graph.commit_staging(),
            "trim" => {
                let removed = self.graph.trim();
                return format!("trim{}", self.sorted(&removed));
            }
            _ => panic!("unknown change {name}"),
        }
        std::iter::once(&name).chain(words).copied().collect::<Vec<_>>().join(" ")
    }

    /// Returns the answer to a question, as Core's line.
    fn answer(&mut self, line: &str, name: &str, words: &[&str]) -> String {
        let feerate = |feerate: FeeSize| format!("{}/{}", feerate.fee, feerate.size);
        let graph = &self.graph;
        match name {
            "=count" => {
                let is_oversized = |level| u8::from(graph.is_oversized(level));
                let (main, top) = (is_oversized(Level::Main), is_oversized(Level::Staging));
                format!("=count {} {} {main} {top}", graph.len(Level::Main), graph.len(Level::Staging))
            }
            "=main" => {
                let chunk = |chunk: crate::graph::Chunk| {
                    format!(" {}@{}", self.in_order(&chunk.nodes, ","), feerate(chunk.feerate))
                };
                format!("=main{}", graph.chunks().map(chunk).collect::<String>())
            }
            "=skip" => self.skip(words),
            "=worst" => match graph.worst_chunk() {
                None => "=worst 0/0".to_owned(),
                Some(mut chunk) => {
                    chunk.nodes.reverse();
                    format!("=worst {} {}", feerate(chunk.feerate), self.in_order(&chunk.nodes, " "))
                }
            },
            "=compare" => {
                let ids = self.ids(&words[..2]);
                format!("=compare {} {} {}", words[0], words[1], graph.compare(ids[0], ids[1]) as i8)
            }
            "=cluster" => {
                let id = self.ids(&words[..1])[0];
                let cluster = self.in_order(&graph.cluster(id, Level::Main), " ");
                let chunk = feerate(graph.chunk_feerate(id).unwrap());
                format!("=cluster {} {cluster} @{chunk}", words[0])
            }
            "=ancestors" | "=descendants" | "=clusters" => {
                let arguments = line.split(" :").next().unwrap();
                let ids = self.ids(&words[..words.iter().position(|&word| word == ":").unwrap()]);
                let found = match name {
                    "=ancestors" => self.sorted(&graph.ancestors(&ids, Level::Staging)),
                    "=descendants" => self.sorted(&graph.descendants(&ids, Level::Staging)),
                    _ => format!(" {}", graph.count_clusters(&ids, Level::Staging)),
                };
                format!("{arguments} :{found}")
            }
            "=diagrams" => {
                let (main, staging) = self.graph.diagrams().unwrap();
                let list = |diagram: &Diagram| {
                    diagram.chunks().iter().map(|&chunk| format!(" {}", feerate(chunk))).collect::<String>()
                };
                let verdict = match staging.compare(&main) {
                    None => "none",
                    Some(Ordering::Less) => "less",
                    Some(Ordering::Equal) => "equal",
                    Some(Ordering::Greater) => "greater",
                };
                format!("=diagrams{} :{} : {verdict}", list(&main), list(&staging))
            }
            _ => panic!("unknown question {name}"),
        }
    }

    /// Includes (`+`) or skips (`-`) chunks as the line says; returns the last transaction of each chunk offered.
    fn skip(&self, words: &[&str]) -> String {
        let mut builder = self.graph.block_builder();
        let mut offered = "=skip".to_owned();
        for word in words {
            let Some(chunk) = builder.current() else { break };
            let is_skipped = word.starts_with('-');
            let sign = if is_skipped { '-' } else { '+' };
            offered += &format!(" {sign}{}", self.number_of(*chunk.nodes.last().unwrap()));
            if is_skipped {
                builder.skip();
            } else {
                builder.include();
            }
        }
        assert!(builder.current().is_none(), "more chunks than Core offers");
        offered
    }
}

#[test]
fn every_answer_is_that_of_core() {
    let text = super::vectors("LYDIAN_TXGRAPH", "txgraph.txt");
    let mut replay = Replay { graph: Graph::new(Limits::new(1, 1)), ids: Vec::new() };
    let mut answers = 0;
    for (at, line) in text.lines().enumerate() {
        let mut words = line.split(' ');
        let name = words.next().unwrap();
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let own = if name == "graph" {
            let graph = Graph::new(Limits::new(number(words[0]), number(words[1])));
            replay = Replay { graph, ids: Vec::new() };
            line.to_owned()
        } else if name.starts_with('=') {
            answers += 1;
            replay.answer(line, name, &words)
        } else {
            let own = replay.change(name, &words);
            replay.graph.check();
            own
        };
        assert_eq!(own.trim_end(), line.trim_end(), "line {}", at + 1);
    }
    assert!(answers >= 5_000, "answers are missing");
}
