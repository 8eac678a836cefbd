"""Stands in for cfsctl and bootctl of a sealed host, with systemd-run beside them: a program with A/B state on disk.

    python sealed_engine.py DIRECTORY cfsctl --repo R oci pull docker://registry.example/os@sha256:… NAME
    python sealed_engine.py DIRECTORY bootctl --esp-path=/boot set-oneshot fastness-….efi

`DIRECTORY/state.json` has the images of the registry and of the machine, sizes of its disks, and what should go wrong; EFI
variables and the system partition are files, as a machine has them. Shapes are those of cfsctl 0.9.4 and systemd 252. Tests boot
the machine with `SealedMachine.boot`, which does what systemd-boot does. Standard library alone: it starts often.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

State = dict[str, Any]
VENDOR = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
ATTRIBUTES = b"\x07\0\0\0"


class Engine:
    """One call of a program."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.state: State = json.loads((directory / "state.json").read_text())

    def save(self) -> None:
        partial = self.directory / "state.new"
        partial.write_text(json.dumps(self.state))
        partial.replace(self.directory / "state.json")

    def main(self, program: str, words: list[str]) -> None:
        with (self.directory / "calls").open("a") as calls:
            calls.write(" ".join([program, *words]) + "\n")
        for fault in self.state["faults"]:
            if fault["program"] == program and fault["word"] in words and fault["times"] > 0:
                fault["times"] -= 1
                self.save()
                fail(fault.get("text", "injected"), fault.get("status", 1))
        {"cfsctl": self.cfsctl, "bootctl": self.bootctl, "systemd-run": self.systemd_run}[program](words)

    def cfsctl(self, words: list[str]) -> None:
        if words[-1] == "--version":
            print("cfsctl 0.9.4")
            return
        while words[0].startswith("--"):
            words = words[2:] if words[0] == "--repo" else words[1:]
        if words[0] == "gc":
            self._collect({words[at + 1] for at, word in enumerate(words) if word == "--root"})
            return
        verbs = {"pull": self._pull, "images": self._list, "compute-id": self._id, "prepare-boot": self._prepare,
                 "untag": self._untag}  # fmt: skip
        if words[0] != "oci" or words[1] not in verbs:
            fail(f"error: unrecognized subcommand '{words[-1]}'", 2)
        verbs[words[1]](words[2:])

    def _collect(self, named: set[str]) -> None:
        used = {image["digest"] for image in self.state["stored"]}
        self.state["data"] = {digest: size for digest, size in self.state["data"].items() if digest in used}
        # A root belongs to a tag when it was pulled as one that boots; preparing the boot ties it to nothing.
        tied = {self.state["registry"][each["digest"]]["root"] for each in self.state["stored"] if each["bootable"]}
        self.state["roots"] = [root for root in self.state["roots"] if root in tied | named]
        self.save()
        print("Objects: 0 removed (0 bytes)")

    def _pull(self, words: list[str]) -> None:
        bootable = "--bootable" in words
        words = [word for word in words if not word.startswith("--")]
        reference, name = words[0].removeprefix("docker://"), words[1]
        digest = reference.partition("@")[2]
        image = self.state["registry"].get(digest)
        if image is None:
            fail(f"error: initializing source docker://{reference}: reading manifest: manifest unknown")
        free = self.state["dataSize"] - sum(self.state["data"].values())
        # What came before the disk was full stays: objects without a name, until somebody collects them.
        self.state["data"][digest] = min(image["size"], free)
        self.save()
        if image["size"] > free:
            fail("Error: Writing object: No space left on device (os error 28)")
        came = self.state["lies"].get(digest, digest)
        others = [each for each in self.state["stored"] if each["name"] != name]
        self.state["stored"] = [*others, {"name": name, "digest": came, "bootable": bootable}]
        if bootable:
            self._mounted_by(came)
        self.save()
        print(f"manifest {came}\nconfig   sha256:{'c' * 64}\nverity   {'0' * 128}\ntagged   {name}\nobjects  1 new")

    def _mounted_by(self, digest: str) -> None:
        """The root of an image is there from now on."""
        root = self.state["registry"][digest]["root"] if digest in self.state["registry"] else ""
        self.state["roots"] = sorted({*self.state["roots"], root})

    def _list(self, _words: list[str]) -> None:
        rows = [
            {"name": each["name"], "manifest_digest": each["digest"], "is_container": True, "architecture": "amd64",
             "os": "linux", "created": None, "layer_count": 2, "referrer_count": 0}
            for each in self.state["stored"]
        ]  # fmt: skip
        print(json.dumps({"images": rows}, indent=2))

    def _image(self, name: str) -> State:
        digest = next((each["digest"] for each in self.state["stored"] if each["name"] == name), "")
        if digest not in self.state["registry"]:
            fail(f"Error: OCI reference not found: {name}")
        image: State = self.state["registry"][digest]
        return image

    def _id(self, words: list[str]) -> None:
        print(self._image(words[-1])["root"])

    def _prepare(self, words: list[str]) -> None:
        image = self._image(words[0])
        entry = words[words.index("--entry-id") + 1]
        content = (self.directory / image["uki"]).read_bytes()
        if not image["sloppy"] and image["root"] not in image["line"]:
            fail("Error: The UKI has the wrong composefs digest (is 'ff', should be one of [aa])")
        self._mounted_by(next(each["digest"] for each in self.state["stored"] if each["name"] == words[0]))
        self.save()
        boot = Path(words[words.index("--bootdir") + 1]) / "EFI" / "Linux"
        place = boot / f"{entry}.efi"
        free = self.state["espSize"] - sum(each.stat().st_size for each in boot.iterdir() if each != place)
        # Not by another name first: a partition that is too small, or a power cut, leaves a part of it.
        place.write_bytes(content[: max(free, 0)])
        if free < len(content):
            fail("Error: Writing UKI: No space left on device (os error 28)")

    def _untag(self, words: list[str]) -> None:
        if words[0] not in {each["name"] for each in self.state["stored"]}:
            fail(f"Error: Failed to remove tag {words[0]}: No such file or directory (os error 2)")
        self.state["stored"] = [each for each in self.state["stored"] if each["name"] != words[0]]
        self.save()

    def bootctl(self, words: list[str]) -> None:
        verb, entry = words[1], words[2]
        name = {"set-default": "LoaderEntryDefault", "set-oneshot": "LoaderEntryOneShot"}[verb]
        if verb in self.state["forgets"]:
            return
        set_variable(self.directory, name, entry)

    def systemd_run(self, words: list[str]) -> None:
        rest = list(words)
        while rest[0].startswith("-"):
            rest = rest[2:] if rest[0] == "-p" else rest[1:]
        os.execv(rest[0], rest)


