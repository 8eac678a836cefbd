"""`fastness break-glass`: override attestation for one pool, for a few hours, if two approvers agree.

    fastness break-glass key grace.key                      # each approver, once; prints what the cluster lists
    fastness break-glass ask --pool worker --reason TEXT > override.json
    fastness break-glass agree override.json --by ada --key ada.key          # each on a machine of their own
    fastness break-glass agree override.json --by grace --key grace.key
    fastness break-glass apply override.json
    fastness break-glass end

Who the approvers are is changed the same way: `change` instead of `ask`, and two of those who count sign it. `change --lost` is
the way back when their keys are gone: nobody signs, it counts after a day, and everybody is told.

The key of a disk is asked for with `fastness machine disk recover`, and agreed to here.

`agree` and `key` need no cluster. The file holds nothing secret; a change after somebody agreed voids that signature.
The verifiers of the cluster check names, keys and times themselves.
"""

from __future__ import annotations

import asyncio
import base64
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from fastness.attestation.verdict.approvers import CHANGE, LOST, change_message, change_statement, read_appointments
from fastness.attestation.verdict.approvers import CONFIG_MAP as APPOINTMENTS
from fastness.attestation.verdict.breakglass import (
    ANNOTATION,
    LONGEST,
    BadOverride,
    agreed_override,
    listed_approvers,
    message,
    statement_of,
)
from fastness.attestation.verdict.recovery import message as recovery_message
from fastness.cli.cluster import cluster_options, connected
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import tell
from fastness.cli.room_errors import reported_errors
from fastness.crypto.eddsa import SEED_BYTES, Ed25519Signer
from fastness.crypto.errors import BadKey
from fastness.crypto.jwk import public_key
from fastness.crypto.secret import SecretBytes
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.keys.key_files import read_private, write_private
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, CONFIRM_LOWER, NAME
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kube.confirmation import confirmation
from fastness.kube.errors import Forbidden, NotFound
from fastness.kube.port import PatchType, WriteOptions
from fastness.runtime.clock import SystemEntropy

_FILE = click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
_TIME = re.compile(r"([1-9][0-9]{0,3})(m|h)\Z")
_UNITS = {"m": "minutes", "h": "hours"}
MOST_BYTES = 8192


@click.group("break-glass")
def breakglass() -> None:
    """Override attestation for one pool and a few hours; two named approvers must sign."""


@breakglass.command("key")
@_FILE
def key(file: Path) -> None:
    """Make the key of an approver, keep it in FILE, and print the public half for spec.breakGlass.approvers."""
    if file.exists():
        raise CliError(f"{file} exists", "A key is never written over: choose another name.", Exit.USAGE)
    seed = SecretBytes(SystemEntropy().token(SEED_BYTES))
    with reported_errors():
        write_private(file, SecretBytes(base64.b64encode(seed.reveal()) + b"\n"))
    click.echo(base64.b64encode(Ed25519Signer(seed).verifier.raw).decode())


@breakglass.command("ask")
@click.option("--pool", required=True, help="The pool whose machines are let in.")
@click.option("--reason", required=True, help="Why; goes on the record.")
@click.option("--for", "lasting", default="1h", show_default=True, help="How long, as 30m or 2h; at most 4h.")
@cluster_options
def ask(pool: str, reason: str, lasting: str, kubeconfig: Path | None, context: str) -> None:
    """Write the statement that approvers sign to standard output."""
    time = time_of(lasting)
    with reported_errors():
        uid = asyncio.run(_uid(kubeconfig, context))
    now = datetime.now(UTC)
    click.echo(json.encode({"statement": statement_of(uid, pool, reason, now, now + time), "agreed": []}).decode())


@breakglass.command("agree")
@_FILE
@click.option("--by", "name", required=True, help="Your name, as the cluster lists it.")
@click.option("--key", "secret", type=click.Path(path_type=Path, dir_okay=False), required=True, help="Your key.")
def agree(file: Path, name: str, secret: Path) -> None:
    """Sign the statement in FILE, and add that to the file."""
    document = read_statement(file)
    statement = document["statement"]
    signed, words = _agreement(statement)
    signature = base64.b64encode(_signer(secret).sign(signed)).decode()
    others = [entry for entry in document["agreed"] if entry.get("by") != name]
    with reported_errors():
        file.write_bytes(json.encode({**document, "agreed": [*others, {"by": name, "signature": signature}]}) + b"\n")
    tell(f"{name} agrees: {words}")


