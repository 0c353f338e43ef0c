//! The two ends of a connection, as one.

use ::rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use ::rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use ::rustls::unbuffered::UnbufferedStatus;
use ::rustls::{CommonState, SideData};

/// What clients and servers share, though rustls gives them no name for it.
pub trait Side {
    type Data: SideData;

    fn records<'c, 'i>(&'c mut self, incoming: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data>;

    fn state(&self) -> &CommonState;
}

impl Side for UnbufferedClientConnection {
    type Data = ClientConnectionData;

    fn records<'c, 'i>(&'c mut self, incoming: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(incoming)
    }

    fn state(&self) -> &CommonState {
        self
    }
}

impl Side for UnbufferedServerConnection {
    type Data = ServerConnectionData;

    fn records<'c, 'i>(&'c mut self, incoming: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(incoming)
    }

    fn state(&self) -> &CommonState {
        self
    }
}
