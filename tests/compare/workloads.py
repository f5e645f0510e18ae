"""Workloads as the example `workloads` of the test kit prints them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field


@dataclass
class Query:
    sql: str
    #: True if the order of the rows is defined.
    ordered: bool


@dataclass
class Workload:
    seed: int
    setup: list[str] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)


def read(lines: Iterable[str]) -> Iterator[Workload]:
    """The workloads in `lines`, in order."""
    workload: Workload | None = None
    kind = ""
    for line in lines:
        line = line.rstrip("\n")
        if line.startswith("-- seed "):
            if workload is not None:
                yield workload
            workload = Workload(int(line.removeprefix("-- seed ")))
        elif line.startswith("-- "):
            kind = line.removeprefix("-- ")
        elif workload is None or kind not in ("setup", "query", "ordered query") or not line.endswith(";"):
            raise ValueError(f"not a workload: {line!r}")
        elif kind == "setup":
            workload.setup.append(line[:-1])
        else:
            workload.queries.append(Query(line[:-1], kind == "ordered query"))
    if workload is not None:
        yield workload