@breakglass.command("apply")
@_FILE
@cluster_options
def apply(file: Path, kubeconfig: Path | None, context: str) -> None:
    """Put an override that two approvers signed into force, or their change of approvers."""
    document = read_statement(file)
    if "volume" in document["statement"]:
        hint = "It is opened by `fastness machine disk recover open`."
        raise CliError(f"{file} is about the key of a disk", hint, Exit.USAGE)
    if "approvers" in document["statement"]:
        appointed = document["statement"]["approvers"]
        with reported_errors():
            asyncio.run(_appoint(appointed, {CHANGE: json.encode(document).decode()}, kubeconfig, context))
        tell(_coming(appointed))
        return
    with reported_errors():
        asyncio.run(_annotate(json.encode(document).decode(), kubeconfig, context))
    tell(f"attestation of pool {document['statement']['pool']} is overridden until {document['statement']['expires']}")


@breakglass.command("change")
@click.option(
    "--approver",
    "people",
    multiple=True,
    metavar="NAME=KEY",
    help="Somebody who is an approver from then on; may be repeated.",
)
@click.option(
    "--lost", default="", metavar="REASON", help="The present keys are lost: change without signatures, after a day."
)
@cluster_options
def change(people: tuple[str, ...], lost: str, kubeconfig: Path | None, context: str) -> None:
    """Write the change of approvers that the present ones sign to standard output; the first, or --lost, needs none."""
    appointed = dict(person.split("=", 1) for person in people if "=" in person)
    if len(appointed) != len(people):
        raise CliError("an approver is NAME=KEY, each name once", "`fastness break-glass key` prints KEY.", Exit.USAGE)
    with reported_errors():
        present, counting = asyncio.run(_present(kubeconfig, context))
        if lost or not listed_approvers(present):
            asyncio.run(_appoint(appointed, {LOST: lost} if lost else {}, kubeconfig, context))
            tell(_coming(appointed))
            return
    statement = change_statement(present, counting or listed_approvers(present), appointed)
    click.echo(json.encode({"statement": statement, "agreed": []}).decode())


@breakglass.command("end")
@cluster_options
def end(kubeconfig: Path | None, context: str) -> None:
    """End the override now."""
    with reported_errors():
        asyncio.run(_annotate(None, kubeconfig, context))
    tell("the override has ended: attestation decides again")


def time_of(text: str) -> timedelta:
    """How long a statement counts; raises CliError."""
    match = _TIME.match(text)
    time = timedelta(**{_UNITS[match[2]]: int(match[1])}) if match else LONGEST * 2
    if time > LONGEST:
        raise CliError(f"--for: {text} is not a time of at most 4 hours", "Write it as 30m or 2h.", Exit.USAGE)
    return time


def _agreement(statement: dict[str, Any]) -> tuple[bytes, str]:
    """What an approver signs, and what that means in words; raises CliError."""
    if "approvers" in statement:
        become = ", ".join(sorted(statement["approvers"])) or "nobody"
        return change_message(statement), f"approvers become {become}"
    until = f"until {statement['expires']}, because: {statement['reason']}"
    if "volume" not in statement:
        return message(statement), f"pool {statement['pool']} {until}"
    try:
        to = public_key(statement["key"]).thumbprint
    except (BadKey, KeyError, AttributeError) as error:
        raise CliError(
            "the statement names no key that an answer could be sealed to", "Ask anew.", Exit.USAGE
        ) from error
    disk = f"{statement['volume']} of {statement['name']} ({statement['membership']})"
    return recovery_message(statement), f"the key of {disk} is given to {to} {until}"


