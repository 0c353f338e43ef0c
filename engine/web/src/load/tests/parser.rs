//! The parser of answers with a million of them, most of them wrong.

use crate::http::response::{Expected, Response, Taken};

/// Result of a parser, which must not depend on the pieces of the input.
#[derive(Debug, PartialEq, Eq)]
enum Made {
    Whole { status: u16, bytes: u64, keeps: bool, taken: usize, checked: Option<&'static str> },
    Broken(&'static str),
}

fn made<'a>(pieces: impl Iterator<Item = &'a [u8]>, expected: &Expected) -> Made {
    let mut response = Response::default();
    response.begin();
    let mut taken = 0;
    for piece in pieces {
        match response.take(piece, expected) {
            Ok(Taken::More) => taken += piece.len(),
            Ok(Taken::Whole(length)) => {
                assert!(length <= piece.len());
                return whole(&response, taken + length, expected);
            }
            Err(fault) => return Made::Broken(fault.kind),
        }
    }
    match response.end() {
        Ok(()) => whole(&response, taken, expected),
        Err(fault) => Made::Broken(fault.kind),
    }
}

fn whole(response: &Response, taken: usize, expected: &Expected) -> Made {
    let checked = response.check(expected).err().map(|fault| fault.kind);
    Made::Whole { status: response.status, bytes: response.bytes, keeps: response.keeps, taken, checked }
}

fn expecting(body: Option<&str>, to_head: bool) -> Expected {
    let body = body.map(|body| body.as_bytes().to_vec());
    Expected { status: 200, bytes: None, body, to_head, keeps_head: false, kept_body_bytes: 0 }
}

/// Xorshift generator, which gives the same inputs in every run.
struct Generator(u64);

impl Generator {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn under(&mut self, below: usize) -> usize {
        (self.next() >> 16) as usize % below.max(1)
    }

    fn mutate(&mut self, input: &mut Vec<u8>) {
        const SPLICES: [&[u8]; 12] = [
            b"\r\n",
            b"\r\n\r\n",
            b"\n",
            b"0\r\n\r\n",
            b"Content-Length: 18446744073709551616\r\n",
            b"HTTP/1.1 ",
            b"Transfer-Encoding: chunked\r\n",
            b"ffffffffffffffff\r\n",
            b"Connection: close\r\n",
            b"\0",
            b";",
            b":",
        ];
        let at = self.under(input.len() + 1);
        match self.under(6) {
            0 => input.truncate(at),
            1 if at < input.len() => input[at] = self.next() as u8,
            2 if at < input.len() => input[at] ^= 1 << self.under(8),
            3 if at < input.len() => {
                let length = self.under(20).min(input.len() - at);
                input.drain(at..at + length);
            }
            4 => {
                let length = self.under(20).min(input.len() - at);
                let again = input[at..at + length].to_vec();
                input.splice(at..at, again);
            }
            _ => {
                let splice = SPLICES[self.under(SPLICES.len())];
                input.splice(at..at, splice.iter().copied());
            }
        }
    }
}

const VALID: [&str; 9] = [
    "HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;name=value\r\nllo\r\n0\r\nT: 1\r\n\r\n",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nhello",
    "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
    "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.0 200 OK\r\nConnection: Keep-Alive, Upgrade\r\ncontent-length: 5\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n00005\r\nhello\r\n0\r\n\r\n",
];

/// A million inputs, each whole and in random pieces: no panic, no endless loop, and one result.
#[test]
fn a_million_inputs_whatever_the_pieces() {
    let mut generator = Generator(0x2545_f491_4f6c_dd1d);
    let expected = [expecting(None, false), expecting(Some("hello"), false), expecting(None, true)];
    let (mut input, mut wholes) = (Vec::new(), 0_u32);
    for number in 0..1_000_000 {
        input.clear();
        if number % 16 == 0 {
            let length = generator.under(200);
            input.extend((0..length).map(|_| generator.next() as u8));
        } else {
            input.extend_from_slice(VALID[generator.under(VALID.len())].as_bytes());
            for _ in 0..generator.under(4) {
                generator.mutate(&mut input);
            }
        }
        let expected = &expected[generator.under(expected.len())];
        let at_once = made(std::iter::once(&input[..]), expected);
        let longest = 1 + generator.under(40);
        let mut rest = &input[..];
        let pieces = std::iter::from_fn(|| {
            let (piece, after) = rest.split_at((1 + generator.under(longest)).min(rest.len()));
            rest = after;
            (!piece.is_empty()).then_some(piece)
        });
        assert_eq!(at_once, made(pieces, expected), "{}", input.escape_ascii());
        wholes += u32::from(matches!(at_once, Made::Whole { .. }));
    }
    // The generator makes right answers as well as wrong ones.
    assert!((100_000..900_000).contains(&wholes), "{wholes}");
}

/// Valid and slightly wrong answers, split in two at every position, and into single bytes.
#[test]
fn every_split_gives_the_same() {
    let mut generator = Generator(7);
    let expected = expecting(Some("hello"), false);
    for number in 0..3_000 {
        let mut input = VALID[number % VALID.len()].as_bytes().to_vec();
        if number >= VALID.len() {
            generator.mutate(&mut input);
        }
        let at_once = made(std::iter::once(&input[..]), &expected);
        for at in 0..=input.len() {
            let (first, second) = input.split_at(at);
            let pieces = [first, second].into_iter().filter(|piece| !piece.is_empty());
            assert_eq!(at_once, made(pieces, &expected), "{} at {at}", input.escape_ascii());
        }
        assert_eq!(at_once, made(input.chunks(1), &expected), "{}", input.escape_ascii());
    }
}

/// Each valid answer has the expected length and persistence.
#[test]
fn valid_answers_are_understood() {
    let kept = [true, true, true, false, false, true, true, true, true];
    let lengths = [5, 5, 5, 5, 0, 0, 5, 0, 5];
    for ((answer, keeps), bytes) in VALID.iter().zip(kept).zip(lengths) {
        match made(std::iter::once(answer.as_bytes()), &expecting(None, false)) {
            Made::Whole { bytes: got, keeps: kept, taken, .. } => {
                assert_eq!((bytes, keeps, answer.len()), (got, kept, taken), "{answer}");
            }
            broken => panic!("{broken:?}: {answer}"),
        }
    }
}

/// An answer to HEAD has a length and no body.
#[test]
fn an_answer_to_head_ends_with_its_head() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 4096\r\n\r\n";
    let expected = Expected { bytes: Some(0), ..expecting(None, true) };
    let whole = Made::Whole { status: 200, bytes: 0, keeps: true, taken: answer.len(), checked: None };
    assert_eq!(whole, made(std::iter::once(answer.as_bytes()), &expected));
}

/// A head is accepted up to its limit and not a byte beyond, in one piece or many.
#[test]
fn a_head_has_a_limit() {
    for (length, fits) in [(16 << 10, true), ((16 << 10) + 1, false)] {
        let frame = "HTTP/1.1 204 No\r\nX: \r\n\r\n".len();
        let head = format!("HTTP/1.1 204 No\r\nX: {}\r\n\r\n", "x".repeat(length - frame));
        let expected = expecting(None, false);
        let at_once = made(std::iter::once(head.as_bytes()), &expected);
        assert_eq!(fits, matches!(at_once, Made::Whole { .. }));
        assert_eq!(at_once, made(head.as_bytes().chunks(1000), &expected));
    }
}
