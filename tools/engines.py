"""The engines of sealed hosts: `cfsctl` and `composefs-setup-root`, found or built once; and a kernel that compares files.

Images are sealed for these programs, so the long form of the tests needs the real ones. They are Rust programs that no
distribution of ours packages. Looked for in this order:

- the directory in ``FASTNESS_ENGINES``;
- a directory on ``PATH`` that holds both;
- the user's cache, where ``ensure`` puts what `cargo install` builds from the crates registry.

Rules of the build, as in `realkube`: a version is a directory; each program is built with the pins of its own release
(`--locked`) where it brings some; one builder at a time; a build appears by rename. Only `make soak` builds, never `make test`.

The kernel of Debian's stable release has an overlayfs that does not compare digests of files. That of its backports does;
`kernel` fetches it with apt, which checks the archive's signature, and keeps it by the name of its package.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).parents[1]))

from tools.realkube import only_builder

VERSION: Final = "0.9.4"


class Engine(NamedTuple):
    """A program, the crate that has it, and the words of its build."""

    program: str
    crate: str
    words: tuple[str, ...]
    cost: str


# Before 6.15 a kernel cannot mount into a tree that is not mounted itself; the default features cover that for the mounter.
ENGINES: Final = (
    Engine(
        "cfsctl", "composefs-ctl", ("--locked", "--no-default-features", "--features", "pre-6.15,pre-6.16,oci"),
        "about seven CPU minutes, once",
    ),
    Engine("composefs-setup-root", "composefs-setup-root", (), "about two CPU minutes, once"),
)  # fmt: skip
SUITE: Final = "bookworm-backports"
META: Final = "linux-image-cloud-amd64"
KEYRING: Final = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
STABLE: Final = "bookworm"
SECONDS: Final = 300


class NoEngines(Exception):
    """Something cannot be provided. `hint` says what to do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def cache_root(env: Mapping[str, str]) -> Path:
    """The directory under which builds and kernels are kept."""
    base = env.get("XDG_CACHE_HOME", "")
    root = Path(base) if os.path.isabs(base) else Path(env.get("HOME") or Path.home()) / ".cache"
    return root / "fastness" / "engines"


def holds_all(directory: Path) -> bool:
    """Whether a directory holds both programs, executable."""
    return all(os.access(directory / engine.program, os.X_OK) for engine in ENGINES)


def locate(env: Mapping[str, str]) -> Path | None:
    """The directory with the programs, or None. Never builds."""
    candidates = [Path(env["FASTNESS_ENGINES"])] if env.get("FASTNESS_ENGINES") else []
    candidates += [Path(entry) for entry in env.get("PATH", "").split(os.pathsep) if os.path.isabs(entry)]
    candidates.append(cache_root(env) / VERSION)
    return next((directory.resolve() for directory in candidates if holds_all(directory)), None)


def ensure(env: Mapping[str, str]) -> Path:
    """The directory with the programs, built if nobody has them yet; raises NoEngines."""
    directory = locate(env)
    if directory is not None:
        return directory
    root = cache_root(env)
    root.mkdir(parents=True, exist_ok=True)
    with only_builder(root / "lock"):
        return locate(env) or build(env, root / VERSION)


def build(env: Mapping[str, str], target: Path) -> Path:
    """Build into a directory beside the target and rename it into place. The caller holds the lock."""
    cargo = shutil.which("cargo", path=env.get("PATH"))
    if cargo is None:
        raise NoEngines("there is no cargo on PATH", "install Rust 1.85 or newer, or set FASTNESS_ENGINES")
    partial = target.with_name(f"{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".target-") as scratch:
        for engine in ENGINES:
            say(f"building {engine.program} ({engine.cost})")
            command = [cargo, "install", engine.crate, "--version", VERSION, *engine.words, "--root", str(partial)]
            answer = subprocess.run(command, env={**env, "CARGO_TARGET_DIR": scratch}, stdout=sys.stderr, check=False)
            if answer.returncode != 0:
                raise NoEngines(
                    f"cargo install {engine.crate} failed (its messages stand above)",
                    "check the network and 3 GB of free disk, or set FASTNESS_ENGINES",
                )
    for engine in ENGINES:
        (partial / "bin" / engine.program).rename(partial / engine.program)
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)
    return target


