//! A connection: bytes to requests, requests to answers, answers to bytes, in pieces of any size.

use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::net::{RecvFlags, Shutdown, recv, shutdown};

use crate::tls::Stream;

use super::answers::{Answer, Answers};
use super::routes::Service;
use crate::http::request;

/// Time without progress after which a connection is closed.
const IDLE_S: u32 = 60;
/// Largest plaintext of a TLS record.
const RECORD_BYTES: usize = 16 * 1024;
/// Time for a refused client to stop sending.
const LINGER_S: u32 = 5;

pub struct Connection {
    stream: Stream,
    /// Received bytes that are not answered yet.
    held: Vec<u8>,
    output: Output,
    stage: Stage,
    /// True if the held bytes may contain whole requests, left when an answer could not be sent.
    resuming: bool,
    /// True if the descriptor is watched for room to write instead of bytes to read.
    pub watched_for_write: bool,
    /// Common name in the client's certificate, if the sign-in uses it.
    certificate_name: Option<String>,
    /// Time of its last progress.
    since_s: u32,
}

#[derive(PartialEq, Clone, Copy)]
enum Stage {
    Handshake,
    Serving,
    /// Closing after all is sent.
    Closing,
    /// Like `Closing`, but the client's remaining bytes are read first: closing a socket with unread bytes
    /// resets the connection, and the client might lose the answer.
    ClosingUnread,
    Lingering,
}

/// Rest of an answer.
#[derive(Default)]
struct Output {
    copied: Vec<u8>,
    sent: usize,
    filler: Range<usize>,
}

/// Event that a connection waits for.
#[derive(Debug, PartialEq, Clone, Copy)]
pub enum Next {
    Read,
    Write,
    Close,
}

impl Connection {
    pub fn new(stream: Stream, now_s: u32) -> Connection {
        let in_clear = matches!(stream, Stream::Plain(_));
        Connection {
            stream,
            held: Vec::new(),
            output: Output::default(),
            stage: if in_clear { Stage::Serving } else { Stage::Handshake },
            resuming: false,
            watched_for_write: false,
            certificate_name: None,
            since_s: now_s,
        }
    }

    pub fn is_overdue(&self, now_s: u32) -> bool {
        let limit_s = if self.stage == Stage::Lingering { LINGER_S } else { IDLE_S };
        now_s.saturating_sub(self.since_s) > limit_s
    }

