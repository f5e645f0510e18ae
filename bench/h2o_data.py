"""The tables of the h2o.ai database benchmark with its cardinalities: G1 with K = 100, and J1.

Of the keys of a join, nine tenths are on both sides, one tenth only on the left and one tenth only on the
right. The right sides have a row per key: a millionth as many as the left, a thousandth, and as many. Keys
come in no order.
"""

from generated import fraction, number, write

K = 100


def place_on_the_right(rows):
    """The place of key `x` of a right side: after nine tenths come those that the left does not have."""
    return f"CASE WHEN x < {rows * 9 // 10} THEN x ELSE x + {rows // 10} END"


def key(place, rows):
    """The key at a place: 1 to 1.1 times `rows`. The factor is a prime, so each key is at one place."""
    return f"(1 + ({place}) * 7919 % {rows * 11 // 10})"


def some_key(rows, salt, on_the_left=False):
    """Any key of a side of `rows` keys."""
    place = number(rows, salt)
    return key(place if on_the_left else place_on_the_right(rows).replace("x", place), rows)


def side(ids, value, rows, order=None):
    """A side of a join: the keys `ids` as numbers and again as texts, and a value."""
    numbers = ", ".join(f"CAST({sql} AS INTEGER) AS id{i}" for i, sql in ids.items())
    strings = ", ".join(f"'id' || id{i} AS id{i + 3}" for i in ids)
    names = ", ".join(f"id{i}" for i in ids)
    amount = f"round({fraction(1)} * 100, 6) AS {value}"
    shuffled = f" ORDER BY hash(x * 64 + {order})" if order else ""
    basis = f"SELECT {numbers}, {amount} FROM range({rows}) r(x){shuffled}"
    return f"SELECT {names}, {strings}, {value} FROM ({basis})"


def tables(rows):
    small, medium = max(10, rows // 1_000_000), max(10, rows // 1000)
    groups = (
        f"SELECT printf('id%03d', 1 + {number(K, 11)}) AS id1, printf('id%03d', 1 + {number(K, 12)}) AS id2,"
        f" printf('id%010d', 1 + {number(rows // K, 13)}) AS id3,"
        f" CAST(1 + {number(K, 14)} AS INTEGER) AS id4,"
        f" CAST(1 + {number(K, 15)} AS INTEGER) AS id5, CAST(1 + {number(rows // K, 16)} AS INTEGER) AS id6,"
        f" CAST(1 + {number(5, 17)} AS INTEGER) AS v1, CAST(1 + {number(15, 18)} AS INTEGER) AS v2,"
        f" round({fraction(19)} * 100, 6) AS v3 FROM range({rows}) r(x)"
    )
    left = {1: some_key(small, 21, True), 2: some_key(medium, 22, True), 3: key("x", rows)}
    of_small, of_medium, of_big = (key(place_on_the_right(size), size) for size in (small, medium, rows))
    return {
        "groups": groups,
        "left": side(left, "v1", rows, 28),
        "small": side({1: of_small}, "v2", small),
        "medium": side({1: some_key(small, 23), 2: of_medium}, "v2", medium, 24),
        "big": side({1: some_key(small, 25), 2: some_key(medium, 26), 3: of_big}, "v2", rows, 27),
    }


def generate(rows, out):
    return write(tables(rows), out)
