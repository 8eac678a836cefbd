"""Writes what a machine has beside its config: certificates and credentials that change without a rollout.

    document ─ remember it as pending ─ files, directories of registries that go ─ kubeconfigs ─ remember it as done

* Each file is replaced whole or not at all, and one that says the right thing is not touched. What is about to be written is on
  the disk before the first of them: after a power cut between two files the next start goes on, without asking anybody.
* A kubelet reads its kubeconfig when it starts. It is stopped, the file is written, and it is started; that it was stopped is
  remembered first, so that whoever comes after a crash starts it.
* A path that the config manages is the config's: writing there would be drift.
* A file whose source became empty stays, with a lone newline; `machineconfig.trust.files` has the reasons.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from fastness.agent.apply.ports import Host
from fastness.agent.host.states import ABSENT, File
from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.trust.files import (
    KUBECONFIGS,
    PRIVATE,
    Memory,
    TrustFile,
    parse_memory,
    registry_file,
    trust_files,
)
from fastness.machineconfig.trust.kubeconfig import authority_in, may_wait, with_authority
from fastness.protocol.node_trust import NodeTrust

KUBELET: Final = "kubelet.service"
AGENT: Final = "fastness-agent.service"
DUE, DEFERRED = "due", "deferred"


class TrustWriter:
    """Keeps the files of one machine."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def memory(self) -> Memory | None:
        """What was written last, or was about to be; raises DriverError."""
        state = self._host.root.look(names.NODE_TRUST_FILE)
        return parse_memory(state.content) if isinstance(state, File) else None

    def restarts(self, trust: NodeTrust, managed: Collection[str]) -> bool:
        """Whether a document has the kubelet start anew; raises DriverError."""
        memory = self.memory()
        if memory is not None and (memory.restart == DUE or (memory.trust == trust and not memory.pending)):
            return False  # it is stopped already, or has what the document says
        configs = self._kubeconfigs(trust.api_ca, managed)
        return bool(configs) and not all(_may_wait(old, new) for old, new in configs.values())

    def write(self, trust: NodeTrust, managed: Collection[str], *, restart: bool = True) -> list[str]:
        """Bring the machine to a document; the paths that were changed. Raises DriverError, after which it can be done again.

        Without `restart` kubeconfigs stay as they are, and the document stays pending.
        """
        before = self.memory()
        hosts = tuple(dict.fromkeys((*(before.hosts if before else ()), *trust.registries)))
        left = before.restart if before else ""
        files = {path: file for path, file in trust_files(trust).items() if path not in managed}
        changes = {path: file for path, file in files.items() if self._differs(path, file)}
        stale = [host for host in hosts if host not in trust.registries and registry_file(host) not in managed]
        configs = self._kubeconfigs(trust.api_ca, managed) if restart else {}
        # Nothing to do is the common case, and must cost no write: every agent looks again and again.
        if (
            before is not None
            and before.trust == trust
            and not ((before.pending and restart) or changes or stale or configs or left == DUE)
        ):
            return []
        plan = Memory(trust, hosts, pending=True, restart=left)
        self._remember(plan)
        for path, file in changes.items():
            self._put(path, file)
        gone = [path for host in stale for path in self._without(host)]
        left = self._renew(plan, configs)
        self._remember(Memory(trust, tuple(trust.registries), pending=not restart, restart=left))
        return [*changes, *gone, *configs]

    def resume(self) -> None:
        """Start a kubelet that was stopped by an agent which died; the rest follows with `write`. Raises DriverError."""
        memory = self.memory()
        if memory is not None and memory.restart == DUE:
            self._host.units.daemon_reload()
            self._host.units.start(KUBELET)

    def start_anew(self) -> bool:
        """Start the kubelet anew if that was put off until somebody misses an authority; whether it was. Raises DriverError."""
        memory = self.memory()
        if memory is None or memory.restart != DEFERRED:
            return False
        self._remember(replace(memory, restart=DUE))
        self._started()
        self._remember(replace(memory, restart=""))
        return True

    def restart_agent(self) -> None:
        """Have this very service started anew; raises DriverError where it is none."""
        self._host.units.restart(AGENT)

    def _differs(self, path: str, file: TrustFile) -> bool:
        state = self._host.root.look(path)
        # A source that has nothing, and never had, leaves no empty files behind.
        if not isinstance(state, File):
            return bool(file.content.strip())
        return state.content != file.content

    def _put(self, path: str, file: TrustFile) -> None:
        state = self._host.root.look(path)
        # What an administrator narrowed stays narrow.
        kept = state if isinstance(state, File) else File(b"", file.mode)
        self._host.root.put(path, File(file.content, kept.mode, kept.uid, kept.gid))

    def _without(self, host: str) -> list[str]:
        """Forget the authority of a registry; its directory goes unless something else is in it."""
        path, root = registry_file(host), self._host.root
        present = isinstance(root.look(path), File)
        if present:
            root.put(path, ABSENT)
            root.remove_empty(path.rpartition("/")[0])
        return [path] if present else []

    def _kubeconfigs(self, bundle: str, managed: Collection[str]) -> dict[str, tuple[File, File]]:
        """Kubeconfigs that have another authority inside: as they are, and as they should be."""
        if not bundle:
            return {}
        changes: dict[str, tuple[File, File]] = {}
        for path in KUBECONFIGS:
            state = self._host.root.look(path) if path not in managed else ABSENT
            if isinstance(state, File):
                text = state.content.decode("utf-8", "surrogateescape")
                coming = with_authority(text, bundle).encode("utf-8", "surrogateescape")
                if coming != state.content:
                    changes[path] = (state, replace(state, content=coming))
        return changes

    def _renew(self, plan: Memory, configs: dict[str, tuple[File, File]]) -> str:
        """Write kubeconfigs while the kubelet is stopped, or leave its start for later; what is left to do."""
        if not configs and plan.restart != DUE:
            return plan.restart
        if configs and plan.restart != DUE and all(_may_wait(old, new) for old, new in configs.values()):
            self._write(configs)
            return DEFERRED
        # Before it is stopped: nobody else would start it again.
        self._remember(replace(plan, restart=DUE))
        self._host.units.stop(KUBELET)
        self._write(configs)
        self._host.units.daemon_reload()
        self._host.units.start(KUBELET)
        return ""

    def _write(self, configs: dict[str, tuple[File, File]]) -> None:
        for path, (_, coming) in configs.items():
            self._host.root.put(path, coming)

    def _started(self) -> None:
        self._host.units.stop(KUBELET)
        self._host.units.daemon_reload()
        self._host.units.start(KUBELET)

    def _remember(self, memory: Memory) -> None:
        self._host.root.put(names.NODE_TRUST_FILE, File(memory.encode(), PRIVATE, 0, 0))


def _may_wait(old: File, new: File) -> bool:
    before, after = (authority_in(state.content.decode("utf-8", "surrogateescape")) for state in (old, new))
    return may_wait(before, after)
