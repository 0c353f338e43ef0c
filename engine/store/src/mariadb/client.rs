//! A client of MariaDB for signing on, with its own implementation of the protocol's first packets. The crate
//! for rows does more at each connection, for example it asks for variables, and that would be counted as the
//! sign-on's cost.

use std::io::{self, ErrorKind, Read, Write};
use std::time::Duration;

use aws_lc_rs::digest::{self, SHA1_FOR_LEGACY_USE_ONLY};
use ed25519_dalek::VerifyingKey;
use ed25519_dalek::hazmat::{ExpandedSecretKey, raw_sign};
use sha2::{Digest, Sha512};

use super::super::channel::{Channel, is_late};
use super::super::database::unanswered;
use crate::failure::Failure;
use crate::tls::Stream;

// Capabilities; a connection has those that both sides name.
const LONG_PASSWORD: u32 = 1;
const LONG_FLAG: u32 = 1 << 2;
const PROTOCOL_41: u32 = 1 << 9;
const TLS: u32 = 1 << 11;
const TRANSACTIONS: u32 = 1 << 13;
const SECURE_CONNECTION: u32 = 1 << 15;
const PLUGINS: u32 = 1 << 19;
pub const WANTED: u32 = LONG_PASSWORD | LONG_FLAG | PROTOCOL_41 | TRANSACTIONS | SECURE_CONNECTION | PLUGINS;

const QUIT: u8 = 1;
const QUERY: u8 = 3;
// First bytes of an answer's packets.
const OK: u8 = 0;
const ERROR: u8 = 0xff;
const END: u8 = 0xfe;
const NULL: u8 = 0xfb;
/// Character set `utf8mb4_general_ci`.
const CHARACTER_SET: u8 = 45;
/// Limit of a packet: the answers here have some hundred bytes.
const MOST_PACKET_BYTES: usize = 1 << 16;

/// Authentication plugin of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plugin {
    Native,
    Ed25519,
}

impl Plugin {
    pub fn name(self) -> &'static str {
        match self {
            Plugin::Native => "mysql_native_password",
            Plugin::Ed25519 => "client_ed25519",
        }
    }

    /// Returns the length of the nonce, which a zero may follow.
    fn nonce_bytes(self) -> usize {
        match self {
            Plugin::Native => 20,
            Plugin::Ed25519 => 32,
        }
    }

    fn answer(self, password: &str, nonce: &[u8]) -> Vec<u8> {
        match self {
            // Neither an empty password nor the account at the other end of the socket needs an answer.
            Plugin::Native if password.is_empty() => Vec::new(),
            Plugin::Native => {
                let hash = |bytes: &[u8]| digest::digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes);
                let once = hash(password.as_bytes());
                let mask = hash(&[nonce, hash(once.as_ref()).as_ref()].concat());
                once.as_ref().iter().zip(mask.as_ref()).map(|(byte, mask)| byte ^ mask).collect()
            }
            // The key is derived from the whole password, while the standard's uses a seed of 32 bytes.
            Plugin::Ed25519 => {
                let key = ExpandedSecretKey::from_bytes(&Sha512::digest(password.as_bytes()).into());
                raw_sign::<Sha512>(&key, nonce, &VerifyingKey::from(&key)).to_bytes().to_vec()
            }
        }
    }
}

#[derive(Clone)]
pub struct Login {
    pub user: String,
    /// Password; empty: none is sent.
    pub password: String,
    pub plugin: Plugin,
}

/// Used parts of a server's first packet.
pub struct Greeting {
    nonce: Vec<u8>,
    capabilities: u32,
}

pub struct Client {
    stream: Stream,
    limit: Duration,
    /// Number of the next packet of an exchange.
    number: u8,
}

impl Client {
    /// Connects, and signs in. Also returns the plugin that the two agreed on. A server that requests another
    /// plugin gets no answer: otherwise an impostor could request a weaker proof.
    pub fn connect(channel: &Channel, login: &Login, limit: Duration) -> Result<(Client, String), Failure> {
        let capabilities = if matches!(channel, Channel::Tls(..)) { WANTED | TLS } else { WANTED };
        let (stream, greeting) = channel.open("MariaDB", limit, |socket| {
            let greeting = Greeting::of(&receive(&mut |into| socket.read(into), limit)?.1)?;
            if greeting.capabilities & TLS == 0 {
                return Err(broken("it has no TLS for this connection"));
            }
            socket.write_all(&packet(1, &hello(capabilities))).map_err(|error| failed(&error, limit))?;
            Ok(greeting)
        })?;
        // Both sides number the packets of an exchange: the greeting, and the request for TLS.
        let mut client = Client::over(stream, limit);
        let greeting = match greeting {
            Some(greeting) => greeting,
            None => client.greeting()?,
        };
        let agreed = client.sign_on(login, capabilities, &greeting)?;
        Ok((client, agreed))
    }

    pub fn over(stream: Stream, limit: Duration) -> Client {
        Client { stream, limit, number: 2 }
    }

