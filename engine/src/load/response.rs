//! One answer as it comes in, whatever the pieces it comes in: heads by httparse, bodies counted and not kept.

use super::chunked::{Chunked, Progress};
use super::fault::{self, Fault};
use super::task::Load;

/// What an answer has to be.
#[derive(Debug, Clone)]
pub struct Expected {
    pub status: u16,
    pub bytes: Option<u64>,
    pub body: Option<Vec<u8>>,
    /// An answer to HEAD has no body, whatever its head says.
    pub to_head: bool,
}

impl Expected {
    pub fn of(load: &Load) -> Expected {
        Expected {
            status: load.expect.status,
            bytes: load.expect.bytes,
            body: load.expect.body.as_ref().map(|body| body.clone().into_bytes()),
            to_head: load.request.method.eq_ignore_ascii_case("HEAD"),
        }
    }
}

/// More than any server's head; past it something else is talking.
const LONGEST_HEAD: usize = 16 << 10;
const MOST_HEADERS: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Part {
    #[default]
    Head,
    /// So many bytes of the body to come.
    Counted(u64),
    Chunked(Chunked),
    /// A body that ends with its connection.
    UntilClosed,
    Whole,
}

#[derive(Debug, Default)]
pub struct Response {
    part: Part,
    pub status: u16,
    /// Of the body, so far.
    pub bytes: u64,
    /// Whether the server will answer on this connection again.
    pub keeps: bool,
    /// Where the body left the expected one.
    differs_at: Option<u64>,
    /// A head that came in pieces, so far. Empty for most answers of a life.
    spilled: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Taken {
    /// All was taken, and there is more to come.
    More,
    /// The answer is whole; so many bytes belonged to it.
    Whole(usize),
}

impl Response {
    /// Ready for the next answer.
    #[inline]
    pub fn begin(&mut self) {
        self.part = Part::Head;
        (self.status, self.bytes, self.differs_at) = (0, 0, None);
        if !self.spilled.is_empty() {
            // Given back: of ten thousand connections few are in the middle of a head.
            self.spilled = Vec::new();
        }
    }

    /// Takes the next bytes that came.
    pub fn take(&mut self, came: &[u8], expected: &Expected) -> Result<Taken, Fault> {
        let mut at = 0;
        // Each turn but the last takes at least one byte, or moves on to a later part.
        loop {
            let rest = &came[at..];
            match self.part {
                Part::Head => match self.head(rest, expected)? {
                    None => return Ok(Taken::More),
                    Some(length) => at += length,
                },
                Part::Counted(left) => {
                    let length = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
                    self.body(&rest[..length], expected);
                    at += length;
                    match left - length as u64 {
                        0 => self.part = Part::Whole,
                        left => {
                            self.part = Part::Counted(left);
                            return Ok(Taken::More);
                        }
                    }
                }
                Part::Chunked(mut chunked) => match chunked.take(rest)? {
                    Progress::More => {
                        self.part = Part::Chunked(chunked);
                        return Ok(Taken::More);
                    }
                    Progress::Data { from, to } => {
                        self.body(&rest[from..to], expected);
                        self.part = Part::Chunked(chunked);
                        at += to;
                    }
                    Progress::Whole(length) => {
                        self.part = Part::Whole;
                        at += length;
                    }
                },
                Part::UntilClosed => {
                    self.body(rest, expected);
                    return Ok(Taken::More);
                }
                Part::Whole => return Ok(Taken::Whole(at)),
            }
        }
    }

    /// The connection has ended: a whole answer, or one that is cut off.
    pub fn end(&mut self) -> Result<(), Fault> {
        let words = match self.part {
            Part::Whole => return Ok(()),
            Part::UntilClosed => {
                self.part = Part::Whole;
                return Ok(());
            }
            Part::Head if self.spilled.is_empty() => {
                "the connection ended before the answer began".to_owned()
            }
            Part::Head => format!("the connection ended {} bytes into the answer's head", self.spilled.len()),
            Part::Counted(left) => format!(
                "the connection ended after {} of {} bytes of the body",
                self.bytes,
                self.bytes.saturating_add(left)
            ),
            Part::Chunked(_) => {
                format!("the connection ended after {} bytes of a body in chunks", self.bytes)
            }
        };
        Err(Fault::new(fault::CLOSED_EARLY, words))
    }

    /// What is wrong with a whole answer.
    #[inline]
    pub fn check(&self, expected: &Expected) -> Result<(), Fault> {
        if self.status != expected.status {
            let words = format!("expected status {}, got {}", expected.status, self.status);
            return Err(Fault::new(fault::WRONG_STATUS, words));
        }
        if let Some(bytes) = expected.bytes
            && bytes != self.bytes
        {
            let words = format!("expected {bytes} bytes, got {}", self.bytes);
            return Err(Fault::new(fault::WRONG_LENGTH, words));
        }
        let Some(body) = &expected.body else { return Ok(()) };
        let differs_at = self.differs_at.or((self.bytes != body.len() as u64).then_some(self.bytes));
        match differs_at {
            None => Ok(()),
            Some(at) => {
                let words =
                    format!("the body of {} bytes is not the expected one from byte {at} on", self.bytes);
                Err(Fault::new(fault::WRONG_BODY, words))
            }
        }
    }

