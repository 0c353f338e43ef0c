"""Sessions with runners: programs that measure, and speak the runner contract in JSON lines (`tollbar.core.records`).

Every runner is a process of its own, on a core of its own, that dies with the lab. Whatever it does, what comes back
is a record or a chunk: a runner that crashes, hangs or prints rubbish has failed, with a reason.
"""

from tollbar.core.runner.process import engine, start_engine
from tollbar.core.runner.session import Session, Stopped, ask

__all__ = ["Session", "Stopped", "ask", "engine", "start_engine"]
