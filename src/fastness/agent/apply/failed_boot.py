"""A system that the machine was rebooted into and did not come up with: remembered, so that nobody reboots into it for ever.

One record in the agent's own directory: what was asked for, and what was found. It is there until the machine came up with
another system that was asked for, or until somebody forces another try.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from fastness.agent.apply.ports import Files
from fastness.agent.host.states import ABSENT, Deployment, File
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.formats.image_reference import same_image

PATH: Final = "/failed-boot"
MAX_REASON: Final = 1500


class FailedBoot(NamedTuple):
    """The system that did not come up, and why as far as anybody can tell."""

    deployment: Deployment
    reason: str

    def concerns(self, deployment: Deployment) -> bool:
        """Whether a deployment is the one that failed."""
        same_rest = self.deployment._replace(image="") == deployment._replace(image="")
        return same_rest and same_image(self.deployment.image, deployment.image)


def write_failed_boot(state: Files, failed: FailedBoot) -> None:
    """Remember, durably; raises DriverError."""
    value = {"deployment": list(failed.deployment), "reason": failed.reason[:MAX_REASON]}
    state.put(PATH, File(json.encode(value), 0o600))


def read_failed_boot(state: Files) -> FailedBoot | None:
    """What is remembered; a record that cannot be read is none: the worst that follows is one more reboot."""
    entry = state.look(PATH)
    if not isinstance(entry, File):
        return None
    try:
        value = json.decode(entry.content)
        image, arguments, kernel, extensions = value["deployment"]
        return FailedBoot(
            Deployment(str(image), tuple(arguments), str(kernel), tuple(extensions)), str(value["reason"])
        )
    except (JsonError, KeyError, TypeError, ValueError):
        return None


def forget_failed_boot(state: Files) -> None:
    """Another try is in order; raises DriverError."""
    state.put(PATH, ABSENT)
