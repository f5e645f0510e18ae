"""Words that must be in quotes where they are names."""

from __future__ import annotations

#: In lower case: what the engine does not take for a name somewhere, and what SQLAlchemy quotes everywhere.
RESERVED = frozenset(
    """
    all analyse analyze and any array as asc asof asymmetric authorization between binary both case cast
    check cluster collate column concurrently constraint create cross cube current_date current_role
    current_time current_timestamp current_user default deferrable desc describe directory distinct
    distribute do else end except exclude exists explain false fetch for foreign freeze from full global
    grant group having ilike in initially inner intersect interval into is isnull join lateral leading
    left like limit local localtime localtimestamp minus natural new not notnull null off offset old on
    only or order outer overlaps placing primary recursive references replace returning right rollup
    select session_user set similar some sort summarize symmetric table then to top trailing trim true
    union unique user using values verbose view when where with
    """.split()
)
