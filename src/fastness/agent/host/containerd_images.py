"""Images of containerd, through its own program `ctr`, in the namespace where Kubernetes looks.

An image is pinned by a label that containerd's part for Kubernetes reads; a second label says that we set it, because the image
of pods' sandboxes is pinned by containerd itself and stays so. Containerd answers for the first one only since 1.6.29 and
1.7.14; before, a kubelet that cleans up removes a pinned image like any other, so nothing is claimed there.

Pulls go through the same `hosts.toml` files as those of pods, mirrors first. A password is typed into a terminal and never
stands on a command line. `ctr` would show it to every host that it asks, so where a registry has mirrors none is given: a mirror
must not learn the password of the registry that it stands in for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from fastness.agent.host.errors import CommandFailed, ImageFailure
from fastness.agent.host.files import RootedFiles
from fastness.agent.host.process import Ask, ask
from fastness.agent.host.states import File
from fastness.formats import oci
from fastness.formats.errors import FormatError

SOCKET: Final = Path("/run/containerd/containerd.sock")
HOSTS: Final = "/etc/containerd/certs.d"
CREDENTIALS: Final = "/var/lib/kubelet/config.json"
PINNED: Final = ("io.cri-containerd.pinned", "pinned")
OURS: Final = ("fastness.dev/pinned", "true")
OLDEST: Final = {(1, 6): 29, (1, 7): 14}
_VERSION: Final = re.compile(r"Server:\s+Version:\s+v?(\d+)\.(\d+)\.(\d+)", re.ASCII)


class ContainerdImages:
    """The images of one containerd."""

    def __init__(self, root: RootedFiles, platform: str, socket: Path = SOCKET, ask: Ask = ask) -> None:
        self._root = root
        self._platform = platform
        self._ask = ask
        self._base = ["ctr", "--address", str(socket), "--namespace", "k8s.io"]
        self._hosts = str(root.root / HOSTS.removeprefix("/"))

    async def obstacle(self) -> str:
        """Why this version does not keep pinned images; empty where it does."""
        match = _VERSION.search((await self._ctr("version")).decode(errors="replace"))
        if match is None:
            return "containerd does not tell its version"
        major, minor, patch = map(int, match.groups())
        least = OLDEST.get((major, minor), 0 if (major, minor) > max(OLDEST) else None)
        if least is not None and patch >= least:
            return ""
        return f"containerd {major}.{minor}.{patch} does not keep pinned images: it needs 1.6.29, 1.7.14 or later"

    async def look(self, images: Sequence[str]) -> Mapping[str, bool]:
        """Those that have all of their content here, unpacked, with whether they are pinned."""
        if not images:
            return {}
        table = (await self._ctr("images", "check")).decode(errors="replace")
        pinned = await self._labelled(PINNED)
        present: dict[str, bool] = {}
        asked = frozenset(images)
        for line in table.splitlines():
            name, *words = line.split()
            if name in asked and "complete" in words and words[-1] == "true":
                present[name] = name in pinned
        return present

    async def size(self, image: str) -> int:
        """The compressed size for this machine; raises ImageFailure, CommandFailed."""
        try:
            reference = oci.reference(image)
            content = oci.manifest(await self._object(reference))
            if isinstance(content, oci.Index):
                content = oci.manifest(await self._object(reference.at(content.of(self._platform).digest)))
        except FormatError as error:
            raise ImageFailure(f"{image}: {error}") from error
        return content.size if isinstance(content, oci.Manifest) else 0

    async def pull(self, image: str) -> None:
        """Fetch and unpack; raises CommandFailed."""
        options, typed = self._access(oci.reference(image))
        await self._ctr("images", "pull", *options, image, typed=typed)

    async def pin(self, images: Sequence[str]) -> None:
        """Label these, and take the labels from others that have them from us."""
        mine, pinned = await self._labelled(OURS), await self._labelled(PINNED)
        for image in images:
            if image not in mine or image not in pinned:
                await self._ctr("images", "label", image, *(f"{key}={value}" for key, value in (PINNED, OURS)))
        for image in sorted(mine - set(images)):
            await self._ctr("images", "label", image, *(f"{key}=" for key, _ in (PINNED, OURS)))

    async def _labelled(self, label: tuple[str, str]) -> frozenset[str]:
        listed = await self._ctr("images", "ls", "-q", f'labels."{label[0]}"=={label[1]}')
        return frozenset(listed.decode(errors="replace").split())

    async def _object(self, reference: oci.Reference) -> bytes:
        options, typed = self._access(reference)
        body = await self._ctr("content", "fetch-object", *options, str(reference), reference.digest, typed=typed)
        if typed:
            # What `ctr` asks a person comes first on the same stream, and a manifest begins with a brace.
            body = body[max(0, body.find(b"{")) :]
        if not oci.matches(body, reference.digest):
            raise ImageFailure(f"{reference}: the registry answered with something else")
        return body

    def _access(self, reference: oci.Reference) -> tuple[list[str], str]:
        """How a registry is asked, and what is typed when `ctr` wants a password."""
        options = ["--hosts-dir", self._hosts]
        state = self._root.look(CREDENTIALS)
        if not isinstance(state, File) or self._has_mirrors(reference.registry):
            return options, ""
        try:
            login = oci.credentials(state.content, reference)
        except FormatError as error:
            raise ImageFailure(f"{CREDENTIALS}: {error}") from error
        if login is None or not all(login) or ":" in login[0] or "\n" in login[1]:
            return options, ""
        return [*options, "--user", login[0]], login[1]

    def _has_mirrors(self, registry: str) -> bool:
        names = (registry, registry.replace(":", "_"), "_default")
        texts = [self._root.look(f"{HOSTS}/{name}/hosts.toml") for name in names]
        hosts = [
            line for text in texts if isinstance(text, File) for line in text.content.decode(errors="replace").splitlines()
            if line.strip().startswith('[host."') and f"//{registry}\"" not in line
        ]  # fmt: skip
        return bool(hosts)

    async def _ctr(self, *words: str, typed: str = "") -> bytes:
        try:
            return await self._ask([*self._base, *words], typed=typed)
        except CommandFailed as error:
            raise ImageFailure(error.message, error.hint) from error
