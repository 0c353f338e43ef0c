"""Sessions with runners: programs that measure, and speak the runner contract in JSON lines (`tollbar.core.records`).

Every runner is a separate process on a separate core, and dies with the lab. The result is always a record or a chunk:
a runner that crashes, hangs or prints rubbish has failed, with a reason.
"""

from tollbar.core.runner.process import engine, programs, start_engine
from tollbar.core.runner.session import Session, Stopped, ask

__all__ = ["Session", "Stopped", "ask", "engine", "programs", "start_engine"]
