"""What goes wrong in an HTTP request, as `application/problem+json` has it (RFC 9457, decision 11): for box, relay and HAProxy alike."""

from __future__ import annotations


def problem_type(code: str) -> str:
    return "urn:mcfd:problem:" + code.lower().replace("_", "-")


def problem_content(status: int, code: str, title: str, detail: str, request_id: str) -> dict[str, str | int]:
    """`error` is `detail` again, for clients that are older than this document."""
    return {
        "type": problem_type(code),
        "title": title,
        "status": status,
        "detail": detail,
        "code": code,
        "error": detail,
        "request_id": request_id,
    }
