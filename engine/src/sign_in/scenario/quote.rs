//! Quotations of a server's answer in messages, without the values that no message may contain.

use super::template::{Encoding, encoded};
use crate::http::response;

const MASK: &str = "[…]";

/// Returns a text with a mask for each secret, in every encoding in which a server may repeat it.
pub fn masked(text: &str, secrets: impl Iterator<Item = String>) -> String {
    let mut forms: Vec<String> = Vec::new();
    for secret in secrets.filter(|secret| !secret.is_empty()) {
        forms.extend([Encoding::Path, Encoding::Form, Encoding::Json].map(|one| encoded(&secret, one)));
        forms.push(in_html(&secret));
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

fn in_html(value: &str) -> String {
    let named = [('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;"), ('"', "&#34;"), ('\'', "&#39;")];
    named.iter().fold(value.to_owned(), |text, (letter, name)| text.replace(*letter, name))
}
