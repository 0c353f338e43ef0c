"""The workload of signing in to a database: a connection for each operation, and the account of all its processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tollbar.catalog.families import Standing
from tollbar.catalog.servers import NotStarted
from tollbar.core import control_groups
from tollbar.core.records import Outcome, Proven
from tollbar.lab.workloads import Given, unproven
from tollbar.lab.workloads.by_family import storage
from tollbar.study.plan import Cell

# A control group knows what ended processes used to a microsecond. So many cost 5 to 20 ms on a quiet machine, and up
# to 60 on a busy one.
SIGN_ONS = 5
# Without one, the process of a connection ends with it and is known to clock ticks of 10 ms: so many together cost so
# much that these matter little, and the engine leaves a chunk out that costs the server less than 120 ms.
SIGN_ONS_BY_TICKS = 100


def sign_ons() -> int:
    """Return how many sign-ons a chunk has at least, each with a process of its own that ends."""
    return SIGN_ONS if control_groups.usable() else SIGN_ONS_BY_TICKS


class FamilyWorkload(storage.FamilyWorkload):
    """A connection to a server, its user proved, one trivial statement answered, and the connection ended."""

    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "postgresql": ("trust", "scram-sha-256", "password", "md5", "client-certificate"),
        "mariadb": ("trust", "mysql-native-password", "ed25519", "unix-socket"),
    }

    def fewest(self, cell: Cell) -> int:
        """So many at least: shorter chunks would not be exact."""
        return sign_ons()

    def prove(self, cell: Cell, seed: int, given: Given) -> Proven:
        """Has a user sign on, and everything tried that must be refused."""
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
            return unproven(cell, Outcome.FAILED, "no proof: nothing wrong was tried and refused")
        return Proven(cell.study, cell.key, Outcome.OK, None, 0, proof.accepted, proof.refused, proof.not_tried)
