//! One operation of a user, as all schemes number it.

/// One operation of one user. It is over, counted and timed as a whole, with the answer to its last request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Operation {
    /// Among the users of its loop, from 0.
    pub user: u32,
    /// Which of its requests is under way, from 0.
    pub leg: u8,
    pub path: u16,
    /// A number that no other operation has drawn: its unique query, its nonce, its account.
    pub unique: u64,
    /// Which of the user's connections it is on: another number after each new one.
    pub connection: u32,
}
