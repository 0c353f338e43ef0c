"""A loop over one operation of a libcrypto without the lab: `python loop.py LIBRARY OPERATION CORE`.

For each line with a number it performs that number of operations, and answers the CPU nanoseconds that its process
used. It imports nothing of the lab, so that the two share no clock, no loop and no rule of what counts.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable

MESSAGE = b"m" * 32
# ML-DSA-65 signatures have 3309 bytes.
SIGNATURE_BYTES = 4096


def main(library: str, operation: str, core: int) -> None:
    """Answer until the input ends."""
    os.sched_setaffinity(0, {core})
    crypto = ctypes.CDLL(library)
    crypto.EVP_PKEY_Q_keygen.restype = ctypes.c_void_p
    crypto.EVP_PKEY_free.argtypes = [ctypes.c_void_p]
    perform = {"sign": _signing, "generate": _generating}[operation](crypto)
    print("ready", flush=True)
    for line in sys.stdin:
        count = range(int(line))
        began_ns = time.process_time_ns()
        for _ in count:
            perform()
        print(time.process_time_ns() - began_ns, flush=True)


def _generating(crypto: ctypes.CDLL) -> Callable[[], None]:
    """Return a function that generates an RSA-2048 key pair."""
    bits = ctypes.c_size_t(2048)

    def generate() -> None:
        key = crypto.EVP_PKEY_Q_keygen(None, None, b"RSA", bits)
        if not key:
            sys.exit("no key was generated")
        crypto.EVP_PKEY_free(key)

    return generate


def _signing(crypto: ctypes.CDLL) -> Callable[[], None]:
    """Return a function that makes an ML-DSA-65 signature of 32 bytes in a new context.

    Each process has another key.
    """
    key = ctypes.c_void_p(crypto.EVP_PKEY_Q_keygen(None, None, b"ML-DSA-65"))
    if not key:
        sys.exit("the library has no ML-DSA-65")
    crypto.EVP_MD_CTX_new.restype = ctypes.c_void_p
    crypto.EVP_MD_CTX_free.argtypes = [ctypes.c_void_p]
    crypto.EVP_DigestSignInit.argtypes = [ctypes.c_void_p] * 5
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    crypto.EVP_DigestSign.argtypes = [pointer, pointer, pointer, ctypes.c_char_p, size]
    signature = ctypes.create_string_buffer(SIGNATURE_BYTES)
    length = ctypes.c_size_t()
    at = ctypes.byref(length)

    def sign() -> None:
        context = crypto.EVP_MD_CTX_new()
        length.value = SIGNATURE_BYTES
        if (
            crypto.EVP_DigestSignInit(context, None, None, None, key) != 1
            or crypto.EVP_DigestSign(context, signature, at, MESSAGE, len(MESSAGE)) != 1
        ):
            sys.exit("no signature was made")
        crypto.EVP_MD_CTX_free(context)

    return sign


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