    pub fn greeting(&mut self) -> Result<Greeting, Failure> {
        Greeting::of(&self.receive()?)
    }

    /// Signs on; the capabilities are those with which the greeting was answered.
    pub fn sign_on(
        &mut self,
        login: &Login,
        capabilities: u32,
        greeting: &Greeting,
    ) -> Result<String, Failure> {
        // The greeting's nonce is for the server's first plugin; another plugin's comes with its request.
        let answer = match login.plugin {
            Plugin::Native => login.plugin.answer(&login.password, &greeting.nonce),
            Plugin::Ed25519 => Vec::new(),
        };
        let mut words = hello(capabilities);
        words.extend(login.user.as_bytes());
        words.push(0);
        words.push(answer.len() as u8);
        words.extend(&answer);
        words.extend(login.plugin.name().as_bytes());
        words.push(0);
        self.send(&words)?;
        let mut agreed = if answer.is_empty() { "nothing asked" } else { login.plugin.name() }.to_owned();
        loop {
            let packet = self.receive()?;
            match packet.split_first() {
                Some((&OK, _)) => break,
                Some((&END, asked)) => {
                    let (name, nonce) = text_and_rest(asked)?;
                    if name != login.plugin.name() {
                        return Err(broken(format!(
                            "it asks for a proof by {name}, which this client does not give"
                        )));
                    }
                    let nonce = nonce.get(..login.plugin.nonce_bytes());
                    let nonce = nonce.ok_or_else(|| broken("it sent too little to be signed"))?;
                    let answer = login.plugin.answer(&login.password, nonce);
                    agreed = name;
                    self.send(&answer)?;
                }
                _ => return Err(broken("its answer to the sign-on is not valid")),
            }
        }
        Ok(agreed)
    }

    /// Returns the text in the first column of the first row that answers a statement without parameters.
    pub fn text_of(&mut self, text: &str) -> Result<Option<String>, Failure> {
        self.number = 0;
        self.send(&[&[QUERY], text.as_bytes()].concat())?;
        let columns = self.receive()?;
        if columns.first() == Some(&OK) {
            return Ok(None);
        }
        let mut first = None;
        // The columns' descriptions end like the rows.
        for is_row in [false, true] {
            loop {
                let packet = self.receive()?;
                match packet.first() {
                    Some(&END) if packet.len() < 9 => break,
                    Some(&NULL) | None => {}
                    Some(length) if is_row && first.is_none() => {
                        let bytes = packet.get(1..=usize::from(*length));
                        let bytes = bytes.ok_or_else(|| broken("a row that it sent is not valid"))?;
                        first = Some(String::from_utf8_lossy(bytes).into_owned());
                    }
                    Some(_) => {}
                }
            }
        }
        Ok(first)
    }

    /// Sends the end, and waits until the server has ended the connection as well.
    pub fn part(&mut self) -> Result<(), Failure> {
        self.number = 0;
        self.send(&[QUIT])?;
        let mut rest = [0; 64];
        loop {
            match self.stream.read(&mut rest) {
                Ok(count) if count > 0 => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_late(&error) => return Err(unanswered("MariaDB", self.limit)),
                _ => return Ok(()),
            }
        }
    }

    fn send(&mut self, words: &[u8]) -> Result<(), Failure> {
        let packet = packet(self.number, words);
        self.number = self.number.wrapping_add(1);
        let mut left = &packet[..];
        while !left.is_empty() {
            match self.stream.write(left) {
                Ok(count) => left = &left[count..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(&error, self.limit)),
            }
        }
        self.stream.flush().map_err(|error| failed(&error, self.limit))
    }

    /// Receives the next packet. Fails with the server's message if the packet is an error.
    fn receive(&mut self) -> Result<Vec<u8>, Failure> {
        let stream = &mut self.stream;
        let (number, packet) = receive(&mut |into| stream.read(into), self.limit)?;
        self.number = number.wrapping_add(1);
        match packet.split_first() {
            Some((&ERROR, said)) => Err(broken(String::from_utf8_lossy(words_of(said)))),
            _ => Ok(packet),
        }
    }
}

impl Greeting {
    fn of(packet: &[u8]) -> Result<Greeting, Failure> {
        let short = || broken("its greeting is too short");
        match packet.split_first() {
            Some((&10, rest)) => {
                // The layout is: version as text, a number of the connection, and the nonce in two parts with
                // the capabilities between.
                let (_, rest) = text_and_rest(rest)?;
                let low = rest.get(13..15).ok_or_else(short)?;
                let high = rest.get(18..20).ok_or_else(short)?;
                let nonce =
                    [rest.get(4..12).ok_or_else(short)?, rest.get(31..43).ok_or_else(short)?].concat();
                Ok(Greeting { nonce, capabilities: u32::from_le_bytes([low[0], low[1], high[0], high[1]]) })
            }
            Some((&ERROR, said)) => Err(broken(String::from_utf8_lossy(words_of(said)))),
            _ => Err(broken("its greeting is not that of MariaDB")),
        }
    }
}

