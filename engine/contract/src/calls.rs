//! Counts of the calls to each function of a bound library, if `TOLLBAR_COUNT_CALLS=1` is set. `python -m
//! bench parity` counts an operation's calls by this, because reading the code is not a proof. Without the
//! variable functions are called directly. Linked-in libraries have no such function pointers to replace:
//! their statements, hashes and the like are tallied at the call.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex};

/// Functions whose address identifies the file of a library; a counting wrapper would point to this program.
const PLACED: [&str; 2] = ["OpenSSL_version", "krb5_free_context"];
/// Number of slots, large enough for each name to have its own.
const SLOTS: usize = 1 << 14;

static ASKED: LazyLock<bool> = LazyLock::new(|| asks(std::env::var_os("TOLLBAR_COUNT_CALLS").as_deref()));
static CALLS: [AtomicU64; SLOTS] = [const { AtomicU64::new(0) }; SLOTS];
static FUNCTIONS: [AtomicPtr<()>; SLOTS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; SLOTS];
static NAMES: Mutex<BTreeMap<usize, &'static str>> = Mutex::new(BTreeMap::new());
/// True once a test reads the tallies of its thread.
static NOTING: AtomicBool = AtomicBool::new(false);
static TALLIES: Mutex<BTreeMap<&'static str, u64>> = Mutex::new(BTreeMap::new());

thread_local! {
    /// Tallies of this thread: tests are threads of one process, and each sees only its own.
    static TALLIED: RefCell<BTreeMap<&'static str, u64>> = const { RefCell::new(BTreeMap::new()) };
}

/// Returns true if the variable's value is `1`. An empty value or `0` turns counting off, because counting
/// costs time in every measurement.
fn asks(value: Option<&OsStr>) -> bool {
    value.is_some_and(|value| value == "1")
}

/// Returns the slot of a name, at compile time, so that a type can depend on it.
pub const fn slot(name: &str) -> usize {
    // FNV-1a.
    let (bytes, mut hash, mut at) = (name.as_bytes(), 0xcbf2_9ce4_8422_2325_u64, 0);
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x100_0000_01b3);
        at += 1;
    }
    (hash ^ (hash >> 32)) as usize % SLOTS
}

/// A C function.
pub trait Function: Sized {
    /// Returns the function itself, or a wrapper that counts its calls if counting is on.
    fn counted<const SLOT: usize>(self, name: &'static str) -> Self;
}

fn place(slot: usize, name: &'static str, function: *mut ()) {
    FUNCTIONS[slot].store(function, Ordering::Relaxed);
    let mut names = NAMES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let other = names.insert(slot, name);
    assert!(other.is_none_or(|other| other == name), "{name} and {other:?} have the same place");
}

macro_rules! functions {
    ($([$($argument:ident),*])*) => {$(
        impl<$($argument,)* Answer> Function for unsafe extern "C" fn($($argument),*) -> Answer {
            fn counted<const SLOT: usize>(self, name: &'static str) -> Self {
                #[allow(non_snake_case)]
                unsafe extern "C" fn counting<$($argument,)* Answer, const SLOT: usize>(
                    $($argument: $argument),*
                ) -> Answer {
                    CALLS[SLOT].fetch_add(1, Ordering::Relaxed);
                    let function = FUNCTIONS[SLOT].load(Ordering::Relaxed);
                    // SAFETY: the pointer in this slot was stored with this very type, whose name it has; the
                    // caller of this function makes the promises that the wrapped function needs.
                    unsafe {
                        let function: unsafe extern "C" fn($($argument),*) -> Answer = std::mem::transmute(function);
                        function($($argument),*)
                    }
                }
                if !*ASKED || PLACED.contains(&name) {
                    return self;
                }
                place(SLOT, name, self as *mut ());
                counting::<$($argument,)* Answer, SLOT>
            }
        }
    )*};
}

functions! {
    [] [A] [A, B] [A, B, C] [A, B, C, D] [A, B, C, D, E] [A, B, C, D, E, F] [A, B, C, D, E, F, G]
    [A, B, C, D, E, F, G, H] [A, B, C, D, E, F, G, H, I] [A, B, C, D, E, F, G, H, I, J] [A, B, C, D, E, F, G, H, I, J, K]
    [A, B, C, D, E, F, G, H, I, J, K, L] [A, B, C, D, E, F, G, H, I, J, K, L, M]
}

/// Counts one operation under this name if counting is on. Otherwise it only reads a flag.
#[inline]
pub fn tally(what: &'static str) {
    note(what);
    if *ASKED {
        *TALLIES.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).entry(what).or_default() += 1;
    }
}

