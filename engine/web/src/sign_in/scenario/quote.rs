//! Quotations of a server's answer in messages, without the values that no message may contain.

use super::template::{Encoding, encoded};
use crate::http::response;

const MASK: &str = "[…]";
/// References for both kinds of quotation marks, as libraries write them.
const QUOTES: [(&str, &str); 3] = [("&#34;", "&#39;"), ("&quot;", "&#x27;"), ("&quot;", "&#39;")];

/// Values that no message may contain, in every encoding in which a server may repeat them.
pub struct Secrets {
    /// Sorted, so that 100,000 of them are searched in some steps for each letter.
    forms: Vec<String>,
}

impl Secrets {
    pub fn of(values: impl Iterator<Item = String>) -> Secrets {
        let mut forms: Vec<String> = Vec::new();
        for value in values.filter(|value| !value.is_empty()) {
            let urls = [Encoding::Path, Encoding::Form].map(|one| encoded(&value, one));
            let json = encoded(&value, Encoding::Json);
            let mut own: Vec<String> = urls.iter().map(|form| in_lower_case(form)).collect();
            own.extend(urls);
            own.extend([in_ascii(&json), json.replace('/', "\\/"), json]);
            own.extend(QUOTES.map(|(double, single)| in_html(&value, double, single)));
            own.push(value);
            own.sort_unstable();
            // Most values have one form.
            own.dedup();
            forms.append(&mut own);
        }
        forms.sort_unstable();
        forms.dedup();
        Secrets { forms }
    }

    /// Returns the length of the longest form with which a text begins, or 0.
    fn longest_in(&self, text: &[u8]) -> usize {
        let mut text = text;
        loop {
            let after = self.forms.partition_point(|form| form.as_bytes() <= text);
            let Some(before) = after.checked_sub(1) else { return 0 };
            let form = self.forms[before].as_bytes();
            let shared = form.iter().zip(text).take_while(|(one, other)| one == other).count();
            if shared == form.len() {
                return shared;
            }
            // Each shorter form of this text is also the beginning of the one before it in the order.
            text = &text[..shared];
        }
    }

    /// Returns true if a text is the beginning of a form, and not all of it.
    fn has_beginning(&self, text: &[u8]) -> bool {
        let after = self.forms.partition_point(|form| form.as_bytes() <= text);
        self.forms.get(after).is_some_and(|form| form.as_bytes().starts_with(text))
    }
}

/// Returns a text with a mask for each secret. If it `is_cut`, it may end inside one, whose beginning is left out.
pub fn masked(text: &str, secrets: &[&Secrets], is_cut: bool) -> String {
    let bytes = text.as_bytes();
    let longest = |at: usize| secrets.iter().map(|one| one.longest_in(&bytes[at..])).max().unwrap_or(0);
    let is_begun = |at: &usize| is_cut && secrets.iter().any(|one| one.has_beginning(&bytes[*at..]));
    let cut = (0..bytes.len()).find(is_begun).unwrap_or(bytes.len());
    let (mut masked, mut plain, mut at) = (String::new(), 0, 0);
    while at < cut {
        let mut end = at + longest(at);
        if end == at {
            at += 1;
            continue;
        }
        // Another one may begin inside.
        let mut inside = at + 1;
        while inside < end {
            end = end.max(inside + longest(inside));
            inside += 1;
        }
        masked.push_str(&text[plain..at]);
        masked.push_str(MASK);
        (at, plain) = (end, end);
    }
    masked.push_str(&text[plain.min(cut)..cut]);
    masked
}

/// Returns the visible text of a page's beginning, on one line.
pub fn text_of(page: &str) -> String {
    response::text_of(page.as_bytes())
}

fn in_html(value: &str, double: &str, single: &str) -> String {
    let named = [('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;"), ('"', double), ('\'', single)];
    named.iter().fold(value.to_owned(), |text, (letter, name)| text.replace(*letter, name))
}

/// Returns JSON text as writers make it that escape all letters beyond ASCII.
fn in_ascii(json: &str) -> String {
    let mut units = [0; 2];
    json.chars().fold(String::new(), |mut text, letter| {
        if letter.is_ascii() {
            text.push(letter);
        } else {
            for unit in letter.encode_utf16(&mut units) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        }
        text
    })
}

/// Returns a percent-encoded text with the digits of its bytes in lower case.
fn in_lower_case(encoded: &str) -> String {
    let mut parts = encoded.split('%');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let (digits, rest) = part.split_at(2.min(part.len()));
        format!("{text}%{}{rest}", digits.to_ascii_lowercase())
    })
}
