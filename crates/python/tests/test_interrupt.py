"""A running statement can be stopped, and other Python threads go on while it runs."""

import os
import signal
import threading
import time

import pyarrow
import pytest

import entasis

SLOW = "SELECT count(*) FROM numbers a CROSS JOIN numbers b CROSS JOIN numbers c WHERE a.i + b.i + c.i = -1"
numbers = pyarrow.table({"i": pyarrow.array(range(20_000))})


def after(seconds, action):
    timer = threading.Timer(seconds, action)
    timer.start()
    return timer


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_stops_a_statement(con):
    sent = []
    # It is ignored if a shell runs the tests in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def press():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    after(0.3, press)
    with pytest.raises(KeyboardInterrupt):
        con.sql(SLOW)
    assert time.monotonic() - sent[0] < 0.5
    assert con.sql("SELECT 1").fetchone() == (1,)


def test_another_thread_stops_a_statement(con):
    after(0.3, con.interrupt)
    with pytest.raises(entasis.OperationalError, match="cancelled"):
        con.sql(SLOW)
    assert con.sql("SELECT 1").fetchone() == (1,)


ROWS = 300_000
LONG_TEXTS = {
    "INSERT": lambda: (
        "INSERT INTO long_text VALUES " + ", ".join(f"({i}, 'a{i}', {i}.5)" for i in range(ROWS))
    ),
    "VALUES": lambda: (
        "SELECT max(b) FROM (VALUES "
        + ", ".join(f"({i}, 'a{i}', {i}.5)" for i in range(ROWS))
        + ") v(a, b, c)"
    ),
    "IN": lambda: (
        "SELECT count(*) FROM range(10) r(i) WHERE i IN (" + ", ".join(str(7 * i) for i in range(ROWS)) + ")"
    ),
    "UNION ALL": lambda: "SELECT 0 i" + "".join(f" UNION ALL SELECT {i}" for i in range(20_000)),
    "script": lambda: "".join(f"SELECT {i}, 'a{i}' WHERE {i} > 1;" for i in range(50_000)),
}


@pytest.mark.parametrize("kind", LONG_TEXTS)
def test_a_statement_with_a_long_text_is_stopped_wherever_it_is(con, kind):
    con.execute("CREATE TABLE long_text (a BIGINT, b VARCHAR, c DOUBLE)")
    sql = LONG_TEXTS[kind]()
    sent = []

    def stop():
        sent.append(time.monotonic())
        con.interrupt()

    stopped = 0
    # While it is parsed, bound, run and freed.
    for delay in (0.005, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6):
        timer = after(delay, stop)
        try:
            con.execute(sql)
        except entasis.OperationalError as error:
            assert time.monotonic() - sent[-1] < 0.5
            assert "cancelled" in str(error)
            stopped += 1
        timer.cancel()
        timer.join()
    assert stopped > 0
    # All rows of a statement are there, or none.
    assert con.execute("SELECT count(*) FROM long_text").fetchval() % ROWS == 0


def test_other_threads_run_meanwhile(con):
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.wait(0.01):
            ticks.append(1)

    thread = threading.Thread(target=tick)
    thread.start()
    after(0.5, con.interrupt)
    with pytest.raises(entasis.OperationalError):
        con.sql(SLOW)
    stop.set()
    thread.join()
    assert len(ticks) > 10


def test_a_fetch_lets_others_run_and_can_be_interrupted():
    connection = entasis.connect()
    cursor = connection.execute("SELECT range, range + 1 FROM range(1000000)")
    begun = threading.Event()
    seen = []

    def other():
        begun.wait()
        # This thread gets on only if the fetch lets it.
        seen.append(sum(range(1000)))
        connection.interrupt()

    thread = threading.Thread(target=other)
    thread.start()
    begun.set()
    with pytest.raises(entasis.OperationalError, match="cancelled|interrupted"):
        cursor.fetchall()
    thread.join()
    assert seen == [499500]
    # Nothing is lost: the rows are fetched from where that fetch began.
    rows = cursor.fetchall()
    assert len(rows) == 1000000 and rows[0] == (0, 1)


