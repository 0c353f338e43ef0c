"""Tollbar: what each security design choice costs, on this machine."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    __version__: str
else:

    def __getattr__(name: str) -> str:
        # Looked up when it is wanted: to import what finds it takes longer than to show the help.
        if name != "__version__":
            raise AttributeError(name)
        from importlib.metadata import version

        return version("tollbar")
