"""Runs what the pages for users show in Python: the blocks of a page in order, with the same variables.

What a page supposes stands before a block in a comment that is not shown::

    <!-- python
    con.execute("CREATE TABLE t (n INTEGER)")
    -->

Lines with a comment ``# → value`` must give a value that prints so; those with ``# raises Error`` must raise it.
Blocks of SQL and of the shell are run by ``crates/cli/tests/pages.rs``.
"""

import ast
import pathlib
import re

import pytest

import entasis

ROOT = pathlib.Path(__file__).parents[3]
PAGES = ["README.md", "crates/python/README.md", "docs/durability.md", "docs/python.md"]
BLOCK = re.compile(r"^(?:```python|<!-- python)\n(.*?)^(?:```|-->)$", re.M | re.S)


def run(block, line, page, variables):
    """Runs the statements of a block one by one, as far as they give a value or raise what they should."""
    lines = block.split("\n")
    for statement in ast.parse(block).body:
        place = f"{page}:{line + statement.lineno - 1}"
        comment = lines[statement.end_lineno - 1].partition("#")[2].strip()
        gives, raises = comment.partition("→"), re.match(r"raises (?:entasis\.)?(\w+)", comment)
        code = ast.Module([statement], [])
        if raises:
            with pytest.raises(getattr(entasis, raises[1])):
                exec(compile(code, place, "exec"), variables)
        elif gives[1]:
            assert isinstance(statement, ast.Expr), f"{place} has no value"
            value = eval(compile(ast.Expression(statement.value), place, "eval"), variables)
            assert repr(value) == gives[2].strip(), place
        else:
            exec(compile(code, place, "exec"), variables)


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_shows_runs(page, tmp_path, monkeypatch):
    text = (ROOT / page).read_text()
    (tmp_path / "data").symlink_to(ROOT / "data")
    for file in (ROOT / "data/flights").iterdir():
        (tmp_path / file.name).symlink_to(file)
    monkeypatch.chdir(tmp_path)
    variables = {"entasis": entasis}
    blocks = list(BLOCK.finditer(text))
    assert blocks, f"{page} shows nothing"
    for block in blocks:
        run(block[1], text[: block.start(1)].count("\n") + 1, page, variables)
    for value in variables.values():
        if isinstance(value, entasis.Connection):
            value.close()


def test_a_block_that_does_not_hold_is_found():
    for block in ["1 + 1  # → 3", "1 / 0", "entasis.connect().execute('SELECT 1')  # raises ProgrammingError"]:
        with pytest.raises(BaseException):
            run(block, 1, "page", {"entasis": entasis})
    run("x = 1\nx + 1  # → 2\nentasis.sql('SELEC')  # raises entasis.ProgrammingError", 1, "page", {"entasis": entasis})
