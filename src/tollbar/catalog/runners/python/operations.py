"""Timed operations by family, for each package: prepared from a task, performed, and proved right and wrong."""

import random
from collections import deque

RSA_BYTES, TAG_BYTES, NONCE_BYTES = 256, 16, 12
# Number of ready keys, as in the other runners: that of a server's workers.
POOL_KEYS = 8


class Refusal(Exception):
    """Raised for a task that is not done: `unsupported` for missing features, `failed` for errors."""

    def __init__(self, outcome, reason):
        super().__init__(reason)
        self.outcome, self.reason = outcome, reason


class Settings:
    """Settings of a task. Each is removed when it is read, so that the rest is unread."""

    def __init__(self, values):
        self.left = dict(values)

    def word(self, name, default, values):
        word = self.left.pop(name, default)
        if word not in values:
            raise Refusal("failed", f"the setting `{name}` must be one of {', '.join(values)}, and is {word!r}")
        return word

    def message_bytes(self, default):
        count = self.left.pop("bytes", default)
        if type(count) is not int or not 0 <= count <= 1 << 30:
            raise Refusal("failed", f"the setting `bytes` must be a number from 0 to 2^30, and is {count!r}")
        return count

    def only(self, name, default, value):
        """Check a setting of which this runner supports one value."""
        if (given := self.left.pop(name, default)) != value:
            raise Refusal("unsupported", f"this runner supports only {value} for `{name}`, and not {given!r}")

    def all_read(self):
        if self.left:
            raise Refusal("failed", f"the runner does not read these settings: {', '.join(sorted(self.left))}")


def with_key(route, makers, use):
    """Return `use(key, …)` with the key obtained by this route; `makers` import it from each of its forms."""
    if route in ("key-cached", "kept"):
        key = next(iter(makers.values()))()
        return lambda *message: use(key, *message)
    if route == "key-pooled":
        pool = deque(make() for make in [next(iter(makers.values()))] * POOL_KEYS)

        def call(*message):
            key = pool.popleft()
            try:
                return use(key, *message)
            finally:
                pool.append(key)

        return call
    if route not in makers:
        raise Refusal("unsupported", f"Python's packages have no certificate store, so no key comes from one ({route})")
    make = makers[route]
    return lambda *message: use(make(), *message)


class Proof:
    """Accepted and refused inputs. A wrong result raises Refusal."""

    def __init__(self, answer=None, made=None):
        self.answer, self.made = answer, made
        self.accepted, self.refused, self.not_tried = [], [], []

    def accept(self, what, is_right):
        if not is_right:
            raise Refusal("failed", f"not accepted: {what}")
        self.accepted.append(what)

    def refuse(self, what, is_wrong):
        if not is_wrong:
            raise Refusal("failed", f"not refused: {what}")
        self.refused.append(what)


class Nothing:
    """Null choice: the same loop and clock."""

    def __init__(self, task, package, settings):
        # Settings of the other choices' work.
        for name in {
            "rsa-api": ("bytes", "digest"),
            "signature": ("bytes", "digest", "key"),
            "digest": ("bytes", "lookup"),
        }.get(task["family"], ("bytes", "key")):
            settings.left.pop(name, None)

    def perform(self):
        pass

    def prove(self, inputs):
        proof = Proof()
        proof.accepted.append("the empty operation")
        proof.not_tried.append("a wrong input: the null choice reads none")
        return proof


