//! Facts about any process from `/proc` and the CPU clocks.

use std::fs;
use std::os::unix::fs::FileExt;

use rustix::thread::{CpuSet, Pid, sched_getaffinity};

/// Fields of `/proc/PID/stat` that the engine uses.
pub struct Stat {
    pub parent: i32,
    /// True if the process has ended and was not waited for.
    pub ended: bool,
    /// True once the process ends: the kernel sets this flag before it closes the files of the threads.
    pub is_ending: bool,
    /// True if the process runs, or waits for a core.
    pub would_run: bool,
    /// Page faults of the process that needed no disk; `reaped_faults` are those of the children it has
    /// waited for.
    pub faults: u64,
    pub reaped_faults: u64,
    /// CPU time of the children it has waited for, in whole clock ticks.
    pub waited_ns: u64,
    /// Start time in ticks since boot.
    pub started: u64,
}

/// Flag of a thread that ends, from the kernel's include/linux/sched.h: see proc(5).
const PF_EXITING: u64 = 0x4;

impl Stat {
    pub fn read(pid: i32) -> Option<Stat> {
        Stat::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(text: &str) -> Option<Stat> {
        // The second field is the program's name, which may contain any character; the rest begins with the
        // third.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(Stat {
            parent: fields.get(4 - 3)?.parse().ok()?,
            ended: matches!(*fields.first()?, "Z" | "X"),
            is_ending: number(9)? & PF_EXITING != 0,
            would_run: *fields.first()? == "R",
            faults: number(10)?,
            reaped_faults: number(11)?,
            waited_ns: (number(16)? + number(17)?) * tick_ns(),
            started: number(22)?,
        })
    }
}

/// Returns true if a thread of the process runs or waits for a core. The kernel adds the time of a running
/// thread to the clock of its process only at the next tick or when it stops. Until then only its state shows
/// that it works.
pub fn would_run(pid: i32) -> bool {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    let stats = tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("stat")).ok());
    stats.filter_map(|text| Stat::parse(&text)).any(|stat| stat.would_run)
}

fn tick_ns() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second()
}

/// Returns the CPU time of a process, all its threads, running and ended, user and system.
pub fn cpu_clock_ns(pid: i32) -> Option<u64> {
    if !(1..=i32::MAX >> 3).contains(&pid) {
        return None;
    }
    // This is the kernel's encoding of "the scheduler's clock of that process", for which rustix has no name.
    let clock = ((!pid) << 3) | 2;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one `timespec`, and refuses a clock that it does not know.
    let status = unsafe { libc::clock_gettime(clock, &mut time) };
    (status == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Returns the children of a process, including ended ones that were not waited for.
pub fn children(pid: i32) -> Vec<i32> {
    let mut children = Vec::new();
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return children };
    for task in tasks.flatten() {
        match fs::read_to_string(task.path().join("children")) {
            Ok(text) => {
                children.extend(text.split_ascii_whitespace().filter_map(|word| word.parse::<i32>().ok()))
            }
            // The kernel was built without that file.
            Err(_) if !has_children_file() => {
                return children_by_scan(pid);
            }
            // The thread has ended meanwhile.
            Err(_) => {}
        }
    }
    children
}

fn has_children_file() -> bool {
    let own = std::process::id();
    fs::exists(format!("/proc/self/task/{own}/children")).unwrap_or(false)
}

fn children_by_scan(parent: i32) -> Vec<i32> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    processes
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| Stat::read(*pid).is_some_and(|stat| stat.parent == parent))
        .collect()
}

/// Returns the number of voluntary and involuntary context switches of all threads that exist.
pub fn context_switches(pid: i32) -> Option<u64> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let of_task = |status: &str| -> u64 {
        status_field(status, "voluntary_ctxt_switches:").unwrap_or(0)
            + status_field(status, "nonvoluntary_ctxt_switches:").unwrap_or(0)
    };
    let statuses = tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("status")).ok());
    Some(statuses.map(|status| of_task(&status)).sum())
}

/// Returns the time that the existing threads have waited for a core since they began, or None if the kernel
/// does not report it.
pub fn run_queue_wait_ns(pid: i32) -> Option<u64> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let mut total_ns = None;
    for task in tasks.flatten() {
        let Ok(text) = fs::read_to_string(task.path().join("schedstat")) else { continue };
        total_ns = Some(total_ns.unwrap_or(0) + queued_ns(&text)?);
    }
    total_ns
}

/// Run queue of the thread that opens it, read in some microseconds during clocked work.
pub struct RunQueue(Option<fs::File>);

impl RunQueue {
    pub fn of_thread() -> RunQueue {
        RunQueue(fs::File::open("/proc/thread-self/schedstat").ok())
    }

