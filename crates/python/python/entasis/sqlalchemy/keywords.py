"""Words that must be in quotes where they are names."""

from __future__ import annotations

#: In lower case. A test compares the list with what the engine takes for names.
RESERVED = frozenset(
    """
    """.split()
)
