"""`fastness secret`: sealed secrets for confidential containers, made and checked without a cluster.

fastness secret keygen sealing.jwk                          a signing key; the public half goes to the broker
fastness secret seal vault --uri kbs:///default/db/password --kid kbs:///default/sealing/pub --key sealing.jwk
fastness secret seal envelope --key-id kbs:///default/wrap/1 --wrapping wrap.key --kid … --key … < data
fastness secret verify --key sealing.pub.jwk < text
fastness secret unseal --key sealing.pub.jwk --wrapping wrap.key < text
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from fastness.cli.errors import CliError, Exit
from fastness.cli.output import output_option, show_json, tell
from fastness.cli.room_errors import reported_errors
from fastness.crypto.errors import BadSignature, BrokenSeal
from fastness.crypto.jwk import PublicJwk, private_key, public_jwk, public_key
from fastness.crypto.keys import PrivateKey
from fastness.crypto.secret import SecretBytes
from fastness.formats import json
from fastness.formats.errors import FormatError
from fastness.keys.key_files import read_private, write_private, write_public
from fastness.protocol.kbs_path import parse_uri
from fastness.protocol.sealed import EnvelopeSecret, VaultSecret
from fastness.runtime.clock import SystemEntropy
from fastness.workloads.sealed_secrets import checked, opened
from fastness.workloads.sealed_secrets import envelope as make
from fastness.workloads.sealed_secrets import seal as sealed

F = TypeVar("F", bound=Callable[..., Any])
_FILE = click.Path(path_type=Path, dir_okay=False)
MAX_INPUT = 1024 * 1024


@click.group()
def secret() -> None:
    """Secrets that lie in the cluster and open only inside an attested guest."""


@secret.group()
def seal() -> None:
    """Make a sealed secret; prints its text, or a Secret that holds it."""


def _signing(function: F) -> F:
    options = [
        click.option("--kid", required=True, help="Where guests find the public key: kbs:///…, or a file name."),
        click.option(
            "--key", "key_file", required=True, type=_FILE, help="The private signing key, JWK or PEM (P-256)."
        ),
        click.option("--manifest", default="", metavar="NAME", help="Print a Secret of this name that holds the text."),
        click.option("--field", default="password", show_default=True, help="The key of that Secret."),
    ]
    signed: Any = function
    for option in reversed(options):
        signed = option(signed)
    return cast("F", signed)


@secret.command()
@click.argument("path", type=_FILE)
def keygen(path: Path) -> None:
    """Write a new signing key to PATH (0600) and its public half beside it, as <PATH>.pub."""
    if path.exists():
        raise CliError(f"{path} exists", "Choose another name; keys are not overwritten.", Exit.USAGE)
    made = PrivateKey.generate(SystemEntropy())
    with reported_errors():
        write_private(path, made.to_pem())
        write_public(Path(f"{path}.pub"), json.encode({**public_jwk(made, "ES256"), "use": "sig"}) + b"\n")
    tell(f"{path} signs; put {path}.pub where the guests look for it")


@seal.command()
@click.option("--uri", required=True, help="The resource, as kbs:///repository/type/tag.")
@_signing
def vault(uri: str, kid: str, key_file: Path, manifest: str, field: str) -> None:
    """A secret that names a resource of the key broker."""
    with _understood():
        made = VaultSecret("kbs", str(parse_uri(uri)))
        _print(made, kid, _private(key_file), manifest, field)


@seal.command()
@click.option(
    "--key-id", required=True, help="The resource that holds the wrapping key, as kbs:///repository/type/tag."
)
@click.option("--wrapping", required=True, type=_FILE, help="That key: a file of 32 bytes.")
@_signing
def envelope(key_id: str, wrapping: Path, kid: str, key_file: Path, manifest: str, field: str) -> None:
    """A secret that carries its data, read from standard input, encrypted."""
    with _understood():
        data = SecretBytes(_input())
        made = make(data, str(parse_uri(key_id)), _wrapping(wrapping), SystemEntropy())
        _print(made, kid, _private(key_file), manifest, field)


@secret.command()
@click.option("--key", "key_file", required=True, type=_FILE, help="The public key, as JWK.")
@output_option
def verify(key_file: Path, output: str) -> None:
    """Say what the sealed secret on standard input is, if this key signed it."""
    with _understood():
        sealed_secret = _checked(key_file)
    kind = "vault" if isinstance(sealed_secret, VaultSecret) else "envelope"
    where = sealed_secret.name if isinstance(sealed_secret, VaultSecret) else sealed_secret.key_id
    if output == "json":
        show_json({"type": kind, "provider": sealed_secret.provider, "resource": where})
    else:
        click.echo(f"{kind} of {sealed_secret.provider}: {where}")


@secret.command()
@click.option("--key", "key_file", required=True, type=_FILE, help="The public key, as JWK.")
@click.option("--wrapping", type=_FILE, help="The key that wraps an envelope: a file of 32 bytes.")
def unseal(key_file: Path, wrapping: Path | None) -> None:
    """Open the envelope on standard input; of a vault secret, print the resource to ask for."""
    with _understood():
        sealed_secret = _checked(key_file)
        if not isinstance(sealed_secret, EnvelopeSecret):
            click.echo(sealed_secret.name)
            return
        if wrapping is None:
            raise CliError("an envelope opens with the key that wraps it", "Give it with --wrapping.", Exit.USAGE)
        click.echo(opened(sealed_secret, _wrapping(wrapping)).reveal(), nl=False)


@contextmanager
def _understood() -> Iterator[None]:
    try:
        with reported_errors():
            yield
    except FormatError as error:
        raise CliError(str(error), error.hint, Exit.USAGE) from error
    except CliError as error:
        if isinstance(error.__cause__, BadSignature | BrokenSeal):
            raise CliError(error.message, error.hint, Exit.NO) from error
        raise


def _print(made: VaultSecret | EnvelopeSecret, kid: str, key: PrivateKey, manifest: str, field: str) -> None:
    text = sealed(made, kid, key)
    if not manifest:
        click.echo(text)
        return
    data = {field: base64.b64encode(text.encode()).decode()}
    show_json({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": manifest}, "type": "Opaque", "data": data})


def _checked(key_file: Path) -> VaultSecret | EnvelopeSecret:
    text = _input().decode("ascii", "replace").strip()
    return checked(text, _public(key_file))


def _input() -> bytes:
    data = sys.stdin.buffer.read(MAX_INPUT + 1)
    if len(data) > MAX_INPUT:
        raise CliError(f"more than {MAX_INPUT} bytes on standard input", code=Exit.USAGE)
    return data


def _private(path: Path) -> PrivateKey:
    content = read_private(path)
    if content is None:
        raise CliError(f"{path} does not exist", "Make a key with `fastness secret keygen`.", Exit.USAGE)
    if content.reveal().lstrip().startswith(b"{"):
        return private_key(json.decode(content.reveal()))
    return PrivateKey.from_pem(content)


def _public(path: Path) -> PublicJwk:
    value = json.decode(path.read_bytes())
    return public_key(value if isinstance(value, dict) else {})


def _wrapping(path: Path) -> SecretBytes:
    content = read_private(path)
    if content is None:
        raise CliError(f"{path} does not exist", "It holds the 32 bytes of the wrapping key.", Exit.USAGE)
    return content
