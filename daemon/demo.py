"""`make demo`: the simulated machine on a pseudo-terminal, the daemon on it, one invoice certified over HTTP."""

from __future__ import annotations

import asyncio
import json
import ssl
import sys

import httpx

from common.demo import Demo, DemoError
from daemon.demo_weeks import IFU, set_counters, write_weeks

NIM = "EL02000015-1"
PORT = 8480
PERSON = "awa"
PASSWORD = "demo-de-la-caisse"  # noqa: S105  printed for whoever looks at the demonstration
PATIENCE = 30.0
PLAIN = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For HTTP without TLS: the authorities of the world are not read."""

CONFIG = """\
[server]
host = "127.0.0.1"
port = {port}

[storage]
path = "{state}/mcfd.sqlite3"

[company]
name = "Alimentation Wend-Panga"
support = "Moussa, 70 00 00 00"

[reports]
aggregation_delay = 0.5

[[machine]]
nim = "{nim}"
port = "{state}/machine"
isf = "1"
operator_id = "1"
operator_name = "Caisse 1"
"""

INVOICE = {
    "invoiceNumber": "FV-2026-0001",
    "invoiceType": "FV",
    "operatorName": "Awa",
    "items": [
        {"name": "Riz 25 kg", "taxGroup": "B", "unitPrice": 15000, "quantity": 1},
        {"name": "Pain", "taxGroup": "A", "unitPrice": 150, "quantity": 4},
    ],
    "payments": [{"method": "E", "amount": 15600}],
}


def show(demo: Demo) -> None:
    base = _start(demo)
    live, test = _key(demo, "--label", "demo"), _key(demo, "--test", "--label", "demo sandbox")
    demo.print(f"live key {live}")
    demo.print(f"test key {test} (works on the built-in simulated machine: nothing counts)")
    headers = {"Authorization": f"Bearer {live}", "Idempotency-Key": "demo-1"}
    url = f"{base}/v1/mcf/{NIM}"
    with httpx.Client(timeout=40, headers=headers, verify=PLAIN) as client:
        certified = client.post(f"{url}/certify", json=INVOICE)
        if certified.is_error:
            raise DemoError(f"certify answered {certified.status_code}: {certified.text}")
        demo.print("certified. The receipt:")
        _print_receipt(certified.json())
        # Once the certification has entered it (decision 13).
        demo.wait(
            "the certification in the X report", lambda: bool(client.get(f"{url}/reports/x").json()["certs_count"])
        )
        report = client.get(f"{url}/reports/x").json()
    demo.print("the X report, after the aggregation delay:")
    sys.stdout.write(json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    body = json.dumps({**INVOICE, "invoiceNumber": "FV-2026-0002"}, ensure_ascii=False)
    demo.print("try:")
    sys.stdout.write(
        f"\ncurl -s {url}/certify \\\n  -H 'Authorization: Bearer {live}' \\\n"
        f"  -H 'Content-Type: application/json' -H 'Idempotency-Key: my-till-0002' \\\n  -d '{body}'\n\n"
    )
    demo.print(f"the API page: {base}/schema")
    demo.print(
        f"orders to the machine, as a cable that is pulled: {demo.folder / 'machine.control'} (docs/simulator.md)"
    )
    demo.print(f"the shop's page, with three weeks of sales: {base}/ui/ – name {PERSON}, password {PASSWORD}")


def _start(demo: Demo) -> str:
    """The machine and the daemon; the daemon's address."""
    demo.print("starting the simulated fiscal machine …")
    link = demo.folder / "machine"
    arguments = ("--nim", NIM, "--ifu", IFU, "--link", str(link), "--state", str(demo.folder / "machine.json"))
    control = demo.folder / "machine.control"
    demo.start("machine", "mcf-simulator", *arguments, "--control", str(control))
    demo.wait("the simulated machine", lambda: link.exists() and control.exists())
    demo.print("writing three weeks of sales …")
    set_counters(control, asyncio.run(write_weeks(demo.folder / "mcfd.sqlite3", NIM)))
    port = demo.free_port(PORT)
    demo.print("starting mcfd …")
    config = demo.folder / "mcfd.toml"
    config.write_text(CONFIG.format(port=port, state=demo.folder.resolve(), nim=NIM))
    demo.run(
        "mcfd",
        "users",
        "create",
        "--config",
        str(config),
        PERSON,
        "--role",
        "technician",
        "--password-stdin",
        stdin=PASSWORD,
    )
    demo.start("mcfd", "mcfd", "run", "--config", str(config))
    base = f"http://127.0.0.1:{port}"
    demo.wait("mcfd", lambda: _is_ready(base))
    return base


def _is_ready(base: str) -> bool:
    try:
        return httpx.get(f"{base}/health/ready", timeout=2, verify=PLAIN, trust_env=False).is_success
    except httpx.HTTPError:
        return False


def _key(demo: Demo, *extra: str) -> str:
    return demo.run("mcfd", "keys", "create", "--config", str(demo.folder / "mcfd.toml"), "--nim", NIM, *extra)


def _print_receipt(receipt: dict[str, object]) -> None:
    rows = (
        ("Facture / invoice", receipt["invoiceNumber"]),
        ("Total TTC", f"{receipt['totalTtc']} XOF"),
        ("NIM", receipt["nim"]),
        ("IFU", receipt["ifu"]),
        ("Code SECeF", receipt["codeSecef"]),
        ("Date", receipt["dateTime"]),
        ("Compteurs / counters", f"TC {receipt['tc']}  FVC {receipt['fvc']}  FRC {receipt['frc']}"),
        ("QR", receipt["qrContent"]),
    )
    for name, value in rows:
        sys.stdout.write(f"    {name:<22} {value}\n")


if __name__ == "__main__":
    sys.exit(Demo("demo", "mcfd on a simulated machine", show, PATIENCE).main())
