"""The test cases of the dossier, played through the HTTP API like a till (homologation procedure, 3.2 e v)."""

import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal

import httpx
import msgspec

from common.files import write_whole
from common.language import Text

HERE = Path(__file__).parent
RETRY_SECONDS: Final = 1.0
TEST_CODE: Final = "TESTFACT"

State = Literal["passed", "failed", "by hand"]


class CaseStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`send` is a method and a path below the machine's; `expect` has values of the answer by path
    (`taxDetails.0.tva`). `wait`: seconds to repeat the request until it matches; `later`: the till does not wait for
    the certification; `paper`: a document to store, beside the one of each certification."""

    send: str
    status: int
    body: str = ""
    expect: dict[str, Any] = {}
    warnings: list[str] = []
    contains: list[str] = []
    key: str = ""
    test: str = ""
    paper: str = ""
    wait: int = 0
    sandbox: bool = False
    later: bool = False


class HomologationCase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    clauses: list[str]
    title: str
    steps: list[CaseStep] = msgspec.field(name="step")


class CaseResult(msgspec.Struct, frozen=True):
    """`by hand`: only a person can show it on a machine in test mode; `detail`: the deviation from the expectation."""

    id: str
    clauses: list[str]
    title: str
    state: State
    detail: str = ""
    code: str = ""


class CannotPlay(Exception):
    """Nothing was sent; the text is the reason."""


class _CasesFile(msgspec.Struct, frozen=True):
    cases: list[HomologationCase] = msgspec.field(name="case")


def read_cases() -> list[HomologationCase]:
    return msgspec.convert(tomllib.loads((HERE / "cases.toml").read_text(encoding="utf-8")), _CasesFile).cases


class CasePlayer:
    """Plays the cases on one machine. `client` has the address `…/v1/mcf/{nim}/` and the key; `prefix` begins each
    invoice number, different for each run; documents go into `papers`, if given. A live machine must have proved test
    mode, or `is_test_mode` assumes it until its first code (CannotPlay)."""

    def __init__(
        self, client: httpx.Client, prefix: str, papers: Path | None = None, *, is_test_mode: bool = False
    ) -> None:
        self.client = client
        self.papers = papers
        self.answers: dict[str, Any] = {}
        self.words = {"N": prefix, "jour": time.strftime("%Y-%m-%d")}
        self.is_sandbox = self._check_machine(is_test_mode=is_test_mode)

    def _check_machine(self, *, is_test_mode: bool) -> bool:
        answer = self.client.get("info")
        if answer.is_error:
            raise CannotPlay(Text("the machine cannot be read: {why}", why=answer.json().get("detail", answer.text)))
        info = answer.json()
        if info["mode"] == "live" and not (info["testMode"] or is_test_mode):
            raise CannotPlay(
                Text(
                    "this machine has not shown that it is in test mode: what it certifies may count (--machine-in-test-mode if you know that it is)"
                )
            )
        return bool(info["mode"] == "test")

    def play(self, cases: list[HomologationCase]) -> Iterator[CaseResult]:
        for case in cases:
            state, detail = self._case(case)
            code = self.answers.get(case.id, {}).get("codeSecef", "")
            yield CaseResult(case.id, case.clauses, case.title, state, detail, code)

    def _case(self, case: HomologationCase) -> tuple[State, str]:
        for step in case.steps:
            if step.sandbox and not self.is_sandbox:
                return "by hand", ""
            deadline = time.monotonic() + step.wait
            while fault := self._step(case, step):
                if time.monotonic() >= deadline:
                    return "failed", fault
                time.sleep(RETRY_SECONDS)
        return "passed", ""

    def _step(self, case: HomologationCase, step: CaseStep) -> str:
        answer = self._send(case, step)
        is_json = answer.headers.get("content-type", "").partition(";")[0].endswith("json")
        body = answer.json() if is_json else {}
        if answer.status_code != step.status:
            return f"{answer.status_code}, attendu {step.status} : {body.get('detail', answer.text[:200])}"
        for path, value in step.expect.items():
            wanted = self._filled(value) if isinstance(value, str) else value
            if (found := _value(body, path)) != wanted:
                return f"{path} : {found!r}, attendu {wanted!r}"
        codes = [warning["code"] for warning in body.get("warnings", ())]
        if missing := [code for code in step.warnings if code not in codes]:
            return f"avertissements {codes}, sans {missing}"
        if absent := [text for text in map(self._filled, step.contains) if text not in answer.text]:
            return f"sans {absent}"
        if answer.is_success:
            if not body.get("codeSecef", TEST_CODE).startswith(TEST_CODE):
                number = body["invoiceNumber"]
                raise CannotPlay(
                    Text("this machine is not in test mode: it has certified {number}, to be credited", number=number)
                )
            self.answers.setdefault(case.id, body)
            self._keep_paper(case, step, body)
        return ""

    def _send(self, case: HomologationCase, step: CaseStep) -> httpx.Response:
        method, _, path = step.send.partition(" ")
        headers = {}
        if method == "POST":
            headers = {
                "Content-Type": "application/json",
                "Idempotency-Key": self._filled(step.key or f"{{N}}-{case.id}-{step.send}"),
            }
            if step.test:
                headers["Mcfd-Test"] = step.test
            if step.later:
                headers["Prefer"] = "respond-async"
        content = self._filled(step.body or "{}").encode() if method == "POST" else None
        return self.client.request(method, self._filled(path), content=content, headers=headers)

    def _filled(self, text: str) -> str:
        for name, value in self.words.items():
            text = text.replace(f"{{{name}}}", value)
        for case, answer in self.answers.items():
            text = text.replace(f"{{code:{case}}}", str(answer.get("codeSecef", "")))
            text = text.replace(f"{{ref:{case}}}", f"{answer.get('nim', '')}-{answer.get('fvc', '')}")
            text = text.replace(f"{{z:{case}}}", str(answer.get("z_number", "")))
            text = text.replace(f"{{mois:{case}}}", str(answer.get("certifiedAt", ""))[:7])
            text = text.replace(f"{{an:{case}}}", str(answer.get("certifiedAt", ""))[:4])
        return text

    def _keep_paper(self, case: HomologationCase, step: CaseStep, body: Any) -> None:
        place = step.paper or (f"certifications/{body['codeSecef']}" if "codeSecef" in body else "")
        if self.papers is None or not place:
            return
        document = self.client.get(
            f"{self._filled(place)}/ticket", params={"format": "pdf", "lang": "fr"}
        ).raise_for_status()
        write_whole(self.papers / f"{case.id}.pdf", document.content, 0o644)


def _value(body: Any, path: str) -> Any:
    for part in path.split("."):
        try:
            body = body[int(part)] if isinstance(body, list) else body[part]
        except (KeyError, IndexError, TypeError, ValueError):
            return None
    return body
