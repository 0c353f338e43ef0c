"""Stored password hashes in the place of a choice: the words that ask for their parameters.

Salts and hashes are never printed, because they are secrets of users.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# Forms of PHC strings, crypt(3), Django, Werkzeug, passlib and Spring, with the words of a question. Django and Spring
# write the name of the algorithm before the string.
_FORMS: Mapping[re.Pattern[str], str] = {
    re.compile(pattern): words
    for pattern, words in (
        (r"\$argon2id(?:\$v=19)?\$m=(\d+),t=(\d+),p=(\d+)\$.*", "argon2id memory={0}KiB passes={1} lanes={2}"),
        (r"\$2[abxy]?\$0?(\d+)\$.*", "bcrypt cost={0}"),
        (r"pbkdf2_sha(1|256|512)\$(\d+)\$.*", "pbkdf2-sha-{0} iterations={1}"),
        (r"pbkdf2:sha(1|256|512):(\d+)(?:\$.*)?", "pbkdf2-sha-{0} iterations={1}"),
        (r"\$pbkdf2-sha(1|256|512)\$(\d+)\$.*", "pbkdf2-sha-{0} iterations={1}"),
        (r"scrypt:(\d+):(\d+):(\d+)(?:\$.*)?", "scrypt n={0} r={1} p={2}"),
        (r"scrypt\$(\d+)\$[^$]*\$(\d+)\$(\d+)\$.*", "scrypt n={0} r={1} p={2}"),
        (r"\$scrypt\$ln=(\d+),r=(\d+),p=(\d+)\$.*", "scrypt n=2^{0} r={1} p={2}"),
    )
}
_BEFORE = re.compile(r"^(?:\{[A-Za-z0-9@_.-]{1,40}\}|argon2(?=\$argon2)|bcrypt(?:_sha256)?\$(?=\$2))")


def words_of(text: str) -> str | None:
    """Return the words that ask for a stored hash's algorithm and parameters; None for other text."""
    bare = _BEFORE.sub("", text, count=1)
    for form, words in _FORMS.items():
        if match := form.fullmatch(bare):
            return words.format(*match.groups())
    return None
