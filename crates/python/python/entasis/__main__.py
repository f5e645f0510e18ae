"""`python -m entasis [database] [sql …]`: runs SQL, or reads statements and shows their results.

The smallest thing that works wherever the package does. The shell `entasis`, which is a program of its own, has
history, completion, highlighting and formats of output.
"""

from __future__ import annotations

import argparse
import sys
from typing import Iterator

import entasis


def main() -> int:
    """Runs the program, and returns its exit status."""
    about = "Runs SQL. Without any, reads statements that end with a semicolon."
    parser = argparse.ArgumentParser("python -m entasis", description=about)
    parser.add_argument("database", nargs="?", default=":memory:", help="a file; in memory without one")
    parser.add_argument("sql", nargs="*", help="statements to run")
    parser.add_argument("--readonly", action="store_true", help="open the file read-only")
    parser.add_argument("--version", action="version", version=f"entasis {entasis.__version__}")
    arguments = parser.parse_args()
    interactive = not arguments.sql and sys.stdin.isatty()
    try:
        connection = entasis.connect(arguments.database, read_only=arguments.readonly)
    except entasis.Error as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    if interactive:
        print(f"entasis {entasis.__version__}. Statements end with a semicolon; Ctrl-D leaves.")
    with connection:
        for statement in arguments.sql or _statements(connection, interactive):
            try:
                result = connection.sql(statement)
                if result.columns:
                    result.show()
            except entasis.Error as error:
                print(f"Error: {error}", file=sys.stderr)
                if not interactive:
                    return 1
            except KeyboardInterrupt:
                print("Interrupted", file=sys.stderr)
                if not interactive:
                    return 130
    return 0


def _statements(connection: entasis.Connection, interactive: bool) -> Iterator[str]:
    """Statements as they are typed; or all of what is in a file or a pipe."""
    if not interactive:
        yield sys.stdin.read()
        return
    try:
        # With it, input() has a history.
        import readline  # noqa: F401
    except ImportError:
        pass
    text = ""
    while True:
        try:
            text += input("     ...> " if text else "entasis> ") + "\n"
        except EOFError:
            print()
            return
        except KeyboardInterrupt:
            print()
            text = ""
            continue
        if not text.strip():
            text = ""
        elif connection.is_complete(text):
            yield text
            text = ""


if __name__ == "__main__":
    sys.exit(main())
