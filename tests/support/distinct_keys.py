"""A hook of schemathesis: each request that has an Idempotency-Key has one of its own, and each invoice a number. The tool takes the same for
all of them, and what follows the first is then the same answer again, or 409, whatever its body.

A request without the key that its operation asks for is not sent: it is taken, since a till that sends none is no reason to refuse an invoice."""

import itertools
import re
from typing import Any

import schemathesis

KEY, NUMBER = "Idempotency-Key", "invoiceNumber"
TAKEN = {KEY: re.compile(r"[ -~]{1,190}"), NUMBER: re.compile(r"[0-9A-Za-z-]{1,30}")}
_counted = itertools.count()


def distinct(argument: Any, name: str) -> Any:
    """With another value of that name; one that is refused stays what it is: that is what it is sent for."""
    value = argument.get(name)
    return (
        {**argument, name: f"{value}-{next(_counted)}"}
        if isinstance(value, str) and TAKEN[name].fullmatch(value)
        else argument
    )


@schemathesis.hook
def filter_case(_context: Any, case: Any) -> bool:
    query = any(parameter.name == KEY for parameter in case.operation.headers)
    return not query or KEY in (case.headers or {})


@schemathesis.hook
def before_call(_context: Any, case: Any, _kwargs: Any) -> None:
    if KEY in case.headers:
        case.headers[KEY] = distinct(case.headers, KEY)[KEY]
    if isinstance(case.body, dict):
        case.body = distinct(case.body, NUMBER)
