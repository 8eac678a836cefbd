"""`fastness version`."""

from __future__ import annotations

import platform

import click

from fastness import __version__
from fastness.cli.output import output_option, show_json


@click.command()
@output_option
def version(output: str) -> None:
    """Print the version."""
    facts = {"fastness": __version__, "kubernetes": "v1.36", "python": platform.python_version()}
    if output == "json":
        show_json(facts)
    else:
        click.echo(f"fastness {__version__} (Kubernetes API v1.36, Python {facts['python']})")