def set_variable(directory: Path, name: str, text: str) -> None:
    """Write an EFI variable as the kernel shows it; an empty one is none."""
    place = directory / "efivars" / f"{name}-{VENDOR}"
    if text:
        place.write_bytes(ATTRIBUTES + text.encode("utf-16-le") + b"\0\0")
    else:
        place.unlink(missing_ok=True)


def fail(text: str, status: int = 1) -> NoReturn:
    """End as a program that could not."""
    print(text, file=sys.stderr)
    sys.exit(status)


class SealedMachine:
    """The machine that the programs work on, from the outside: what a test does to it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.root = directory / "root"
        self.boot_partition = directory / "boot"
        for place in (self.root, self.boot_partition / "EFI" / "Linux", directory / "efivars", directory / "ukis"):
            place.mkdir(parents=True)
        self.write({
            "registry": {}, "stored": [], "data": {}, "dataSize": 10_000, "espSize": 10_000_000, "faults": [], "lies": {},
            "forgets": [], "running": "", "roots": [],
        })  # fmt: skip
        (directory / "calls").touch()

    def publish(self, image: str, root: str, uki: bytes, line: str, *, size: int = 1000, sloppy: bool = False) -> None:
        """Put an image into the registry; a sloppy one is prepared without a look at its kernel image."""
        digest = image.partition("@")[2]
        place = f"ukis/{digest[-64:]}"
        (self.directory / place).write_bytes(uki)
        entry = {"root": root, "uki": place, "line": line, "size": size, "sloppy": sloppy}
        self.change(registry={**self.read()["registry"], digest: entry})

    def install(self, image: str, name: str, entry: str, *, bootable: bool = True) -> None:
        """Let the machine have an image, as its installer left it; one that is not bootable was only prepared."""
        state, digest = self.read(), image.partition("@")[2]
        there, stored = state["registry"][digest], {"name": name, "digest": digest, "bootable": bootable}
        data, roots = {**state["data"], digest: there["size"]}, [*state["roots"], there["root"]]
        self.change(stored=[*state["stored"], stored], data=data, roots=roots)
        content = (self.directory / state["registry"][digest]["uki"]).read_bytes()
        (self.boot_partition / "EFI" / "Linux" / entry).write_bytes(content)

    def program(self, name: str) -> tuple[str, ...]:
        """How to start a program that works on this machine."""
        return (sys.executable, "-IS", str(Path(__file__).resolve()), str(self.directory), name)

    def read(self) -> State:
        state: State = json.loads((self.directory / "state.json").read_text())
        return state

    def write(self, state: State) -> None:
        (self.directory / "state.json").write_text(json.dumps(state))

    def change(self, **fields: Any) -> None:
        """Let something be otherwise from now on."""
        self.write({**self.read(), **fields})

    def fault(self, program: str, word: str, times: int = 1, **more: Any) -> None:
        """Let calls of a program with this word go wrong, so many times."""
        self.change(faults=[*self.read()["faults"], {"program": program, "word": word, "times": times, **more}])

    def variable(self, name: str) -> str:
        """What an EFI variable says."""
        place = self.directory / "efivars" / f"{name}-{VENDOR}"
        return place.read_bytes()[4:].decode("utf-16-le").rstrip("\0") if place.exists() else ""

    def entries(self) -> list[str]:
        """The kernel images on the system partition."""
        return sorted(place.name for place in (self.boot_partition / "EFI" / "Linux").iterdir())

    def cmdline(self) -> str:
        """The command line of the kernel that runs."""
        return str(self.read()["running"]) + "\n"

    def calls(self) -> list[str]:
        return (self.directory / "calls").read_text().splitlines()

    def boot(self) -> str:
        """Go down and come up, as often as it takes until something runs: its entry. Two boots lead back at the latest."""
        for _ in range(2):
            entry = self.variable("LoaderEntryOneShot") or self.variable("LoaderEntryDefault")
            set_variable(self.directory, "LoaderEntryOneShot", "")
            state, place = self.read(), self.boot_partition / "EFI" / "Linux" / (entry or self.entries()[0])
            content = place.read_bytes() if place.exists() else b""
            stored = [state["registry"].get(each["digest"]) for each in state["stored"]]
            for image in [each for each in stored if each is not None]:
                whole = (self.directory / image["uki"]).read_bytes() == content
                # A kernel whose root is not there panics; a part of a kernel image is not started.
                if whole and image["root"] in image["line"] and image["root"] in state["roots"]:
                    self.change(running=image["line"])
                    set_variable(self.directory, "LoaderEntrySelected", place.name)
                    return place.name
        raise AssertionError("the machine does not boot any more")


if __name__ == "__main__":
    Engine(Path(sys.argv[1])).main(sys.argv[2], sys.argv[3:])
