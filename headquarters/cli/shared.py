"""Shared parts of the commands: configuration, store, one-line errors."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from common.settings import SettingsError
from common.web.formats import visible
from headquarters.app.settings import DEFAULT, HqSettings, load
from headquarters.store.database import BadContent, StoreError
from headquarters.store.store import HqStore

EXIT_USAGE, EXIT_UNAVAILABLE = 2, 3


def configured(command: Callable[..., None]) -> Callable[..., None]:
    """Adds `--config FILE` and loads it; an error is one line with exit code 2."""

    @click.option("--config", type=click.Path(path_type=Path), default=DEFAULT, show_default=True, help="TOML file.")
    @functools.wraps(command)
    def with_settings(config: Path, **options: Any) -> None:
        try:
            settings = load(config)
        except SettingsError as error:
            raise refusal(str(error)) from None
        command(settings, **options)

    return with_settings


def refusal(text: str, code: int = EXIT_USAGE) -> click.ClickException:
    error = click.ClickException(text)
    error.exit_code = code  # type: ignore[misc]  # declared as the class's own
    return error


@contextlib.contextmanager
def opened(settings: HqSettings) -> Iterator[HqStore]:
    """The store with migrated tables."""
    store = HqStore(settings.storage.url)
    try:
        store.open()
        yield store
    except BadContent as error:
        raise refusal(f"a text cannot be kept: {error}") from None
    except StoreError as error:
        raise refusal(f"storage.url: {error}", EXIT_UNAVAILABLE) from None
    finally:
        store.close()


def print_row(*cells: object) -> None:
    """One line, separated by tabs; control characters of foreign text are made visible."""
    click.echo("\t".join(visible(str(cell)) for cell in cells))
