"""Security levels that an inventory gives of an algorithm, and that this algorithm does not have."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tollbar.core.patterns import is_like

CLASSICAL, QUANTUM = "classicalSecurityLevel", "nistQuantumSecurityLevel"
LEVELS = (CLASSICAL, QUANTUM)
# Every level has fewer bits.
_LEAST_MODULUS = 1024
_NUMBER = re.compile(r"[0-9]{1,6}(?:\.0)?")

# Smallest and largest value of each level, by choice: bits of work, and categories of NIST. The first pattern that fits
# counts. Estimates for a modulus differ by some tens of bits. A cipher's 0 means nothing, because tools write it for an
# unknown level; a hash is limited only by its length, because tools write the work for collisions or for preimages.
_BOUNDS: tuple[tuple[str, tuple[int, int], tuple[int, int]], ...] = (
    ("cipher *-128-*", (128, 128), (1, 1)),
    ("cipher *-192-*", (192, 192), (3, 3)),
    ("cipher *-256-*", (256, 256), (5, 5)),
    ("cipher chacha20-poly1305", (256, 256), (5, 5)),
    ("cipher 3des-*", (0, 192), (0, 0)),
    ("cipher des*", (0, 64), (0, 0)),
    ("cipher *", (0, 128), (0, 1)),
    # Whatever the tool writes, it is broken.
    ("digest md*", (0, 128), (0, 5)),
    ("digest sha-1", (0, 160), (0, 1)),
    ("digest *-224", (0, 224), (0, 4)),
    ("digest *-256", (0, 256), (0, 5)),
    ("digest *-384", (0, 384), (0, 5)),
    ("key-exchange x25519mlkem768", (0, 256), (3, 3)),
    ("key-exchange ml-kem-512", (0, 160), (1, 1)),
    ("key-exchange ml-kem-768", (0, 224), (3, 3)),
    ("key-exchange ml-kem-1024", (0, 288), (5, 5)),
    ("signature ml-dsa-44", (0, 160), (2, 2)),
    ("signature ml-dsa-65", (0, 224), (3, 3)),
    ("signature ml-dsa-87", (0, 288), (5, 5)),
    ("signature slh-dsa-*128?", (0, 160), (1, 1)),
    ("signature slh-dsa-*192?", (0, 224), (3, 3)),
    ("signature slh-dsa-*256?", (0, 288), (5, 5)),
    # Some tools write the 112 bits of RSA-2048 for each size.
    ("* rsa-512", (0, 112), (0, 0)),
    ("* rsa-1024", (0, 112), (0, 0)),
    ("* rsa-2048", (0, 128), (0, 0)),
    ("* rsa-3072", (0, 144), (0, 0)),
    ("* rsa-4096", (0, 176), (0, 0)),
    ("* dsa-1024", (0, 96), (0, 0)),
    ("* *-p192", (0, 96), (0, 0)),
    ("* *-p224", (0, 112), (0, 0)),
    ("* *-p256", (0, 128), (0, 0)),
    ("* *p256r1", (0, 128), (0, 0)),
    ("* *-p384", (0, 192), (0, 0)),
    ("* *-p521", (0, 261), (0, 0)),
    ("* ?25519", (0, 128), (0, 0)),
    ("* ed25519", (0, 128), (0, 0)),
    ("* ed448", (0, 224), (0, 0)),
    ("* x448", (0, 224), (0, 0)),
    ("signature *", (0, 512), (0, 0)),
    ("key-exchange *", (0, 512), (0, 0)),
)


def contradiction(choice: str, given: Mapping[str, str]) -> str | None:
    """Return the sentence about a level that a choice, such as `cipher aes-128-gcm`, does not have; None: all agree."""
    bounds = next((some for pattern, *some in _BOUNDS if is_like(choice, pattern)), None)
    for name, (least, most) in zip(LEVELS, bounds or (), strict=False):
        text = given.get(name, "")
        if not _NUMBER.fullmatch(text):
            continue
        level = int(text.partition(".")[0])
        if level >= _LEAST_MODULUS and choice.endswith(f"-{level}"):
            # Some tools write the size of the key.
            continue
        if level > most or 0 < level < least or (level < least and choice.startswith(("key-", "signature"))):
            return f"it is {choice.partition(' ')[2]}, and its {name} is {level}"
    return None
