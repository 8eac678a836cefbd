"""The images run: by runc, with a root that cannot be written, as nobody in particular, with no capability and no shell."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.components import require_program, require_root
from tests.release.container import RUNC, Container
from tests.soaking import in_soak
from tools.release import image, wheels
from tools.release.layout import Built, document

pytestmark = [pytest.mark.processes, pytest.mark.long("whichever test comes first builds the image")]

MOST_BYTES = 130_000_000
PYTHON = ("/usr/bin/python3.11", "-IB", "-c")
# Every module of every distribution, and every one of the standard library that is written in C.
IMPORT_ALL = """
import importlib, importlib.metadata, pathlib, sysconfig
native = pathlib.Path(sysconfig.get_path("stdlib"), "lib-dynload")
names = {path.name.partition(".")[0] for path in native.glob("*.so")}
for distribution in importlib.metadata.distributions():
    for file in distribution.files:
        if file.suffix == ".so" and not file.name.startswith("lib") or file.name == "__init__.py" and len(file.parts) == 2:
            names.add(file.parts[0] if file.name == "__init__.py" else ".".join([*file.parts[:-1], file.name.partition(".")[0]]))
for name in sorted(names):
    if ".libs" not in name:
        importlib.import_module(name)
import ssl
print(len(names), len(ssl.create_default_context().get_ca_certs()) > 50)
"""
STATE = """
import os
facts = {line.partition(":")[0]: line.partition(":")[2].strip() for line in open("/proc/self/status")}
print(os.getuid(), os.getgid(), facts["CapEff"], facts["CapBnd"], facts["NoNewPrivs"])
for path in ("/tmp/x", "/usr/bin/x", "/etc/passwd", "/home/fastness/x"):
    try:
        open(path, "w")
    except OSError as error:
        print(path, error.errno)
