"""Keeps what a machine has beside its config as the control plane says, whatever else the machine is doing.

    told by annotation? ─ fetch, where configs come from ─ write (`trust_writer.py`) ─ tell which document the machine has

It works in paused pools and on degraded nodes, and what fails here holds up no config: it is told once, and tried again. What
was written once is looked at again with everything else, so that a file that somebody changed comes back without a question to
anybody. The annotation chooses nothing: whoever can write it has the agent ask what is good now.

A new authority of the API has every kubelet start anew, and all nodes are told at once: each waits for its turn in a window, by
its name, so that the API is not asked for everything by everybody in one second. Only that waits; certificates do not. It takes
no place in the budget of a pool, because pods stay where they are. A machine that does not believe the API any more waits no
longer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Protocol

from fastness.agent.apply.cluster import RenderedConfigs
from fastness.agent.apply.report import Reporter
from fastness.agent.apply.trust_writer import TrustWriter
from fastness.agent.errors import AgentError
from fastness.agent.host.errors import DriverError
from fastness.crypto.digests import sha256
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of
from fastness.kube.errors import ApiError
from fastness.machineconfig.rollout.nodes import rendered_pool
from fastness.machineconfig.trust.files import KUBECONFIGS
from fastness.observe.logs import logger
from fastness.protocol.node_trust import NodeTrust
from fastness.runtime.clock import Clock

MOST_NAMED = 10
_log = logger("agent")


class Blocking(Protocol):
    """Does blocking work to its end."""

    def __call__(self, work: Callable[[], Any]) -> Awaitable[Any]:
        """What the work gives."""


def turn_of(node: str, window: float) -> float:
    """After how many seconds of a window it is a node's turn: the same for a name, and even over many."""
    return window * int.from_bytes(sha256(node.encode()).value[:4]) / 2**32


class NodeTrustKeeper:
    """Keeps the files of one node; `behind` says that something is left to do, `turn` for how long a restart waits.

    Kubelets are restarted within `window` seconds, each at its time.
    """

    def __init__(
        self, node: str, writer: TrustWriter, configs: RenderedConfigs, reporter: Reporter, blocking: Blocking,
        clock: Clock, window: float,
    ) -> None:  # fmt: skip
        self.behind = False
        self.turn = 0.0
        self._clock = clock
        self._window = window
        self._due = ("", 0.0)
        self._node = node
        self._writer = writer
        self._configs = configs
        self._reporter = reporter
        self._blocking = blocking
        self._complaint = ""
        self._renewed = False

    async def keep(self, node: JsonObject, managed: Collection[str]) -> None:
        """Bring the machine to what it should have; `managed` are the paths of its config."""
        try:
            self.behind = not await self._kept(annotations_of(node), managed)
            self._complaint = ""
        except (AgentError, DriverError, ApiError) as error:
            self.behind = True
            await self._complain(str(error))

    async def _kept(self, notes: Mapping[str, str], managed: Collection[str]) -> bool:
        """Do it; whether the machine has what it was told about."""
        desired, memory = notes.get(names.DESIRED_TRUST, ""), await self._blocking(self._writer.memory)
        trust = memory.trust if memory is not None else None
        if desired and (trust is None or trust.name != desired):
            config = notes.get(names.DESIRED_CONFIG) or notes.get(names.CURRENT_CONFIG, "")
            trust = await self._configs.trust(rendered_pool(config), desired)
        if trust is None:
            return True
        coming = trust
        self.turn = await self._until_turn(coming, managed)
        changed = await self._blocking(lambda: self._writer.write(coming, managed, restart=not self.turn))
        self._renewed = self._renewed or not {*changed}.isdisjoint(KUBECONFIGS)
        if changed:
            more = f" and {len(changed) - MOST_NAMED} more" if len(changed) > MOST_NAMED else ""
            text = f"{trust.name}: wrote {', '.join(changed[:MOST_NAMED])}{more}"
            await self._reporter.event(names.Event.TRUST_WRITTEN, text)
        if self.turn:
            return True
        await self._reporter.annotate(trust=trust.name)
        # A config server whose cache is behind gave an older one: it is asked again soon.
        return desired in ("", trust.name)

    async def _until_turn(self, trust: NodeTrust, managed: Collection[str]) -> float:
        """For how long the kubelet is left as it is; 0 when it need not start anew, or may now."""
        if not await self._blocking(lambda: self._writer.restarts(trust, managed)):
            return 0.0
        name, due = self._due
        if name != trust.name:
            due = self._clock.monotonic() + turn_of(self._node, self._window)
            self._due = trust.name, due
        return max(0.0, due - self._clock.monotonic())

    async def distrusted(self) -> None:
        """The API server shows a certificate that the machine does not believe: a start that was put off is due.

        The agent itself read its kubeconfig when it started, as the kubelet did; where that has another authority since, it ends
        by having its service restarted.
        """
        self._due = self._due[0], 0.0
        try:
            if await self._blocking(self._writer.start_anew):
                _log.warning("agent.trust", node=self._node, error="the kubelet starts anew, for a new authority")
            if self._renewed:
                await self._blocking(self._writer.restart_agent)
                self._renewed = False
        except DriverError as error:
            await self._complain(error.message)

    async def _complain(self, text: str) -> None:
        """Tell what is wrong, once."""
        if text == self._complaint:
            return
        self._complaint = text
        _log.warning("agent.trust", node=self._node, error=text)
        await self._reporter.event(names.Event.TRUST_NOT_WRITTEN, text, warning=True)
