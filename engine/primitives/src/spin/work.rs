//! Kinds of work: a chain of dependent steps, and two kinds of wide work, which use the core's units in
//! parallel, with loads or in registers only.

/// Work that continues from its last state.
///
/// Each operation continues where the last one ended. A processor runs ahead of results that it waits for. If
/// chains began again, it would start the next one while this one ends, and twice the length would take more
/// than twice as long.
pub trait Work {
    /// Makes the work at its beginning, that of a known answer; another `start` leads to another answer.
    fn starting_at(start: u64) -> Self;

    fn steps(&mut self, count: u64);

    /// Returns the result of all steps so far.
    fn answer(&self) -> u64;
}

/// Start of a known answer.
pub const START: u64 = 1;

/// A chain of multiplications in which each needs the one before. Its time is proportional to its length on
/// any processor, and a busy neighbour on the other hyperthread hardly slows it.
pub struct Chain(u64);

/// Performs one step of a chain: Knuth's multiplier and increment for 64 bits.
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
            // The compiler must not see through a step, or it would fold several of them into one.
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

/// Eight independent values (except that one uses another's) and eight loads a step. Its speed depends on the
/// units and load ports that the core has free. So it slows as soon as the other hyperthread uses some of
/// them.
pub struct Wide {
    values: [u64; LANES],
    table: Box<Table>,
}

const LANES: usize = 8;
/// Rows of the table, 16 KiB: half of the smallest first-level cache of current processors, so that it stays
/// there whole.
const ROWS: usize = 256;

/// A table whose rows are cache lines if lines have 64 bytes, and which begins with a page: its place in the
/// cache is the same in every process.
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

    /// Performs steps. Never inlined into its callers, so that the clocked code is the code that ran before
    /// the clock started.
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
            // After each step all eight values are in general registers, and the compiler does not know them.
            // It can neither gather lanes or steps into vectors nor leave a step out, so that every build for
            // a processor does the same work.
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

/// Eight independent values in registers only: as wide as `Wide`, and it leaves all caches to neighbouring
/// work.
pub struct Narrow([u64; LANES]);

impl Work for Narrow {
    fn starting_at(start: u64) -> Narrow {
        Narrow(std::array::from_fn(|lane| next(start.wrapping_add(lane as u64))))
    }

    /// Performs steps. Never inlined into its callers, like `Wide::steps`.
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

    /// Three runs of a length end in the state of one run of three times the length, and one step more in
    /// another state.
    #[test]
    fn work_goes_on_from_where_it_ended() {
        goes_on::<Chain>();
        goes_on::<Wide>();
        goes_on::<Narrow>();
    }
}
