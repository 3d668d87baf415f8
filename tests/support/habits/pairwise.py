"""Rows of values such that every pair of values of two parameters stands together in at least one of them."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

Row = dict[str, Any]
Pair = tuple[tuple[str, int], tuple[str, int]]


def pairwise(parameters: Mapping[str, Sequence[Any]]) -> list[Row]:
    """Greedy and the same at each call: a row begins with a pair that is still missing, and takes for each further parameter the
    value with which most missing pairs come together."""
    missing = set(all_pairs(parameters))
    rows = []
    while missing:
        row = dict(min(missing))
        for name, values in parameters.items():
            if name not in row:
                row[name] = max(range(len(values)), key=lambda at: (gain(row, (name, at), missing), -at))
        missing -= set(pairs_in(row))
        rows.append({name: parameters[name][at] for name, at in row.items()})
    return rows


def gain(row: Mapping[str, int], candidate: tuple[str, int], missing: set[Pair]) -> int:
    return sum(1 for chosen in row.items() if ordered(chosen, candidate) in missing)


def all_pairs(parameters: Mapping[str, Sequence[Any]]) -> Iterator[Pair]:
    for one, other in combinations(parameters, 2):
        for at in range(len(parameters[one])):
            for to in range(len(parameters[other])):
                yield ordered((one, at), (other, to))


def pairs_in(row: Mapping[str, int]) -> Iterator[Pair]:
    for one, other in combinations(row.items(), 2):
        yield ordered(one, other)


def ordered(one: tuple[str, int], other: tuple[str, int]) -> Pair:
    return (one, other) if one < other else (other, one)
