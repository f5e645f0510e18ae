//! Changes of bytes at random, from a seed.

/// Pseudo-random numbers: xorshift.
pub struct Random(u64);

/// Numbers at which things change.
const SPECIAL: [u64; 12] =
    [0, 1, 7, 8, 127, 128, 255, 1 << 15, u16::MAX as u64, u32::MAX as u64, i64::MAX as u64, u64::MAX];
/// Tries to find a place that is not among zeros, which fill pages up.
const TRIES: usize = 6;

impl Random {
    /// Numbers from a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below a bound; 0 if there is none.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.number()) * bound as u128) >> 64) as usize
    }

    fn place(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        for _ in 0..TRIES {
            at = self.below(bytes.len());
            if bytes[at..bytes.len().min(at + 16)].iter().any(|&byte| byte != 0) {
                break;
            }
        }
        at
    }
}

/// Changes bytes in some places, perhaps with pieces of others. At most `most` bytes come of it.
pub fn mutate(bytes: &mut Vec<u8>, other: &[u8], most: usize, random: &mut Random) {
    let changes = 1 << random.below(4);
    for _ in 0..changes {
        if bytes.is_empty() {
            bytes.extend((0..random.below(64)).map(|_| 0x5A));
            continue;
        }
        let at = random.place(bytes);
        match random.below(12) {
            0..3 => bytes[at] ^= 1 << random.below(8),
            3 => bytes[at] = random.number() as u8,
            4 => bytes[at] = SPECIAL[random.below(7)] as u8,
            5 => bytes[at] = bytes[at].wrapping_add(if random.below(2) == 0 { 1 } else { 255 }),
            6 => {
                let width = [2, 4, 8][random.below(3)];
                let number = SPECIAL[random.below(SPECIAL.len())].to_le_bytes();
                let end = bytes.len().min(at + width);
                bytes[at..end].copy_from_slice(&number[..end - at]);
            }
            7 => {
                // A piece of the same bytes to another place.
                let from = random.place(bytes);
                let length = [8, 24, 64, 512][random.below(4)].min(bytes.len() - at.max(from));
                bytes.copy_within(from..from + length, at);
            }
            8 if !other.is_empty() => {
                let from = random.place(other);
                let length = [8, 24, 64, 4096][random.below(4)].min(other.len() - from).min(bytes.len() - at);
                bytes[at..at + length].copy_from_slice(&other[from..from + length]);
            }
            9 => {
                let length = (1 + random.below(16)).min(bytes.len() - at);
                bytes.drain(at..at + length);
            }
            10 => {
                let piece: Vec<u8> = (0..1 + random.below(16)).map(|_| random.number() as u8).collect();
                bytes.splice(at..at, piece);
            }
            11 if random.below(8) == 0 => bytes.truncate(at),
            _ => bytes[at] = 0,
        }
    }
    bytes.truncate(most);
}
