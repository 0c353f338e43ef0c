//! Scheduling policy of clients that share a core with the server.

/// Makes this thread, and threads that it starts, wait for a turn after waking (`SCHED_BATCH`).
///
/// Under the usual policy an answer wakes the client, which takes the core in the middle of the server's
/// turn. Its next request then arrives before the server looks and saves the server a wait, more often the
/// longer the turn is. A client that gives way lets the server finish: the server waits equally often
/// whatever its work costs. The policy needs no privilege. Without it numbers are less equal but still right,
/// so that a refusal is ignored.
pub fn give_way() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters are alive, and 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameters) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_and_those_that_it_starts_give_way() {
        let policy = || {
            // SAFETY: it takes a number.
            unsafe { libc::sched_getscheduler(0) }
        };
        let started = std::thread::spawn(move || {
            assert_eq!(libc::SCHED_OTHER, policy());
            give_way();
            (policy(), std::thread::spawn(policy).join().expect("a policy"))
        });
        assert_eq!((libc::SCHED_BATCH, libc::SCHED_BATCH), started.join().expect("policies"));
    }
}