class Signature:
    """`rsa-api` and `signature`: one message signed, or one signature verified."""

    def __init__(self, task, package, settings):
        inputs, random_bytes = task["inputs"], random.Random(task["seed"]).randbytes
        self.is_rsa = task["family"] == "rsa-api"
        if self.is_rsa:
            self.message = random_bytes(settings.message_bytes(60))
            digest = settings.word("digest", "fetched", ("fetched", "implicit"))
            if digest not in package.Rsa.digests:
                settings.all_read()
                raise Refusal(
                    "unsupported",
                    f"{package.NAME} looks the digest of a signature up in each call",
                )
            route, scheme = task["choice"], package.Rsa(inputs["private_key_pem"], digest)
        else:
            self.message = random_bytes(settings.message_bytes(32))
            settings.only("digest", "sha-256", "sha-256")
            route, scheme = settings.word("key", "kept", ("kept", "from-pem", "from-der")), package.Ecdsa()
        self.scheme = scheme
        is_signing = task["op"] == "sign"
        # The other operation, for the proof, has its key ready.
        self.sign = with_key(route if is_signing else "kept", scheme.private_keys(), scheme.sign)
        self.verify = with_key("kept" if is_signing else route, scheme.public_keys(), scheme.verify)
        self.signature = None if is_signing else self.sign(self.message)
        self.perform = self.perform_sign if is_signing else self.perform_verify

    def perform_sign(self):
        # ECDSA signatures vary in length.
        signature = self.sign(self.message)
        if self.is_rsa and len(signature) != RSA_BYTES:
            raise Refusal("failed", f"the signature has {len(signature)} bytes instead of {RSA_BYTES}")

    def perform_verify(self):
        if not self.verify(self.message, self.signature):
            raise Refusal("failed", "the library refused a valid signature")

    def prove(self, inputs):
        proof, own, message = Proof(), self.sign(self.message), self.message
        if "expected_hex" in inputs:
            proof.answer = self.known_answer(message_of(inputs), bytes.fromhex(inputs["expected_hex"]), inputs)
        proof.accept("its own signature", self.verify(message, own))
        if self.is_rsa:
            proof.accept("the same message again", own == self.sign(message))
        else:
            # The signature differs each time, so another implementation has to verify one.
            text = inputs.get("of", "tollbar")
            made = self.sign(text.encode())
            proof.made = {
                "of": text,
                "signature_hex": made.hex(),
                "public_key_der_hex": self.scheme.public_key_der().hex(),
            }
        proof.refuse("a tampered message", not self.verify(tampered(message), own))
        proof.refuse("a tampered signature", not self.verify(message, own[:-1] + bytes([own[-1] ^ 1])))
        return proof

    def known_answer(self, message, expected, inputs):
        """Return the signature: newly made if it is deterministic and signing is timed, else the published one.

        The published one must verify.
        """
        if self.is_rsa and self.perform == self.perform_sign:
            return self.sign(message).hex()
        if self.is_rsa:
            accepted = self.verify(message, expected)
        else:
            accepted = self.scheme.verify(
                self.scheme.read_public(bytes.fromhex(inputs["public_key_der_hex"])), message, expected
            )
        if not accepted:
            raise Refusal("failed", "the library refused the published signature")
        return expected.hex()


class Digest:
    """`digest`: one message hashed in one call."""

    def __init__(self, task, package, settings):
        self.message = random.Random(task["seed"]).randbytes(settings.message_bytes(4096))
        self.hash = package.digest(settings.word("lookup", "fetched", ("fetched", "implicit")))

    def perform(self):
        self.hash(self.message)

    def prove(self, inputs):
        proof, own = Proof(), self.hash(self.message)
        if "expected_hex" in inputs:
            proof.answer = self.hash(message_of(inputs)).hex()
        proof.accept("the same message again", own == self.hash(self.message))
        proof.refuse("a tampered message", own != self.hash(tampered(self.message)))
        return proof


