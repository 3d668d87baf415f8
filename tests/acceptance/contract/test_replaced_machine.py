"""A machine that was replaced: its NIM is no longer in the configuration, and its book outlives it (Y8)."""

from pathlib import Path

from support.shop import IFU, NIM, Machine, invoice, running_shop
from support.till import certified, problem

NEW = "EL02000016-1"


def test_the_book_of_a_replaced_machine_is_read_and_closed(tmp_path: Path) -> None:
    """Its keys read reports, closures, journal and receipts as before; nothing is certified any more; its open period is closed once, without its
    counters, and the Z says so. The new machine works meanwhile, and the box is ready."""
    new_folder = tmp_path / "new"
    new_folder.mkdir()
    old, new = Machine(tmp_path), Machine(new_folder, NEW, IFU)
    with running_shop(tmp_path, machines=(old,)) as shop:
        certified(shop.certify(invoice("A", 1000)))
        first = shop.closed()
        sale = certified(shop.certify(invoice("B", 2000), key="k"))
        shop.x_with(1)
        shop.stop_daemon()
        old.stop()
        shop.machines = (new,)
        shop.start()
        certified(shop.certify(invoice("C", 500), nim=NEW))
        assert [each["nim"] for each in shop.http.get("/health/ready").json()["machines"]] == [NEW]

        assert shop.get("reports/x").json()["total_ttc"] == 2000
        assert shop.get("reports/z/1").json() == first
        assert shop.get(f"certifications/{sale['codeSecef']}").status_code == 200
        again = shop.certify(invoice("B", 2000), key="k")
        assert (again.json()["codeSecef"], again.headers["idempotency-replayed"]) == (sale["codeSecef"], "true")
        problem_body = problem(shop.certify(invoice("D", 500)), 503, "BRIDGE_OFFLINE")
        assert "no longer in the configuration" in problem_body["detail"]

        answer = shop.close_period(key="z")
        assert answer.status_code == 201, answer.text
        closed = answer.json()
        assert (closed["z_number"], closed["total_ttc"], closed["without_machine"]) == (2, 2000, True)
        assert closed["mcf_counters"] == {name: sale[name] for name in ("tc", "fvc", "frc")}
        assert shop.close_period(key="z").content == answer.content
        assert "without_machine" not in first
        assert shop.get("reports/x").json()["total_ttc"] == 0
        paper = shop.mcfd("report", "z", "--nim", NIM)
        assert "Closed without the machine" in paper.stdout
        assert shop.close_period(nim=NEW).json()["z_number"] == 1
        assert shop.mcfd("verify").returncode == 0

        shop.stop_daemon()
        old.start()
        shop.machines = (old, new)
        shop.start_daemon()
        assert shop.closed()["z_number"] == 3
