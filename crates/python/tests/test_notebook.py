"""What notebooks and terminals show: tables in HTML, the progress bar, the magic for SQL."""

import io
import re
import sys
import types

import pytest

import entasis
from entasis import _magic, _progress


def test_a_result_is_a_table_in_html(con):
    html = con.sql("SELECT 1 AS n, '<b>&' AS \"a<b\", NULL::VARCHAR AS nothing, 'x\ny' AS lines")._repr_html_()
    assert "&lt;b&gt;&amp;" in html and "a&lt;b<br>" in html and "<b>" not in html
    assert re.search(r'<td style="text-align:right[^>]*>1</td>', html)
    assert re.search(r'<td style="text-align:left[^>]*>x y</td>', html)
    assert re.search(r"opacity[^>]*>NULL</span>", html) and re.search(r"opacity[^>]*>integer</span>", html)
    assert html.endswith("1 row</p>\n</div>")


def test_long_results_are_cut_with_a_note(con):
    names = ", ".join(f"i + {n} AS c{n}" for n in range(30))
    html = con.sql(f"SELECT {names}, repeat('w', 1000) AS c30 FROM range(100000) r(i)")._repr_html_()
    assert "100000 rows, 20 of them shown; 31 columns, 20 of them shown" in html
    assert html.count("<tr>") == 1 + 20 + 1 and html.count("<th ") == 21 and "+11" in html and "⋮" in html
    for shown, name in [(True, "c0<"), (True, "c9<"), (False, "c10<"), (False, "c20<"), (True, "c21<"), (True, "c30<")]:
        assert (name in html) is shown, name
    assert ">99999<" in html and "…" in html and "w" * 101 not in html
    text = con.sql(f"SELECT {names} FROM range(100) r(i)")
    assert "+18" in repr(text) and repr(text).endswith("100 rows")
    # Numbers are at the right although columns are left out.
    assert re.search(r"│ +0 │ +1 │", repr(text))


def test_plans_are_lines(con):
    html = con.sql("EXPLAIN SELECT 1 < i FROM range(10) r(i)")._repr_html_()
    assert html.startswith("<pre>") and "&lt;" in html or "&gt;" in html
    assert con.sql("CREATE TABLE t (a INTEGER)")._repr_html_() == "<p>no result</p>"


