//! Common interface of clients and servers, and the encoding of rustls' records into the buffer from which
//! they are sent.

use std::io::{self, ErrorKind};

use ::rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use ::rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use ::rustls::unbuffered::{EncodeError, EncodeTlsData, EncryptError, UnbufferedStatus, WriteTraffic};
use ::rustls::{CommonState, SideData};

use crate::socket::Buffer;

/// Common part of clients and servers, which rustls does not have as a type.
pub trait Side {
    type Data: SideData;

    fn records<'c, 'i>(&'c mut self, incoming: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data>;

    fn state(&self) -> &CommonState;
}

macro_rules! side {
    ($connection:ty, $data:ty) => {
        impl Side for $connection {
            type Data = $data;

            fn records<'c, 'i>(&'c mut self, incoming: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, $data> {
                self.process_tls_records(incoming)
            }

            fn state(&self) -> &CommonState {
                self
            }
        }
    };
}

side!(UnbufferedClientConnection, ClientConnectionData);
side!(UnbufferedServerConnection, ServerConnectionData);

/// Largest plaintext of a record.
pub const RECORD: usize = 16 * 1024;
/// Bytes that a record adds to its plaintext, rounded up: header, nonce, content type, tag.
pub const OVERHEAD: usize = 64;

/// Action on a connection that may be written to.
pub enum Then<'a> {
    Rest,
    Seal(&'a [u8]),
    SayGoodbye,
}

pub fn encode<D>(mut data: EncodeTlsData<'_, D>, outgoing: &mut Buffer) -> io::Result<()> {
    let mut room = RECORD + OVERHEAD;
    loop {
        match data.encode(outgoing.room(room)) {
            Ok(count) => {
                outgoing.add(count);
                return Ok(());
            }
            Err(EncodeError::InsufficientSize(size)) if size.required_size > room => {
                room = size.required_size;
            }
            Err(error) => return Err(io::Error::other(error)),
        }
    }
}

pub fn finish<D: SideData>(
    mut traffic: WriteTraffic<'_, D>,
    then: &Then<'_>,
    outgoing: &mut Buffer,
) -> io::Result<()> {
    let count = match then {
        Then::Rest => return Ok(()),
        Then::Seal(plaintext) => {
            let room = plaintext.len() + (plaintext.len() / RECORD + 1) * OVERHEAD;
            traffic.encrypt(plaintext, outgoing.room(room))
        }
        Then::SayGoodbye => traffic.queue_close_notify(outgoing.room(OVERHEAD)),
    };
    match count {
        Ok(count) => {
            outgoing.add(count);
            Ok(())
        }
        Err(EncryptError::EncryptExhausted) => Err(ErrorKind::BrokenPipe.into()),
        Err(error) => Err(io::Error::other(error)),
    }
}

pub fn fault(error: ::rustls::Error) -> io::Error {
    let words = match error {
        ::rustls::Error::General(words) => words,
        other => other.to_string(),
    };
    io::Error::new(ErrorKind::InvalidData, words)
}
