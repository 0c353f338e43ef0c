"""The calls of the package Werkzeug, as its documentation has them."""

from importlib.metadata import version

from werkzeug.security import check_password_hash, generate_password_hash

NAME = f"werkzeug {version('werkzeug')}"
BACKEND = "hashlib's PBKDF2 and scrypt"


def password_hash(choice, held):
    """What hashes and what verifies a password, by its own method or with these parameters."""
    if held is None:
        return generate_password_hash, check_password_hash
    named = {"pbkdf2-sha-256": "pbkdf2:sha256:{iterations}", "scrypt": "scrypt:{n}:{r}:{p}"}[choice]
    method = named.format(**held)
    return lambda password: generate_password_hash(password, method=method), check_password_hash


def password_default():
    """The parameters that a hash has where its caller says none."""
    method, *numbers = generate_password_hash("tollbar").partition("$")[0].split(":")
    if method == "scrypt":
        of = {name: int(number) for name, number in zip("nrp", numbers, strict=True)}
        return {"choice": "scrypt", **of}
    return {"choice": "pbkdf2-sha-256", "iterations": int(numbers[-1])}
