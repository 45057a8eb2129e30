//! FindAndDelete on any script and pattern, against a straightforward version of Core's loop.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lydian_script::{find_and_delete, ops, push_header};

/// Core's `FindAndDelete` (script/interpreter.cpp), byte by byte.
fn plain(script: &[u8], pattern: &[u8]) -> (Vec<u8>, usize) {
    let (mut kept, mut found) = (Vec::new(), 0);
    let (mut at, mut kept_from) = (0, 0);
    loop {
        kept.extend_from_slice(&script[kept_from..at]);
        while script[at..].starts_with(pattern) {
            at += pattern.len();
            found += 1;
        }
        kept_from = at;
        match ops(&script[at..]).next() {
            Some(Ok(op)) => at += op.end,
            _ => break,
        }
    }
    kept.extend_from_slice(&script[kept_from..]);
    (kept, found)
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&size, rest)) = bytes.split_first() else { return };
    let (data, script) = rest.split_at(usize::from(size).min(rest.len()));
    let (header, used) = push_header(data.len());
    let pattern = [&header[..used], data].concat();
    // The second script has the pattern between its operations, so that there is something to find.
    let between: Vec<_> = script.split(|byte| *byte == 0xfe).collect();
    for script in [script.to_vec(), between.join(&pattern[..])] {
        let (rest, found) = find_and_delete(&script, data);
        assert_eq!((rest.to_vec(), found), plain(&script, &pattern));
        assert_eq!(rest.len() + found * pattern.len(), script.len());
    }
});
