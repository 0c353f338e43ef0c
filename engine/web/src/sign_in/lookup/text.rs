//! Texts that identify a user, in a cookie or a token.

/// Issuer of such texts, which recognises them.
pub trait Lookup {
    /// Returns the user of a text that was issued here and has not expired.
    fn user(&mut self, text: &[u8], now_s: u64) -> Result<Option<String>, String>;

    /// Issues a text for this user, which fits in a cookie.
    fn issue(&mut self, name: &str, now_s: u64, expires_s: u64) -> Result<String, String>;

    /// Returns true if the server can end a text before it expires.
    fn ends(&self) -> bool {
        false
    }

    /// Ends a text.
    fn end(&mut self, _text: &[u8]) -> Result<(), String> {
        Ok(())
    }
}
