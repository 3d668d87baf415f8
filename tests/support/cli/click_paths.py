"""The commands of a click program, each by the words that name it."""

from collections.abc import Iterator

import click


def paths(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if not isinstance(command, click.Group):
        yield path
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        yield from paths(inner, (*path, name))


def path_of(program: click.Command, words: tuple[str, ...]) -> tuple[str, ...]:
    """The words of `words` that name the command; the rest is what it is given."""
    return max((path for path in paths(program) if words[: len(path)] == path), key=len)