class Cipher:
    """`cipher`: one message encrypted under its own nonce, or one decrypted and its tag checked."""

    def __init__(self, task, package, settings):
        source = random.Random(task["seed"])
        self.plain, self.key = source.randbytes(settings.message_bytes(4096)), source.randbytes(32)
        kept = settings.word("key", "kept", ("kept", "fresh")) == "kept"
        self.seal_with, self.open_with = package.aes_gcm(kept)
        self.nonce = source.getrandbits(64)
        self.seal, self.open = self.seal_with(self.key), self.open_with(self.key)
        self.encrypt()
        self.perform = {"encrypt": self.encrypt, "decrypt": self.decrypt}[task["op"]]

    def encrypt(self):
        self.nonce += 1
        self.sealed = self.seal(self.nonce.to_bytes(NONCE_BYTES, "big"), self.plain, b"")
        if len(self.sealed) != len(self.plain) + TAG_BYTES:
            raise Refusal(
                "failed", f"the ciphertext has {len(self.sealed)} bytes instead of {len(self.plain) + TAG_BYTES}"
            )

    def decrypt(self):
        opened = self.open(self.nonce.to_bytes(NONCE_BYTES, "big"), self.sealed, b"")
        if opened is None or len(opened) != len(self.plain):
            raise Refusal("failed", "the library refused a valid ciphertext")

    def prove(self, inputs):
        proof, nonce, sealed = Proof(), self.nonce.to_bytes(NONCE_BYTES, "big"), self.sealed
        if "expected_hex" in inputs:
            key, iv, aad = (bytes.fromhex(inputs.get(name, "")) for name in ("key_hex", "iv_hex", "aad_hex"))
            answer = self.seal_with(key)(iv, message_of(inputs), aad)
            if self.open_with(key)(iv, answer, aad) != message_of(inputs):
                raise Refusal("failed", "the ciphertext of the known answer does not decrypt to its plaintext")
            proof.answer = answer.hex()
        proof.accept("its own ciphertext", self.open(nonce, sealed, b"") == self.plain)
        self.encrypt()
        proof.refuse("the same ciphertext twice", self.sealed != sealed)
        proof.refuse("a tampered ciphertext", self.open(nonce, tampered(sealed), b"") is None)
        proof.refuse("a tampered tag", self.open(nonce, sealed[:-1] + bytes([sealed[-1] ^ 1]), b"") is None)
        proof.refuse("another key", self.open_with(tampered(self.key))(nonce, sealed, b"") is None)
        proof.refuse("another nonce", self.open(tampered(nonce), sealed, b"") is None)
        return proof


class Password:
    """`defaults`: one password hashed, with the package's own parameters or the task's."""

    def __init__(self, task, package, settings):
        held = None if task["choice"] == "by-default" else {name: settings.left.pop(name) for name in [*settings.left]}
        self.password = random.Random(task["seed"]).randbytes(12).hex()
        self.hash, self.verify = package.password_hash(task["choice"], held)

    def perform(self):
        self.made = self.hash(self.password)

    def prove(self, inputs):
        proof, made = Proof(), self.hash(self.password)
        proof.accept("its own password", self.verify(made, self.password))
        proof.refuse("another password", not self.verify(made, tampered(self.password.encode()).decode()))
        proof.refuse("the same hash twice", made != self.hash(self.password))
        return proof


# For each family: its choices, its operations, its class, and the attribute that a package needs for it.
FAMILIES = {
    "rsa-api": (
        ("key-cached", "key-from-pem", "key-from-der", "key-from-parameters", "key-pooled"),
        ("sign", "verify"),
        Signature,
        "Rsa",
    ),
    "signature": (("ecdsa-p256",), ("sign", "verify"), Signature, "Ecdsa"),
    "digest": (("sha-256",), ("hash",), Digest, "digest"),
    "cipher": (("aes-256-gcm",), ("encrypt", "decrypt"), Cipher, "aes_gcm"),
    "defaults": (("by-default", "argon2id", "pbkdf2-sha-256", "scrypt"), ("hash",), Password, "password_hash"),
}


def offers_of(package):
    """Return the choices of each family that this package supports."""
    has = {family: row for family, row in FAMILIES.items() if hasattr(package, row[-1])}
    return [{"family": family, "choice": name} for family, row in has.items() for name in ("none", *row[0])]


def prepared(task, package):
    """Return the task's operation, ready."""
    choices, operations, kind, taken = FAMILIES.get(task["family"], ((), (), None, ""))
    choice, op, settings = task["choice"], task["op"], Settings(task["setting"])
    if choice == "key-from-store":
        raise Refusal("unsupported", "Python's packages have no certificate store, so no key comes from one")
    if (choice != "none" and choice not in choices) or op not in operations or not hasattr(package, taken):
        raise Refusal("unsupported", f"this runner does not support {choice} ({task['family']}, {op})")
    if task["family"] not in ("rsa-api", "defaults"):
        settings.only("cpu", "native", "native")
    operation = (Nothing if choice == "none" else kind)(task, package, settings)
    settings.all_read()
    return operation


def message_of(inputs):
    """Return a known answer's message."""
    return bytes.fromhex(inputs["of_hex"]) if "of_hex" in inputs else inputs["of"].encode()


def tampered(data):
    """Return the data with its first bit flipped, or one byte if it is empty."""
    return bytes([data[0] ^ 1]) + data[1:] if data else b"\0"