def test_the_time_left_follows_from_the_share_done():
    expected = {(0.001, 3): "", (0.25, 10): "30 s left", (0.5, 600): "10 min left", (1.0, 5): "almost done"}
    for (share, seconds), text in expected.items():
        assert _progress.left(share, seconds) == text
    assert _progress.left(0.01, 100) == "3 h left"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_is_for_terminals(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    bar = _progress.bar(None)
    bar.draw(0.5, 4)
    bar.end()
    assert "━" * 20 + "─" * 20 in terminal.getvalue() and "50%  4 s left" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")
    monkeypatch.setenv("TERM", "dumb")
    assert _progress.bar(None) is None and _progress.bar(True) is not None
    for other in [io.StringIO(), None]:
        monkeypatch.setattr(sys, "stderr", other)
        monkeypatch.setenv("TERM", "xterm")
        assert _progress.bar(None) is None
    closed = Terminal()
    monkeypatch.setattr(sys, "stderr", closed)
    bar = _progress.bar(True)
    closed.close()
    bar.draw(0.5, 4)
    bar.end()


def test_a_bar_in_a_notebook(monkeypatch):
    shown = []

    class Handle:
        update = shown.append

    class ZMQInteractiveShell:
        pass

    library = types.ModuleType("IPython.display")
    library.HTML = str
    library.display = lambda html, display_id: (shown.append(html), Handle)[1]
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = type("Shell", (ZMQInteractiveShell,), {})
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", library)
    bar = _progress.bar(None)
    bar.draw(0.25, 10)
    bar.draw(0.5, 10)
    bar.end()
    bars = [f'<progress value="{share:.3f}"></progress> {share:.0%} {left} s left' for share, left in [(0.25, 30), (0.5, 10)]]
    assert shown == [*bars, ""]


def test_a_long_statement_draws_a_bar(con, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert con.progress_bar is None
    slow = "SELECT count(*) FROM range(100000) a(i), range(100000) b(j), range(1000) c(k) WHERE i + j + k = -1"
    con.progress_bar = False
    with pytest.raises(entasis.OperationalError, match="timeout"):
        con.sql(slow, timeout=0.4)
    assert terminal.getvalue() == "" and 0 <= con.progress <= 1
    con.progress_bar = True
    with pytest.raises(entasis.OperationalError, match="timeout"):
        con.sql(slow, timeout=0.6)
    assert "%" in terminal.getvalue() and terminal.getvalue().endswith("\r\x1b[K")


class Shell:
    """As much of IPython as the magic uses."""

    def __init__(self):
        self.user_ns = {}
        self.magics = {}
        self.shown = []

    def register_magic_function(self, function, kind, name):
        self.magics[kind] = function
        assert name == "sql"

    def showtraceback(self, error):
        self.shown.append(error[1])


@pytest.fixture
def shell():
    shell = Shell()
    entasis.load_ipython_extension(shell)
    return shell


def test_lines_and_cells_of_sql(shell, con):
    line, cell = shell.magics["line"], shell.magics["cell"]
    assert line("SELECT 40 + 2 AS answer").fetchall() == [(42,)]
    assert cell("", "SELECT 1\nAS a").columns == ["a"]
    assert line("result << SELECT 7 AS a") is None and shell.user_ns["result"].fetchval() == 7
    assert cell("more <<", "SELECT 8") is None and shell.user_ns["more"].fetchall() == [(8,)]
    assert line("") is None
    # Another connection, from now on.
    shell.user_ns["con"] = con
    assert line("con") is None
    assert line("CREATE TABLE t AS SELECT 5 AS a") is None and con.execute("SELECT a FROM t").fetchval() == 5
    assert cell("con", "SELECT a + 1 FROM t").fetchval() == 6


def test_databases_of_cells(shell, tmp_path):
    line, cell = shell.magics["line"], shell.magics["cell"]
    path = tmp_path / "my.db"
    assert line(f"entasis:///{path} CREATE TABLE t AS SELECT 1 AS a") is None
    assert cell(f"entasis:///{path} rows <<", "SELECT a FROM t") is None and shell.user_ns["rows"].fetchval() == 1
    assert line("entasis:// SHOW TABLES").fetchall() == []
    assert path.exists()


def test_cells_name_variables(shell):
    pytest.importorskip("pyarrow")
    shell.user_ns.update(frame=[{"a": 1}, {"a": 2}], least=2)
    assert shell.magics["cell"]("", "SELECT a FROM frame WHERE a >= $least").fetchall() == [(2,)]
    # Names of SQL have no case; two variables that differ in it alone are not taken for each other.
    shell.user_ns["Most"] = 1
    assert shell.magics["line"]("SELECT $most").fetchall() == [(1,)]
    shell.user_ns["most"] = 2
    shell.magics["line"]("SELECT $most")
    assert "Most, most" in str(shell.shown[-1])
    shell.magics["line"]("SELECT $missing")
    assert "no variable missing" in str(shell.shown[-1])


def test_errors_of_cells_have_no_traceback(shell):
    assert shell.magics["line"]("SELECT nothing") is None
    assert "LINE 1: SELECT nothing" in str(shell.shown[-1])


def test_ipython_itself():
    testing = pytest.importorskip("IPython.testing.globalipapp")
    shell = testing.get_ipython() or testing.start_ipython()
    shell.run_line_magic("load_ext", "entasis")
    shell.user_ns["rows"] = types.SimpleNamespace()
    shell.run_cell("%sql found << SELECT 3 AS a").raise_error()
    assert shell.user_ns["found"].fetchval() == 3
    assert shell.run_cell("%%sql\nSELECT a + 1\nFROM found").result.fetchval() == 4
    assert _magic is not None
