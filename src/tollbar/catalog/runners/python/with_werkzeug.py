"""Calls of the package Werkzeug, as in its documentation."""

from importlib.metadata import version

from werkzeug.security import check_password_hash, generate_password_hash

NAME = f"werkzeug {version('werkzeug')}"
BACKEND = "hashlib's PBKDF2 and scrypt"


def password_hash(choice, held):
    """Return functions that hash and verify a password, with the package's own method or these parameters."""
    if held is None:
        return generate_password_hash, check_password_hash
    named = {"pbkdf2-sha-256": "pbkdf2:sha256:{iterations}", "scrypt": "scrypt:{n}:{r}:{p}"}[choice]
    method = named.format(**held)
    return lambda password: generate_password_hash(password, method=method), check_password_hash


def password_default():
    """Return the default parameters of a hash."""
    method, *numbers = generate_password_hash("tollbar").partition("$")[0].split(":")
    if method == "scrypt":
        of = {name: int(number) for name, number in zip("nrp", numbers, strict=True)}
        return {"choice": "scrypt", **of}
    return {"choice": "pbkdf2-sha-256", "iterations": int(numbers[-1])}
