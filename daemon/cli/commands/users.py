"""`mcfd users`: the people who log in to the shop's page. `mcfd audit`: what was done to the box, by whom and from where;
and whether this log is intact."""

import sys

import click

from common.language import Speaker, ambient, tr
from common.passwords import fault_of_password, hash_password
from daemon.cli.options import (
    check_name,
    examples,
    explained,
    json_option,
    limit_option,
    role_option,
    settings_option,
)
from daemon.cli.output import (
    FOUND_WRONG,
    Failure,
    complain,
    moment,
    print_json,
    print_table,
    record_json,
    require_terminal,
    say,
)
from daemon.core.audit import action_text, details, who, whom
from daemon.core.errors import InvalidRequest
from daemon.core.people import Role
from daemon.ledger_access import change, read_rows
from daemon.operations import CreateUser, DisableUser, SetPassword
from daemon.settings import Settings
from daemon.store.tables.audit import broken_entry, newest_entries

command = click.Group("users")


name_argument = click.argument("name", metavar=tr("NAME"), callback=check_name)
stdin_option = click.option(
    "--password-stdin", "from_stdin", is_flag=True, help=tr("Read the password from stdin (one line).")
)


@command.command(
    "create",
    **explained(
        "Make a user; the password is prompted for. One who was disabled comes back this way.",
        "mcfd users create awa --role manager",
        "mcfd users create awa --role seller --password-stdin < file",
    ),
)
@settings_option
@name_argument
@role_option(required=True)
@stdin_option
def create(settings: Settings, name: str, role: Role, from_stdin: bool) -> None:
    password = hash_password(_read_password(name, from_stdin=from_stdin))
    try:
        change(settings, CreateUser(name, role, password), make=True)
    except InvalidRequest:
        raise Failure("{name} exists already", name=name) from None
    say("{name} may log in ({role})", name=name, role=role)


@command.command("list", **explained("List the users.", "mcfd users list", "mcfd users list --json"))
@settings_option
@json_option
def list_users(settings: Settings, as_json: bool) -> None:
    from daemon.store.tables.people import list_people

    people = read_rows(settings, list_people)
    if as_json:
        print_json([record_json(person, "name", "role", "created_at", "disabled_at", "seen_at") for person in people])
        return
    zone, times = settings.reports.zone, ("created_at", "seen_at", "disabled_at")
    print_table(
        (tr("NAME"), tr("ROLE"), tr("CREATED"), tr("SEEN"), tr("DISABLED")),
        [(each.name, each.role, *(moment(getattr(each, name), zone) for name in times)) for each in people],
    )


@command.command("passwd", **explained("Change a password; open sessions end.", "mcfd users passwd awa"))
@settings_option
@name_argument
@stdin_option
def passwd(settings: Settings, name: str, from_stdin: bool) -> None:
    password = hash_password(_read_password(name, from_stdin=from_stdin))
    change(settings, SetPassword(name, password))
    say("password of {name} changed", name=name)


@command.command("disable", **explained("Disable a user: their sessions end at once.", "mcfd users disable awa"))
@settings_option
@name_argument
def disable(settings: Settings, name: str) -> None:
    change(settings, DisableUser(name))
    say("{name} may log in no more", name=name)


def _read_password(name: str, *, from_stdin: bool) -> str:
    """The new password: one line of stdin, or typed twice."""
    if from_stdin:
        password = (sys.stdin.readline() if sys.stdin else "").rstrip("\r\n")
    else:
        require_terminal("--password-stdin")
        password = click.prompt(tr("Password"), hide_input=True, confirmation_prompt=tr("Once more"))
    if fault := fault_of_password(password, name):
        raise click.BadParameter(tr(fault), param_hint=tr("password"))
    return password


@click.command("audit", epilog=examples("mcfd audit", "mcfd audit --limit 1000 --json"))
@settings_option
@limit_option(100_000, tr("How many entries, the newest."))
@json_option
def audit(settings: Settings, limit: int, as_json: bool) -> int:
    entries = read_rows(settings, newest_entries, limit)[::-1]
    broken = read_rows(settings, broken_entry)
    if as_json:
        print_json({"ok": broken is None, "entries": [record_json(entry, hash=entry.hash.hex()) for entry in entries]})
    else:
        zone, words = settings.reports.zone, Speaker(ambient())
        print_table(
            (tr("ID"), tr("WHEN"), tr("WHO"), tr("FROM"), tr("ACTION"), tr("WHAT"), tr("DETAIL")),
            [
                (
                    *(entry.id, moment(entry.at, zone), who(entry.actor, {}, words)),
                    *(entry.address, action_text(entry.action, words)),
                    entry.subject if entry.subject.startswith("/") else whom(entry.subject, {}, words),
                    details(entry.detail, words),
                )
                for entry in entries
            ],
        )
    if broken is not None:
        complain("the audit log is broken: entry {id} does not follow from the one before it", id=broken.id)
    return FOUND_WRONG if broken else 0
