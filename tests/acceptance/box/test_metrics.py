"""GET /metrics of a running daemon, who may see it, and the alert rules and the dashboard that use exactly its names."""

import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from support.shop import NIM, PLAIN, Shop, invoice, running_shop
from support.till import certified, fresh, problem
from support.tools import need

ROOT = Path(__file__).parents[3]
ALERTS = ROOT / "config/prometheus-alerts.yml"
DASHBOARD = ROOT / "config/grafana-dashboard.json"
NAME = re.compile(r"\bmcfd_\w+")
LIVE = {"nim": NIM, "mode": "live"}
UPSTREAM = {"kind": "https", "url": "http://127.0.0.1:9", "secret_file": "secret", "retry_max": 1.0}

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """With somebody upstream who never answers, a sale and its closure, and a ledger that was verified once."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "secret").write_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")
    with running_shop(folder, config={"upstream": UPSTREAM}) as shop:
        certified(shop.certify(invoice(fresh())))
        shop.close_period()
        shop.verify()
        yield shop


def scrape(shop: Shop, **options: Any) -> Series:
    answer = shop.http.get("/metrics", **options)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def value(series: Series, name: str, **labels: str) -> float | None:
    return series.get((name, frozenset(labels.items())))


def test_certifications_are_counted_by_their_outcome(shop: Shop) -> None:
    """With their times: two more certified, one more refused, and so many in the histograms."""
    before = scrape(shop)
    for _ in range(2):
        certified(shop.certify(invoice(fresh())))
    shop.machines[0].order("mode", mode="blocked")
    problem(shop.certify(invoice(fresh())), 422, "MACHINE_REFUSED")
    shop.machines[0].order("mode", mode="active")
    after = scrape(shop)

    def more(name: str, **labels: str) -> float:
        return (value(after, name, **LIVE, **labels) or 0) - (value(before, name, **LIVE, **labels) or 0)

    assert more("mcfd_certifications_total", outcome="certified") == 2
    assert more("mcfd_certifications_total", outcome="refused") == 1
    assert more("mcfd_certifications_total", outcome="abandoned") == 0
    for histogram in ("mcfd_line_seconds", "mcfd_certification_seconds"):
        assert more(f"{histogram}_count") == more(f"{histogram}_bucket", le="+Inf") == 2
        assert 0 < more(f"{histogram}_sum") < 10
    assert more("mcfd_line_exchanges_total") > 10
    assert (value(after, "mcfd_ledger_commits_total") or 0) - (value(before, "mcfd_ledger_commits_total") or 0) > 4


def test_the_machine_and_the_box(shop: Shop) -> None:
    """Whether it answers, its clock, the tax server, the outbox, the disk, the ledger and when it was found sound."""
    certified(shop.certify(invoice(fresh())))
    shop.close_period()
    series = scrape(shop)
    assert value(series, "mcfd_machine_connected", **LIVE) == 1
    assert value(series, "mcfd_machine_attention", **LIVE) == 0
    assert value(series, "mcfd_queue_length", **LIVE) == 0
    assert abs(value(series, "mcfd_clock_drift_seconds", **LIVE) or 0) < 60
    assert (value(series, "mcfd_tax_server_silence_seconds", **LIVE) or 0) < 600
    waiting = value(series, "mcfd_outbox_waiting", destination="upstream", **LIVE)
    assert waiting is not None
    assert waiting >= 1
    assert (value(series, "mcfd_outbox_oldest_seconds", destination="upstream", **LIVE) or 0) > 0
    assert value(series, "mcfd_outbox_parked", destination="upstream", **LIVE) == 0
    assert (value(series, "mcfd_disk_free_bytes") or 0) > 1e6
    assert (value(series, "mcfd_ledger_bytes") or 0) > 1e5
    assert time.time() - (value(series, "mcfd_verified_timestamp_seconds") or 0) < 600
    assert (value(series, "mcfd_process_resident_memory_bytes") or 0) > 1e7


def test_a_spoiled_line_shows(shop: Shop) -> None:
    """Frames sent again and garbage are counted, over every connection to the machine."""
    shop.machines[0].order("faults", spec="flip-reply=30%", seed=3)
    try:
        for _ in range(4):
            shop.certify(invoice(fresh()))
    finally:
        shop.machines[0].order("faults")
    series = scrape(shop)
    assert (value(series, "mcfd_line_retries_total", **LIVE) or 0) > 0
    assert (value(series, "mcfd_line_garbage_total", **LIVE) or 0) > 0


def test_no_secret_is_in_it(shop: Shop) -> None:
    """No key, no secret, no address of headquarters, no path; and of a sale no customer, number, article or code."""
    customer = {"clientType": "PM", "ifu": "00012345B", "name": "OUEDRAOGO & Fils", "address": "Secteur 4"}
    number = fresh()
    answer = shop.certify(invoice(number, customer=customer))
    assert answer.status_code == 200
    text = shop.http.get("/metrics").text
    secrets = (shop.key(), "whsec_", "127.0.0.1", str(shop.folder), str(shop.machines[0].link))
    sold = (number, answer.json()["codeSecef"], "OUEDRAOGO", "00012345B", "Secteur 4", "Article 0")
    for each in (*secrets, *sold):
        assert each not in text


def test_prometheus_itself_reads_it(shop: Shop) -> None:
    """Its own checker (of Debian's package prometheus) takes the exposition and the rules without a word."""
    need("promtool")
    for command, text in (
        (["promtool", "check", "metrics"], shop.http.get("/metrics").text),
        (["promtool", "check", "rules", str(ALERTS)], ""),
    ):
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "error" not in done.stderr


# -- who may see it ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lan(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Listens on every address of this box."""
    server = {"host": "0.0.0.0", "allow_plain_lan": True}  # noqa: S104  what comes from beyond loopback is what it is about
    with Shop(tmp_path_factory.mktemp("lan"), config={"server": server}) as shop:
        yield shop.start()


def outside() -> str:
    """An address of this box beside loopback."""
    addresses = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=True).stdout.split()
    found = [address for address in addresses if ":" not in address]
    if not found:
        pytest.skip("this box has no address beside loopback")
    return found[0]


