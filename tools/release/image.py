"""Which image has which layers, and what a runtime is told about it.

    build(SERVER, layout, cache)     the control plane: `fastness`, roles by argument
    build(AGENT, layout, cache)      what runs on nodes: `fastness-agent`; the pods of a KataConfig's DaemonSet run it
    build(BUILDER, layout, cache)    what runs in Jobs that build images: `fastness-builder`, with buildah

Debian with Python, then the dependencies, then programs that some images need, then our own wheel: a new commit is a new top
layer of a few megabytes. The root is never written to, there is no shell and no package manager, and the control plane runs as a
user without a name of its own. The agent changes its node, so it runs as root there. As whom the containers of a Job run says the
Job; by itself that image runs as nobody.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from tools import agent_image, agent_wheel
from tools.realkube import cache_root, only_builder
from tools.release import bytecode, debian, layout, wheels
from tools.release.layer import EPOCH, Component, Layer, builder_key, kept, key_of
from tools.release.layout import Built
from tools.release.wheels import Wheel

HOME: Final = Path(__file__).parents[2]
USER: Final = "65532:65532"  # numeric, so that a kubelet can see that it is not root
STDLIB: Final = "usr/lib/python3.11"
ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
LAUNCHER: Final = """#!/usr/bin/python3.11 -IB
from {module} import {function}

{function}({arguments})
"""
ACCOUNTS: Final = {
    "etc/passwd": "root:x:0:0:root:/:/sbin/nologin\nfastness:x:65532:65532:fastness:/home/fastness:/sbin/nologin\n",
    "etc/group": "root:x:0:\nfastness:x:65532:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}


class Recipe(NamedTuple):
    """An image: its program, what it needs beyond Python, as whom it runs."""

    name: str
    title: str
    program: str
    launcher: str
    packages: tuple[str, ...]
    """Of Debian, beyond what all images have."""
    user: str


SERVER: Final = Recipe(
    "fastness", "Fastness: a control plane for confidential clusters", "fastness",
    LAUNCHER.format(module="fastness.cli.main", function="main", arguments=""), (), USER,
)  # fmt: skip
AGENT: Final = Recipe(
    "fastness-agent", "Fastness: the agent of nodes", "fastness-agent",
    LAUNCHER.format(module="fastness.cli.machine.agent", function="agent", arguments='prog_name="fastness-agent"'),
    debian.AGENT_PACKAGES, "0:0",
)  # fmt: skip
BUILDER: Final = Recipe(
    "fastness-builder", "Fastness: what builds operating system images in Jobs", "fastness-builder",
    LAUNCHER.format(module="fastness.builds.live.pod", function="main", arguments=""), debian.BUILDER_PACKAGES, USER,
)  # fmt: skip
RECIPES: Final = (SERVER, AGENT, BUILDER)


def version() -> str:
    """The version that pyproject.toml states."""
    stated: str = tomllib.loads((HOME / "pyproject.toml").read_text())["project"]["version"]
    return stated


def image_cache(env: Mapping[str, str]) -> Path:
    """Where packages, wheels and layers are kept."""
    return cache_root(env).with_name("image")


def build(recipe: Recipe, target: Path, cache: Path, *, revision: str = "", strict: bool = False) -> Built:
    """Build an image into a layout, which must not exist; raises ReleaseError. `strict` demands the locked packages."""
    cache.mkdir(parents=True, exist_ok=True)
    with only_builder(cache / "lock"):
        layers = _layers(recipe, cache, strict=strict)
    layout.begin(target)
    tag, labels = version(), _labels(recipe, revision)
    digest = layout.add_image(target, _config(recipe, layers, labels), layers, tag, labels)
    return Built(recipe.name, target, tag, digest, sum(layer.size for layer in layers), tuple(layers))


def _layers(recipe: Recipe, cache: Path, *, strict: bool) -> list[Layer]:
    locked = debian.pins(debian.LOCK.read_text())
    archives = debian.fetch(debian.PACKAGES, locked, cache / "packages", strict=strict)
    more = debian.fetch(recipe.packages, locked, cache / "packages", strict=strict)
    base_key = key_of("base", builder_key(), *(str(archive.pin) for archive in archives))
    root = _root(base_key, archives, cache)
    lock = wheels.LOCK.read_text()
    needed = wheels.wheels(lock, cache, _needed_by(recipe))
    own = _own_wheel(recipe, cache)
    above = key_of("modules", base_key, *(wheel.sha256 for wheel in needed))
    programs = key_of("programs", base_key, *(str(archive.pin) for archive in more))
    top = key_of("own", base_key, recipe.launcher, own.sha256)
    return [
        kept(cache, base_key, lambda tree: _base(tree, root, archives)),
        kept(cache, above, lambda tree: _modules(tree, root, needed)),
        *([kept(cache, programs, lambda tree: _packages(tree, more))] if more else []),
        kept(cache, top, lambda tree: _own(tree, root, recipe, own)),
    ]


def _needed_by(recipe: Recipe) -> list[str] | None:
    return agent_image.dependencies() if recipe is AGENT else None


def _root(key: str, archives: Sequence[debian.Archive], cache: Path) -> Path:
    """The root of Debian's packages, unpacked and compiled; it stays, because layers above are compiled with it."""
    root = cache / f"root-{key}"
    if not root.exists():
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            tree = Path(scratch) / "root"
            debian.merged_directories(tree)
            for archive in archives:
                debian.unpack(archive, tree)
            debian.trust_store(tree)
            for name, text in ACCOUNTS.items():
                (tree / name).write_text(text)
            for name in ("tmp", "run", "proc", "sys", "dev", "home/fastness"):
                (tree / name).mkdir(parents=True)
            bytecode.compile_tree(tree, tree, STDLIB)
            tree.rename(root)
    return root


