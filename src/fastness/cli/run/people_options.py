"""The identity provider that people log in at, as options of `fastness up` and `fastness serve`; the names are kube-apiserver's.

@people_options
def verb(…, **given): ...
people_of(given)   the settings, None without an issuer; takes the options out of `given`
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from fastness.cli.errors import CliError, Exit
from fastness.crypto.secret import SecretText

F = TypeVar("F", bound=Callable[..., Any])
_FILE = click.Path(path_type=Path, dir_okay=False)
_OPTIONS = (
    click.option(
        "--oidc-issuer-url", default="", help="Identity provider that people log in at (https, as its tokens say it)."
    ),
    click.option("--oidc-client-id", default="", help="What we are called there; tokens must be for it."),
    click.option(
        "--oidc-client-secret-file",
        type=_FILE,
        help="File with the secret of that client, for the page, where it has one.",
    ),
    click.option("--oidc-username-claim", default="sub", show_default=True, help="Claim with the name of a person."),
    click.option(
        "--oidc-username-prefix",
        default="oidc:",
        show_default=True,
        help="Put before names, to keep them apart from others.",
    ),
    click.option("--oidc-groups-claim", default="groups", show_default=True, help="Claim with the groups of a person."),
    click.option("--oidc-groups-prefix", default="oidc:", show_default=True, help="Put before groups."),
    click.option("--oidc-ca-file", type=_FILE, help="Authorities of the provider, PEM; default those of the system."),
    click.option("--page-url", default="", help="Where people reach the page (https), as the provider is told."),
)


def people_options(function: F) -> F:
    """The options of an identity provider."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def people_of(given: dict[str, Any]) -> Any:
    """What the page is told about the provider, None without one; raises CliError."""
    taken = {name: given.pop(name) for name in list(given) if name.startswith("oidc_") or name == "page_url"}
    issuer, client = taken["oidc_issuer_url"], taken["oidc_client_id"]
    if not issuer and not client:
        return None
    if not issuer or not client:
        raise CliError(
            "an identity provider needs --oidc-issuer-url and --oidc-client-id", "Give both, or none.", Exit.USAGE
        )
    if taken["page_url"] and not taken["page_url"].startswith("https://"):
        raise CliError("--page-url is not an https URL", "All doors are served over TLS only.", Exit.USAGE)
    # A wrong option must not wait for the rooms.
    from fastness.keys.errors import IssuerUnreachable
    from fastness.keys.people import PeopleSettings, require_settings
    from fastness.page.server import ProviderOptions

    settings = PeopleSettings(
        issuer, client, taken["oidc_username_claim"], taken["oidc_username_prefix"], taken["oidc_groups_claim"],
        taken["oidc_groups_prefix"], taken["oidc_ca_file"],
    )  # fmt: skip
    try:
        require_settings(settings)
    except IssuerUnreachable as error:
        raise CliError(str(error), error.hint, Exit.USAGE) from error
    return ProviderOptions(settings, taken["page_url"], _secret(taken["oidc_client_secret_file"]))


def _secret(file: Path | None) -> SecretText:
    try:
        return SecretText(file.read_text().strip() if file is not None else "")
    except (OSError, ValueError) as error:
        raise CliError(
            f"{file} cannot be read: {error}", "Give a file with the secret of the client.", Exit.MISSING
        ) from error
