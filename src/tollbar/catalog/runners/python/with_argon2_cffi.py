"""Calls of the package `argon2-cffi`, as in its documentation."""

from importlib.metadata import PackageNotFoundError, version

import argon2

try:
    # Argon2 itself is compiled in the bindings, which can vary independently.
    BINDINGS = version("argon2-cffi-bindings")
except PackageNotFoundError:
    # Versions before 21.2 contain the bindings.
    BINDINGS = "bundled"
NAME = f"argon2-cffi {version('argon2-cffi')} (bindings {BINDINGS})"
BACKEND = f"Argon2 {argon2.low_level.ARGON2_VERSION:#x} of its bindings"


def password_hash(choice, held):
    """Return functions that hash and verify a password, with the class's own parameters or these."""
    if held is not None:
        held = {"time_cost": held["passes"], "memory_cost": held["memory"] // 1024, "parallelism": held["lanes"]}
    hasher = argon2.PasswordHasher(**held or {})

    def verify(made, password):
        try:
            return hasher.verify(made, password)
        except argon2.exceptions.VerifyMismatchError:
            return False

    return hasher.hash, verify


def password_default():
    """Return the default parameters of a hash."""
    made = argon2.extract_parameters(argon2.PasswordHasher().hash("tollbar"))
    of = {"memory": made.memory_cost * 1024, "passes": made.time_cost, "lanes": made.parallelism}
    return {"choice": made.type.name.replace("ID", "argon2id"), **of}