    /// Counts bytes of the body, and holds them against the expected one.
    #[inline]
    fn body(&mut self, came: &[u8], expected: &Expected) {
        if let Some(body) = &expected.body
            && self.differs_at.is_none()
        {
            let rest = usize::try_from(self.bytes).ok().and_then(|at| body.get(at..)).unwrap_or_default();
            let same = came.iter().zip(rest).take_while(|(came, wanted)| came == wanted).count();
            if same < came.len() {
                self.differs_at = Some(self.bytes + same as u64);
            }
        }
        self.bytes += came.len() as u64;
    }

    /// Parses the head if it is whole: how many of these bytes belonged to it.
    fn head(&mut self, came: &[u8], expected: &Expected) -> Result<Option<usize>, Fault> {
        let before = self.spilled.len();
        let parsed = if before == 0 {
            parse(came, expected)?
        } else {
            self.spill(came);
            parse(&self.spilled, expected)?
        };
        let Some(head) = parsed else {
            if before == 0 {
                self.spill(came);
            }
            return Ok(None);
        };
        if before > 0 {
            self.spilled = Vec::new();
        }
        (self.status, self.keeps, self.part) = (head.status, head.keeps, head.body);
        Ok(Some(head.length - before))
    }

    fn spill(&mut self, came: &[u8]) {
        // One over: enough to see that it is too long.
        self.spilled.extend_from_slice(&came[..came.len().min(LONGEST_HEAD + 1 - self.spilled.len())]);
    }
}

struct Head {
    length: usize,
    status: u16,
    keeps: bool,
    body: Part,
}

fn parse(bytes: &[u8], expected: &Expected) -> Result<Option<Head>, Fault> {
    let mut headers = [const { std::mem::MaybeUninit::uninit() }; MOST_HEADERS];
    let mut answer = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
        &mut answer,
        bytes,
        &mut headers,
    );
    let length = match parsed {
        Ok(httparse::Status::Complete(length)) if length <= LONGEST_HEAD => length,
        Ok(httparse::Status::Partial) if bytes.len() <= LONGEST_HEAD => return Ok(None),
        Ok(_) => return Err(not_http(format!("a head of more than {LONGEST_HEAD} bytes"))),
        Err(error) => return Err(not_http(format!("{error}, in {}", excerpt(bytes)))),
    };
    let status = answer.code.unwrap_or(0);
    let framing = Framing::of(answer.headers)?;
    let body = match status {
        // What comes before the answer proper; 101 is an answer, if never one that was asked for.
        100 | 102..=199 => Part::Head,
        101 | 204 | 304 => Part::Whole,
        _ if expected.to_head => Part::Whole,
        _ => match framing {
            Framing { chunked: true, .. } => Part::Chunked(Chunked::default()),
            Framing { coded: false, length: Some(length), .. } => Part::Counted(length),
            _ => Part::UntilClosed,
        },
    };
    let keeps = framing.keep_alive.unwrap_or(answer.version == Some(1)) && body != Part::UntilClosed;
    Ok(Some(Head { length, status, keeps, body }))
}

/// What an answer's headers say of where its body ends and whether its connection does.
#[derive(Default)]
struct Framing {
    length: Option<u64>,
    /// Some transfer coding was named: a length beside it means nothing.
    coded: bool,
    chunked: bool,
    keep_alive: Option<bool>,
}

impl Framing {
    fn of(headers: &[httparse::Header<'_>]) -> Result<Framing, Fault> {
        let mut framing = Framing::default();
        for header in headers {
            // By length first: most headers are none of the three, and this is paid for every one.
            match header.name.len() {
                14 if header.name.eq_ignore_ascii_case("content-length") => {
                    let length = number(header.value);
                    if length.is_none() || framing.length.is_some_and(|before| length != Some(before)) {
                        let value = excerpt(header.value);
                        return Err(not_http(format!("a Content-Length of {value}")));
                    }
                    framing.length = length;
                }
                17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                    framing.coded = true;
                    framing.chunked = last_word(header.value).eq_ignore_ascii_case(b"chunked");
                }
                10 if header.name.eq_ignore_ascii_case("connection") => {
                    for word in header.value.split(|byte| *byte == b',') {
                        match word.trim_ascii() {
                            word if word.eq_ignore_ascii_case(b"close") => framing.keep_alive = Some(false),
                            word if word.eq_ignore_ascii_case(b"keep-alive") => {
                                framing.keep_alive.get_or_insert(true);
                            }
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(framing)
    }
}

fn number(text: &[u8]) -> Option<u64> {
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    // A length that does not fit is none that could ever be read.
    if digits { std::str::from_utf8(text).ok()?.parse().ok() } else { None }
}

fn last_word(text: &[u8]) -> &[u8] {
    text.rsplit(|byte| *byte == b',').next().unwrap_or_default().trim_ascii()
}

/// The beginning of what came, fit to be printed.
fn excerpt(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes[..bytes.len().min(40)].escape_ascii())
}

fn not_http(words: String) -> Fault {
    Fault::new(fault::NOT_HTTP, words)
}
