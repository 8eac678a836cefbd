"""Groups of verbs that are imported one by one.

A row of a table says where a verb is implemented and what it does in one line; the module is imported when the verb runs. So
modules import what they need at their top, and a light verb does not pay for a heavy one.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import click


class Verb(NamedTuple):
    """Where a verb is implemented and what it does in one line."""

    target: str
    help: str


class LazyGroup(click.Group):
    """A group whose table names verbs of other modules, which are imported when they are used; it may have its own as well."""

    heading = "Commands"

    def __init__(self, *arguments: Any, verbs: Mapping[str, Verb], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.verbs = verbs

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the table, or of the alphabet where the group has verbs of its own."""
        return sorted((*self.verbs, *self.commands)) if self.commands else list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one verb."""
        verb = self.verbs.get(cmd_name)
        if verb is None:
            return super().get_command(ctx, cmd_name)
        module, _, name = verb.target.partition(":")
        command = getattr(importlib.import_module(module), name)
        if not isinstance(command, click.Command):
            raise TypeError(f"{verb.target} is not a command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of verbs, without importing any."""
        own = {name: command.get_short_help_str(formatter.width) for name, command in self.commands.items()}
        helps = {**own, **{name: verb.help for name, verb in self.verbs.items()}}
        with formatter.section(self.heading):
            formatter.write_dl([(name, helps[name]) for name in self.list_commands(ctx)])
