"""`mcf-simulator`: a fiscal machine on a pseudo-terminal (interfaces.md; every option in docs/simulator.md)."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from simulator.control import Control
from simulator.faults import Plan
from simulator.hands import Hands
from simulator.host import Host
from simulator.machine import Machine
from simulator.options import MachineClock, Options
from simulator.pacing import Line
from simulator.register import Mode
from simulator.session import Session
from simulator.state_file import StateFile, StateFileError
from simulator.terminal import Terminal

_EXIT_UNUSABLE = 1


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        with contextlib.ExitStack() as stack:
            _serve(options, stack)
    except (OSError, StateFileError, ValueError) as error:
        print(f"mcf-simulator: {error}", file=sys.stderr)  # noqa: T201  # this is a command
        return _EXIT_UNUSABLE
    return 0


def _serve(options: argparse.Namespace, stack: contextlib.ExitStack) -> None:
    wakeup = stack.enter_context(_signals())
    clock = MachineClock()
    machine = Machine(_machine_options(options), clock)
    machine.mode = Mode(options.mode)
    state = StateFile(options.state) if options.state else None
    if state:
        stack.callback(state.close)
        state.load(machine)

    def keep() -> None:
        if state:
            state.keep(machine)

    plan = Plan(options.faults, options.seed)
    session = Session(machine, plan=plan, think=options.think_ms / 1000, keep=keep)
    hands = Hands(session, clock, now=time.monotonic, keep=keep, stop=_stop)
    control = Control(options.control, hands.obey) if options.control else None
    if control:
        stack.callback(control.close)
    terminal = Terminal(options.link)
    stack.callback(terminal.unplug)
    host = Host(session, terminal, Line(options.baud), wakeup=wakeup, control=control)
    keep()
    terminal.plug()
    print(f"ready {options.link}", flush=True)  # noqa: T201  # the line that scripts wait for
    host.run()


@contextlib.contextmanager
def _signals() -> Iterator[int]:
    """A descriptor that can be read once SIGTERM or SIGINT has come."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: None)
    try:
        yield reader
    finally:
        signal.set_wakeup_fd(-1)
        os.close(reader)
        os.close(writer)


def _stop() -> None:
    signal.raise_signal(signal.SIGTERM)


def _machine_options(options: argparse.Namespace) -> Options:
    return Options(
        nim=options.nim,
        ifu=options.ifu,
        test_mode=options.test_mode,
        credit_check=options.credit_check_ms / 1000,
        credit_style=options.credit_style,
        short_nim=options.short_nim,
        dashed_codes=options.dashed_codes,
        close_prefix=options.close_prefix,
        close_number=options.close_number,
        plain_taxpayer=options.plain_taxpayer,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mcf-simulator", description="A simulated fiscal machine (MCF) on a pseudo-terminal."
    )
    add = parser.add_argument
    add("--nim", default="EL02000015-1", help="machine number, with its suffix")
    add("--ifu", default="00084440Y", help="taxpayer number")
    add("--link", type=Path, required=True, metavar="PATH", help="where the port appears, as a link")
    add("--state", type=Path, metavar="FILE", help="keeps counters and last invoice across restarts")
    add("--baud", type=_natural, default=115_200, help="line speed; 0 does not pace (default 115200)")
    add("--think-ms", type=_duration, default=0.0, help="time every command takes")
    add("--test-mode", action="store_true", help="codes begin with TESTFACT")
    add("--mode", choices=[mode.value for mode in Mode], default=Mode.ACTIVE.value)
    _add_firmware(parser)
    add("--faults", default="", metavar="SPEC", help="what goes wrong, as spoil=3%% or drop-reply@38h#1")
    add("--seed", type=int, default=0, help="of the faults")
    add("--control", type=Path, metavar="PATH", help="UNIX socket that takes orders, a line of JSON each")
    return parser


def _add_firmware(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("firmware habits").add_argument
    add("--credit-check-ms", type=_duration, default=0.0, help="how long the tax server checks a credit note")
    add("--credit-style", choices=("pending", "silent", "syn"), default="pending", help="and what is heard meanwhile")
    add("--short-nim", action="store_true", help="NIM without its suffix")
    add("--dashed-codes", action="store_true", help="codes in groups with dashes")
    add("--close-prefix", action="store_true", help="R: before the answer to 38h")
    add("--close-number", action="store_true", help="the invoice number at the end of that answer")
    add("--plain-taxpayer", action="store_true", help="2Bh answers without I0,")


def _natural(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is below 0")
    return number


def _duration(text: str) -> float:
    number = float(text)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a time in milliseconds")
    return number


if __name__ == "__main__":
    sys.exit(main())
