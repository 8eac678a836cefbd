"""Stands in for bootc and rpm-ostree, with podman, systemd-run and journalctl beside them: a program with A/B state on disk.

    python os_engine.py DIRECTORY bootc switch registry.example/os@sha256:…
    python os_engine.py DIRECTORY rpm-ostree status --json

`DIRECTORY/state.json` has what is booted, staged and kept to fall back to, the images of the registry, and what should go wrong;
`DIRECTORY/calls` one line for each call. A test boots the machine with `Machine.reboot`. Standard library alone: it starts often.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

State = dict[str, Any]
UNCHANGED = 77
MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)


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
        self._go_wrong(program, words)
        if program == "journalctl":
            print(self.state["journal"])
            return
        programs = {
            "bootc": self.bootc, "rpm-ostree": self.rpm_ostree, "podman": self.podman, "systemd-run": self.systemd_run,
            "systemctl": self.systemctl,
        }  # fmt: skip
        programs[program](words)

    def _go_wrong(self, program: str, words: list[str]) -> None:
        for fault in self.state["faults"]:
            if fault["program"] != program or fault["word"] not in words or fault["times"] <= 0:
                continue
            fault["times"] -= 1
            self.save()
            if fault.get("hangs"):
                if os.fork() == 0:
                    time.sleep(60)  # a child that holds the output open, as a real pull has
                time.sleep(60)
            fail(fault.get("text", "injected"), fault.get("status", 1))

    # ------------------------------------------------------------ what both share

    def pulled(self, reference: str) -> str:
        """The image of a reference, by digest, or the end."""
        name, _, digest = reference.partition("@")
        repository, colon, tag = name.rpartition(":")
        repository, tag = (repository, tag) if colon and "/" not in tag else (name, "")
        digest = digest or self.state["tags"].get(f"{repository}:{tag}", "")
        if digest not in self.state["images"] and not self.in_registry(repository, digest):
            fail(f"error: initializing source docker://{reference}: reading manifest: manifest unknown")
        return f"{repository}@{self.state['lies'].get(digest, digest)}"

    def in_registry(self, repository: str, digest: str) -> bool:
        """Whether a real registry has an image, for machines that pull from one."""
        if not self.state.get("pullsFromRegistry"):
            return False
        import urllib.request  # most calls ask no registry, and it is slow to load

        host, _, path = repository.partition("/")
        url = f"http://{host}/v2/{path}/manifests/{digest}"
        request = urllib.request.Request(url, headers={"accept": ", ".join(MANIFESTS)})
        try:
            with urllib.request.urlopen(request, timeout=30):
                return True
        except OSError:
            return False

    def next(self) -> State:
        """What a change starts from: what is staged, else what is booted."""
        return dict(self.state["staged"] or self.state["booted"])

    def stage(self, deployment: State) -> None:
        self.state["staged"] = deployment
        self.save()

    # ------------------------------------------------------------ bootc

    def bootc(self, words: list[str]) -> None:
        if words[0] == "status":
            print(json.dumps(self.bootc_status()))
        elif words[0] == "switch":
            self.stage({**self.next(), "image": self.pulled(words[-1]), "downloadOnly": False})
        elif words[0] == "loader-entries":
            if not self.state["loaderEntries"]:
                fail("error: unrecognized subcommand 'loader-entries'", 2)
            if "--help" not in words:
                options = next(word.partition("=")[2] for word in words if word.startswith("--options="))
                foreign = [argument for argument in self.next()["kargs"] if argument not in self.state["ours"]]
                self.state["ours"] = options.split()
                self.stage({**self.next(), "kargs": [*foreign, *options.split()]})
        else:
            fail(f"error: unrecognized subcommand '{words[0]}'", 2)

    def bootc_status(self) -> State:
        def entry(deployment: State | None) -> State | None:
            if deployment is None:
                return None
            name, _, digest = deployment["image"].partition("@")
            image = {
                "image": {"image": deployment.get("named") or f"{name}@{digest}", "transport": "registry"},
                "version": None, "timestamp": None, "imageDigest": digest, "architecture": "amd64",
            }  # fmt: skip
            backend: State = {"ostree": {"stateroot": "default", "checksum": "0" * 64, "deploySerial": 0}}
            if self.state["composefs"]:
                backend = {"composefs": {"verity": "0" * 128, "bootType": self.state["composefs"]}, "ostree": None}
            return {
                "image": image, "cachedUpdate": None, "incompatible": bool(deployment["packages"]), "pinned": False,
                "downloadOnly": deployment.get("downloadOnly", False), **backend,
            }  # fmt: skip

        status = {name: entry(self.state[name]) for name in ("staged", "booted", "rollback")}
        return {
            "apiVersion": "org.containers.bootc/v1", "kind": "BootcHost", "metadata": {"name": "host"},
            "spec": {"image": None, "bootOrder": "default"}, "status": {**status, "type": "bootcHost"},
        }  # fmt: skip

    # ------------------------------------------------------------ rpm-ostree

    def rpm_ostree(self, words: list[str]) -> None:
        verbs = {"status": self._status, "cleanup": self._cleanup, "rebase": self._rebase, "kargs": self._kargs,
                 "override": self._override, "update": self._update}  # fmt: skip
        if words == ["--version"]:
            print("rpm-ostree:\n Version: '2026.1'\n Features:\n  - rust\n  - container\n  - fedora-integration")
        elif words[0] == "cancel":
            self.state["transaction"] = None
            self.save()
        elif words[0] in verbs:
            verbs[words[0]](words[1:])
        else:
            fail(f"error: Unknown command '{words[0]}'")

    def _status(self, _words: list[str]) -> None:
        def entry(deployment: State, booted: bool, staged: bool) -> State:
            name, _, digest = deployment["image"].partition("@")
            return {
                "booted": booted, "staged": staged, "checksum": "0" * 64, "osname": "default", "serial": 0, "pinned": False,
                "container-image-reference": f"ostree-unverified-registry:{name}@{digest}",
                "container-image-reference-digest": digest, "requested-packages": deployment["packages"],
                "packages": deployment["packages"], "requested-base-removals": deployment["removals"], "base-removals": [],
                "unlocked": "none",
            }  # fmt: skip

        present = [(self.state["staged"], False, True), (self.state["booted"], True, False)]
        present.append((self.state["rollback"], False, False))
        deployments = [entry(deployment, *flags) for deployment, *flags in present if deployment is not None]
        transaction = self.state["transaction"]
        if self.state["busyFor"] > 0:
            self.state["busyFor"] -= 1
            self.save()
            transaction = ["upgrade", "somebody", "/"]
        print(json.dumps({"deployments": deployments, "transaction": transaction, "cached-update": None}))

    def _cleanup(self, words: list[str]) -> None:
        self.state["staged" if words == ["-p"] else "rollback"] = None
        self.save()

    def _rebase(self, words: list[str]) -> None:
        image = self.pulled(words[-1].removeprefix("ostree-unverified-registry:"))
        # Arguments of the booted deployment are merged into the new one, as libostree does.
        self.stage({**self.next(), "image": image})

    def _kargs(self, words: list[str]) -> None:
        deployment = self.next()
        if not words:
            print(" ".join(deployment["kargs"]))
            return
        kargs = list(deployment["kargs"])
        for word in words:
            option, _, argument = word.partition("=")
            if option == "--delete-if-present" and argument in kargs:
                kargs.remove(argument)
            elif option == "--append":
                kargs.append(argument)
        if kargs == deployment["kargs"] and "--unchanged-exit-77" in words:
            sys.exit(UNCHANGED)
        self.stage({**deployment, "kargs": kargs})

    def _override(self, words: list[str]) -> None:
        deployment, names = self.next(), [word for word in words[1:] if not word.startswith("--")]
        install = [word.partition("=")[2] for word in words if word.startswith("--install=")]
        uninstall = [word.partition("=")[2] for word in words if word.startswith("--uninstall=")]
        self._from_repository(install)
        removals = [*deployment["removals"], *names] if words[0] == "remove" else [
            name for name in deployment["removals"] if name not in names
        ]  # fmt: skip
        packages = [package for package in deployment["packages"] if package not in uninstall]
        self.stage({**deployment, "removals": removals, "packages": [*packages, *install]})

    def _update(self, words: list[str]) -> None:
        deployment = self.next()
        install = [word.partition("=")[2] for word in words if word.startswith("--install=")]
        uninstall = [word.partition("=")[2] for word in words if word.startswith("--uninstall=")]
        self._from_repository(install)
        packages = [package for package in deployment["packages"] if package not in uninstall]
        packages += [package for package in install if package not in self.state["forgets"]]
        if packages == deployment["packages"]:
            sys.exit(UNCHANGED)
        self.stage({**deployment, "packages": packages})

    def _from_repository(self, packages: list[str]) -> None:
        """Packages are found only while the repository of the extensions image is there."""
        repository = Path(self.state["root"]) / "etc/yum.repos.d/coreos-extensions.repo"
        match = re.search(r"baseurl=file://(\S+)", repository.read_text()) if repository.exists() else None
        if packages and (match is None or not Path(match[1]).is_dir()):
            fail(f"error: Packages not found: {', '.join(packages)}")

    # ------------------------------------------------------------ beside them

    def podman(self, words: list[str]) -> None:
        if words[0] == "pull":
            self.pulled(words[-1])
        elif words[0] == "cp":
            (Path(words[2]) / "usr/share/rpm-ostree/extensions").mkdir(parents=True)
        elif words[0] == "run":
            self._bootupctl(words[1:])

    def _bootupctl(self, words: list[str]) -> None:
        """`bootupctl update` of an image, which writes the loader of that image onto the disk that the container is given."""
        options = [word for word in words if word.startswith("--")]
        image, *command = words[len(options) :]
        loader = self.state["loaders"].get(self.pulled(image).partition("@")[2])
        if loader is None:
            fail("Error: crun: executable file `bootupctl` not found in $PATH", 127)
        inside = {"--privileged", "--pid=host", "--volume=/boot:/boot:rslave", "--volume=/dev:/dev"} <= set(options)
        if command != ["bootupctl", "update"] or not inside or not any("INVOCATION_ID=" in word for word in options):
            fail("error: bootupctl must be run as part of a unit, on the disk of the host")
        self.state["loader"] = loader
        self.save()

    def systemctl(self, words: list[str]) -> None:
        if words[0] == "cat" and words[1] not in self.state["units"]:
            fail(f"No files found for {words[1]}.")
        if words[0] == "start":
            self.state["loader"] = self.state["units"][words[1]]
            self.save()

    def systemd_run(self, words: list[str]) -> None:
        rest = list(words)
        while rest[0].startswith("-"):
            rest = rest[2:] if rest[0] == "-p" else rest[1:]
        os.execvp(rest[0], rest)


def fail(text: str, status: int = 1) -> NoReturn:
    """End as a program that could not."""
    print(text, file=sys.stderr)
    sys.exit(status)


class Machine:
    """The machine that the programs work on, from the outside: what a test does to it."""

    def __init__(self, directory: Path, booted: str, images: tuple[str, ...]) -> None:
        self.directory = directory
        self.root = directory / "root"
        self.root.mkdir(parents=True)
        self.write({
            "booted": {"image": booted, "packages": [], "removals": [], "kargs": ["root=UUID=1"]}, "staged": None,
            "rollback": None, "images": [image.partition("@")[2] for image in (booted, *images)], "tags": {}, "lies": {},
            "faults": [], "transaction": None, "busyFor": 0, "forgets": [], "journal": "", "loaderEntries": True, "ours": [],
            "composefs": "", "root": str(self.root), "loader": "shim 15.6", "loaders": {}, "units": {},
        })  # fmt: skip
        (directory / "calls").touch()

    def program(self, name: str) -> tuple[str, ...]:
        """How to start a program that works on this machine."""
        return (sys.executable, "-IS", str(Path(__file__).resolve()), str(self.directory), name)

    def read(self) -> State:
        state: State = json.loads((self.directory / "state.json").read_text())
        return state

    def write(self, state: State) -> None:
        # Whole or not at all: who looks at a machine may do so while it boots.
        partial = self.directory / "state.written"
        partial.write_text(json.dumps(state))
        partial.replace(self.directory / "state.json")

    def change(self, **fields: Any) -> None:
        """Let something be otherwise from now on."""
        self.write({**self.read(), **fields})

    def fault(self, program: str, word: str, times: int = 1, **more: Any) -> None:
        """Let calls of a program with this word go wrong, so many times."""
        self.change(faults=[*self.read()["faults"], {"program": program, "word": word, "times": times, **more}])

    def cmdline(self) -> str:
        """The command line of the kernel that runs."""
        return " ".join(self.read()["booted"]["kargs"]) + "\n"

    def calls(self, *without: str) -> list[str]:
        """What was called, but for calls that only ask."""
        lines = (self.directory / "calls").read_text().splitlines()
        return [line for line in lines if not any(line.startswith(prefix) for prefix in without)]

    def forget_calls(self) -> None:
        (self.directory / "calls").write_text("")

    def reboot(self, *, finalizes: bool = True) -> None:
        """The machine goes down and comes up; what is staged is lost where finalizing fails."""
        state = self.read()
        if state["staged"] is not None and finalizes:
            state["rollback"], state["booted"] = state["booted"], state["staged"]
        elif state["staged"] is not None:
            state["journal"] = "error: Writing to /boot: No space left on device"
        self.write({**state, "staged": None})


if __name__ == "__main__":
    Engine(Path(sys.argv[1])).main(sys.argv[2], sys.argv[3:])
