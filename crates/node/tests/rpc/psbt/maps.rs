//! A PSBT as its maps of keys and values, whatever they mean: what is mangled.

use lydian_primitives::Reader;
use lydian_primitives::build::write_var_bytes;
use lydian_stdx::SplitMix64;

/// Keys with their types in front, and values.
pub(super) type Map = Vec<(Vec<u8>, Vec<u8>)>;

/// The maps of a PSBT: global, inputs, outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Maps(pub(super) Vec<Map>);

const MAGIC: &[u8] = b"psbt\xff";

impl Maps {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for map in &self.0 {
            for (key, value) in map {
                write_var_bytes(&mut bytes, key);
                write_var_bytes(&mut bytes, value);
            }
            bytes.push(0);
        }
        bytes
    }

    /// The maps of a PSBT that a program wrote.
    pub(super) fn decode(bytes: &[u8]) -> Maps {
        let mut reader = Reader::new(bytes.strip_prefix(MAGIC).unwrap());
        let mut maps = Vec::new();
        while reader.remaining() > 0 {
            let mut map = Map::new();
            loop {
                let key = reader.var_bytes().unwrap().to_vec();
                if key.is_empty() {
                    break;
                }
                map.push((key, reader.var_bytes().unwrap().to_vec()));
            }
            maps.push(map);
        }
        Maps(maps)
    }

    /// Changes fields: their order, number, types, sizes and contents.
    pub(super) fn mangle(&mut self, random: &mut SplitMix64) {
        let place = random.below(self.0.len());
        let count = self.0[place].len();
        let map = &mut self.0[place];
        if count == 0 {
            map.push(any_field(random));
            return;
        }
        let at = random.below(count);
        match random.below(13) {
            0 => drop(map.remove(at)),
            1 => {
                let twice = map[at].clone();
                map.push(twice);
            }
            2 => map[at].0[0] = random.byte(),
            3 => map[at].0[0] = u8::try_from(random.below(0x1d)).unwrap(),
            4 => alter(random, &mut map[at].1),
            5 => alter(random, &mut map[at].0),
            6 => map[at].1.push(random.byte()),
            7 => drop(map[at].1.pop()),
            8 => {
                let field = any_field(random);
                map.insert(at, field);
            }
            9 => {
                let other = random.below(count);
                map.swap(at, other);
            }
            10 => {
                let field = map.remove(at);
                let other = random.below(self.0.len());
                self.0[other].push(field);
            }
            11 => {
                // One map more, or one less.
                if random.below(2) == 0 {
                    self.0.remove(place);
                } else {
                    self.0.push(Map::new());
                }
            }
            _ => {
                let value = map[at].1.clone();
                let other = random.below(count);
                map[other].1 = value;
            }
        }
    }
}

fn alter(random: &mut SplitMix64, bytes: &mut [u8]) {
    if !bytes.is_empty() {
        let at = random.below(bytes.len());
        bytes[at] = if random.below(2) == 0 { random.byte() } else { bytes[at] ^ 1 << random.below(8) };
    }
}

fn bytes(random: &mut SplitMix64, size: usize) -> Vec<u8> {
    (0..size).map(|_| random.byte()).collect()
}

/// A field that no program knows, a proprietary one, or a known one with arbitrary contents of a usual size.
pub(super) fn any_field(random: &mut SplitMix64) -> (Vec<u8>, Vec<u8>) {
    const SIZES: [usize; 14] = [0, 1, 4, 5, 8, 20, 32, 33, 36, 64, 65, 66, 71, 98];
    let size = |random: &mut SplitMix64| SIZES[random.below(SIZES.len())];
    let (kind, key_size, value_size) = (random.below(4), size(random), size(random));
    let mut key = match kind {
        0 => vec![0x30 + random.byte() % 0x40],
        // Identifier, subtype.
        1 => [&[0xfc, 4][..], b"test", &[random.byte() % 0xfd]].concat(),
        // A type of three bytes, sometimes longer than needed.
        2 => vec![0xfd, random.byte(), u8::from(random.below(4) > 0)],
        _ => vec![random.byte() % 0x1d],
    };
    let key_size = if kind == 3 && random.below(2) == 0 { 0 } else { key_size };
    key.extend(bytes(random, key_size));
    (key, bytes(random, value_size))
}

/// Changes single bytes, cuts the end off, or adds to it.
pub(super) fn mangle_bytes(random: &mut SplitMix64, bytes: &mut Vec<u8>) {
    match random.below(6) {
        0 => {
            let size = random.below(bytes.len());
            bytes.truncate(size);
        }
        1 => bytes.push(random.byte()),
        2 => {
            let at = random.below(bytes.len());
            bytes.remove(at);
        }
        3 => {
            let at = random.below(bytes.len());
            bytes.insert(at, random.byte());
        }
        _ => alter(random, bytes),
    }
}
