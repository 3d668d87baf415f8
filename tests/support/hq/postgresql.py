"""A PostgreSQL cluster that is thrown away: Debian's own server in a directory of the tests, reached by its socket alone."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from contextlib import suppress
from pathlib import Path

import psycopg
from support.memory import memory

DEBIAN = "postgresql"
"""The package that a skip names."""
PASSING = ("fsync=off", "full_page_writes=off", "autovacuum=off", "wal_level=minimal", "max_wal_senders=0")
"""Of a server that is killed and has what it had, since the kernel has it; after a power cut it is not needed."""


def binaries() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    return found[-1].parent if found else None


class Cluster:
    """One that is not `lasting` waits for no disk."""

    def __init__(self, *, lasting: bool = True) -> None:
        bin_directory = binaries()
        assert bin_directory, f"Debian's package {DEBIAN} is missing"
        self._bin = bin_directory
        # Not under pytest's directory: a socket's path has at most 107 bytes.
        self.directory = Path(tempfile.mkdtemp(prefix="hq-pg-", dir=None if lasting else memory()))
        self._user = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
        if self._user:
            os.chown(self.directory, self._user.pw_uid, self._user.pw_gid)
        self._run("initdb", "-D", "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        self._process: subprocess.Popen[bytes] | None = None
        # By mmap, what its processes share lies in its directory: killed, it would leave it in /dev/shm for good.
        own = ("listen_addresses=", "max_connections=60", "dynamic_shared_memory_type=mmap")
        settings = own if lasting else own + PASSING
        self.strategy = "wal_log" if lasting else "file_copy"
        """Of CREATE DATABASE: the one that waits for no disk, or the one that is less work when there is none to wait for."""
        self._settings = [word for setting in settings for word in ("-c", setting)]

    def _as_owner(self) -> dict[str, int]:
        # PostgreSQL does not run as root.
        return {"user": self._user.pw_uid, "group": self._user.pw_gid} if self._user else {}

    def _run(self, name: str, *arguments: str) -> None:
        command = [str(self._bin / name), *arguments]
        subprocess.run(command, cwd=self.directory, check=True, capture_output=True, timeout=120, **self._as_owner())

    def start(self) -> None:
        options = ["-D", "data", "-k", str(self.directory), *self._settings]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._bin / "postgres"), *options], cwd=self.directory, stdout=log, stderr=log, **self._as_owner()
            )
        deadline = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.dsn("postgres"), connect_timeout=2).close()
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, (self.directory / "log").read_text()[-2000:]
                time.sleep(0.05)
            else:
                return

    def dsn(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.directory}"

    def database(self) -> str:
        """The URL of a new, empty one."""
        name = f"hq_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} STRATEGY {self.strategy}")
        return self.dsn(name)

    @staticmethod
    def empty(url: str) -> None:
        """Tables as after the first start, and no other connection to it."""
        with psycopg.connect(url, autocommit=True) as connection:
            others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            connection.execute(f"SELECT pg_terminate_backend(pid, 60000) {others}")
            tables = "FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version'"
            found = connection.execute(f"SELECT string_agg(quote_ident(tablename), ', ') {tables}").fetchone()
            connection.execute(f"TRUNCATE {found[0]} RESTART IDENTITY")

    def drop(self, url: str) -> None:
        name = url.partition("?")[0].rpartition("/")[2]
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def kill(self) -> None:
        """As a power cut: no checkpoint, no goodbye to anybody."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(60)
            self._process = None

    def signal_all(self, number: int) -> None:
        """To the server and each of its processes."""
        pid = self._process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for each in (pid, *map(int, children)):
            with suppress(ProcessLookupError):
                os.kill(each, number)

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)
