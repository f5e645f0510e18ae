"""The stub names all of the compiled module, and nothing else; everything public says what it does."""

import ast
import inspect
import pathlib

import pytest

import entasis
from entasis import _entasis

STUB = pathlib.Path(entasis.__file__).with_name("_entasis.pyi")


def declared(body):
    """The names that statements of the stub declare, and the nodes of functions and classes."""
    found = {}
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = node
        elif isinstance(node, ast.AnnAssign):
            found[node.target.id] = None
    return found


MODULE = declared(ast.parse(STUB.read_text()).body)
CLASSES = [name for name, node in MODULE.items() if isinstance(node, ast.ClassDef)]


def public(names):
    return {name for name in names if not name.startswith("_")}


def test_the_stub_has_the_names_of_the_module():
    assert public(MODULE) == public(vars(_entasis))
    assert "__version__" in MODULE


@pytest.mark.parametrize("name", CLASSES)
def test_the_stub_has_the_attributes_of_a_class(name):
    cls = getattr(_entasis, name)
    stub = declared(MODULE[name].body)
    assert public(stub) == public(vars(cls))
    special = {name for name in stub if name.startswith("_")} - {"__new__", "__init__"}
    assert special <= set(vars(cls)), special
    for method, node in stub.items():
        if not isinstance(node, ast.FunctionDef) or method.startswith("__") or node.decorator_list:
            continue
        parameters = list(inspect.signature(getattr(cls, method)).parameters)
        own = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        assert parameters == own, method


def test_all_that_is_public_is_described():
    for name in entasis.__all__:
        value = getattr(entasis, name)
        if not inspect.isclass(value) and not inspect.isfunction(value):
            continue
        assert value.__doc__, name
        if inspect.isclass(value) and value.__module__.startswith("entasis") and not issubclass(value, BaseException):
            for attribute in public(vars(value)):
                member = getattr(value, attribute)
                assert inspect.isclass(member) or member.__doc__, f"{name}.{attribute}"


def test_the_package_needs_no_other(tmp_path):
    import subprocess
    import sys

    program = """
import sys
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("numpy", "pandas", "polars", "pyarrow", "IPython"):
            raise ImportError(name)
sys.meta_path.insert(0, Nothing())
import entasis
con = entasis.connect()
assert con.sql("SELECT ? AS a", [[1, 2]]).rows(named=True) == [{"a": [1, 2]}]
assert con.table("range(3)") is not None and con.query("SELECT 1").fetchval() == 1
rows = [{"a": 1}]
for call in [lambda: con.sql("SELECT 1").fetchnumpy(), lambda: con.sql("SELECT 1").df(), lambda: con.sql("FROM rows"),
             lambda: con.stream("SELECT 1").fetch_record_batch()]:
    try:
        call()
    except entasis.NotSupportedError as error:
        assert "needs the package" in str(error), error
    else:
        raise AssertionError("nothing was missing")
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_mypy_has_nothing_to_say(tmp_path):
    api = pytest.importorskip("mypy.api")
    (tmp_path / "use.py").write_text(
        "import entasis\n"
        "con: entasis.Connection = entasis.connect(threads=2, settings={'timezone': 'UTC'})\n"
        "with con.transaction() as same:\n"
        "    reveal_type(same)\n"
        "n: int = con.retry(lambda c: c.execute('SELECT 1').rowcount)\n"
        "names: list[str] = con.table('t').filter('a > ?', [1]).columns\n"
        "try:\n"
        "    con.execute('SELECT 1', timeout=3).fetchone()\n"
        "except entasis.Error as error:\n"
        "    print(error.hint, error.line)\n"
        "entasis.connect(thread=2)\n"
    )
    arguments = ["--strict", "--cache-dir", str(tmp_path), str(tmp_path / "use.py")]
    out, err, _ = api.run(arguments)
    lines = [line for line in out.splitlines() if "use.py" in line]
    assert 'Revealed type is "entasis._connection.Connection"' in lines[0], out + err
    assert "thread" in lines[1] and len([line for line in lines if "error" in line]) == 1, out + err
