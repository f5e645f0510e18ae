"""Entasis for Alembic, which asks for such a class by the name of the dialect.

It is loaded with the dialect if the program has imported Alembic before it made its engine, as Alembic's own
command does; otherwise a program imports this module.
"""

from __future__ import annotations

from typing import Any

from alembic.ddl.impl import DefaultImpl


class EntasisImpl(DefaultImpl):
    """How migrations are made and compared."""

    __dialect__ = "entasis"
    transactional_ddl = True
    # All texts are VARCHAR, of any length.
    type_synonyms = (*DefaultImpl.type_synonyms, {"VARCHAR", "TEXT", "CHAR", "NVARCHAR", "NCHAR", "CLOB"})

    def compare_server_default(
        self,
        inspector_column: Any,
        metadata_column: Any,
        rendered_metadata_default: str | None,
        rendered_inspector_default: str | None,
    ) -> bool:
        """Whether the defaults differ: a number may be written as a text."""
        return _bare(rendered_metadata_default) != _bare(rendered_inspector_default)


def _bare(default: str | None) -> str | None:
    if default is None:
        return None
    text = default.strip()
    while text.startswith("(") and text.endswith(")"):
        text = text[1:-1].strip()
    return text[1:-1].replace("''", "'") if len(text) > 1 and text[0] == text[-1] == "'" else text
