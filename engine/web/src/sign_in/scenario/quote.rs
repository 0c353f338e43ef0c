//! Quotations of a server's answer in messages, without the values that no message may contain.

use super::template::{Encoding, encoded};
use crate::http::response;

const MASK: &str = "[…]";
/// References for both kinds of quotation marks, as libraries write them.
const QUOTES: [(&str, &str); 3] = [("&#34;", "&#39;"), ("&quot;", "&#x27;"), ("&quot;", "&#39;")];

/// Returns a text with a mask for each secret, in every encoding in which a server may repeat it.
pub fn masked(text: &str, secrets: impl Iterator<Item = String>) -> String {
    let mut forms: Vec<String> = Vec::new();
    for secret in secrets.filter(|secret| !secret.is_empty()) {
        let urls = [Encoding::Path, Encoding::Form].map(|one| encoded(&secret, one));
        forms.extend(urls.iter().map(|form| in_lower_case(form)));
        forms.extend(urls);
        let json = encoded(&secret, Encoding::Json);
        forms.extend([in_ascii(&json), json.replace('/', "\\/"), json]);
        forms.extend(QUOTES.map(|(double, single)| in_html(&secret, double, single)));
        forms.push(secret);
    }
    // The longest is first, because one may be part of another.
    forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    forms.dedup();
    let mut text = text.to_owned();
    for form in &forms {
        text = text.replace(form.as_str(), MASK);
    }
    // The kept part may end inside a secret.
    let cut = forms.iter().filter_map(|form| {
        form.char_indices()
            .skip(1)
            .map(|(at, _)| &form[..at])
            .filter(|part| text.ends_with(part))
            .map(str::len)
            .max()
    });
    let cut = cut.max().unwrap_or(0);
    text.truncate(text.len() - cut);
    text
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
