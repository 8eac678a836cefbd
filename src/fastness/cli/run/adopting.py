"""What an administrator names with `--adopt`: families of loops, and namespaces in which objects speak for the cluster.

--adopt kata                            do this work although another operator is active
--adopt namespace/trustee-operator-system   believe what is written there as what is written in fastness-system
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import click

from fastness.formats.names import dns1123_label
from fastness.kube.places import Places

FAMILIES: Final = ("machine-config", "operators", "features", "kata")
PREFIX: Final = "namespace/"


class Adoptable(click.ParamType[str]):
    """A family, or `namespace/NAME`."""

    name = "what"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """How help shows it."""
        return f"[{'|'.join(FAMILIES)}|{PREFIX}NAME]"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The value, if it is one."""
        named = value.startswith(PREFIX) and not dns1123_label(value.removeprefix(PREFIX))
        if value not in FAMILIES and not named:
            self.fail(f"{value!r} is neither one of {', '.join(FAMILIES)} nor {PREFIX}NAME", param, ctx)
        return value


def places_of(adopted: Iterable[str]) -> Places:
    """Where objects count in a cluster that is not ours alone: at home, and in the namespaces that were named."""
    return Places(adopted=frozenset(one.removeprefix(PREFIX) for one in adopted if one.startswith(PREFIX)))
