"""A whole till in Python 3.9 or newer, without any library: certify, retry, print, credit, close.

MCFD_URL=https://mcfd.local:8480 MCFD_KEY=ak_live_… MCFD_NIM=EL02000015-1 MCFD_CA=mcfd-ca.pem python till.py F-1001
Without MCFD_URL the box is looked for on the shop's network.
"""

import http.client
import json
import os
import re
import socket
import ssl
import sys
import time
import urllib.error
import urllib.request

FIXED = "https://mcfd.local:8480"  # where no box announces itself
CA = os.environ.get("MCFD_CA")  # the box's own authority: mcfd tls export-ca
TLS = ssl.create_default_context(cafile=CA) if CA else None
PATIENCE = 120  # seconds that the customer waits at the most
AGAIN = (408, 429, 502, 503, 504, 507)
# 502 and 503, but waiting does not help
FOR_A_PERSON = ("MACHINE_ATTENTION", "PAIR_NOT_COMPARED", "LEDGER_DAMAGED", "BOX_AMBIGUOUS", "BRIDGE_ERROR")


def find_box():
    """Address of the box, which announces itself as _mcfd._tcp (docs/network.md), by multicast DNS. Only its
    certificate proves its identity, so only https is safe."""
    question = bytes(5) + b"\1" + bytes(6) + b"\5_mcfd\4_tcp\5local\0\0\x0c\0\1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(1)
        for _ in range(3):
            try:
                sock.sendto(question, ("224.0.0.251", 5353))
                answer, (address, _) = sock.recvfrom(9000)
            except OSError:  # no answer, or no network
                continue
            service = re.search(rb"\x00\x21\x00\x01.{6}\x00{4}(..)", answer, re.DOTALL)  # SRV: its port
            if service:
                return f"https://{address}:{int.from_bytes(service[1], 'big')}"
    return FIXED


BASE = f"{os.environ.get('MCFD_URL') or find_box()}/v1/mcf/{os.environ['MCFD_NIM']}"


class Refused(Exception):
    """The request has to be corrected; repeating it is useless."""


def call(method, path, body=None, key=None):
    """Returns the answer as bytes. Repeats the request with the same key until there is one: it is certified at most
    once."""
    headers = {"Authorization": f"Bearer {os.environ['MCFD_KEY']}", "Accept-Language": "fr"}
    data = None
    if body is not None:
        data = json.dumps(body).encode()
        headers["Content-Type"] = "application/json"
    if key:
        headers["Idempotency-Key"] = key
    if path == "/certify" and os.environ.get("MCFD_TEST"):  # with a test key: docs/testing-your-till.md
        headers["Mcfd-Test"] = os.environ["MCFD_TEST"]
    deadline = time.monotonic() + PATIENCE
    while True:
        request = urllib.request.Request(BASE + path, data, headers, method=method)
        wait = 2
        try:
            try:
                with urllib.request.urlopen(request, timeout=PATIENCE, context=TLS) as answer:
                    return answer.read()
            except urllib.error.HTTPError as error:
                problem = dict(json.loads(error.read()))
                if error.code not in AGAIN or problem.get("code") in FOR_A_PERSON:
                    raise Refused(f"{problem.get('code')}: {problem.get('detail')}") from None
                wait = int(error.headers.get("Retry-After", wait))
        except (OSError, http.client.HTTPException, TypeError, ValueError):
            pass  # the box restarts, the cable is out, a proxy answers: nothing is known, so the same again
        if time.monotonic() + wait > deadline:
            raise TimeoutError("no answer yet; send the same invoice again with the same key")
        time.sleep(wait)


def certify(path, invoice):
    """`path` is /certify or /credit-note. The key contains the invoice's number: pressing the button again certifies
    nothing new."""
    receipt = json.loads(call("POST", path, invoice, key=f"till1-{invoice['invoiceNumber']}"))
    for warning in receipt["warnings"]:
        print("warning:", warning["message"], file=sys.stderr)
    return receipt


def main(number):
    sale = {
        "invoiceNumber": number,
        "invoiceType": "FV",
        "operatorId": "7",
        "operatorName": "Awa",
        "customer": {"clientType": "CC"},
        "items": [
            {"name": "Riz 25 kg", "code": "R25", "taxGroup": "B", "unitPrice": 15000, "quantity": 2},
            {"name": "Pain", "taxGroup": "A", "unitPrice": 150, "quantity": 4},
        ],
        "payments": [{"method": "E", "amount": 30000}, {"method": "M", "amount": 600}],
    }
    receipt = certify("/certify", sale)
    print("certified", number, receipt["codeSecef"], receipt["totalTtc"])
    print(call("GET", f"/certifications/{receipt['codeSecef']}/ticket?width=42").decode())

    credit = {
        "invoiceNumber": f"{number}-A",
        "invoiceType": "FA",
        "creditNoteNature": "RAM",
        "creditNoteRef": f"{receipt['nim']}-{receipt['fvc']}",
        "items": [sale["items"][1]],
        "payments": [{"method": "E", "amount": 600}],
    }
    print("credited", certify("/credit-note", credit)["codeSecef"])

    closure = json.loads(call("POST", "/reports/z", {}, key=f"z-after-{number}"))
    print("closed Z", closure["z_number"], closure["total_ttc"])


if __name__ == "__main__":
    main(sys.argv[1])