# ---------------------------------------------------------------- the kernel


def kernel(env: Mapping[str, str]) -> Path:
    """The directory of a kernel, `vmlinuz` and `modules`, fetched when it is not in the cache; raises NoEngines."""
    root = cache_root(env) / "kernels"
    root.mkdir(parents=True, exist_ok=True)
    with only_builder(root / "lock"):
        unpacked = sorted(path for path in root.iterdir() if (path / "vmlinuz").exists())
        return unpacked[-1] if unpacked else _fetched(root)


def _fetched(root: Path) -> Path:
    with tempfile.TemporaryDirectory(dir=root, prefix=".fetch-") as name:
        scratch = Path(name)
        # A directory of its own: the lists of the host stay as they are. Root may write here, apt's own user may not.
        (scratch / "lists/partial").mkdir(parents=True)
        (scratch / "sources").write_text(f"deb [signed-by={KEYRING}] {_archive()} {SUITE} main\n")
        apt = [
            f"-oDir::Etc::sourcelist={scratch}/sources", "-oDir::Etc::sourceparts=-", f"-oDir::State::lists={scratch}/lists",
            f"-oDir::Cache={scratch}/cache", "-oAcquire::Languages=none", "-oAPT::Sandbox::User=root",
        ]  # fmt: skip
        _run("apt-get", *apt, "-qq", "update")
        depends = re.search(r"Depends: (linux-image-\S+)", _run("apt-cache", *apt, "depends", META))
        if depends is None:
            raise NoEngines(f"{SUITE} offers no {META}", "look whether the archive still has that suite")
        _run("apt-get", *apt, "-qq", "download", depends[1], where=scratch)
        (package,) = scratch.glob("*.deb")
        _run("dpkg-deb", "-x", str(package), str(scratch / "tree"))
        unpacked, target = scratch / "whole", root / depends[1].removeprefix("linux-image-")
        unpacked.mkdir()
        (image,) = (scratch / "tree/boot").glob("vmlinuz-*")
        image.rename(unpacked / "vmlinuz")
        (modules,) = (scratch / "tree/lib/modules").iterdir()
        modules.rename(unpacked / "modules")
        unpacked.rename(target)
        return target


def _archive() -> str:
    """Where this host gets its packages: the backports lie beside the stable release."""
    places = _run("apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)", "Created-By: Packages")
    for line in places.splitlines():
        codename, _, place = line.partition(" ")
        if codename == STABLE and place:
            return place
    raise NoEngines(f"apt knows no archive of {STABLE}", "the kernel comes from Debian's archive, with apt")


def _run(*command: str, where: Path | None = None) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True, cwd=where)
    except (OSError, subprocess.SubprocessError) as error:
        words = str(getattr(error, "stderr", "") or error).strip()[-400:]
        raise NoEngines(f"{command[0]} failed: {words}", "the kernel comes from Debian's archive, with apt") from error
    return done.stdout


def say(message: str) -> None:
    """Progress goes to stderr: stdout carries only the answer."""
    print(f"engines: {message}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str]) -> int:
    """`ensure` finds or builds and prints the directory; `where` only finds (exit 3 when they are absent)."""
    parser = argparse.ArgumentParser(prog="engines.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("verb", choices=("ensure", "where"))
    verb = parser.parse_args(arguments).verb
    try:
        directory = ensure(os.environ) if verb == "ensure" else locate(os.environ)
        if verb == "ensure":
            kernel(os.environ)
    except NoEngines as error:
        say(f"{error}\n  hint: {error.hint}")
        # Sealed images are one part of the long form: without cargo or an archive the rest of it still runs, and names them.
        return 1 if os.environ.get("CI", "").lower() == "true" else 0
    if directory is None:
        say("not here\n  hint: run `python tools/engines.py ensure`")
        return 3
    print(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
