"""`mcf-simulator`: a fiscal machine on a pseudo-terminal (docs/simulator.md)."""

import argparse
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from bridge.recording.recording import read
from simulator.control import Control, Operator
from simulator.line.faults import KINDS, FaultPlan
from simulator.line.replay import Replay
from simulator.line.session import LineSession
from simulator.machine.machine import SimulatedMachine
from simulator.machine.options import FirmwareHabits, MachineClock, SimulatorOptions
from simulator.machine.working_state import Mode
from simulator.process.host import Host, PacedLine, StateFile, StateFileError, Terminal

_EXIT_UNUSABLE = 1
_MS = 1000


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
    if options.replay:
        _play(_replay(options), options, wakeup, stack)
        return
    clock = MachineClock()
    machine = SimulatedMachine(_machine_options(options), clock)
    machine.mode = Mode(options.mode)
    state = StateFile(options.state) if options.state else None
    if state:
        stack.callback(state.close)
        state.load(machine)

    def keep() -> None:
        if state:
            state.keep(machine)

    plan = FaultPlan(options.faults, options.seed)
    session = LineSession(machine, plan=plan, think=options.think_ms / 1000, keep=keep)
    operator = Operator(session=session, clock=clock, now=time.monotonic, keep=keep, stop=_stop)
    control = Control(options.control, operator.obey) if options.control else None
    if control:
        stack.callback(control.close)
    keep()
    _play(session, options, wakeup, stack, control)


def _play(
    session: LineSession | Replay,
    options: argparse.Namespace,
    wakeup: int,
    stack: contextlib.ExitStack,
    control: Control | None = None,
) -> None:
    """Runs until the stop."""
    terminal = Terminal(options.link, options.baud if options.strict_baud else 0)
    stack.callback(terminal.unplug)
    host = Host(session, terminal, PacedLine(options.baud), wakeup=wakeup, control=control)
    terminal.plug()
    print(f"ready {options.link}", flush=True)  # noqa: T201  # the line that scripts wait for
    host.run()


def _replay(options: argparse.Namespace) -> Replay:
    if options.state or options.control or options.faults:
        raise ValueError("--replay has nothing to do with --state, --control and --faults")
    return Replay(read(options.replay.read_text("utf-8", "replace")), _tell)


def _tell(difference: str) -> None:
    print(f"mcf-simulator: {difference}", file=sys.stderr, flush=True)  # noqa: T201  # this is a command


@contextlib.contextmanager
def _signals() -> Iterator[int]:
    """A descriptor that becomes readable at SIGTERM or SIGINT."""
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


def _machine_options(options: argparse.Namespace) -> SimulatorOptions:
    named = {name: getattr(options, name) for name in ("nim", "ifu", "test_mode", "credit_style")}
    return SimulatorOptions(**named, credit_check=options.credit_check_ms / 1000, **read_habits(options))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mcf-simulator",
        description="A simulated fiscal machine (MCF) on a pseudo-terminal.",
        epilog=_describe_faults(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--nim", default="EL02000015-1", help="machine number, with its suffix")
    add("--ifu", default="00084440Y", help="taxpayer number")
    add("--link", type=Path, required=True, metavar="PATH", help="where the port appears, as a link")
    add(
        "--state",
        type=Path,
        metavar="FILE",
        help="counters and last invoice, durable before an answer; FILE.log: the invoices, a line of JSON each",
    )
    add("--baud", type=_natural, default=115_200, help="line speed; 0 does not pace (default 115200)")
    add("--strict-baud", action="store_true", help="a client at another speed hears and sends rubbish")
    add("--think-ms", type=_duration, default=0.0, help="time every command takes; above 100 with SYN every 100 ms")
    add("--test-mode", action="store_true", help="codes begin with TESTFACT")
    add("--mode", choices=[mode.value for mode in Mode], default=Mode.ACTIVE.value, help="what it begins as")
    _add_firmware(parser)
    add(
        "--faults",
        default="",
        metavar="SPEC",
        help="what goes wrong, as spoil=3%% or drop-reply@38h#1; the kinds are below",
    )
    add("--seed", type=int, default=0, help="of the faults")
    add(
        "--replay",
        type=Path,
        metavar="FILE",
        help="plays the machine's side of a recording instead (docs/simulator.md)",
    )
    add("--control", type=Path, metavar="PATH", help="UNIX socket that takes orders, a line of JSON each")
    return parser


def _describe_faults() -> str:
    """Each kind with the default of its ARG, one per line."""
    named = {f"{kind}:{fault.default}" if fault.default else kind: fault.means for kind, fault in KINDS.items()}
    width = max(map(len, named))
    return "faults (docs/simulator.md):\n" + "\n".join(f"  {name:{width}}  {means}" for name, means in named.items())


def _add_firmware(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("firmware habits").add_argument
    add("--credit-check-ms", type=_duration, default=0.0, help="how long the tax server checks a credit note")
    add(
        "--credit-style",
        choices=("pending", "silent", "syn"),
        default="pending",
        help="38h is answered P: meanwhile, not at all, or with SYN",
    )
    add_habits(add)


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


def add_habits(add: Callable[..., object]) -> None:
    for field in msgspec.structs.fields(FirmwareHabits):
        info = inspect.type_info(field.type)
        if not isinstance(info, inspect.Metadata) or info.extra is None:
            raise TypeError(f"{field.name} says nothing of itself")
        flag, means = _flag(field.name, info.extra["unit"]), (info.extra_json_schema or {}).get("description", "")
        means = str(means).replace("%", "%%")
        if isinstance(info.type, inspect.BoolType):
            add(flag, action="store_true", help=means)
        elif isinstance(info.type, inspect.LiteralType):
            add(flag, choices=info.type.values, default=field.default, help=f"{means} (default {field.default})")
        else:
            kind = int if isinstance(info.type, inspect.IntType) else float
            add(flag, type=kind, default=field.default, metavar=info.extra["unit"].upper() or "N", help=means)


def read_habits(options: argparse.Namespace) -> dict[str, Any]:
    """Arguments of SimulatorOptions."""
    return {field.name: _value(options, field) for field in msgspec.structs.fields(FirmwareHabits)}


def _value(options: argparse.Namespace, field: msgspec.structs.FieldInfo) -> object:
    milliseconds = getattr(options, f"{field.name}_ms", None)
    return getattr(options, field.name) if milliseconds is None else milliseconds / _MS


def _flag(name: str, unit: str) -> str:
    flag = "--" + name.replace("_", "-")
    return f"{flag}-ms" if unit == "ms" else flag


if __name__ == "__main__":
    sys.exit(main())
