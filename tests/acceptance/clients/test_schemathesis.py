"""schemathesis against the OpenAPI document of the running daemon, in the sandbox, with a fixed seed."""

import json
import os
import subprocess
from collections import Counter
from pathlib import Path

import httpx
import pytest
from support import distinct_keys
from support.box.package import CACHE
from support.shop import BIN, NIM, Shop, invoice
from support.till import certified, fresh

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

SEED = 20260201
SECONDS = 800
"""What it may take at the most; on an idle box it is 15, at a load of 20 it was 230."""

LEFT_OUT = {
    "positive_data_acceptance": "that payments add up, or that an original exists, no schema can say",
    "ignored_auth": "after ten wrong keys in a minute the answer is 429 (test_contract_access shows both)",
    "missing_required_header": "the same",
}
STREAM = "/events$"
"""An answer without an end is not for this tool."""


def test_no_server_errors_and_no_answers_that_the_document_does_not_describe(shop: Shop, tmp_path: Path) -> None:
    """Examples, the corners of every schema, and random requests, good and bad, on every operation: statuses, content types, headers and
    bodies are as documented, what the schema forbids is refused, and the live machine hears nothing of it."""
    receipt = certified(shop.certify(invoice(fresh()), mode="test"))
    config = tmp_path / "schemathesis.toml"
    values = {"path.nim": NIM, "path.code": receipt["codeSecef"]}
    config.write_text(
        f"hooks = {json.dumps(distinct_keys.__file__)}\n[parameters]\n"
        + "".join(f"{json.dumps(k)} = {json.dumps(v)}\n" for k, v in values.items())
    )
    before = shop.machines[0].counters
    done = subprocess.run(
        [
            *(str(BIN / "schemathesis"), "--config-file", str(config), "run"),
            f"http://127.0.0.1:{shop.port}/schema/openapi.json",
            *("--header", f"Authorization: Bearer {shop.key('test')}"),
            *("--phases", "examples,coverage,fuzzing", "--max-examples", "5", "--seed", str(SEED)),
            *("--request-timeout", "120"),  # of the document too, on a busy machine
            *("--exclude-checks", ",".join(LEFT_OUT), "--exclude-path-regex", STREAM),
            *("--warnings", "off", "--no-color", "--generation-database", "none"),
        ],
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],  # all of it is looked through for proxies at each request
            "NETRC": "/nowhere",  # or it is sought in two places of somebody whom /etc/passwd knows, at each request too
            "HYPOTHESIS_STORAGE_DIRECTORY": str(CACHE / "hypothesis"),  # of Unicode, which it looks through otherwise
        },
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"seed {SEED}\n{done.stdout[-8000:]}{done.stderr[-2000:]}"
    assert shop.machines[0].counters == before
    seen = Counter((line["route"], line["status"]) for line in shop.events("request.answered"))
    certify = "/v1/mcf/{nim}/certify"
    assert seen[certify, httpx.codes.OK] > 10 * seen[certify, httpx.codes.CONFLICT]  # keys and numbers of their own
    assert ("/v1/mcf/{nim}/reports/z", httpx.codes.CREATED) in seen
    shop.verify()
