"""What of an invoice's time is the disk's, in virtual time: so it is a fact, and no measurement."""

from pathlib import Path

from simulation.box import Box
from simulation.drawn.events import MachinePart, Script
from simulation.drawn.script import NIMS
from simulation.history import logging_to, new_ledger, seeded
from simulation.storage.disk import simulated
from simulation.virtual_loop import VirtualLoop
from simulation.world import World
from support.shop import invoice

from daemon.usecases.certification.certify import certify
from simulator.machine.options import SimulatorOptions

THINK = 0.009
"""Seconds for each of the six commands of an invoice: about what a real line takes."""
FSYNC = 0.020


async def certified_in(world: World) -> float:
    """Seconds from a till's request to its answer, at a machine without other tills."""
    box = world.box
    await box.started()
    seat, began = world.serving(), box.loop.now
    body = invoice("F-1")
    await world.ask(certify(seat.worker, body, seat.call(body, "key")), seat)
    took = box.loop.now - began
    await box.stop(0.0)
    return took


def test_an_invoice_on_an_idle_machine_takes_its_line_time_and_one_commit(tmp_path: Path) -> None:
    """Decision 29: the intent's commit runs while C3h to 35h are on the line; only the outcome's is waited for."""
    script = Script(1, (MachinePart(SimulatorOptions(nim=NIMS[0]), "", THINK),), 0.0, synchronised=True, events=())
    loop = VirtualLoop(1)
    (tmp_path / "ledger").write_bytes(new_ledger())
    box = Box(script, loop, tmp_path)
    world = World(box, script.machines[0], "1")
    box.machines = [world]
    box.disk.moment = lambda: FSYNC / 2
    with seeded(1), logging_to(lambda: box), simulated(box.disk, box.process):
        took = loop.run_until_complete(certified_in(world))
        loop.close()
    assert round((took - 6 * THINK) / FSYNC, 3) == 1.0
