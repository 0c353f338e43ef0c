//! A text that a client shows, a cookie's or a token's, and whose it is.

/// What gives such texts, and knows them again.
pub trait Lookup {
    /// Whose it is, where it is one of ours and has not expired.
    fn user(&mut self, text: &[u8], now_s: u64) -> Result<Option<String>, String>;

    /// A new text for this user, which fits in a cookie.
    fn issue(&mut self, name: &str, now_s: u64, expires_s: u64) -> Result<String, String>;

    /// Whether the server can end one before it expires.
    fn ends(&self) -> bool {
        false
    }

    /// It is not taken from now on.
    fn end(&mut self, _text: &[u8]) -> Result<(), String> {
        Ok(())
    }
}
