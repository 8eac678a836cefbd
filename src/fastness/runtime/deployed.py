"""Files that come with the program and are no code: units and the dracut module of images.

They lie in the package when it is installed, and in `deploy` of the source tree otherwise.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import fastness
from fastness.runtime.errors import FastnessError


class NotDeployed(FastnessError):
    """The installation lacks files that belong to it."""

    code = "not-deployed"
    hint = "Install the package anew."


def deployed_files() -> Path:
    """The directory with `systemd` and `dracut`; raises NotDeployed."""
    package = Path(fastness.__file__).parent
    for home in (package / "deploy", package.parents[1] / "deploy"):
        if (home / "dracut").is_dir():
            return home
    raise NotDeployed("this installation has no units and no dracut module")


@cache
def deployed_unit(name: str) -> str:
    """The text of one of the agent's units; raises NotDeployed."""
    try:
        return (deployed_files() / "systemd" / name).read_text()
    except OSError as error:
        raise NotDeployed(f"this installation has no {name}") from error
