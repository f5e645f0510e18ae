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
