"""`fastness image show`: what is known of one image, which file of it gave which value, and who may be compared with them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from fastness.attestation.loops.built_images import APPROVED_BY
from fastness.attestation.values.computed import computed_of
from fastness.attestation.values.from_images import BadValues, set_name
from fastness.cli.cluster import cluster_options, connected
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import output_option, show_json, table
from fastness.cli.room_errors import reported_errors
from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import annotations_of, condition, object_name
from fastness.kinds.trusted_execution.approvals import APPROVED_IMAGE
from fastness.kube.errors import NotFound


@click.command("show")
@click.argument("reference")
@cluster_options
@output_option
def show_image(reference: str, kubeconfig: Path | None, context: str, output: str) -> None:
    """Show what machines measure that boot the image REFERENCE, which file of it gave which value, and who approved it."""
    try:
        name = set_name(reference)
    except BadValues as error:
        raise CliError(
            error.message, "Name it as name@sha256:…; `fastness image list` lists images.", Exit.USAGE
        ) from error
    with reported_errors():
        values, approvals = asyncio.run(_asked(name, kubeconfig, context))
    if values is None and not approvals:
        raise CliError(f"nothing is known of {reference}", "Approve it: `fastness image approve`.", Exit.NO)
    facts = described(values or {}, approvals)
    if output == "json":
        show_json(facts)
        return
    for key in ("published", "pools", "built by", "root", "computed from", "not computed", "problem"):
        if facts.get(key):
            click.echo(f"{key}: {_text(facts[key])}")
    for approval in facts["approvals"]:
        click.echo(f"approval {approval['name']}: {approval['state']}, by {approval['by']}")
    rows = [(value["name"], value["value"], value.get("note", "")) for value in facts["values"]]
    click.echo(table([("NAME", "VALUE", "FROM"), *rows]))


async def _asked(name: str, kubeconfig: Path | None, context: str) -> tuple[JsonObject | None, list[JsonObject]]:
    async with connected(kubeconfig, context) as cluster:
        try:
            values: JsonObject | None = await cluster.get(REFERENCE_VALUE_SET.resource, name)
        except NotFound:
            values = None
        approvals = (await cluster.list(APPROVED_IMAGE.resource)).items
    return values, [each for each in approvals if _is_of(each, name)]


def _is_of(approval: JsonObject, name: str) -> bool:
    try:
        return set_name(str(approval["spec"]["image"])) == name
    except BadValues:
        return False


def described(values: Mapping[str, Any], approvals: list[JsonObject]) -> JsonObject:
    """What is known of an image, for people and programs."""
    computed, spec = computed_of(values), values.get("spec") or {}
    published = condition(values, "Published") or {}
    listed = [value for value in spec.get("values") or () if not str(value["name"]).startswith("event_")]
    return {
        "published": f"{published.get('status', 'False')} ({published.get('reason', 'nobody has looked at it yet')})",
        "pools": spec.get("pools") or [],
        "built by": computed.built_by,
        "root": computed.root,
        "computed from": [
            _file(each) for each in computed.sources
        ],
        "not computed": dict(computed.missing),
        "problem": computed.problem,
        "approvals": [
            {
                "name": str(object_name(each)), "state": str((condition(each, "Committed") or {}).get("reason", "pending")),
                "by": annotations_of(each).get(APPROVED_BY, "a person, whom the record names"),
            }
            for each in approvals
        ],
        "values": sorted(listed, key=lambda value: (len(value["name"]), value["name"])),
    }  # fmt: skip


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{key}: {why}" for key, why in value.items())
    return ", ".join(value) if isinstance(value, list) else str(value)


def _file(source: Mapping[str, Any]) -> str:
    digest = source.get("sha256")
    return f"{source.get('file')} (sha256 {digest})" if digest else str(source.get("file"))
