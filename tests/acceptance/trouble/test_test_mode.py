"""A machine that is in test mode behind a live key, as those see it who watch the box."""

from __future__ import annotations

from pathlib import Path

from support.shop import NIM, Machine, Shop, invoice, running_shop


def test_readiness_says_that_a_machine_in_test_mode_certifies_nothing(tmp_path: Path) -> None:
    """503 with the reason, before and after a restart; 200 where the configuration allows test mode."""
    with running_shop(tmp_path, machines=(Machine(tmp_path, NIM, "00084440Y", "--test-mode"),)) as shop:
        assert shop.certify(invoice("F-1")).json()["codeSecef"].startswith("TESTFACT")
        _assert_refused(shop)
        shop.stop_daemon()
        shop.start_daemon(ready=False)
        _assert_refused(shop)
        shop.stop_daemon()
        shop.more_config = "test_mode = true\n"  # in the last section, which is the machine's
        shop.start_daemon()
        (machine,) = shop.http.get("/health/ready").json()["machines"]
        assert (machine["attention"], machine["testMode"]) == ("", True)


def _assert_refused(shop: Shop) -> None:
    answer = shop.http.get("/health/ready")
    assert answer.status_code == 503
    (machine,) = answer.json()["machines"]
    assert machine["ready"] is False
    assert machine["testMode"] is True
    assert "TESTFACT" in machine["attention"]
    refused = shop.certify(invoice("F-2"))
    assert (refused.status_code, refused.json()["code"]) == (503, "MACHINE_ATTENTION")