/// Counts a step for the tests alone, whose own threads ask for it by `tallied`. Otherwise it only reads a flag.
#[inline]
pub fn note(what: &'static str) {
    if NOTING.load(Ordering::Relaxed) {
        TALLIED.with_borrow_mut(|tallied| *tallied.entry(what).or_default() += 1);
    }
}

/// Returns this thread's tallies since the previous call; the first call in a process begins them.
pub fn tallied() -> BTreeMap<&'static str, u64> {
    NOTING.store(true, Ordering::Relaxed);
    TALLIED.take()
}

/// Lets SIGUSR1 wake this process from its wait, if counting is on: a server has no input lines between which
/// to count.
pub fn wake_on_signal() {
    extern "C" fn wake(_: libc::c_int) {}
    if *ASKED {
        // SAFETY: the handler does nothing.
        unsafe { libc::signal(libc::SIGUSR1, wake as *const () as libc::sighandler_t) };
    }
}

/// Prints the number of calls to each function on standard error, if counting is on.
pub fn say() {
    if !*ASKED {
        return;
    }
    let names = NAMES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let called = |(slot, name): (&usize, &&'static str)| (*name, CALLS[*slot].load(Ordering::Relaxed));
    let mut calls: BTreeMap<&str, u64> = names.iter().map(called).filter(|(_, calls)| *calls > 0).collect();
    calls.extend(TALLIES.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).iter());
    eprintln!("calls: {}", serde_json::to_string(&calls).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone;

    #[test]
    fn counts_are_asked_for_by_1_alone() {
        for (expected, value) in
            [(true, Some("1")), (false, None), (false, Some("")), (false, Some("0")), (false, Some("11"))]
        {
            assert_eq!(expected, asks(value.map(OsStr::new)), "{value:?}");
        }
    }

    /// Expected slots: 64-bit FNV-1a of another program, folded, modulo `SLOTS`.
    #[test]
    fn a_name_has_one_place() {
        for (expected, name) in [(16_321, ""), (12_480, "a"), (9_881, "foobar"), (2_147, "EVP_DigestInit_ex")]
        {
            assert_eq!(expected, slot(name), "{name}");
        }
    }

    /// The variable is read when a process starts, so that the test runs in its own.
    #[test]
    fn what_is_counted_is_said_at_the_end() {
        let test = "calls::tests::what_is_counted_is_said_at_the_end";
        if let Some(said) = alone::tried_alone(test, &[("TOLLBAR_COUNT_CALLS", "1")]) {
            let line = said.lines().find_map(|line| line.strip_prefix("calls: "));
            assert_eq!(Some(r#"{"HMAC":2,"SQL statement":1,"abs":3}"#), line, "{said}");
            return;
        }
        let function: unsafe extern "C" fn(libc::c_int) -> libc::c_int = libc::abs;
        let called = function.counted::<{ slot("abs") }>("abs");
        let _never_called = function.counted::<{ slot("labs") }>("labs");
        // SAFETY: each of these numbers has an absolute value.
        assert_eq!([1, 2, 3], [-1, -2, -3].map(|number| unsafe { called(number) }));
        ["HMAC", "HMAC", "SQL statement"].into_iter().for_each(tally);
        wake_on_signal();
        // SAFETY: raises the signal in this process only, which it would end without a handler.
        unsafe { libc::raise(libc::SIGUSR1) };
        say();
    }

    #[test]
    fn what_was_done_is_tallied_by_its_name() {
        tallied();
        ["SQL statement", "HMAC", "HMAC"].into_iter().for_each(tally);
        assert_eq!(BTreeMap::from([("HMAC", 2), ("SQL statement", 1)]), tallied());
        assert_eq!(BTreeMap::new(), tallied());
    }
}
