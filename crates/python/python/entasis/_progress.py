"""The progress bar of a statement that takes long, in a terminal or a notebook.

The compiled part calls `bar` once a statement has taken two seconds, and then draws with it ten times a second,
on the thread that waits for the statement.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from typing import Any, Protocol

_STEPS = 40


class _Bar(Protocol):
    def draw(self, share: float, seconds: float) -> None: ...

    def end(self) -> None: ...


def bar(wanted: bool | None) -> _Bar | None:
    """A bar where this program runs. Only the main thread has one, because two would draw over each other."""
    if threading.current_thread() is not threading.main_thread():
        return None
    if _is_notebook():
        return _NotebookBar()
    if wanted or _is_terminal():
        return _TerminalBar()
    return None


def _is_notebook() -> bool:
    # Without importing it: who runs in a notebook has done so.
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return any(cls.__name__ == "ZMQInteractiveShell" for cls in type(shell).__mro__)


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    except (AttributeError, ValueError):
        # There is no standard error, or it is closed.
        return False


def left(share: float, seconds: float) -> str:
    """The time left in words, if it goes on as it began; empty while that is too uncertain."""
    if share < 0.01:
        return ""
    rest = seconds * (1 - share) / share
    if rest < 1:
        return "almost done"
    if rest < 120:
        return f"{rest:.0f} s left"
    return f"{rest / 60:.0f} min left" if rest < 7200 else f"{rest / 3600:.0f} h left"


class _TerminalBar:
    def draw(self, share: float, seconds: float) -> None:
        done = int(share * _STEPS)
        self._write(f"\r{'━' * done}{'─' * (_STEPS - done)} {share:4.0%}  {left(share, seconds)}\x1b[K")

    def end(self) -> None:
        self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError):
            # A bar that cannot be drawn, for want of a terminal or of its characters, is no error of the statement.
            pass


class _NotebookBar:
    def __init__(self) -> None:
        # IPython has no types.
        self._library: Any = importlib.import_module("IPython.display")
        self._shown: Any = None

    def draw(self, share: float, seconds: float) -> None:
        html = self._library.HTML(f'<progress value="{share:.3f}"></progress> {share:.0%} {left(share, seconds)}')
        if self._shown is None:
            self._shown = self._library.display(html, display_id=True)
        else:
            self._shown.update(html)

    def end(self) -> None:
        if self._shown is not None:
            self._shown.update(self._library.HTML(""))
