//! A login form. The page redirects the browser there, and name and password are posted with a token from the
//! form. Then a sealed ticket in a cookie replaces them, until it expires.
use super::scheme::{Scheme, Wrong};

pub mod client;
mod fields;
mod sealed;
pub mod server;

pub const SCHEME: Scheme = Scheme {
    name: "form",
    client: client::client,
    server: Some(sealed::server),
    keeps_state: true,
    has_sign_on: true,
    refused: &[
        Wrong::NoCredentials,
        Wrong::Password,
        Wrong::User,
        Wrong::Own(client::FORGED),
        Wrong::Own(client::FORGED_LOGIN),
        Wrong::Own(client::ANOTHER_TOKEN),
        Wrong::Own(client::UNSIGNED_TOKEN),
    ],
};

#[cfg(test)]
mod tests {
    use super::fields::{COOKIE, field, of_cookie};
    use super::sealed::Sealed;
    use super::server::Tokens;
    use crate::sign_in::lookup::Lookup;
    use crate::sign_in::tests::any_bytes;

    #[test]
    fn any_form_and_cookie_are_taken() {
        let (mut sealed, tokens) = (Sealed::new().expect("a key"), Tokens::new().expect("a key"));
        for bytes in
            any_bytes(&[b"name=", b"&", b"%4", b"%41", b"=", b"ticket=", b";", b" ", b"AAAAAAAAAAAAAAAA"])
        {
            if let Some(value) = field(&bytes, b"name") {
                assert!(value.len() <= bytes.len());
            }
            assert_eq!(Ok(None), sealed.user(of_cookie(&bytes, COOKIE).unwrap_or(&bytes), 0));
            assert!(!tokens.is_ours(&bytes, 0));
        }
    }
}
