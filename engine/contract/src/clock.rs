//! Clocks and memory of this process, from the operating system's accounts.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Returns the CPU time of this process, all threads, user and system, in nanoseconds.
pub fn process_cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ProcessCPUTime))
}

/// Returns monotonic time in nanoseconds.
#[inline]
pub fn wall_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// Returns seconds since 1970, for times that are recorded.
#[inline]
pub fn unix_s() -> u64 {
    clock_gettime(ClockId::Realtime).tv_sec as u64
}

#[inline]
fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CPU time and elapsed time at one moment. Elapsed time is read outside of CPU time, so that it is never the
/// smaller one.
pub struct Clocks {
    of: ClockId,
    cpu_ns: u64,
    wall_ns: u64,
}

impl Clocks {
    /// Reads the clocks, with the CPU time of this process.
    pub fn read() -> Clocks {
        Clocks::of(ClockId::ProcessCPUTime)
    }

    /// Reads the clocks, with the CPU time of the calling thread.
    pub fn of_thread() -> Clocks {
        Clocks::of(ClockId::ThreadCPUTime)
    }

    fn of(of: ClockId) -> Clocks {
        let wall_ns = wall_ns();
        Clocks { of, wall_ns, cpu_ns: nanoseconds(clock_gettime(of)) }
    }

    /// Returns CPU time and elapsed time since the clocks were read.
    pub fn since(&self) -> (u64, u64) {
        let cpu_ns = nanoseconds(clock_gettime(self.of)) - self.cpu_ns;
        (cpu_ns, self.elapsed_ns())
    }

    pub fn elapsed_ns(&self) -> u64 {
        wall_ns() - self.wall_ns
    }
}

/// Returns the resident memory of this process and its peak since the last `forget_peak`, in bytes (`VmRSS`,
/// `VmHWM`).
pub fn memory_bytes() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| crate::proc::status_field(&status, name).map_or(0, |kib| kib * 1024);
    (field("VmRSS:"), field("VmHWM:"))
}

/// Resets the peak to the memory that is resident now. Returns false if the kernel does not allow it.
pub fn forget_peak() -> bool {
    // proc(5): 5 resets the peak resident set size.
    std::fs::write("/proc/self/clear_refs", "5").is_ok()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

    use super::*;

    fn thread_ns() -> u64 {
        nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
    }

    fn burn(time_ns: u64) {
        let end_ns = thread_ns() + time_ns;
        while thread_ns() < end_ns {}
    }

    #[test]
    fn seconds_are_those_since_1970() {
        let since = || SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs();
        let before_s = since();
        assert!((before_s..=since() + 1).contains(&unix_s()));
    }

    /// Earlier use of the CPU does not count.
    #[test]
    fn what_is_used_since_then_lies_within_what_is_used_around_it() {
        burn(3_000_000);
        let (before_ns, began) = (thread_ns(), Instant::now());
        let clocks = Clocks::of_thread();
        burn(2_000_000);
        std::thread::sleep(Duration::from_millis(1));
        let (cpu_ns, wall_ns) = clocks.since();
        let (most_ns, most) = (thread_ns() - before_ns, began.elapsed());
        assert!((2_000_000..=most_ns).contains(&cpu_ns), "{cpu_ns} of {most_ns}");
        assert!((3_000_000..=most.as_nanos() as u64).contains(&wall_ns), "{wall_ns} of {most:?}");
    }

    /// The peak remains until it is reset, if the kernel allows that.
    #[test]
    fn memory_is_what_is_held_and_its_peak_what_was_held() {
        const HELD: usize = 256 << 20;
        // The peak belongs to the process, and other tests reset it.
        let test = "clock::tests::memory_is_what_is_held_and_its_peak_what_was_held";
        if crate::alone::tried_alone(test, &[]).is_some() {
            return;
        }
        let held = vec![1_u8; HELD];
        let (holds, peak) = memory_bytes();
        assert!((HELD as u64..1 << 40).contains(&holds) && peak >= holds, "{holds} {peak}");
        drop(std::hint::black_box(held));
        // The kernel keeps a peak by per-core counters that are not exact.
        const INEXACT: u64 = 4 << 20;
        assert!(memory_bytes().1 + INEXACT >= peak);
        let forgets = forget_peak();
        assert_eq!(forgets, memory_bytes().1 < peak - HELD as u64 / 2);
        assert_eq!(forgets, std::fs::write("/proc/self/clear_refs", "5").is_ok());
    }
}
