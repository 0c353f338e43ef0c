//! How often each function of a bound library is called, where `TOLLBAR_COUNT_CALLS=1` asks for it: what an operation does
//! is counted and not read off the code (`python -m bench parity`). Elsewhere functions are called as they are. What is
//! linked in has no such functions to stand before: statements, hashes and the like are tallied where they are done.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex};

/// Functions whose address says which file a library is, and which this program would otherwise seem to be.
const PLACED: [&str; 2] = ["OpenSSL_version", "krb5_free_context"];
/// Room for each name to have a place of its own.
const SLOTS: usize = 1 << 14;

static ASKED: LazyLock<bool> = LazyLock::new(|| asks(std::env::var_os("TOLLBAR_COUNT_CALLS").as_deref()));
static CALLS: [AtomicU64; SLOTS] = [const { AtomicU64::new(0) }; SLOTS];
static FUNCTIONS: [AtomicPtr<()>; SLOTS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; SLOTS];
static NAMES: Mutex<BTreeMap<usize, &'static str>> = Mutex::new(BTreeMap::new());
static TALLIES: Mutex<BTreeMap<&'static str, u64>> = Mutex::new(BTreeMap::new());

/// Whether the variable's value asks for counts. One that is empty or `0` is meant to turn them off, and counts that were
/// not asked for would be measured with everything else.
fn asks(value: Option<&OsStr>) -> bool {
    value.is_some_and(|value| value == "1")
}

/// The place of a name, which its type can depend on.
pub const fn slot(name: &str) -> usize {
    // FNV-1a.
    let (bytes, mut hash, mut at) = (name.as_bytes(), 0xcbf2_9ce4_8422_2325_u64, 0);
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x100_0000_01b3);
        at += 1;
    }
    (hash ^ (hash >> 32)) as usize % SLOTS
}

/// A function of C.
pub trait Function: Sized {
    /// The same, or where it is asked for one that counts its calls and then calls it.
    fn counted<const SLOT: usize>(self, name: &'static str) -> Self;
}

fn note(slot: usize, name: &'static str, function: *mut ()) {
    FUNCTIONS[slot].store(function, Ordering::Relaxed);
    let mut names = NAMES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let other = names.insert(slot, name);
    assert!(other.is_none_or(|other| other == name), "{name} and {other:?} have one place");
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
                    // SAFETY: what is at this place was put there with this very type, whose name it has; the caller
                    // promises to this function what it would have promised to that one.
                    unsafe {
                        let function: unsafe extern "C" fn($($argument),*) -> Answer = std::mem::transmute(function);
                        function($($argument),*)
                    }
                }
                if !*ASKED || PLACED.contains(&name) {
                    return self;
                }
                note(SLOT, name, self as *mut ());
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

/// Counts something that was done, where that was asked for. Elsewhere it is a look at a flag.
#[inline]
pub fn tally(what: &'static str) {
    #[cfg(test)]
    tests::note(what);
    if *ASKED {
        *TALLIES.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).entry(what).or_default() += 1;
    }
}

/// Lets SIGUSR1 wake this process from its wait, where counts were asked for: a server has no lines to count between.
pub fn wake_on_signal() {
    extern "C" fn wake(_: libc::c_int) {}
    if *ASKED {
        // SAFETY: the handler does nothing.
        unsafe { libc::signal(libc::SIGUSR1, wake as *const () as libc::sighandler_t) };
    }
}

/// Says on standard error how often each function was called, where that was asked for.
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
pub mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::alone;

    thread_local! {
        /// Tests are threads of one process: each sees what it had tallied itself.
        static TALLIED: RefCell<BTreeMap<&'static str, u64>> = const { RefCell::new(BTreeMap::new()) };
    }

    pub fn note(what: &'static str) {
        TALLIED.with_borrow_mut(|tallied| *tallied.entry(what).or_default() += 1);
    }

    /// How often this thread has done each thing since it was asked last.
    pub fn tallied() -> BTreeMap<&'static str, u64> {
        TALLIED.take()
    }

    #[test]
    fn counts_are_asked_for_by_1_alone() {
        for (expected, value) in
            [(true, Some("1")), (false, None), (false, Some("")), (false, Some("0")), (false, Some("11"))]
        {
            assert_eq!(expected, asks(value.map(OsStr::new)), "{value:?}");
        }
    }

    /// FNV-1a of 64 bits by another program, folded, and cut to the places there are.
    #[test]
    fn a_name_has_one_place() {
        for (expected, name) in [(16_321, ""), (12_480, "a"), (9_881, "foobar"), (2_147, "EVP_DigestInit_ex")]
        {
            assert_eq!(expected, slot(name), "{name}");
        }
    }

    /// Counts are asked for when a process starts.
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
        // SAFETY: each of these numbers has one.
        assert_eq!([1, 2, 3], [-1, -2, -3].map(|number| unsafe { called(number) }));
        ["HMAC", "HMAC", "SQL statement"].into_iter().for_each(tally);
        wake_on_signal();
        // SAFETY: to this process, which it would end without a handler.
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
