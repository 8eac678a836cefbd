"""The policy engine's opinion of agent policies, for doors that must know it before they let a workload in.

The engine runs in a child of its own (`policytrial`), a few at a time, and its answer is remembered by the digest of the policy.
A policy that it cannot read, or not in time, counts as one that does not parse, and is asked about again next time: the failure
may have been the machine's. Both the embedded API and the webhook ask here, so that they refuse the same policies.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final

from fastness.crypto.digests import fingerprint
from fastness.kube.admission import PolicyTrial
from fastness.workloads.live.agent_policy import Asked, asked

ENGINES: Final = 4
REMEMBERED: Final = 256
ENGINE_SECONDS: Final = 6.0  # an API server waits ten for a webhook

Trial = Callable[[str], Awaitable[Asked]]


async def in_a_child(text: str) -> Asked:
    """The engine's opinion of a policy, from a process of its own."""
    return await asked(text, seconds=ENGINE_SECONDS)


class PolicyTrials:
    """Asks the engine about policies, a few at a time, each once."""

    def __init__(self, trial: Trial = in_a_child, engines: int = ENGINES) -> None:
        self._trial = trial
        self._free = asyncio.Semaphore(engines)
        self._known: OrderedDict[bytes, PolicyTrial] = OrderedDict()

    async def of(self, text: str) -> PolicyTrial:
        """What the engine says of a policy."""
        key = fingerprint(text.encode())
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        async with self._free:
            said = await self._trial(text)
        found = PolicyTrial(said.opened, said.error)
        if not found.error:
            self._known[key] = found
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return found
