//! What the users of one loop share, so that each of them stays small.

use std::net::SocketAddr;

use super::connector::Connector;
use super::counts::Counts;
use super::socket::Epoll;
use crate::contract::Failure;
use crate::exchanges::exchange::Exchange;
use crate::load_task::{ConnectionReuse, Load};

pub struct LoopState {
    pub address: SocketAddr,
    pub epoll: Epoll,
    pub connectors: Vec<Connector>,
    pub shares: Vec<u32>,
    /// Where every connection is to be of one kind, whatever the shares.
    pub only_connector: Option<u16>,
    pub exchange: Exchange,
    /// Whether a connection is kept for the next operation.
    pub keeps: bool,
    /// Everything is read into here, and gone with the next read.
    pub buffer: Vec<u8>,
    pub counts: Counts,
    /// Whether clients that keep sessions have one by now, and have to resume it.
    pub must_resume: bool,
}

impl LoopState {
    pub fn new(
        load: &Load,
        connectors: Vec<Connector>,
        exchange: Exchange,
        buffer_bytes: usize,
    ) -> Result<LoopState, Failure> {
        Ok(LoopState {
            address: load.address,
            epoll: Epoll::new().map_err(|error| Failure::Failed(format!("epoll: {error}")))?,
            connectors,
            shares: load.clients.iter().map(|kind| kind.share).collect(),
            only_connector: None,
            exchange,
            keeps: load.connection == ConnectionReuse::User,
            buffer: vec![0; buffer_bytes],
            counts: Counts::default(),
            must_resume: false,
        })
    }
}
