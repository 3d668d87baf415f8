"""HAProxy's configuration as text, for version 2.6 (Debian 12) and later."""

import json
import os
import shutil
from http import HTTPStatus
from pathlib import Path
from typing import Final

import msgspec

from common.problems import problem_content

STRONG: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Ciphers of TLS 1.2 with forward secrecy and authenticated encryption; all of TLS 1.3 have both."""
SESSIONS: Final = 1000
"""TLS sessions that can be resumed; HAProxy's default of 20 000 takes 5 MB. A client of TLS 1.3 keeps its own."""
SBIN: Final = "/usr/local/sbin:/usr/sbin:/sbin"
TRUSTED_HEADER: Final = b"mcfd-known"
"""Header of an answer to a client with a valid key; HAProxy removes it."""

ERRORS: Final = {
    400: ("BAD_REQUEST", "The request cannot be read", "this cannot be read as HTTP, or its headers are too large"),
    408: ("REQUEST_TIMEOUT", "The request took too long to arrive", "the request did not arrive in time; nothing was done"),
    429: ("TOO_MANY_REQUESTS", "Too many requests", "too many requests without a valid key from this address"),
    502: ("BAD_GATEWAY", "The server ended", "the server ended before its answer; send the same request again with the same key"),
    503: ("UNAVAILABLE", "The server is not ready", "the server is starting or stopping; nothing was done"),
    504: ("GATEWAY_TIMEOUT", "The server did not answer", "there was no answer in time; send the same request again with the same key"),
}  # fmt: skip
"""HAProxy's own answers, as problems (decision 11); before a complete request head it uses its own texts."""

_TRUSTED_ADDRESSES: Final = """\
backend known
    stick-table type ipv6 size {addresses} expire {trust_seconds}s store gpt0,http_req_rate(10s),http_err_rate(10s)
"""

_PLAIN: Final = """\
backend plain
    mode tcp
    timeout server 15m
    server plain unix@{folder}/plain.sock send-proxy-v2

frontend redirection
    bind unix@{folder}/plain.sock mode 600 accept-proxy
    http-request redirect scheme https code 308
"""

_HTTP: Final = """\
frontend requests
    {inner}
    option http-ignore-probes
    http-request track-sc0 src table known if {{ src fe80::/10 }}
    http-request track-sc0 src,ipmask(32,64) table known
    http-request deny deny_status 429 if {{ sc0_get_gpt0 eq 0 }} {{ sc0_http_req_rate gt {unknown_requests} }}
    http-request deny deny_status 429 if {{ sc0_get_gpt0 eq 0 }} {{ sc0_http_err_rate gt {unknown_errors} }}
    http-request deny deny_status 400 if HTTP_1.1 !{{ req.hdr(host) -m found }}
    http-request wait-for-body time {stall_seconds}s if METH_POST
    http-request set-header X-Forwarded-For %[src]
    http-request set-header X-Forwarded-Proto {scheme}
    http-response sc-set-gpt0(0) 1 if {{ res.hdr(mcfd-known) -m found }}
    http-response del-header mcfd-known
    default_backend server

backend server
    server server unix@{folder}/server.sock maxconn {server_connections}
"""


class FrontLimits(msgspec.Struct, frozen=True, kw_only=True):
    """`connections`: the limit of all; `reserved`: its part for addresses with a valid key. Per address: connections at
    once; new connections, requests and errors (4xx) in ten seconds. `unknown_…`: of an address without a key."""

    connections: int = 800
    reserved: int = 200
    per_address: int = 250
    rate: int = 1000
    unknown_per_address: int = 40
    unknown_rate: int = 250
    unknown_requests: int = 500
    unknown_errors: int = 100
    addresses: int = 4096
    trust_seconds: int = 3600
    head_seconds: int = 10
    idle_seconds: int = 75
    stall_seconds: int = 30
    server_connections: int = 400


class Front(msgspec.Struct, frozen=True, kw_only=True):
    """`binds` are addresses in HAProxy's syntax; with `tls` the certificate is `server.pem` in `folder`."""

    folder: Path
    binds: tuple[str, ...]
    tls: bool
    limits: FrontLimits


def program() -> str | None:
    """HAProxy's path; not every user has its folder in PATH."""
    return shutil.which("haproxy", path=os.pathsep.join((os.environ.get("PATH", ""), SBIN)))


def error_files() -> dict[str, bytes]:
    """By name. Without a request id: HAProxy has none for a request that it cannot read."""
    return {f"{status}.http": _problem(status, *texts) for status, texts in ERRORS.items()}