def test_from_elsewhere_it_takes_a_key(lan: Shop) -> None:
    """And shows the book of that key, and the box; never another's sales."""
    url = f"http://{outside()}:{lan.port}/metrics"
    problem(httpx.get(url, timeout=60, verify=PLAIN), 401, "UNAUTHENTICATED")
    problem(
        httpx.get(url, headers={"Authorization": "Bearer ak_live_x"}, timeout=60, verify=PLAIN), 401, "UNAUTHENTICATED"
    )
    for mode, other in (("live", "test"), ("test", "live")):
        text = httpx.get(url, headers=lan.headers(mode), timeout=60, verify=PLAIN).text
        assert f'mode="{mode}"' in text
        assert f'mode="{other}"' not in text
        assert "mcfd_disk_free_bytes" in text
    assert 'mode="test"' in lan.http.get("/metrics").text


# -- alerts and dashboard ---------------------------------------------------------------------------------------------


def exposed(shop: Shop) -> set[str]:
    """Names of the families, and of the parts of histograms that are asked for."""
    return {name for name, _ in scrape(shop)}


def expressions() -> Iterator[tuple[str, str]]:
    """(where, PromQL) of every rule and panel."""
    for group in yaml.safe_load(ALERTS.read_text())["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]
    dashboard = json.loads(DASHBOARD.read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], variable["query"]["query"]


def test_alerts_and_dashboard_ask_for_what_there_is(shop: Shop) -> None:
    """No name in them that the daemon does not have: a renamed metric would silence its alert."""
    there = exposed(shop)
    unknown = {(where, name) for where, text in expressions() for name in NAME.findall(text) if name not in there}
    assert unknown == set()


def test_whatever_is_measured_can_be_seen(shop: Shop) -> None:
    """Every family is on the dashboard or in an alert, but for what the process library adds."""
    used = {name for _, text in expressions() for name in NAME.findall(text)}
    visible = {re.sub(r"_(?:bucket|sum|count)$", "", name) for name in used}
    families = {re.sub(r"_(?:bucket|sum|count)$", "", name) for name in exposed(shop)}
    assert {name for name in families if not name.startswith("mcfd_process_")} - visible == set()


def test_every_label_that_is_asked_for_exists(shop: Shop) -> None:
    """A misspelt label matches nothing, and no error says so."""
    labels = {name: dict(found).keys() for name, found in scrape(shop)}
    for where, text in expressions():
        for name, inside in re.findall(r"(mcfd_\w+)\{([^}]*)\}", text):
            queries = set(re.findall(r"(\w+)=", inside)) - {"instance"}
            assert queries <= set(labels[name]), (where, name)


def test_every_alert_says_what_to_do() -> None:
    """Name, severity, one line for the phone, and where to look."""
    rules = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules) >= 10
    for rule in rules:
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert "{{ $labels." in rule["annotations"]["summary"]
        assert len(rule["annotations"]["description"]) > 10