def read_statement(file: Path) -> dict[str, Any]:
    """A file with a statement, and who signed it so far; raises CliError."""
    with reported_errors():
        content = file.read_bytes()[: MOST_BYTES + 1]
    try:
        document = json.decode(content, json.JsonLimits(max_bytes=MOST_BYTES, max_depth=6))
        statement, agreed = document["statement"], document["agreed"]
    except (JsonError, KeyError, TypeError) as error:
        raise CliError(f"{file} is not an override", "Make one with `fastness break-glass ask`.", Exit.USAGE) from error
    changes = isinstance(statement, dict) and isinstance(statement.get("approvers"), dict)
    about = (
        {"volume", "name", "membership", "key"} if isinstance(statement, dict) and "volume" in statement else {"pool"}
    )
    texts = isinstance(statement, dict) and (changes or about | {"reason", "expires"} <= statement.keys())
    if not texts or not isinstance(agreed, list) or not all(isinstance(entry, dict) for entry in agreed):
        raise CliError(f"{file} is not an override", "Make one with `fastness break-glass ask`.", Exit.USAGE)
    return {"statement": statement, "agreed": agreed}


def _signer(file: Path) -> Any:
    with reported_errors():
        stored = read_private(file)
    try:
        seed = base64.b64decode((stored or SecretBytes(b"")).reveal().strip(), validate=True)
    except ValueError:
        seed = b""
    if len(seed) != SEED_BYTES:
        raise CliError(f"{file} is not the key of an approver", "Make one with `fastness break-glass key`.", Exit.USAGE)
    return Ed25519Signer(SecretBytes(seed))


async def _uid(kubeconfig: Path | None, context: str) -> str:
    async with connected(kubeconfig, context) as cluster:
        return str((await cluster.get(CONFIDENTIAL_CLUSTER.resource, NAME))["metadata"]["uid"])


def _coming(people: dict[str, str]) -> str:
    return f"approvers will be {', '.join(sorted(people)) or 'nobody'}; the condition ApproversPending says from when"


async def _present(kubeconfig: Path | None, context: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The ConfidentialCluster, and who counts as an approver by now where the user may see that."""
    async with connected(kubeconfig, context) as cluster:
        present = await cluster.get(CONFIDENTIAL_CLUSTER.resource, NAME)
        try:
            stored = await cluster.get(CONFIG_MAP.resource, APPOINTMENTS, NAMESPACE)
        except (NotFound, Forbidden):
            return present, {}
        return present, dict(read_appointments(stored).counting)


async def _appoint(people: dict[str, str], notes: dict[str, str], kubeconfig: Path | None, context: str) -> None:
    """Write who shall be an approver: a lowering, which running this verb confirms for that very change."""
    async with connected(kubeconfig, context) as cluster:
        present = await cluster.get(CONFIDENTIAL_CLUSTER.resource, NAME)
        approvers = [{"name": name, "key": key} for name, key in sorted(people.items())]
        glass = {"delay": "1h", **(present["spec"].get("breakGlass") or {}), "approvers": approvers}
        word = confirmation(present, {"spec": {**present["spec"], "breakGlass": glass}})
        meta = {
            "resourceVersion": present["metadata"]["resourceVersion"], "annotations": {**notes, CONFIRM_LOWER: word},
        }  # fmt: skip
        patch = {"metadata": meta, "spec": {"breakGlass": glass}}
        options = WriteOptions(manager="fastness-cli")
        await cluster.patch(CONFIDENTIAL_CLUSTER.resource, NAME, patch, PatchType.MERGE, options=options)


async def _annotate(text: str | None, kubeconfig: Path | None, context: str) -> None:
    async with connected(kubeconfig, context) as cluster:
        if text is not None:
            present = await cluster.get(CONFIDENTIAL_CLUSTER.resource, NAME)
            notes = {**(present["metadata"].get("annotations") or {}), ANNOTATION: text}
            try:
                agreed_override(
                    {**present, "metadata": {**present["metadata"], "annotations": notes}}, listed_approvers(present)
                )
            except BadOverride as error:
                hint = "Names and keys must be those of spec.breakGlass.approvers, and these must count by now."
                raise CliError(f"{error} ({error.code})", hint, Exit.NO) from error
        patch = {"metadata": {"annotations": {ANNOTATION: text}}}
        options = WriteOptions(manager="fastness-cli")
        await cluster.patch(CONFIDENTIAL_CLUSTER.resource, NAME, patch, PatchType.MERGE, options=options)
