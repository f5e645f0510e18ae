import pathlib

import pytest

import entasis


@pytest.fixture
def con():
    with entasis.connect() as connection:
        yield connection


@pytest.fixture(scope="session")
def flights():
    """The directory of the flight data."""
    return pathlib.Path(__file__).parents[3] / "data" / "flights"
