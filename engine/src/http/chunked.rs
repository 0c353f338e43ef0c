//! Bodies in chunks: a byte at a time where the framing is, whole stretches where the data are.

use crate::fault::{self, Fault};

/// How far into the framing a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Chunked {
    place: Place,
    /// Of this chunk, still to come; or its size, so far.
    left: u64,
    /// Bytes of this size line, or of the trailer.
    line: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Place {
    #[default]
    Size,
    Extension,
    SizeEnd,
    Data,
    DataReturn,
    DataEnd,
    TrailerStart,
    Trailer,
    TrailerEnd,
    LastEnd,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// All was framing, and there is more to come.
    More,
    /// Data stand here; what comes after has not been looked at.
    Data { from: usize, to: usize },
    /// The body ended after so many bytes.
    Whole(usize),
}

/// Of one size line with its extension, or of a whole trailer.
const LONGEST_LINE: u16 = 8 << 10;

impl Chunked {
    pub fn take(&mut self, came: &[u8]) -> Result<Progress, Fault> {
        let mut at = 0;
        while at < came.len() {
            if self.place == Place::Data {
                let length = usize::try_from(self.left).unwrap_or(usize::MAX).min(came.len() - at);
                self.left -= length as u64;
                if self.left == 0 {
                    self.place = Place::DataReturn;
                }
                return Ok(Progress::Data { from: at, to: at + length });
            }
            let byte = came[at];
            at += 1;
            if self.frame(byte)? {
                return Ok(Progress::Whole(at));
            }
        }
        Ok(Progress::More)
    }

    /// Takes one byte of framing; true after the last of the body.
    fn frame(&mut self, byte: u8) -> Result<bool, Fault> {
        self.line += 1;
        if self.line > LONGEST_LINE {
            return Err(Fault::new(fault::NOT_HTTP, "a chunk's size line or trailer without end"));
        }
        self.place = match (self.place, byte) {
            (Place::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = (byte as char).to_digit(16).unwrap_or_default();
                match self.left.checked_mul(16) {
                    Some(size) => self.left = size + u64::from(digit),
                    None => return Err(wrong("a chunk larger than any", byte)),
                }
                Place::Size
            }
            // The first byte of a line has to be a digit.
            (Place::Size, b'\r') if self.line > 1 => Place::SizeEnd,
            (Place::Size, b';' | b' ' | b'\t') if self.line > 1 => Place::Extension,
            (Place::Extension, b'\r') => Place::SizeEnd,
            (Place::Extension, b'\n') => return Err(wrong("a chunk's size", byte)),
            (Place::Extension, _) => Place::Extension,
            (Place::SizeEnd, b'\n') => {
                self.line = 0;
                if self.left > 0 { Place::Data } else { Place::TrailerStart }
            }
            (Place::DataReturn, b'\r') => Place::DataEnd,
            (Place::DataEnd, b'\n') => {
                self.line = 0;
                Place::Size
            }
            (Place::TrailerStart, b'\r') => Place::LastEnd,
            (Place::Trailer, b'\r') => Place::TrailerEnd,
            (Place::TrailerStart | Place::Trailer, b'\n') => return Err(wrong("a trailer", byte)),
            (Place::TrailerStart | Place::Trailer, _) => Place::Trailer,
            (Place::TrailerEnd, b'\n') => Place::TrailerStart,
            (Place::LastEnd, b'\n') => return Ok(true),
            (Place::DataReturn | Place::DataEnd, _) => {
                return Err(wrong("the end of a chunk", byte));
            }
            (Place::TrailerEnd | Place::LastEnd, _) => return Err(wrong("a trailer", byte)),
            (Place::Size | Place::SizeEnd | Place::Data, _) => return Err(wrong("a chunk's size", byte)),
        };
        Ok(false)
    }
}

fn wrong(place: &str, byte: u8) -> Fault {
    Fault::new(fault::NOT_HTTP, format!("\"{}\" in {place}", byte.escape_ascii()))
}