"""


def require_runc() -> None:
    require_program(Path(shutil.which(RUNC) or "/usr/sbin/runc"), "runc")
    require_root("runc")


@pytest.fixture(scope="module")
def server(server_image: Built, tmp_path_factory: pytest.TempPathFactory) -> Container:
    require_runc()
    return Container(server_image, tmp_path_factory.mktemp("server"))


def test_the_image_says_its_version_and_what_a_role_takes(server: Container) -> None:
    done = server.run("--version")
    assert (done.returncode, done.stdout) == (0, f"fastness {image.version()}\n"), done.stderr
    done = server.run("serve", "--roles", "page", "--help")
    assert done.returncode == 0, done.stderr
    assert "--page-port" in done.stdout


def test_everything_in_the_image_can_be_loaded(server: Container) -> None:
    done = server.run(IMPORT_ALL, entrypoint=PYTHON)
    assert done.returncode == 0, done.stderr
    count, trusts = done.stdout.split()
    assert int(count) > 60
    assert trusts == "True"


def test_the_process_has_no_rights_and_writes_nowhere(server: Container) -> None:
    done = server.run(STATE, entrypoint=PYTHON)
    first, *refused = done.stdout.splitlines()
    assert first.split() == ["65532", "65532", "0" * 16, "0" * 16, "1"], done.stderr
    assert len(refused) == 4, "something could be written"


def test_there_is_no_shell_no_package_manager_and_nothing_that_gives_rights(server: Container) -> None:
    for program in ("/bin/sh", "/bin/bash", "/usr/bin/dpkg", "/usr/bin/apt-get"):
        done = server.run(entrypoint=[program])
        assert done.returncode != 0
        assert "no such file" in done.stderr.lower()
    programs = sorted(path.name for place in ("bin", "sbin") for path in (server.root / "usr" / place).iterdir())
    assert programs == ["fastness", "python3.11"]
    files = [path for path in server.root.rglob("*") if not path.is_symlink()]
    assert not [path for path in files if path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID)]


def test_byte_code_is_there_for_every_module_and_names_no_place_of_the_builder(server: Container) -> None:
    modules = server.root / wheels.MODULES / "fastness"
    sources = list(modules.rglob("*.py"))
    compiled = list(modules.rglob("*.pyc"))
    assert len(sources) == len(compiled) > 500
    code = (modules / "cli/__pycache__/main.cpython-311.pyc").read_bytes()
    assert code[4] == 1, "hash-based, and not compared with the source"
    assert b"/usr/local/lib/python3.11/dist-packages/fastness/cli/main.py" in code
    builder = str(image.image_cache(os.environ)).encode()
    assert not [path for path in compiled if builder in path.read_bytes()]


def test_the_image_is_small_labelled_and_runs_as_a_numeric_user(server_image: Built) -> None:
    assert server_image.size < MOST_BYTES
    manifest = document(server_image.layout, server_image.digest)
    config = document(server_image.layout, manifest["config"]["digest"])["config"]
    assert config["User"] == "65532:65532"
    assert manifest["annotations"] == config["Labels"]
    assert config["Labels"]["org.opencontainers.image.version"] == image.version()


def test_both_images_share_what_they_stand_on(server_image: Built, agent_image: Built) -> None:
    assert server_image.layers[0].digest == agent_image.layers[0].digest
    names = {component.name for layer in agent_image.layers for component in layer.components}
    assert "fastness-agent" in names
    assert not names & {"regopy", "granian", "uvicorn", "cel-expr-python"}


def test_the_agent_runs_and_can_change_the_root_of_its_node(agent_image: Built, tmp_path: Path) -> None:
    require_runc()
    agent = Container(agent_image, tmp_path)
    done = agent.run("kata", "install", "--help")
    assert done.returncode == 0, done.stderr
    assert "/host" in done.stdout
    done = agent.run("--version", entrypoint=["chroot"])
    assert "coreutils" in done.stdout, done.stderr


def test_the_image_of_builds_has_buildah_and_nothing_else_to_run(
    builder_image: Built, server_image: Built, tmp_path: Path
) -> None:
    require_runc()
    builder = Container(builder_image, tmp_path)
    (loader,) = (f"/usr/lib/{path.parent.name}/{path.name}" for path in (builder.root / "usr/lib").glob("*/ld-linux-*"))
    done = builder.run(
        "--list", "/usr/bin/buildah", entrypoint=[loader]
    )  # its program wants a directory that it can write
    assert (done.returncode, "libgpgme" in done.stdout, "not found" in done.stdout) == (0, True, False), done.stderr
    done = builder.run("push", "everything")
    assert (done.returncode, done.stderr) == (2, "usage: fastness-builder pull|build|push\n")
    programs = sorted(path.name for place in ("bin", "sbin") for path in (builder.root / "usr" / place).iterdir())
    assert programs == ["buildah", "fastness-builder", "python3.11"]
    files = [path for path in builder.root.rglob("*") if not path.is_symlink()]
    assert not [path for path in files if path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID)]
    assert [each.digest for each in builder_image.layers[:2]] == [each.digest for each in server_image.layers[:2]]
    assert {"buildah", "libgpgme11"} <= {part.name for layer in builder_image.layers for part in layer.components}


BUILD_AGAIN = """
import os, sys
from pathlib import Path
from tools.release import image
os.umask(0o077)
recipe = {each.name: each for each in image.RECIPES}[sys.argv[1]]
print(image.build(recipe, Path(sys.argv[2]), Path(sys.argv[3])).digest)
"""


def again(name: str, cache: Path, target: Path) -> str:
    """The digest of an image that another process builds with another cache, umask, time zone, language and hash seed."""
    environment = {**os.environ, "TZ": "Asia/Kathmandu", "LC_ALL": "C", "PYTHONHASHSEED": "7", "PYTHONPATH": "src:."}
    done = subprocess.run(
        [sys.executable, "-c", BUILD_AGAIN, name, str(target), str(cache)],
        cwd=image.HOME, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_second_builder_makes_the_same_agent(agent_image: Built, tmp_path: Path) -> None:
    """What the images share comes out of the cache: the long form makes that, too."""
    assert again_above(agent_image, 1, tmp_path) == agent_image.digest


def test_a_second_builder_makes_the_same_image_of_builds(builder_image: Built, tmp_path: Path) -> None:
    assert again_above(builder_image, 2, tmp_path) == builder_image.digest


def again_above(built: Built, layers: int, place: Path) -> str:
    """The digest of an image that another builder makes, all but its lowest layers."""
    cache, other = image.image_cache(os.environ), place / "cache"
    other.mkdir()
    below = tuple(layer.blob.name.removesuffix(".tar.gz") for layer in built.layers[:layers])
    for path in cache.iterdir():
        if path.name.startswith((*below, "root-", "packages", "wheels-")):
            (other / path.name).symlink_to(path)
    return again(built.name, other, place / "layout")


@pytest.mark.parametrize("_", [pytest.param("", marks=in_soak("the agent is built twice from its second layer on"))])
def test_a_second_builder_makes_the_same_image_from_packages_and_wheels_alone(
    _: str, server_image: Built, tmp_path: Path
) -> None:
    cache, other = image.image_cache(os.environ), tmp_path / "cache"
    other.mkdir()
    for path in cache.iterdir():
        if path.name.startswith(("packages", "wheels-")):
            shutil.copytree(path, other / path.name)
    assert again("fastness", other, tmp_path / "layout") == server_image.digest