    /// Continues as far as possible without waiting. `scratch` must be longer than any head.
    pub fn advance(&mut self, scratch: &mut [u8], service: &mut Service, now_s: u32) -> Next {
        match self.go_on(scratch, service, now_s) {
            Ok(next) => next,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                let unsent = !self.output.is_empty() || self.stream.wants_write();
                if unsent { Next::Write } else { Next::Read }
            }
            // The client went away, or its TLS failed: there is no client to answer.
            Err(_) => Next::Close,
        }
    }

    fn go_on(&mut self, scratch: &mut [u8], service: &mut Service, now_s: u32) -> io::Result<Next> {
        if self.stage == Stage::Handshake {
            self.stream.handshake()?;
            if service.needs_certificates() {
                self.certificate_name = self.stream.peer_name();
            }
            self.stage = Stage::Serving;
            // The request comes with the handshake's last message, or an event reports it.
            if !self.stream.holds_more() {
                return Ok(Next::Read);
            }
        }
        loop {
            self.send_rest(&service.answers, now_s)?;
            match self.stage {
                Stage::Closing => {
                    self.stream.say_goodbye();
                    return Ok(Next::Close);
                }
                Stage::ClosingUnread => {
                    self.stream.say_goodbye();
                    let _ = shutdown(&self.stream, Shutdown::Write);
                    (self.stage, self.since_s) = (Stage::Lingering, now_s);
                    self.held = Vec::new();
                }
                Stage::Handshake | Stage::Serving | Stage::Lingering => {}
            }
            if self.stage == Stage::Lingering {
                return self.discard(scratch);
            }
            let mut length = self.held.len();
            scratch[..length].copy_from_slice(&self.held);
            let reads_on = if std::mem::take(&mut self.resuming) {
                self.stream.holds_more()
            } else {
                let (bytes, reads_on) = self.receive(&mut scratch[length..])?;
                if bytes == 0 {
                    return Ok(Next::Close);
                }
                length += bytes;
                reads_on
            };
            let (used, sent) = self.answer(&scratch[..length], service, now_s);
            self.hold(&scratch[used..length]);
            sent?;
            // Without and with TLS the loop waits after each answer. If it read on, a request that arrived
            // during the answer would save it a wait, more often the longer the answer took.
            if self.stage == Stage::Serving && !reads_on {
                return Ok(Next::Read);
            }
        }
    }

    /// Reads once, and under TLS until the library holds no more bytes: events report bytes in the socket
    /// only, not those the library took from it. Returns the bytes read, and whether to read on after they
    /// are answered.
    fn receive(&mut self, into: &mut [u8]) -> io::Result<(usize, bool)> {
        let mut bytes = self.stream.read(into)?;
        while bytes > 0 && self.stream.holds_more() {
            if bytes == into.len() {
                return Ok((bytes, true));
            }
            match self.stream.read(&mut into[bytes..]) {
                Ok(more @ 1..) => bytes += more,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // The end, or an error, comes again once the requests before it are answered.
                _ => return Ok((bytes, true)),
            }
        }
        Ok((bytes, false))
    }

    /// Answers the whole requests of the input, as far as answers can be sent. Returns the number of bytes
    /// that are done.
    fn answer(&mut self, input: &[u8], service: &mut Service, now_s: u32) -> (usize, io::Result<()>) {
        let mut used = 0;
        while self.stage == Stage::Serving && used < input.len() {
            let answer = match request::parse(&input[used..]) {
                Ok(None) => break,
                Ok(Some(mut request)) => {
                    request.certificate_name = self.certificate_name.as_deref();
                    let body_bytes = service.body_of(&request);
                    let body_from = used + request.bytes;
                    let body_to = body_from + body_bytes.unwrap_or(0);
                    if input.len() < body_to {
                        break;
                    }
                    used = body_to;
                    service.answer(&request, body_bytes.map(|_| &input[body_from..body_to]))
                }
                Err(refused) => service.refuse(refused),
            };
            if answer.closing {
                let unread = answer.unread || used < input.len();
                self.stage = if unread { Stage::ClosingUnread } else { Stage::Closing };
            }
            self.since_s = now_s;
            if let Err(error) = self.send(answer) {
                self.resuming = used < input.len();
                return (used, Err(error));
            }
        }
        (used, Ok(()))
    }

    fn hold(&mut self, rest: &[u8]) {
        if rest.is_empty() {
            // Thousands of idle connections must hold no buffer.
            if self.held.capacity() > 0 {
                self.held = Vec::new();
            }
        } else {
            self.held.clear();
            self.held.extend_from_slice(rest);
        }
    }

    /// Sends an answer, and keeps the part that the socket does not accept.
    fn send(&mut self, answer: Answer<'_>) -> io::Result<()> {
        let mut sent = 0;
        while sent < answer.whole.len() {
            match taken(self.stream.write(&answer.whole[sent..])) {
                Ok(taken) => sent += taken,
                Err(error) => {
                    self.output = Output::rest_of(answer, sent);
                    return Err(error);
                }
            }
        }
        if self.stream.wants_write() { self.stream.flush() } else { Ok(()) }
    }

    fn send_rest(&mut self, answers: &Answers, now_s: u32) -> io::Result<()> {
        while !self.output.is_empty() {
            let Output { copied, sent, filler } = &mut self.output;
            if *sent < copied.len() {
                *sent += taken(self.stream.write(&copied[*sent..]))?;
            } else {
                filler.start += taken(self.stream.write(answers.filler(filler.clone())))?;
            }
            self.since_s = now_s;
        }
        if self.output.copied.capacity() > 0 {
            self.output = Output::default();
        }
        if self.stream.wants_write() { self.stream.flush() } else { Ok(()) }
    }

    /// Reads past bytes that will not be answered. It reads the socket itself, because the end is the same
    /// under TLS.
    fn discard(&mut self, scratch: &mut [u8]) -> io::Result<Next> {
        let (read, _) = recv(&self.stream, scratch, RecvFlags::empty())?;
        Ok(if read == 0 { Next::Close } else { Next::Read })
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Output {
    fn rest_of(answer: Answer<'_>, sent: usize) -> Output {
        let Answer { whole, filler_from, .. } = answer;
        // The copy includes the part of the body that a library may have sealed into one record with the
        // head, because the library needs the same bytes again.
        let copied_to = match sent < filler_from {
            true => filler_from.max(whole.len().min(sent + RECORD_BYTES)),
            false => sent,
        };
        Output {
            copied: whole[sent..copied_to].to_vec(),
            sent: 0,
            filler: copied_to - filler_from..whole.len() - filler_from,
        }
    }

    fn is_empty(&self) -> bool {
        self.sent == self.copied.len() && self.filler.is_empty()
    }
}

/// Treats a write of 0 bytes as a wait, because a loop would repeat it for ever.
fn taken(written: io::Result<usize>) -> io::Result<usize> {
    match written {
        Ok(0) => Err(ErrorKind::WouldBlock.into()),
        written => written,
    }
}
