"""Whether a rendered config is meant for the machine that asks for it by name: the same at gate, broker and config server.

The controllers write a Machine's configs on it before they tell its Node. A cache may be behind them, and a config that was taken
back must not leave a door that has not heard of it; so the Machine is read at the API, for every request of a running machine.
Gate and broker look once more at the Machine that they read just before the bytes leave (`releases.py`).
"""

from __future__ import annotations

from fastness.attestation.live.machines import find_machine
from fastness.attestation.machine.machine import is_subject
from fastness.http import Request
from fastness.http.refusals import Refusal
from fastness.kinds.trusted_execution.subject import Subject, key_kind
from fastness.kube.errors import BadRequest
from fastness.kube.port import Cluster
from fastness.machineconfig.rollout.assigned import is_assigned
from fastness.protocol.delivered import DeliveredError, parse_rendered


def rendered_in(request: Request) -> str:
    """The rendered config that a request names, empty for one of a machine that boots; raises Refusal."""
    try:
        return parse_rendered(request.query)
    except BadRequest as error:
        raise Refusal(400, "bad-query", error.message) from error
    except DeliveredError as error:
        raise Refusal(400, error.code, error.message) from error


class Assignments:
    """Knows which rendered configs are whose."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def check(self, subject: Subject, rendered: str, verdict: str = "") -> None:
        """Let a machine have a rendered config, while it is the subject that it proved to be; raises Refusal, ApiError."""
        machine = await find_machine(self._cluster, key_kind(subject.tee), subject.thumbprint)
        if machine is None or not is_subject(machine, subject) or not is_assigned(machine, rendered):
            raise not_assigned(verdict)


def not_assigned(verdict: str) -> Refusal:
    """The same words whether there is such a config or not: names of other machines' configs are not told."""
    return Refusal(403, "not-assigned", "this is neither the desired nor the current config of the machine", verdict)