def test_a_thread_that_sleeps_runs_while_rows_are_fetched():
    cursor = entasis.connect().execute("SELECT range, range + 1, range + 2 FROM range(2000000)")
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            time.sleep(0.005)
            ticks.append(len(ticks))

    thread = threading.Thread(target=tick)
    thread.start()
    assert len(cursor.fetchall()) == 2000000
    seen = len(ticks)
    done.set()
    thread.join()
    # The fetch takes half a second or more.
    assert seen > 8


def test_an_interrupt_before_a_fetch_does_not_stop_it():
    connection = entasis.connect()
    cursor = connection.execute("SELECT range FROM range(20000)")
    connection.interrupt()
    assert len(cursor.fetchall()) == 20000


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_signal_ends_a_fetch():
    cursor = entasis.connect().execute("SELECT range, range + 1 FROM range(3000000)")
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(KeyboardInterrupt):
            cursor.fetchall()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    # It ended the fetch, rather than what came behind.
    assert cursor.fetchone() == (0, 1)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_signal_ends_the_wait_for_a_stream(con):
    slow = con.stream("SELECT count(*) FROM range(100000) a(i), range(100000) b(j), range(1000) c(k) WHERE i + j + k = -1")
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    began = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            slow.fetchone()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - began < 5
    assert con.execute("SELECT 1").fetchval() == 1


def test_a_relation_is_interrupted_too():
    connection = entasis.connect()
    relation = connection.sql("SELECT range FROM range(1000000)")
    thread = threading.Thread(target=connection.interrupt)
    thread.start()
    # Whether it comes before or meanwhile, all rows are there afterwards.
    try:
        rows = relation.fetchall()
    except entasis.OperationalError:
        rows = relation.fetchall()
    thread.join()
    assert len(rows) == 1000000


def test_python_objects_are_converted_piece_by_piece(con):
    pandas = pytest.importorskip("pandas")
    from entasis import _frames

    rows = 3 * _frames._PIECE + 5
    columns = {
        "text": ["some text"] * rows,
        "late": [None] * (2 * _frames._PIECE) + ["x"] * (rows - 2 * _frames._PIECE),
        "none": [None] * rows,
        "mixed": [1] * _frames._PIECE + ["x"] * (rows - _frames._PIECE),
        "bytes": [b"b", None] * (rows // 2) + [b"c"] * (rows % 2),
    }
    frame = pandas.DataFrame({name: pandas.Series(values, dtype=object) for name, values in columns.items()})
    frame.insert(1, "number", range(rows))
    looks = []
    table = _frames.from_pandas(frame, lambda: looks.append(1))
    assert len(looks) >= 5 * rows // _frames._PIECE
    assert table.column_names == list(frame.columns)
    for name, values in columns.items():
        expected = [value if value is None or name != "mixed" else str(value) for value in values]
        assert table[name].to_pylist() == expected, name
    assert con.execute("SELECT count(text), count(late), sum(number) FROM frame").fetchone() == (
        rows,
        rows - 2 * _frames._PIECE,
        rows * (rows - 1) // 2,
    )

    def stop():
        if len(looks) == 7:
            raise KeyboardInterrupt
        looks.append(1)

    looks.clear()
    with pytest.raises(KeyboardInterrupt):
        _frames.from_pandas(frame, stop)


def test_an_interrupt_stops_the_conversion_of_python_objects(con):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": pandas.Series(["some text"] * 3_000_000, dtype=object)})
    after(0.02, con.interrupt)
    with pytest.raises(entasis.OperationalError, match="cancelled"):
        while True:
            con.execute("SELECT count(*) FROM frame WHERE a LIKE '%no%'")
    assert con.execute("SELECT count(*) FROM (SELECT * FROM frame LIMIT 3)").fetchone() == (3,)


def test_a_thread_that_asks_a_cursor_does_not_hold_up_its_fetch(con):
    # UUIDs are made by Python's own code, which lets other threads run.
    cursor = con.execute("SELECT gen_random_uuid() FROM range(30000)")
    done = threading.Event()

    def fetch():
        cursor.fetchall()
        done.set()

    thread = threading.Thread(target=fetch, daemon=True)
    thread.start()
    end = time.monotonic() + 60
    while not done.is_set() and time.monotonic() < end:
        assert cursor.rowcount >= -1
    assert done.is_set()
