"""Images of CRI-O: `crictl` asks and pulls as the kubelet does, and a drop-in names what is pinned.

CRI-O reads credentials and mirrors itself (`global_auth_file`, registries.conf), so a pull by `crictl` is the pull of a pod. How
large an image is says `skopeo`, which is made of the same library and reads the same files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from fastness.agent.host.errors import CommandFailed, ImageFailure
from fastness.agent.host.files import RootedFiles
from fastness.agent.host.process import Ask, ask
from fastness.agent.host.states import ABSENT, File
from fastness.formats import json, oci, toml
from fastness.formats.errors import FormatError, JsonError
from fastness.kinds.machineconfiguration.names import PINNED_IMAGES_FILE
from fastness.runtime.tasks import uninterrupted

SOCKET: Final = Path("/run/crio/crio.sock")
CREDENTIALS: Final = "/var/lib/kubelet/config.json"
SERVICE: Final = "crio.service"


class CrioImages:
    """The images of one CRI-O."""

    def __init__(
        self, root: RootedFiles, reload: Callable[[str], None], platform: str, socket: Path = SOCKET, ask: Ask = ask
    ) -> None:
        self._root = root
        self._reload = reload
        self._platform = platform
        self._ask = ask
        self._crictl = ["crictl", "--runtime-endpoint", f"unix://{socket}", "--image-endpoint", f"unix://{socket}"]

    async def obstacle(self) -> str:
        """None that could be known before: whether CRI-O keeps an image it says of each (`look`)."""
        return ""

    async def look(self, images: Sequence[str]) -> Mapping[str, bool]:
        """Those for which ImageStatus has an answer, with whether it says `pinned`."""
        present: dict[str, bool] = {}
        for image in images:
            status = await self._status(image)
            if status is not None:
                present[image] = status.get("pinned") is True
        return present

    async def size(self, image: str) -> int:
        """The compressed size for this machine; raises ImageFailure."""
        try:
            reference = oci.reference(image)
            content = oci.manifest(await self._manifest(reference))
            if isinstance(content, oci.Index):
                content = oci.manifest(await self._manifest(reference.at(content.of(self._platform).digest)))
        except FormatError as error:
            raise ImageFailure(f"{image}: {error}") from error
        return content.size if isinstance(content, oci.Manifest) else 0

    async def pull(self, image: str) -> None:
        """Let CRI-O pull; raises ImageFailure."""
        await self._answer([*self._crictl, "pull", image])

    async def pin(self, images: Sequence[str]) -> None:
        """Write the drop-in, or remove it when nothing is pinned, and let CRI-O read it if it changed; raises DriverError."""
        text = toml.encode({"crio": {"image": {"pinned_images": list(images)}}}).encode() if images else None
        state = self._root.look(PINNED_IMAGES_FILE)
        if (state.content if isinstance(state, File) else None) == text:
            return
        # Written and reloaded in one go, also when somebody cancels: a file that nobody was told of would look like the truth.
        await uninterrupted(lambda: self._write(text))

    def _write(self, text: bytes | None) -> None:
        before = self._root.look(PINNED_IMAGES_FILE)
        self._root.put(PINNED_IMAGES_FILE, File(text, 0o644, 0, 0) if text is not None else ABSENT)
        try:
            self._reload(SERVICE)
        except Exception:
            # With the new text in place the next attempt would find nothing to do, and CRI-O would never hear of it.
            self._root.put(PINNED_IMAGES_FILE, before)
            raise

    async def _status(self, image: str) -> Mapping[str, Any] | None:
        try:
            answer = await self._ask([*self._crictl, "inspecti", "--output", "json", image])
        except CommandFailed as error:
            if error.status is not None and "no such image" in error.message:
                return None
            raise ImageFailure(error.message, error.hint) from error
        try:
            status = json.decode(answer).get("status")
        except (JsonError, AttributeError) as error:
            raise ImageFailure(f"crictl inspecti {image} answered with something else than JSON") from error
        return status if isinstance(status, Mapping) else None

    async def _manifest(self, reference: oci.Reference) -> bytes:
        login = self._root.root / CREDENTIALS.removeprefix("/")
        options = ["--authfile", str(login)] if login.exists() else []
        body = await self._answer(["skopeo", "inspect", "--raw", *options, f"docker://{reference}"])
        if not oci.matches(body, reference.digest):
            raise ImageFailure(f"{reference}: the registry answered with something else")
        return body

    async def _answer(self, command: Sequence[str]) -> bytes:
        try:
            return await self._ask(command)
        except CommandFailed as error:
            raise ImageFailure(error.message, error.hint) from error