def _problem(status: int, code: str, title: str, detail: str) -> bytes:
    body = json.dumps(problem_content(status, code, title, detail, ""), separators=(",", ":"))
    head = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        "content-type: application/problem+json",
        f"content-length: {len(body)}",
        "cache-control: no-store",
        "x-content-type-options: nosniff",
        *(["retry-after: 5"] if status in {429, 503} else []),
        "connection: close",
    ]
    return ("\r\n".join(head) + "\r\n\r\n" + body).encode()


def configuration(front: Front) -> str:
    parts = [_global(front), _defaults(front), _TRUSTED_ADDRESSES.format(**_values(front))]
    if front.tls:
        inner = (
            f"bind unix@{front.folder}/tls.sock mode 600 accept-proxy ssl crt {front.folder}/server.pem alpn http/1.1"
        )
        parts += [_outer(front), _PLAIN.format(folder=front.folder)]
    else:
        inner = "\n    ".join((*_binds(front), f"maxconn {front.limits.connections}", *_admission(front)))
    scheme = "https" if front.tls else "http"
    parts.append(_HTTP.format(inner=inner, scheme=scheme, **_values(front)))
    return "\n".join(parts)


def idle_configuration(folder: Path) -> str:
    """Listens on no network address."""
    return f"""\
global
    stats socket {folder}/control.sock mode 660 level admin expose-fd listeners

frontend idle
    bind unix@{folder}/plain.sock mode 600
    timeout client 1s
"""


def _values(front: Front) -> dict[str, object]:
    return {"folder": front.folder, **msgspec.structs.asdict(front.limits)}


def _binds(front: Front) -> list[str]:
    return [f"bind {bind}" for bind in front.binds]


def _global(front: Front) -> str:
    # HAProxy sizes its table of descriptors by maxconn, and exits if an inherited listener's number is beyond it.
    inherited = [int(bind.removeprefix("fd@")) for bind in front.binds if bind.startswith("fd@")]
    return f"""\
# Written by mcfd at its start: what is changed here is lost.
global
    maxconn {front.limits.connections * (2 if front.tls else 1) + 100 + max(inherited, default=0)}
    nbthread 1
    stats socket {front.folder}/control.sock mode 660 level admin expose-fd listeners
    tune.ssl.cachesize {SESSIONS}
    ssl-default-bind-options ssl-min-ver TLSv1.2
    ssl-default-bind-ciphers {STRONG}
    hard-stop-after 120s
"""


def _defaults(front: Front) -> str:
    limits = front.limits
    errors = "\n".join(f"    errorfile {status} {front.folder}/{status}.http" for status in ERRORS)
    return f"""\
defaults
    mode http
    backlog 4096
    timeout connect 1s
    timeout http-request {limits.head_seconds}s
    timeout http-keep-alive {limits.idle_seconds}s
    timeout client {limits.stall_seconds}s
    timeout server 10m
    timeout queue 30s
{errors}
"""


def _admission(front: Front) -> list[str]:
    """Limits before the first byte is read."""
    limits = front.limits
    return [
        f"stick-table type ipv6 size {limits.addresses} expire 1m store conn_cur,conn_rate(10s)",
        "tcp-request connection track-sc1 src if { src fe80::/10 }",
        "tcp-request connection track-sc1 src,ipmask(32,64)",
        "acl is_known src,ipmask(32,64),table_gpt0(known) gt 0",
        "acl is_known src,table_gpt0(known) gt 0",
        f"tcp-request connection reject if {{ sc1_conn_cur gt {limits.per_address} }}",
        f"tcp-request connection reject if {{ sc1_conn_rate gt {limits.rate} }}",
        f"tcp-request connection reject if !is_known {{ sc1_conn_cur gt {limits.unknown_per_address} }}",
        f"tcp-request connection reject if !is_known {{ sc1_conn_rate gt {limits.unknown_rate} }}",
        f"tcp-request connection reject if !is_known {{ fe_conn gt {limits.connections - limits.reserved} }}",
    ]


def _outer(front: Front) -> str:
    """TCP: counts connections, and sends all that is not TLS to the redirection."""
    lines = (
        "mode tcp",
        "timeout client 15m",
        *_binds(front),
        f"maxconn {front.limits.connections}",
        *_admission(front),
        f"tcp-request inspect-delay {front.limits.head_seconds}s",
        "tcp-request content accept if { req.ssl_hello_type 1 }",
        "tcp-request content accept if HTTP",
        "use_backend plain if HTTP",
        "default_backend tls",
    )
    return f"""\
frontend network
    {chr(10).join(lines).replace(chr(10), chr(10) + "    ")}

backend tls
    mode tcp
    timeout server 15m
    server tls unix@{front.folder}/tls.sock send-proxy-v2
"""