    /// Returns the time waited for a core, 0 if the kernel does not report it.
    pub fn wait_ns(&self) -> u64 {
        let mut text = [0; 96];
        let read = self.0.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or(0);
        std::str::from_utf8(&text[..read]).ok().and_then(queued_ns).unwrap_or(0)
    }
}

/// Returns the time in the queue, the second of three numbers: time on a core, time in the queue, turns on a
/// core.
fn queued_ns(schedstat: &str) -> Option<u64> {
    schedstat.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Returns the only core that a process may use, or None if there are several.
pub fn only_core(pid: i32) -> Option<usize> {
    // Zero would mean the calling thread to the kernel, and no process has a negative number.
    let process = (pid > 0).then(|| Pid::from_raw(pid))?;
    let set = sched_getaffinity(process).ok().filter(|set| set.count() == 1)?;
    (0..CpuSet::MAX_CPU).find(|core| set.is_set(*core))
}

/// Returns the peak memory of a process.
pub fn peak_memory_bytes(pid: i32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status_field(&status, "VmHWM:").map(|kib| kib * 1024)
}

/// A segment of System V shared memory.
pub struct Segment {
    pub id: i32,
    /// Process that made the segment.
    pub maker: i32,
    /// Number of processes that have attached it.
    pub users: u64,
    /// Time at which it was made or given to another user, in seconds since 1970.
    pub changed: u64,
}

/// Returns the segments of this machine, or of this container.
pub fn segments() -> Vec<Segment> {
    let text = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    text.lines().skip(1).filter_map(segment).collect()
}

fn segment(line: &str) -> Option<Segment> {
    // Fields: key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap.
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    Some(Segment {
        id: fields.get(1)?.parse().ok()?,
        maker: fields.get(4)?.parse().ok()?,
        users: fields.get(6)?.parse().ok()?,
        changed: fields.get(13)?.parse().ok()?,
    })
}

/// Returns the number after a name in the text of `/proc/PID/status`.
pub fn status_field(status: &str, name: &str) -> Option<u64> {
    let rest = status.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that is bound to one core asks for itself, and for numbers that name no process.
    #[test]
    fn what_is_no_process_has_no_core() {
        let bound = std::thread::spawn(|| {
            let before = sched_getaffinity(None).expect("its cores");
            let core = (0..CpuSet::MAX_CPU).find(|core| before.is_set(*core)).expect("a core");
            let mut one = CpuSet::new();
            one.set(core);
            rustix::thread::sched_setaffinity(None, &one).expect("a thread on one core");
            let own = rustix::thread::gettid().as_raw_pid();
            assert_eq!(Some(core), only_core(own));
            assert_eq!([None; 3], [0, -1, i32::MIN].map(only_core));
        });
        bound.join().expect("a thread that ends well");
    }

    /// A program's name may contain brackets and blanks.
    #[test]
    fn a_name_does_not_shift_the_fields() {
        let text = "7 (a) b (c)) S 3 1 1 0 -1 4194560 1 2 3 4 50 60 7 8 20 0 1 0 4711 1 1";
        let stat = Stat::parse(text).expect("fields");
        assert_eq!((3, false, 15 * tick_ns(), 4711), (stat.parent, stat.ended, stat.waited_ns, stat.started));
        assert_eq!((1, 2, false, false), (stat.faults, stat.reaped_faults, stat.would_run, stat.is_ending));
        assert!(Stat::parse("7 (a) S 3").is_none());
        assert!(Stat::parse("").is_none());
    }

    #[test]
    fn both_ways_of_listing_children_agree() {
        let mut child = std::process::Command::new("sleep").arg("10").spawn().expect("sleep");
        let (own, pid) = (std::process::id() as i32, child.id() as i32);
        // Other tests' threads may have child processes.
        assert!(children(own).contains(&pid));
        assert!(children_by_scan(own).contains(&pid));
        child.kill().expect("kill");
        child.wait().expect("wait");
    }

    /// The clock of this process moves, and its switches and memory are above 0.
    #[test]
    fn this_process_is_seen() {
        let own = std::process::id() as i32;
        let before = cpu_clock_ns(own).expect("a clock");
        let mut sum = 0_u64;
        while cpu_clock_ns(own).expect("a clock") < before + 1_000_000 {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(context_switches(own).is_some());
        if fs::exists("/proc/self/schedstat").unwrap_or(false) {
            assert!(run_queue_wait_ns(own).is_some());
        }
        assert!(peak_memory_bytes(own).expect("memory") > 100_000);
        assert!(cpu_clock_ns(i32::MAX).is_none());
    }
}
