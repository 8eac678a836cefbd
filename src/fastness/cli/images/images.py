"""`fastness image`: approve what machines may boot, see what is approved, and take it back.

Approving says what a machine measures when it boots the image: from a manifest (`fastness measure -o json`), from the label
`org.coreos.pcrs` of an image, or measured here from a unified kernel image. The values count within seconds, and end with
the approval.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click

from fastness.attestation.live.successor_guard import DOORS_CA, carried
from fastness.attestation.values.from_images import (
    MEASUREMENTS,
    POOLS,
    VALID_UNTIL,
    BadValues,
    set_name,
    set_of_image,
    values_of_approval,
)
from fastness.cli.cluster import cluster_options, connected
from fastness.cli.errors import CliError, Exit
from fastness.cli.images.build_log import build_log
from fastness.cli.images.diff import diff
from fastness.cli.images.image_queue import history, replay
from fastness.cli.images.image_trust import trust
from fastness.cli.images.image_ways import listed, look, refuse_open, warn, ways_options
from fastness.cli.images.packages import packages_of
from fastness.cli.images.placement import what_goes_where
from fastness.cli.images.platform import platform
from fastness.cli.images.show import show_image
from fastness.cli.output import output_option, show_json, table, tell
from fastness.cli.room_errors import reported_errors
from fastness.crypto.errors import CryptoError
from fastness.crypto.x509 import split_pem
from fastness.formats import json
from fastness.formats.errors import ImageError, JsonError
from fastness.formats.evidence.efi.variables import MAX_STORE
from fastness.formats.evidence.pe.image import MAX_IMAGE
from fastness.images.errors import OsImageError
from fastness.images.firmware import FirmwareVars
from fastness.images.measure import measure_uki
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import NAMESPACE as NAMESPACE_KIND
from fastness.kinds.objects import condition, object_name, rfc3339
from fastness.kinds.trusted_execution.approvals import APPROVED_IMAGE
from fastness.kube.errors import AlreadyExists
from fastness.kube.port import Cluster, PatchType

MAX_MANIFEST: Final = 192 * 1024
ZERO: Final = "0" * 64
_EXISTING = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.group()
def image() -> None:
    """Images that machines may boot."""


image.add_command(trust)
image.add_command(what_goes_where)
image.add_command(show_image)
image.add_command(build_log)
image.add_command(packages_of)
image.add_command(history)
image.add_command(replay)
image.add_command(platform)
image.add_command(diff)


@image.command("approve")
@click.argument("reference")
@click.option("--manifest", type=_EXISTING, help="What `fastness measure -o json` printed.")
@click.option("--label", type=_EXISTING, help="The label org.coreos.pcrs of the image, as JSON.")
@click.option("--uki", type=_EXISTING, help="The unified kernel image; it is measured here.")
@click.option("--firmware-vars", type=_EXISTING, help="With --uki: the firmware's variables.")
@click.option("--secure-boot", is_flag=True, help="With --uki: machines boot with Secure Boot.")
@click.option(
    "--trust", "trusted", type=_EXISTING, help="The trust.json that the image carries: whom its machines believe."
)
@click.option("--zero", type=click.IntRange(0, 23), multiple=True, help="A register that the image leaves untouched.")
@click.option(
    "--variant",
    "variants",
    multiple=True,
    metavar="NAME=MANIFEST",
    help="What else machines may measure with it, as a whole: in a boot phase, or in the middle of an update.",
)
@click.option("--pool", "pools", multiple=True, help="A pool whose machines may boot it; all if none is given.")
@click.option("--name", default="", help="Name of the ApprovedImage; default made from the digest.")
@click.option("--namespace", "-n", default=NAMESPACE, show_default=True, help="Where it is kept.")
@click.option("--until", default="", help="When the approval ends, as 2027-01-31T00:00:00Z; default a year from now.")
@click.option(
    "--wait",
    "seconds",
    type=click.IntRange(0, 3600),
    default=60,
    show_default=True,
    help="Without measurements: how many seconds to wait until the control plane computed them.",
)
@ways_options
@cluster_options
@output_option
def approve(
    reference: str, manifest: Path | None, label: Path | None, uki: Path | None, firmware_vars: Path | None,
    secure_boot: bool, trusted: Path | None, zero: Sequence[int], variants: Sequence[str], pools: Sequence[str],
    name: str, namespace: str, until: str, seconds: int, root: Path | None, strict: bool, kubeconfig: Path | None,
    context: str, output: str,
) -> None:  # fmt: skip
    """Approve the image REFERENCE, named by digest, and the values that its machines measure.

    Without --manifest, --label and --uki the control plane reads the image from its registry and computes them.
    """
    given = sum(source is not None for source in (manifest, label, uki))
    if given > 1:
        raise CliError(
            "say once what machines measure", "Give one of --manifest, --label and --uki, or none.", Exit.USAGE
        )
    if not given:
        if zero or variants or root is not None or strict:
            hint = "Give one of --manifest, --label and --uki, or leave all of them to the control plane."
            raise CliError("--zero, --variant, --root and --strict go with measurements", hint, Exit.USAGE)
        left_to_the_cluster(reference, name, namespace, until, pools, trusted, seconds, kubeconfig, context, output)
        return
    if uki is None and (firmware_vars is not None or secure_boot):
        raise CliError("--firmware-vars and --secure-boot go with --uki", code=Exit.USAGE)
    measured = _measured(uki, firmware_vars, secure_boot) if uki is not None else _read(manifest or label)
    _say_open_ways(measured, uki, root, strict=strict)
    measured = _with_variants(_with_zeros(measured, zero), variants)
    approval = _approval(reference, measured, name, namespace, until, pools)
    if trusted is not None:
        approval["metadata"]["annotations"] |= _authorities(trusted)
    with reported_errors():
        asyncio.run(_approve(approval, kubeconfig, context))
    values = [value for value in _values(approval) if not value["name"].startswith("event_")]
    if output == "json":
        show_json({"name": approval["metadata"]["name"], "namespace": namespace, "image": reference, "values": values})
        return
    tell(f"{namespace}/{approval['metadata']['name']}: approved; machines that measure the following are accepted")
    rows = [(value["name"], value["value"], ", ".join(value.get("variants", ()))) for value in values]
    click.echo(table(rows if any(row[2] for row in rows) else [row[:2] for row in rows]))


def left_to_the_cluster(
    reference: str, name: str, namespace: str, until: str, pools: Sequence[str], trusted: Path | None, seconds: int,
    kubeconfig: Path | None, context: str, output: str,
) -> None:  # fmt: skip
    """Approve an image whose values the control plane computes from the registry, and tell what came of it."""
    try:
        set_name(reference)
    except BadValues as error:
        raise CliError(error.message, error.hint, Exit.USAGE) from error
    notes = {**({VALID_UNTIL: until} if until else {}), **({POOLS: ",".join(pools)} if pools else {})}
    notes |= _authorities(trusted) if trusted is not None else {}
    meta = {"name": name or set_name(reference), "namespace": namespace, "annotations": notes}
    approval = {
        "apiVersion": APPROVED_IMAGE.api_version, "kind": APPROVED_IMAGE.kind, "metadata": meta, "spec": {"image": reference},
    }  # fmt: skip
    with reported_errors():
        committed = asyncio.run(_approve_and_wait(approval, kubeconfig, context, seconds))
    where, message = f"{namespace}/{meta['name']}", str(committed.get("message") or "nobody has looked at it yet")
    if output == "json":
        show_json({"name": meta["name"], "namespace": namespace, "image": reference, "committed": dict(committed)})
    elif committed.get("status") == "True":
        tell(f"{where}: approved; {message}")
    if committed.get("status") != "True" and committed.get("reason") not in (None, "Computing"):
        raise CliError(
            f"{where}: approved, and its values do not count ({committed.get('reason')}): {message}", code=Exit.NO
        )
    if committed.get("status") != "True":
        tell(f"{where}: approved; {message}. `fastness image show {reference}` tells how it goes on")


async def _approve_and_wait(approval: JsonObject, kubeconfig: Path | None, context: str, seconds: int) -> JsonObject:
    await _approve(approval, kubeconfig, context)
    meta = approval["metadata"]
    async with connected(kubeconfig, context) as cluster:
        for turn in range(max(1, seconds * 4)):
            present = await cluster.get(APPROVED_IMAGE.resource, meta["name"], meta["namespace"])
            committed = condition(present, "Committed") or {}
            if turn and committed and committed.get("reason") != "Computing":
                break
            await asyncio.sleep(0.25 if seconds else 0)
    return dict(committed)


def _say_open_ways(manifest: Any, uki: Path | None, root: Path | None, *, strict: bool) -> None:
    """Warn about ways into the image: looked for here, or as the manifest of `measure` lists them; raises CliError."""
    if uki is not None or root is not None:
        ways: JsonObject | None = look(_bytes(uki, MAX_IMAGE) if uki is not None else None, root)
    else:
        ways = listed(manifest)
    if ways is None:
        if strict:
            hint = "Measure the image again (`fastness measure -o json`), or give --uki or --root."
            raise CliError("this image was never checked for ways into it", hint, Exit.NO)
        return
    warn(ways)
    if strict:
        refuse_open(ways)


def _read(path: Path | None) -> Any:
    assert path is not None  # noqa: S101 - exactly one source was given
    try:
        return json.decode(_bytes(path, MAX_MANIFEST))
    except JsonError as error:
        raise CliError(f"{path}: {error}", error.hint, Exit.USAGE) from error


def _authorities(path: Path) -> dict[str, str]:
    """The authorities in the trust.json of an image, as the annotation of its approval."""
    trusted = _read(path)
    try:
        return {DOORS_CA: carried(split_pem(str(trusted["ca"]).encode()))}
    except (KeyError, TypeError, CryptoError) as error:
        hint = "It is the file that `fastness image trust` wrote for this image."
        raise CliError(f"{path}: no authorities in `ca`", hint, Exit.USAGE) from error


def _measured(uki: Path, variables: Path | None, secure_boot: bool) -> JsonObject:
    store = _bytes(variables, MAX_STORE) if variables is not None else None
    try:
        firmware = FirmwareVars.blank() if store is None else FirmwareVars.of_store(store)
        return measure_uki(_bytes(uki, MAX_IMAGE), firmware, secure_boot=secure_boot).to_manifest()
    except ImageError as error:
        raise CliError(f"{uki}: {error}", error.hint, Exit.USAGE) from error
    except OsImageError as error:
        raise CliError(f"{uki}: {error.message}", error.hint, Exit.NO) from error


def _bytes(path: Path, most: int) -> bytes:
    try:
        if path.stat().st_size > most:
            raise CliError(f"{path}: larger than {most} bytes", code=Exit.USAGE)
        return path.read_bytes()
    except OSError as error:
        raise CliError(f"{path}: {error.strerror or error}", code=Exit.USAGE) from error


def _with_zeros(manifest: Any, registers: Sequence[int]) -> Any:
    """The manifest with registers that stay at zero; one that it already has is an error."""
    if not registers or not isinstance(manifest, dict):
        return manifest
    rows = manifest.get("pcrs") or []
    measured = [row.get("id") for row in rows if isinstance(row, dict)]
    both = [register for register in registers if register in measured]
    if both:
        raise CliError(f"--zero {both[0]}: the manifest says what register {both[0]} holds", code=Exit.USAGE)
    return {**manifest, "pcrs": [*rows, *({"id": pcr, "value": ZERO, "events": []} for pcr in sorted(set(registers)))]}


def _with_variants(manifest: Any, given: Sequence[str]) -> Any:
    """The manifest with states of other names; raises CliError for a word that names no file."""
    variants: JsonObject = {}
    for word in given:
        name, equals, path = word.partition("=")
        if not (name and equals and path and Path(path).is_file()) or name in variants:
            raise CliError(f"--variant {word}: not NAME=MANIFEST with a file and a new name", code=Exit.USAGE)
        variants[name] = _carried(_read(Path(path)), ("pcrs", "values"))
    return {**manifest, "variants": variants} if variants and isinstance(manifest, dict) else manifest


def _carried(manifest: Any, members: Sequence[str]) -> JsonObject:
    """What of a manifest an approval carries; notes for people stay where they are."""
    return {key: manifest[key] for key in members if key in manifest} if isinstance(manifest, dict) else {}


def _approval(
    reference: str, manifest: Any, name: str, namespace: str, until: str, pools: Sequence[str] = ()
) -> JsonObject:
    carried_parts = _carried(manifest, ("pcrs", "values", "variants"))
    notes = {MEASUREMENTS: json.encode(carried_parts).decode(), **({VALID_UNTIL: until} if until else {})}
    notes |= {POOLS: ",".join(pools)} if pools else {}
    try:
        meta = {"name": name or set_name(reference), "namespace": namespace, "annotations": notes}
        approval: JsonObject = {
            "apiVersion": APPROVED_IMAGE.api_version,
            "kind": APPROVED_IMAGE.kind,
            "metadata": meta,
            "spec": {"image": reference},
        }
        # What the cluster would refuse later is refused here, before anything is written.
        stamped = {**approval, "metadata": {**meta, "creationTimestamp": rfc3339(datetime.now(UTC))}}
        set_of_image(reference, [stamped])
    except BadValues as error:
        raise CliError(error.message, error.hint, Exit.USAGE) from error
    return approval


def _values(approval: JsonObject) -> list[JsonObject]:
    return sorted(values_of_approval(approval), key=lambda value: (len(value["name"]), value["name"]))


async def _approve(approval: JsonObject, kubeconfig: Path | None, context: str) -> None:
    images, meta = APPROVED_IMAGE.resource, approval["metadata"]
    async with connected(kubeconfig, context) as cluster:
        await _namespace(cluster, meta["namespace"])
        try:
            await cluster.create(images, approval)
        except AlreadyExists:
            existing = await cluster.get(images, meta["name"], meta["namespace"])
            if existing["spec"]["image"] != approval["spec"]["image"]:
                raise CliError(f"{meta['name']} approves another image", "Choose another --name.") from None
            patch = {"metadata": {"annotations": meta["annotations"]}}
            await cluster.patch(images, meta["name"], patch, PatchType.MERGE, meta["namespace"])


async def _namespace(cluster: Cluster, name: str) -> None:
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    try:
        await cluster.create(NAMESPACE_KIND.resource, made)
    except AlreadyExists:
        return


@image.command("list")
@cluster_options
@output_option
def list_images(kubeconfig: Path | None, context: str, output: str) -> None:
    """List the approved images, those that were built here and wait for an approval, and those withdrawn of late."""
    with reported_errors():
        rows = asyncio.run(_list(kubeconfig, context))
    if output == "json":
        show_json(rows)
        return
    head = ("NAME", "STATE", "VALUES", "UNTIL", "IMAGE")
    click.echo(table([head, *(tuple(str(row[key.lower()]) for key in head) for row in rows)]))


async def _list(kubeconfig: Path | None, context: str) -> list[JsonObject]:
    async with connected(kubeconfig, context) as cluster:
        images = (await cluster.list(APPROVED_IMAGE.resource)).items
        sets = (await cluster.list(REFERENCE_VALUE_SET.resource)).items
    return _rows(images, sets)


def _rows(images: Sequence[JsonObject], sets: Sequence[JsonObject]) -> list[JsonObject]:
    by_image = {values["spec"].get("image"): values for values in sets if values["spec"]["source"] == "image"}
    rows: list[JsonObject] = []
    for approval in images:
        committed = condition(approval, "Committed") or {}
        values_set = by_image.get(approval["spec"]["image"])
        state = "approved" if committed.get("status") == "True" else str(committed.get("reason", "pending"))
        if (condition(approval, "Counts") or {}).get("status") == "False":
            state = "ignored in its namespace"
        rows.append(_row(str(object_name(approval)), state, approval["spec"]["image"], values_set))
    approved = {approval["spec"]["image"] for approval in images}
    for name, values in by_image.items():
        withdrawn = values["spec"].get("withdrawn")
        if withdrawn is not None:
            rows.append(_row(values["metadata"]["name"], f"withdrawn {withdrawn['at'][:10]}", str(name), values))
        elif name not in approved:
            rows.append(_row(values["metadata"]["name"], "not approved", str(name), values))
    return rows


def _row(name: str, state: str, reference: str, values: JsonObject | None) -> JsonObject:
    listed = values["spec"]["values"] if values else []
    count = sum(not value["name"].startswith("event_") for value in listed)
    until = values["spec"].get("validity", {}).get("notAfter", "") if values else ""
    return {"name": name, "state": state, "values": count, "until": until[:10], "image": reference}


@image.command("withdraw")
@click.argument("which")
@cluster_options
def withdraw(which: str, kubeconfig: Path | None, context: str) -> None:
    """Take back the approval of an image; WHICH is its reference, or namespace/name of the ApprovedImage.

    Machines that boot it are refused from their next attestation on.
    """
    with reported_errors():
        gone = asyncio.run(_withdraw(which, kubeconfig, context))
    if not gone:
        raise CliError(f"nothing approves {which}", "See `fastness image list`.", Exit.NO)
    for name in gone:
        click.echo(f"{name}: withdrawn")


async def _withdraw(which: str, kubeconfig: Path | None, context: str) -> list[str]:
    gone: list[str] = []
    async with connected(kubeconfig, context) as cluster:
        for approval in (await cluster.list(APPROVED_IMAGE.resource)).items:
            place = object_name(approval)
            if which in (approval["spec"]["image"], str(place)):
                await cluster.delete(APPROVED_IMAGE.resource, place.name, place.namespace)
                gone.append(str(place))
    return gone
