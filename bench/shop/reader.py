"""Somebody who reads the journal, in a process of their own: `python -m bench.shop.reader PORT PATH KEY`.

Ten pages of a hundred invoices a second, from the newest to the oldest and again. Ends with its stdin, and then tells how many pages were read.
"""

from __future__ import annotations

import json
import select
import sys
import urllib.request

from bench.shop.processor import behind_all

PAUSE = 0.1
"""Seconds between two pages."""


def main(port: str, path: str, key: str) -> None:
    behind_all()  # whoever reads sits somewhere else
    pages, cursor = 0, ""
    while not select.select([sys.stdin], [], [], PAUSE)[0]:
        address = f"http://127.0.0.1:{port}{path}/certifications?from=2000-01-01{cursor}"
        request = urllib.request.Request(address, headers={"Authorization": f"Bearer {key}"})
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            page = json.load(answer)
        cursor = f"&cursor={page['next']}" if page.get("next") else ""
        pages += 1
    print(pages, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:4])