/// Returns the beginning of a client's first packet, which is all of a request for TLS.
fn hello(capabilities: u32) -> Vec<u8> {
    let mut words = capabilities.to_le_bytes().to_vec();
    words.extend((MOST_PACKET_BYTES as u32).to_le_bytes());
    words.push(CHARACTER_SET);
    words.extend([0; 23]);
    words
}

fn packet(number: u8, words: &[u8]) -> Vec<u8> {
    let length = (words.len() as u32).to_le_bytes();
    [&[length[0], length[1], length[2], number], words].concat()
}

/// Receives a packet with its number, and reads no further bytes, which may be TLS.
fn receive(
    read: &mut dyn FnMut(&mut [u8]) -> io::Result<usize>,
    limit: Duration,
) -> Result<(u8, Vec<u8>), Failure> {
    let mut exactly = |into: &mut [u8]| -> Result<(), Failure> {
        let mut at = 0;
        while at < into.len() {
            match read(&mut into[at..]) {
                Ok(0) => return Err(broken("it closed the connection")),
                Ok(count) => at += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(&error, limit)),
            }
        }
        Ok(())
    };
    let mut head = [0; 4];
    exactly(&mut head)?;
    let length = u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
    if length > MOST_PACKET_BYTES {
        return Err(broken(format!("a packet of it claims to have {length} bytes")));
    }
    let mut packet = vec![0; length];
    exactly(&mut packet)?;
    Ok((head[3], packet))
}

fn text_and_rest(bytes: &[u8]) -> Result<(String, &[u8]), Failure> {
    let end = bytes.iter().position(|byte| *byte == 0).ok_or_else(|| broken("a text of it has no end"))?;
    Ok((String::from_utf8_lossy(&bytes[..end]).into_owned(), &bytes[end + 1..]))
}

/// Returns the message of an error, which follows its number.
fn words_of(said: &[u8]) -> &[u8] {
    said.get(2..).unwrap_or_default()
}

pub fn broken(words: impl std::fmt::Display) -> Failure {
    Failure::Failed(format!("MariaDB: {words}"))
}

fn failed(error: &io::Error, limit: Duration) -> Failure {
    if is_late(error) {
        unanswered("MariaDB", limit)
    } else {
        broken(format!("the connection to it: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_is_read_and_what_is_none_refused() {
        let mut greeting = b"\x0a5.5.5-10.11\0".to_vec();
        greeting.extend([1, 0, 0, 0]);
        greeting.extend(b"abcdefgh\0");
        greeting.extend([0xff, 0xff, 45, 2, 0, 0xff, 0x81, 21]);
        greeting.extend([0; 10]);
        greeting.extend(b"ijklmnopqrst\0mysql_native_password\0");
        let read = Greeting::of(&greeting).expect("a greeting");
        assert_eq!(b"abcdefghijklmnopqrst".to_vec(), read.nonce);
        assert!(read.capabilities & (TLS | PLUGINS) == TLS | PLUGINS);
        // The name of the plugin is not needed.
        for end in 0..greeting.len() - 23 {
            assert!(Greeting::of(&greeting[..end]).is_err(), "{end}");
        }
        let refused = Greeting::of(b"\xff\x10\x04Too many connections").err().expect("a refusal");
        assert!(refused.into_words().contains("Too many connections"));
    }

    /// The stored hash of the hash is enough to check the answer.
    #[test]
    fn the_native_answer_is_one_that_its_server_takes() {
        let hash = |bytes: &[u8]| digest::digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes);
        let (nonce, stored) = (b"abcdefghijklmnopqrst", hash(hash(b"secret").as_ref()));
        let answer = Plugin::Native.answer("secret", nonce);
        let mask = hash(&[&nonce[..], stored.as_ref()].concat());
        let once: Vec<u8> = answer.iter().zip(mask.as_ref()).map(|(byte, mask)| byte ^ mask).collect();
        assert_eq!(stored.as_ref(), hash(&once).as_ref());
        assert!(Plugin::Native.answer("", nonce).is_empty());
    }

    /// MariaDB's documentation contains the server's stored value for the password "secret": the public key.
    #[test]
    fn the_key_is_the_one_that_the_documentation_has() {
        use base64::Engine;
        use base64::engine::general_purpose::STANDARD;
        use ed25519_dalek::{Signature, Verifier};

        let stored = STANDARD.decode("ZIgUREUg5PVgQ6LskhXmO+eZLS0nC8be6HPjYWR4YJY=").expect("a key");
        let key = VerifyingKey::from_bytes(&stored.try_into().expect("32 bytes")).expect("a key");
        let answer = Plugin::Ed25519.answer("secret", &[7; 32]);
        let signature = Signature::from_slice(&answer).expect("a signature");
        assert!(key.verify(&[7; 32], &signature).is_ok());
    }
}
