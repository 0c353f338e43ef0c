"""Workload of signing in to a database: a connection for each operation, with the CPU time of all its processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tollbar.catalog.families import Standing
from tollbar.catalog.servers import NotStarted
from tollbar.core import control_groups
from tollbar.core.records import Outcome, Proven
from tollbar.lab.workloads import Given, unproven
from tollbar.lab.workloads.by_family import storage
from tollbar.study.plan.cells import Cell

# Sign-ons of a chunk with control groups, which know ended processes to a microsecond. They cost 5 to 20 ms on a quiet
# machine, and up to 60 on a busy one.
SIGN_ONS = 5
# Without control groups, the process of a connection is known to clock ticks of 10 ms. This number costs enough to make
# ticks negligible; the engine drops chunks that cost the server less than 120 ms.
SIGN_ONS_BY_TICKS = 100


def sign_ons() -> int:
    """Return the least number of sign-ons of a chunk, each with a process of its own that ends."""
    return SIGN_ONS if control_groups.usable() else SIGN_ONS_BY_TICKS


class DatabaseSignOnWorkload(storage.StorageWorkload):
    """Connection to a server: authentication, one trivial statement, and the end."""

    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "postgresql": ("trust", "scram-sha-256", "password", "md5", "client-certificate"),
        "mariadb": ("trust", "mysql-native-password", "ed25519", "unix-socket"),
    }

    def fewest(self, cell: Cell) -> int:
        """Return the least number of operations; shorter chunks would not be exact."""
        return sign_ons()

    def prove(self, cell: Cell, seed: int, given: Given) -> Proven:
        """Return the proof of a sign-on, and of the refusals."""
        assert given.sandbox is not None, "databases need a sandbox"
        try:
            with self._database(cell, given.sandbox, None) as database:
                record = self._proved(cell, seed, given, database)
        except NotStarted as error:
            return unproven(cell, error.outcome, error.reason)
        if record.outcome is not Outcome.OK or record.proof is None:
            return unproven(cell, record.outcome, record.reason)
        proof = record.proof
        if cell.standing is not Standing.NULL and not proof.refused:
            return unproven(cell, Outcome.FAILED, "no proof: no wrong input was tried and refused")
        return Proven(cell.study, cell.key, Outcome.OK, None, 0, proof.accepted, proof.refused, proof.not_tried)
