"""`mcfd-hq users` and `mcfd-hq keys`: access of people and programs."""

import sys

import click

from common.language import tr
from common.passwords import fault_of_password, hash_password
from common.wire.instants import now_millis
from headquarters.app.settings import HqSettings
from headquarters.cli.shared import configured, opened, print_row, refusal
from headquarters.store.people import ROLES
from headquarters.store.register import MAX_NAME, is_name

ROLE = click.Choice(ROLES)


@click.group()
def users() -> None:
    """People, for the page."""


@users.command()
@click.argument("name")
@click.option("--role", type=ROLE, required=True)
@click.option("--password-stdin", is_flag=True, help="Read the password from the standard input.")
@configured
def create(settings: HqSettings, name: str, role: str, password_stdin: bool) -> None:
    """Add a person; one who was disabled comes back."""
    if not (name and is_name(name)):
        raise refusal(f"NAME: 1 to {MAX_NAME} characters that can be seen")
    hashed = _prompt_hash(name, password_stdin)
    with opened(settings) as store:
        if not store.people.create(name, hashed, role, now_millis()):
            raise refusal(f"{name} exists already")


@users.command("list")
@configured
def list_users(settings: HqSettings) -> None:
    """Names, roles, and who may not any more."""
    with opened(settings) as store:
        for person in store.people.listed():
            print_row(person.name, person.role, "disabled" if person.disabled else "")


@users.command()
@click.argument("name")
@click.option("--password-stdin", is_flag=True, help="Read the password from the standard input.")
@configured
def passwd(settings: HqSettings, name: str, password_stdin: bool) -> None:
    """Give a person another password; ends the sessions."""
    hashed = _prompt_hash(name, password_stdin)
    with opened(settings) as store:
        if not store.people.change(name, now_millis(), password=hashed):
            raise refusal(f"no person is called {name}")


@users.command()
@click.argument("name")
@configured
def disable(settings: HqSettings, name: str) -> None:
    """At once, in every session."""
    with opened(settings) as store:
        if not store.people.change(name, now_millis(), disabled=True):
            raise refusal(f"no person is called {name}")


def _prompt_hash(name: str, from_stdin: bool) -> str:
    if from_stdin:
        password = (sys.stdin.readline() if sys.stdin else "").rstrip("\r\n")
    else:
        password = click.prompt("Mot de passe / password", hide_input=True, confirmation_prompt=True)
    if fault := fault_of_password(password, name):
        raise refusal(tr("Password: {fault}", fault=fault))
    return hash_password(password)


@click.group()
def keys() -> None:
    """Keys, for programs."""


@keys.command("create")
@click.option("--role", type=ROLE, required=True)
@click.option("--label", default="", help="Who has it.")
@configured
def create_key(settings: HqSettings, role: str, label: str) -> None:
    """Prints the key alone; it is not shown again."""
    if not is_name(label):
        raise refusal(f"--label: at most {MAX_NAME} characters that can be seen")
    with opened(settings) as store:
        click.echo(store.people.create_key(role, label, now_millis()))


@keys.command("list")
@configured
def list_keys(settings: HqSettings) -> None:
    """Ids, roles and labels."""
    with opened(settings) as store:
        for key in store.people.api_keys():
            print_row(key.id, key.role, key.label, "revoked" if key.revoked_at is not None else "")


@keys.command("revoke")
@click.argument("id_", metavar="ID")
@configured
def revoke_key(settings: HqSettings, id_: str) -> None:
    """At once."""
    with opened(settings) as store:
        if not store.people.revoke_key(id_, now_millis()):
            raise refusal(f"no valid key {id_}")
