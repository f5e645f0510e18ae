"""Importing the package: what it takes with it, and what it leaves for later."""

import subprocess
import sys

import pytest

import entasis

#: Modules of the standard library and of others that only some programs need; each takes milliseconds.
HEAVY = {"asyncio", "inspect", "logging", "numpy", "pandas", "polars", "pyarrow", "re", "threading", "typing"}


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_a_first_query_imports_nothing_that_it_does_not_use():
    new = run(
        "import sys; before = set(sys.modules)\n"
        "import entasis; entasis.sql('SELECT 1').fetchall()\n"
        "print(*(set(sys.modules) - before))"
    )
    assert "entasis._entasis" in new
    assert HEAVY.isdisjoint(new), HEAVY & set(new)


@pytest.mark.parametrize("name", entasis.__all__)
def test_each_name_is_there_whenever_it_is_imported(name):
    assert name in dir(entasis)
    assert run(f"from entasis import {name}; print({name} is not None)") == ["True"]


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nosuch'"):
        entasis.nosuch
    with pytest.raises(ImportError, match="nosuch"):
        exec("from entasis import nosuch")
