//! Clocks and memory, as the operating system accounts for them.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// CPU time of this process, all threads, user and system, in nanoseconds.
pub fn process_cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ProcessCPUTime))
}

/// Time that only goes forward, in nanoseconds.
#[inline]
pub fn wall_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// Seconds since 1970: what is written down for others to read.
#[inline]
pub fn unix_s() -> u64 {
    clock_gettime(ClockId::Realtime).tv_sec as u64
}

#[inline]
fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Both clocks at one moment. Elapsed time is read outside of CPU time, so that it is never the smaller one.
pub struct Clocks {
    of: ClockId,
    cpu_ns: u64,
    wall_ns: u64,
}

impl Clocks {
    /// With the CPU time of this process.
    pub fn read() -> Clocks {
        Clocks::of(ClockId::ProcessCPUTime)
    }

    /// With that of the thread that reads them.
    pub fn of_thread() -> Clocks {
        Clocks::of(ClockId::ThreadCPUTime)
    }

    fn of(of: ClockId) -> Clocks {
        let wall_ns = wall_ns();
        Clocks { of, wall_ns, cpu_ns: nanoseconds(clock_gettime(of)) }
    }

    /// CPU time and elapsed time since then.
    pub fn since(&self) -> (u64, u64) {
        let cpu_ns = nanoseconds(clock_gettime(self.of)) - self.cpu_ns;
        (cpu_ns, self.elapsed_ns())
    }

    pub fn elapsed_ns(&self) -> u64 {
        wall_ns() - self.wall_ns
    }
}

/// Memory this process holds now and the most it held since the last `forget_peak`, in bytes (`VmRSS`, `VmHWM`).
pub fn memory_bytes() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| crate::proc::status_field(&status, name).map_or(0, |kib| kib * 1024);
    (field("VmRSS:"), field("VmHWM:"))
}

/// Sets the peak back to what is resident now. False where the kernel does not allow it.
pub fn forget_peak() -> bool {
    // proc(5): 5 resets the peak resident set size.
    std::fs::write("/proc/self/clear_refs", "5").is_ok()
}
