"""Runs SQLAlchemy's own suite for dialects: `python crates/python/tests/sqlalchemy/suite/run.py [pytest options]`.

The database is a file in a temporary directory, as the suite opens several engines on one database. What we
lack is in `exclusions.py`, each with its reason.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest
from sqlalchemy.dialects import registry

HERE = Path(__file__).parent


def main(options: list[str]) -> int:
    """Runs it, and returns pytest's exit code."""
    # The suite writes the driver into the URL, which is the package itself.
    for name in ("entasis", "entasis.entasis"):
        registry.register(name, "entasis.sqlalchemy", "dialect")
    sys.path.insert(0, str(HERE))
    with tempfile.TemporaryDirectory() as directory:
        arguments = [
            "-p", "sqlalchemy.testing.plugin.pytestplugin",
            "-p", "provision",
            "-p", "no:cacheprovider",
            "-p", "no:warnings",
            "-c", str(HERE / "setup.cfg"),
            "--rootdir", str(HERE),
            "--dburi", f"entasis:///{directory}/suite.db",
        ]  # fmt: skip
        chosen = options or ["-q"]
        return int(pytest.main([*arguments, *chosen, str(HERE / "suite.py")]))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
