"""What an installation asks for: a ConfidentialCluster that is made once, when everything that guards it is there.

An installer writes the ConfigMap `first-cluster` with the other objects, in one go, when neither the kind is served nor the
webhook answers. The controllers make the ConfidentialCluster of it when both do (`loops.first_cluster`), and note there what came
of it. A note that says it is done is the end: a ConfidentialCluster that somebody deletes later does not come back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, MODES, NAME
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import annotations_of
from fastness.runtime.errors import FastnessError

CONFIG_MAP: Final = "first-cluster"
NOTE: Final = "fastness.dev/first-cluster"
MADE: Final = "made"
WAS_THERE: Final = "there already"
REFUSED: Final = "refused"
FIELDS: Final = ("mode", "simulated", "awaitWebhook")
_TRUTHS: Final = {"true": True, "false": False}


class BadFirstCluster(FastnessError):
    """The ConfigMap asks for something that cannot be made."""

    code = "bad-first-cluster"


@dataclass(frozen=True, slots=True)
class FirstCluster:
    """What is asked for; `await_webhook` says that it is made under the webhook's eyes or not at all."""

    mode: str
    simulated: bool
    await_webhook: bool

    @classmethod
    def of(cls, config_map: JsonObject) -> FirstCluster:
        """Read the ConfigMap strictly; raises BadFirstCluster."""
        data: JsonObject = config_map.get("data") or {}
        for field in data:
            if field not in FIELDS:
                raise BadFirstCluster(f"data.{field} is not known", f"The fields are {', '.join(FIELDS)}.")
        mode = data.get("mode", "")
        if mode not in MODES:
            raise BadFirstCluster(f"data.mode: {str(mode)[:40]!r} is no mode", f"Say one of {', '.join(MODES)}.")
        return cls(mode, _truth(data, "simulated", usual=False), _truth(data, "awaitWebhook", usual=True))

    def body(self) -> JsonObject:
        """The object to create."""
        return {
            "apiVersion": CONFIDENTIAL_CLUSTER.api_version, "kind": CONFIDENTIAL_CLUSTER.kind, "metadata": {"name": NAME},
            "spec": {"mode": self.mode, "simulated": self.simulated},
        }  # fmt: skip


def is_done(config_map: JsonObject) -> bool:
    """Whether the ConfigMap has had its effect, for good."""
    return annotations_of(config_map).get(NOTE, "") in (MADE, WAS_THERE)


def _truth(data: JsonObject, field: str, *, usual: bool) -> bool:
    text = data.get(field)
    if text is None:
        return usual
    if text not in _TRUTHS:
        raise BadFirstCluster(f"data.{field}: {str(text)[:40]!r} is not a truth", 'Write "true" or "false".')
    return _TRUTHS[text]