def _base(tree: Path, root: Path, archives: Sequence[debian.Archive]) -> tuple[Component, ...]:
    shutil.copytree(root, tree, symlinks=True, dirs_exist_ok=True)
    return _described(tree, archives)


def _packages(tree: Path, archives: Sequence[debian.Archive]) -> tuple[Component, ...]:
    for archive in archives:
        debian.unpack(archive, tree)
    return _described(tree, archives)


def _described(tree: Path, archives: Sequence[debian.Archive]) -> tuple[Component, ...]:
    return tuple(
        Component("deb", pin.name, pin.version, pin.sha256, tuple(debian.licences(tree, pin.name)))
        for pin in (archive.pin for archive in archives)
    )


def _modules(tree: Path, root: Path, needed: Sequence[Wheel]) -> tuple[Component, ...]:
    for wheel in needed:
        wheels.unpack(wheel, tree)
    bytecode.compile_tree(root, tree, wheels.MODULES)
    return tuple(wheels.component(wheel) for wheel in needed)


def _own(tree: Path, root: Path, recipe: Recipe, own: Wheel) -> tuple[Component, ...]:
    components = _modules(tree, root, [own])
    program = tree / "usr/bin" / recipe.program
    program.parent.mkdir(parents=True)
    program.write_text(recipe.launcher)
    program.chmod(0o755)
    return components


def _own_wheel(recipe: Recipe, cache: Path) -> Wheel:
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        path = agent_wheel.build(Path(scratch)) if recipe is AGENT else server_wheel(Path(scratch))
        target = cache / "own" / path.name
        target.parent.mkdir(exist_ok=True)
        path.replace(target)
    return wheels.wheel(target)


def server_wheel(directory: Path) -> Path:
    """Build the wheel of everything into a directory; its file."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory.resolve())]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(EPOCH)}
    subprocess.run(command, cwd=HOME, check=True, capture_output=True, env=environment)
    return next(directory.glob("fastness-*.whl"))


def _labels(recipe: Recipe, revision: str) -> dict[str, str]:
    labels = {
        "title": recipe.title, "version": version(), "licenses": "Apache-2.0", "created": _created(),
        "base.name": "debian:bookworm", **({"revision": revision} if revision else {}),
    }  # fmt: skip
    return {f"org.opencontainers.image.{key}": value for key, value in labels.items()}


def _config(recipe: Recipe, layers: Sequence[Layer], labels: Mapping[str, str]) -> dict[str, Any]:
    """The image configuration (OCI image spec, config.md)."""
    return {
        "created": _created(), "architecture": ARCHITECTURES[platform.machine()], "os": "linux",
        "config": {
            "User": recipe.user, "Env": ["PATH=/usr/bin:/usr/sbin", "HOME=/home/fastness"],
            "Entrypoint": [f"/usr/bin/{recipe.program}"], "Cmd": ["--help"], "WorkingDir": "/", "Labels": dict(labels),
        },
        "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]},
        "history": [{"created": _created(), "created_by": part} for part in _parts(recipe)],
    }  # fmt: skip


def _parts(recipe: Recipe) -> list[str]:
    """What each layer is, from the lowest."""
    return ["Debian", "dependencies", *(["programs"] if recipe.packages else []), recipe.name]


def _created() -> str:
    return datetime.fromtimestamp(EPOCH, UTC).isoformat().replace("+00:00", "Z")
