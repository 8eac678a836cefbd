"""Printing: for people by default, JSON with `-o json`.

Results go to standard output and nothing else does; everything that is not a result goes to standard error, so that output can be
piped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def output_option(function: F) -> F:
    """The option `-o`."""
    return click.option(
        "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to print."
    )(function)


def show_json(value: Any) -> None:
    """Print a value as JSON."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def tell(text: str) -> None:
    """Say something that is not a result."""
    click.echo(text, err=True)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Columns, two spaces apart; the last one is not padded."""
    if not rows:
        return ""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        lines.append("  ".join([*cells, row[-1]]).rstrip())
    return "\n".join(lines)
