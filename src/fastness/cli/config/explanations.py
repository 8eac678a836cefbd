"""`fastness render --explain PATH`: who wrote a part of a config, why, and who said something else later."""

from __future__ import annotations

from collections.abc import Iterator

import click

from fastness.cli.config.offline import near
from fastness.cli.errors import CliError
from fastness.cli.output import show_json
from fastness.machineconfig.render.explain import Explanation, explain
from fastness.machineconfig.render.render import Rendered
from fastness.machineconfig.rollout.plan import State


def show(result: Rendered, state: State, place: str, output: str) -> None:
    """Print why a part of a rendered config is there; raises CliError for what is not in it."""
    explanations = explain(result.blame, state.configs, state.owners, place)
    if not explanations:
        hint = near(place, [origin.name for origin in result.blame.origins])
        if state.owners.controller is None:
            hint += " The files hold no ControllerConfig, so the base of a node is not in it."
        raise CliError(f"nothing in pool {result.pool} is called {place!r}", hint)
    if output == "json":
        show_json([explanation.to_json() for explanation in explanations])
        return
    click.echo("\n".join(line for explanation in explanations for line in _lines(explanation)))


def _lines(explanation: Explanation) -> Iterator[str]:
    yield f"{explanation.kind} {explanation.place}"
    for number, wrote in enumerate(explanation.history):
        earlier = {field for before in explanation.history[:number] for field in before.fields}
        overridden = sorted(earlier & set(wrote.fields))
        yield f"  {wrote}" + (f"; overrides {', '.join(overridden)}" if overridden else "")
