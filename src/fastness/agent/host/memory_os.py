"""An operating system in memory: what is booted, what is staged, which arguments the kernel has.

It behaves as an image-based host does: staging changes nothing until the next boot, discarding takes the staged one back, and a
boot makes the staged one the booted one. A machine that loses power loses what was staged: it is made bootable when the machine
goes down in order. `pull` says which image a reference means, or refuses one that no registry has. A record below a directory
lets a virtual machine outlive the process that runs it. What `contents` says of an extension stands in `root` while the
extension is booted, as files of packages do: somebody may change them there, and nobody puts them back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from fastness.agent.host.errors import ImageFailure
from fastness.agent.host.files import RootedFiles
from fastness.agent.host.states import ABSENT, NOTHING, Deployment, File
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.formats.image_reference import same_image

RECORD: Final = "/system.json"


def no_registry(reference: str) -> str:
    """For machines that reach no registry; raises ImageFailure."""
    raise ImageFailure(f"image {reference} cannot be pulled: this machine reaches no registry")


class MemoryOs:
    """The operating system of a virtual machine."""

    brings_arguments = True
    owns_usr = True
    brings_usr = False

    def __init__(
        self,
        installed: Deployment = NOTHING,
        pull: Callable[[str], str] = no_registry,
        record: RootedFiles | None = None,
        root: RootedFiles | None = None,
        contents: Mapping[str, Mapping[str, File]] = MappingProxyType({}),
    ) -> None:
        self._booted = installed
        self._staged: Deployment | None = None
        self._pull = pull
        self._record = record
        self._root = root
        self._contents = contents
        self._lost = ""
        self._load()

    def booted(self) -> Deployment:
        """What runs now."""
        return self._booted

    def staged(self) -> Deployment | None:
        """What the next boot will run, if it differs."""
        return self._staged

    def stage(self, deployment: Deployment, old: Deployment = NOTHING, extensions_image: str = "") -> None:
        """Make a deployment that the next boot will run; without an image, of the booted one; raises ImageFailure."""
        booted = self._booted.image
        image = booted if not deployment.image or same_image(deployment.image, booted) else self._pull(deployment.image)
        full = deployment._replace(image=image)
        self._staged = full if full != self._booted else None
        self._save()

    def discard(self) -> None:
        """Forget what was staged."""
        self._staged = None
        self._save()

    def on_trial(self) -> bool:
        """Never: what was booted stays."""
        return False

    def booted_well(self) -> None:
        """Nothing is kept to fall back to."""

    def last_boot_log(self) -> str:
        """What was said when the machine went down without order."""
        return self._lost

    def power_cut(self) -> None:
        """The machine loses power, and boots again."""
        self._lost = (
            f"no clean shutdown: {self._staged.image} was not made bootable" if self._staged is not None else ""
        )
        self._staged = None
        self._save()

    def apply_live(self) -> None:
        """Let the packages that were staged take effect now; everything else of a staged deployment waits for a boot."""
        if self._staged is None:
            return
        self._lay_down(self._staged)
        self._booted = self._booted._replace(extensions=self._staged.extensions)
        self._staged = None if self._staged == self._booted else self._staged
        self._save()

    def reboot(self) -> None:
        """The machine boots."""
        self._lay_down(self._staged or self._booted)
        self._booted, self._staged, self._lost = self._staged or self._booted, None, ""
        self._save()

    def _lay_down(self, coming: Deployment) -> None:
        """The files of extensions that come appear, those of extensions that go vanish; before it counts as booted."""
        if self._root is None:
            return
        old, new = (
            {path: file for extension in each.extensions for path, file in self._contents.get(extension, {}).items()}
            for each in (self._booted, coming)
        )
        for path in old.keys() - new.keys():
            self._root.put(path, ABSENT)
        for path in new.keys() - old.keys():
            self._root.put(path, new[path])

    def _save(self) -> None:
        if self._record is not None:
            value = {"booted": list(self._booted), "staged": list(self._staged) if self._staged else None}
            self._record.put(RECORD, File(json.encode(value), 0o600))

    def _load(self) -> None:
        state = self._record.look(RECORD) if self._record is not None else None
        if isinstance(state, File):
            try:
                value = json.decode(state.content)
                booted, staged = _deployment(value["booted"]), value["staged"] and _deployment(value["staged"])
            except (JsonError, KeyError, TypeError, ValueError) as error:
                raise ImageFailure(f"{RECORD} of the virtual machine is damaged: {error}") from error
            self._booted, self._staged = booted, staged


class MemoryPackages:
    """One set of packages of an operating system in memory: added while it runs, taken away by a boot."""

    def __init__(self, system: MemoryOs, extension: str) -> None:
        self._system = system
        self._extension = extension

    def installed(self) -> bool:
        """Whether the running system has them."""
        return self._extension in self._system.booted().extensions

    def install(self) -> None:
        """Add them to the running system."""
        deployment = self._system.staged() or self._system.booted()
        if self._extension not in deployment.extensions:
            self._system.stage(deployment._replace(extensions=(*deployment.extensions, self._extension)))
        self._system.apply_live()

    def uninstall(self) -> bool:
        """Take them away with the next boot."""
        deployment = self._system.staged() or self._system.booted()
        left = tuple(extension for extension in deployment.extensions if extension != self._extension)
        self._system.stage(deployment._replace(extensions=left))
        return True


def _deployment(value: Any) -> Deployment:
    image, arguments, kernel, extensions = value
    return Deployment(str(image), tuple(arguments), str(kernel), tuple(extensions))
