//! The kinds of work: a chain, which waits for itself, and two kinds of wide work, which keep the core's units busy, with
//! loads or in registers alone.

/// Work that goes on from where it ended.
///
/// Each operation goes on where the last one ended. A processor runs ahead of what it waits for: of chains that
/// begin anew it would work on the next one while this one ends, and twice the length would take more than twice
/// as long.
pub trait Work {
    /// At its beginning, from where a known answer starts; from another `start` the answer is another.
    fn starting_at(start: u64) -> Self;

    fn steps(&mut self, count: u64);

    /// What all steps so far have come to.
    fn answer(&self) -> u64;
}

/// The beginning of a known answer.
pub const START: u64 = 1;

/// A chain of multiplications in which each needs the one before: its time is proportional to its
/// length on any processor, and a busy neighbour on the other hyperthread hardly slows it.
pub struct Chain(u64);

/// One step of a chain: Knuth's multiplier and increment for 64 bits.
fn next(x: u64) -> u64 {
    x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
}

impl Work for Chain {
    fn starting_at(start: u64) -> Chain {
        Chain(start)
    }

    #[inline]
    fn steps(&mut self, count: u64) {
        let mut x = self.0;
        for _ in 0..count {
            // The compiler must not see through a step: it would fold several of them into one.
            // SAFETY: there is no instruction in it.
            unsafe { std::arch::asm!("/* {0} */", inout(reg) x, options(pure, nomem, nostack)) };
            x = next(x);
        }
        self.0 = std::hint::black_box(x);
    }

    fn answer(&self) -> u64 {
        self.0
    }
}

/// Eight values that do not wait for each other (but for one that takes a second's), and eight loads a step:
/// how fast it goes is set by how many units and load ports the core has free, so that it slows as soon as a
/// hyperthread beside it takes some of them.
pub struct Wide {
    values: [u64; LANES],
    table: Box<Table>,
}

const LANES: usize = 8;
/// 16 KiB: half of the smallest first-level cache that processors of today have, so it stays there whole.
const ROWS: usize = 256;

/// A row is a cache line where lines have 64 bytes, and the table begins with a page: its place in the cache is
/// the same in every process.
#[repr(align(4096))]
struct Table([[u64; LANES]; ROWS]);

impl Work for Wide {
    fn starting_at(start: u64) -> Wide {
        let mut x = START;
        let mut table = Box::new(Table([[0; LANES]; ROWS]));
        for word in table.0.as_flattened_mut() {
            x = next(x);
            *word = x;
        }
        let values = std::array::from_fn(|lane| start.wrapping_add(lane as u64));
        Wide { values, table }
    }

    /// Never copied into its callers: what is clocked is the code that ran before the clock started.
    #[inline(never)]
    fn steps(&mut self, count: u64) {
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = self.values;
        for step in 0..count {
            let row = &self.table.0[step as usize % ROWS];
            a = a.wrapping_add(row[0].wrapping_mul(3)).rotate_left(13);
            b ^= row[1].wrapping_add(a);
            c = c.wrapping_add(row[2]).rotate_left(7);
            d ^= row[3].wrapping_mul(5);
            e = e.wrapping_add(row[4]).rotate_left(17);
            f ^= row[5];
            g = g.wrapping_add(row[6].wrapping_mul(7)).rotate_left(5);
            h ^= row[7];
            // After each step all eight values are in general registers, and what they are is unknown to the
            // compiler: it can neither gather lanes or steps into vectors nor leave a step out, so that every
            // build for a processor does the same work.
            // SAFETY: there is no instruction in it.
            unsafe {
                std::arch::asm!("/* {0} {1} {2} {3} {4} {5} {6} {7} */",
                    inout(reg) a, inout(reg) b, inout(reg) c, inout(reg) d,
                    inout(reg) e, inout(reg) f, inout(reg) g, inout(reg) h,
                    options(pure, nomem, nostack));
            }
        }
        self.values = std::hint::black_box([a, b, c, d, e, f, g, h]);
    }

    fn answer(&self) -> u64 {
        self.values.iter().fold(0, |sum, value| sum.wrapping_add(*value))
    }
}

/// Eight values that do not wait for each other, in registers alone: as wide, and it leaves all caches to the work that it
/// stands next to.
pub struct Narrow([u64; LANES]);

impl Work for Narrow {
    fn starting_at(start: u64) -> Narrow {
        Narrow(std::array::from_fn(|lane| next(start.wrapping_add(lane as u64))))
    }

    /// Never copied into its callers, as `Wide`.
    #[inline(never)]
    fn steps(&mut self, count: u64) {
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = self.0;
        for _ in 0..count {
            a = a.wrapping_add(0x51).rotate_left(13) ^ 0x1d;
            b = (b ^ 0x33).rotate_left(7).wrapping_add(0x2f);
            c = c.wrapping_add(0x65).rotate_left(17) ^ 0x3b;
            d = (d ^ 0x7a).rotate_left(5).wrapping_add(0x47);
            e = e.wrapping_add(0x19).rotate_left(29) ^ 0x53;
            f = (f ^ 0x4d).rotate_left(11).wrapping_add(0x61);
            g = g.wrapping_add(0x21).rotate_left(19) ^ 0x6b;
            h = (h ^ 0x2b).rotate_left(23).wrapping_add(0x71);
            // All eight stay in general registers, and no step is left out or joined with the next.
            // SAFETY: there is no instruction in it.
            unsafe {
                std::arch::asm!("/* {0} {1} {2} {3} {4} {5} {6} {7} */",
                    inout(reg) a, inout(reg) b, inout(reg) c, inout(reg) d,
                    inout(reg) e, inout(reg) f, inout(reg) g, inout(reg) h,
                    options(pure, nomem, nostack));
            }
        }
        self.0 = std::hint::black_box([a, b, c, d, e, f, g, h]);
    }

    fn answer(&self) -> u64 {
        self.0.iter().fold(0, |sum, value| sum.wrapping_add(*value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goes_on<W: Work>() {
        let (mut thrice, mut once) = (W::starting_at(START), W::starting_at(START));
        (0..3).for_each(|_| thrice.steps(256));
        once.steps(768);
        assert_eq!(once.answer(), thrice.answer());
        once.steps(1);
        assert_ne!(once.answer(), thrice.answer());
    }

    /// Three times so many steps end where as many in one go end, and one more elsewhere.
    #[test]
    fn work_goes_on_from_where_it_ended() {
        goes_on::<Chain>();
        goes_on::<Wide>();
        goes_on::<Narrow>();
    }
}
