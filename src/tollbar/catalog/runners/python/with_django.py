"""Calls of the package Django, as in its documentation, with the settings of a new project."""

import hashlib

import django
from django.conf import settings
from django.contrib.auth import hashers

NAME = f"django {django.__version__}"
BACKEND = f"hashlib's PBKDF2, {getattr(hashlib.pbkdf2_hmac, '__module__', 'hashlib')}"
settings.configure()


def password_hash(choice, held):
    """Return functions that hash and verify a password, with the default hasher or with these iterations."""
    hasher = hashers.PBKDF2PasswordHasher()

    def hash_held(password):
        return hasher.encode(password, hasher.salt(), held["iterations"])

    return hash_held if held else hashers.make_password, lambda made, password: hasher.verify(password, made)


def password_default():
    """Return the default parameters of a hash."""
    _, iterations, _, _ = hashers.make_password("tollbar").split("$")
    return {"choice": "pbkdf2-sha-256", "iterations": int(iterations)}
