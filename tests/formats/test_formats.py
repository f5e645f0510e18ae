"""Opens every database file stored here, and compares its contents with its text.

Each is opened twice, as a copy: first unchanged, and then after a checkpoint of this version.
"""

import gzip
import shutil
from pathlib import Path

import make
import pytest

import entasis

HERE = Path(__file__).parent
KEPT = sorted(path for kind in ("", ".gz") for path in HERE.glob(f"[0-9]*/*{make.DATA}{kind}"))


def copied(kept, directory):
    """A copy of a database file, with its log."""
    path = directory / kept.name.removesuffix(".gz")
    if kept.suffix == ".gz":
        path.write_bytes(gzip.decompress(kept.read_bytes()))
    else:
        shutil.copy(kept, path)
    for log in kept.parent.glob(f"*{make.LOG}.gz"):
        if log.name.startswith(path.stem + "."):
            (directory / log.name.removesuffix(".gz")).write_bytes(gzip.decompress(log.read_bytes()))
    return path


def name_of(kept):
    return kept.name.split(".")[0]


def expected(kept):
    return kept.with_name(name_of(kept) + make.TEXT).read_text()


def found(path, text):
    with entasis.connect(path) as connection:
        return make.text_of(connection, make.questions_of(text))


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: f"{path.parent.name}-{name_of(path)}")
def test_a_kept_file_holds_what_its_text_says(kept, tmp_path):
    assert found(copied(kept, tmp_path), expected(kept)) == expected(kept)


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: f"{path.parent.name}-{name_of(path)}")
def test_so_it_does_when_this_version_has_written_it(kept, tmp_path):
    path = copied(kept, tmp_path)
    with entasis.connect(path) as connection:
        connection.execute("CREATE TABLE one_more (a INTEGER)")
        connection.execute("INSERT INTO one_more VALUES (1)")
        connection.execute("CHECKPOINT")
    del connection
    assert found(path, expected(kept)) == expected(kept)


def test_kept_files_are_small():
    for path in HERE.glob("[0-9]*/*"):
        assert path.stat().st_size <= make.MOST, path


def test_what_make_writes_holds_what_it_says(tmp_path, monkeypatch):
    """The program that writes the files works, although it runs only once per version."""
    monkeypatch.setattr("sys.argv", ["make.py", str(tmp_path), "--most", "10000000"])
    make.main()
    for name in make.FILES:
        kept, text = tmp_path / f"{name}{make.DATA}", (tmp_path / f"{name}{make.TEXT}").read_text()
        (tmp_path / f"copy-{name}").mkdir()
        assert found(copied(kept, tmp_path / f"copy-{name}"), text) == text
        # The comparison can fail: a missing result is noticed.
        assert found(copied(kept, tmp_path / f"copy-{name}"), "SELECT 1\n    2\n") != "SELECT 1\n    2\n"
        assert "error: InternalError" not in text
