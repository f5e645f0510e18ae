"""SQL in cells of IPython and Jupyter: `%load_ext entasis`, then

    %sql SELECT 40 + 2                       a line
    %%sql                                    a cell
    SELECT * FROM frame

    %sql result << SELECT * FROM frame       into a variable, a Relation
    %sql con                                 from now on in the database of this connection
    %sql entasis:///my.db                    … in this file; entasis:// is a database in memory

Statements may name the notebook's variables as tables; `$name` is the value of a variable.
"""

from __future__ import annotations

import re
from typing import Any

from . import connect, default_connection
from ._entasis import Connection, Error, ProgrammingError, Relation

_URL = re.compile(r"entasis://(?:/(\S*))?")
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)\s*<<\s*")


class SqlMagic:
    """The magic of one shell, with the connection that it uses."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._connection: Connection | None = None

    def line(self, line: str) -> Any:
        """`%sql …`"""
        return self.cell(line, "")

    def cell(self, line: str, cell: str = "") -> Any:
        """`%%sql …` with the text below; a connection and a variable may be named in the first line."""
        text = f"{line}\n{cell}".strip()
        text = self._connected(text)
        assigned = _ASSIGNED.match(text)
        if assigned:
            text = text[assigned.end() :]
        if not text:
            return None
        try:
            result = self._run(text)
        except Error as error:
            # What is wrong is in the cell: a traceback through this package would only hide it.
            return self._shell.showtraceback((type(error), error, None))
        if assigned:
            self._shell.user_ns[assigned[1]] = result
            return None
        return result if result.columns else None

    def _connected(self, text: str) -> str:
        """The text without the connection at its beginning, which is used from now on."""
        first, _, rest = text.partition("\n") if "\n" in text else text.partition(" ")
        word, _, behind = first.strip().partition(" ")
        variable = self._shell.user_ns.get(word)
        url = _URL.fullmatch(word)
        if url:
            self._connection = connect(url[1] or None)
        elif isinstance(variable, Connection):
            self._connection = variable
        else:
            return text
        return f"{behind}\n{rest}".strip()

    def _run(self, text: str) -> Relation:
        connection = self._connection or default_connection()
        # The compiled part looks for tables in a variable of this name.
        tables = self._shell.user_ns
        names = connection.parameter_names(text)
        values = {}
        for name in names:
            # Names of SQL have no case.
            same = [own for own in tables if own.lower() == name]
            if not same:
                raise ProgrammingError(f"there is no variable {name} for the parameter ${name}")
            if len(same) > 1:
                raise ProgrammingError(f"the parameter ${name} may be one of the variables {', '.join(same)}")
            values[name] = tables[same[0]]
        return connection.sql(text, values or None)


def load(shell: Any) -> None:
    """Registers `%sql` and `%%sql`."""
    magic = SqlMagic(shell)
    shell.register_magic_function(magic.line, "line", "sql")
    shell.register_magic_function(magic.cell, "cell", "sql")
