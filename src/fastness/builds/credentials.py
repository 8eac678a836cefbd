"""A credential of a registry in what goes into an image: whoever pulls the image would read it.

A build cannot see credentials (decision 88), so one that is in an image was written there: into the Containerfile, or into a file
of a MachineConfig. What the build itself pulls and pushes with is known here and looked for; other secrets nobody can tell from
other words.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fastness.builds.inputs import BuildInputs
from fastness.formats import oci

_SHORTEST: Final = 8
"""What is shorter is found in words that are no secret."""


def credential_in(made_of: BuildInputs, secrets: Iterable[bytes]) -> str:
    """Which part of an image would hold a credential, as a sentence; empty for none."""
    forms = {form.encode() for content in secrets for form in oci.passwords(content) if len(form) >= _SHORTEST}
    parts: list[tuple[str, bytes]] = [("the Containerfile", made_of.layer.encode())]
    parts += [(each.path, each.content) for each in made_of.files]
    for place, content in parts:
        if any(form in content for form in forms):
            return (
                f"{place} holds a password of a registry, which everybody would read who pulls the image: take it out, and "
                "change the password if others have seen it"
            )
    return ""
