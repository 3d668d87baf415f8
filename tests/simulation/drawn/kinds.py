"""What may go wrong in a history, how often, and how its arguments are drawn."""

import random
from collections.abc import Callable

DAY = 86400.0


def _seconds(*choices: float) -> Callable[[random.Random], float]:
    return lambda draw: round(draw.choice(choices) * draw.random(), 3)


def _one(*choices: object) -> Callable[[random.Random], object]:
    return lambda draw: draw.choice(choices)


_How = dict[str, Callable[[random.Random], object]]
TROUBLES: dict[str, tuple[int, _How]] = {
    "kill": (12, {"seconds": _seconds(0.0, 2.0, 20.0)}),
    "cut_box": (8, {"seconds": _seconds(0.0, 2.0, 20.0)}),
    "stop": (8, {"seconds": _seconds(0.0, 2.0)}),
    "cut_all": (8, {"seconds": _seconds(1.0, 20.0)}),
    "cut_machine": (8, {"seconds": _seconds(0.0, 0.5, 10.0)}),
    "unplug": (10, {"seconds": _seconds(0.2, 2.0, 15.0)}),
    "lose_invoice": (4, {}),
    "disk": (16, {"what": _one("writes", "commits", "files", "stall"), "seconds": _seconds(0.5, 5.0, 30.0)}),
    "box_clock": (
        6,
        {"jump": _one(-7200.0, 7200.0, 40 * DAY, 3660 * DAY, -20000 * DAY), "seconds": _seconds(5.0, 60.0)},
    ),
    "machine_clock": (
        6,
        {"jump": _one(-7200.0, 7200.0, 40 * DAY, 3660 * DAY, -9000 * DAY), "seconds": _seconds(5.0, 60.0)},
    ),
    "foreign": (8, {"kind": _one("FV", "FA", "EV", "ZZ"), "total": _one(500, 15000)}),
    "activate": (7, {"resets": _one(True, False), "cuts": _one(True, False)}),
    "rates": (2, {}),
    "reload": (3, {}),
    "restore": (4, {"age": _seconds(2.0, 20.0), "vanishes": _one(False, False, True)}),
    "cancel": (3, {}),
    "look": (5, {}),
}
MORE: dict[str, _How] = {
    "daily_report": {},
    "fail_job": {},
    "box_clock": {"jump": _one(30.5 * DAY, 29.5 * DAY, -30.5 * DAY), "seconds": _seconds(5.0, 60.0)},
    "second_operator": {"seconds": _seconds(1.0, 10.0, 60.0)},
    "new_disk": {"age": _seconds(2.0, 20.0), "again": _one(True, False)},
}
WEIGHTS = [weight for weight, _ in TROUBLES.values()]
COPIES: dict[str, _How] = {
    "restore": TROUBLES["restore"][1],
    "new_disk": MORE["new_disk"],
    "restore_twice": {
        "age": _seconds(2.0, 20.0),
        "stays": _seconds(1.0, 10.0),
        "first": _one("own", "own", "another"),
        "then": _one("aside", "aside", "own"),
    },
}
LASTING = ("disk", "box_clock", "machine_clock")
