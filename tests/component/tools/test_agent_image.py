"""The agent as one directory: complete, alone, and able to start where no Python is installed."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from fastness.agent.host.tee.configfs_tsm import BOOT_KEY
from fastness.cli.machine.agent import agent
from fastness.cli.machine.agent_hardware import BROKER
from tests.components import require_program
from tools import agent_image, agent_wheel

pytestmark = pytest.mark.processes

DEPLOY = agent_wheel.HOME / "deploy"
IGNITION = Path("/usr/lib/dracut/modules.d/30ignition")
# What the machines of the simulator bring for the same directory, too (`sim.vms.initrd`).
C_LIBRARY = ("libm", "libdl", "libpthread", "librt", "libresolv")
MOST_BYTES = 64 * 1024**2
PROBE = """
import sys, importlib
for name in sys.argv[1:]:
    importlib.import_module(name)
import anyio._backends._asyncio, httpcore, ssl, encodings.idna
print(ssl.OPENSSL_VERSION)
print("\\n".join(sorted({module.__file__ for module in list(sys.modules.values()) if getattr(module, "__file__", None)})))
"""


def agent_verb(name: str) -> click.Command:
    command = agent.get_command(click.Context(agent), name)
    assert command is not None, name
    return command


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("image") / "agent"
    sizes = agent_image.build(directory)
    assert sizes["all"] < MOST_BYTES
    return directory


def test_every_module_imports_from_the_directory_and_from_nowhere_else(image: Path) -> None:
    modules = sorted(agent_wheel.closure()[0])
    done = subprocess.run(
        [image / "bin" / agent_image.VERSION, "-I", "-B", "-c", PROBE, *modules], capture_output=True, text=True, check=False,
        env={"LD_LIBRARY_PATH": str(image / "lib/native")}, timeout=60, cwd="/",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    outside = [line for line in done.stdout.splitlines()[1:] if not line.startswith(str(image.resolve()))]
    assert outside == []


def test_it_starts_after_it_was_moved_and_through_a_link(image: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    shutil.copytree(image, moved)
    (tmp_path / "link").symlink_to(moved / "bin/fastness-agent")
    environment = {"PATH": "/usr/bin:/bin"}
    result = subprocess.run(
        [tmp_path / "link", "boot", "--help"], env=environment, capture_output=True, text=True, check=True
    )
    assert "give Ignition its configuration" in result.stdout
    missing = [str(tmp_path / "link"), "boot", "--trust", "/nowhere"]
    failed = subprocess.run(missing, env=environment, capture_output=True, text=True, check=False)
    assert (failed.returncode, "trust.json" in failed.stderr) == (3, True)


@pytest.mark.skipif(os.geteuid() != 0, reason="changing the root needs root")
def test_it_runs_in_a_root_that_has_only_the_c_library(image: Path, tmp_path: Path) -> None:
    root, busybox = tmp_path / "root", Path("/bin/busybox")
    require_program(busybox, "busybox-static")
    shutil.copytree(image, root / "agent")
    listed = subprocess.run(
        ["ldd", image / "bin" / agent_image.VERSION], capture_output=True, text=True, check=True
    ).stdout
    libraries = re.findall(r"(/lib\S*/(?:libc\.so|libm\.so|ld-linux)\S*) \(", listed)
    for library in [
        *libraries,
        *(str(Path(libraries[0]).with_name(name)) for name in ("libdl.so.2", "libpthread.so.0", "librt.so.1")),
    ]:
        target = root / library.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(library, target)
        target.chmod(0o755)
    (root / "bin").mkdir(exist_ok=True)
    shutil.copy(busybox, root / "bin/sh")
    for name in ("dirname", "readlink"):
        (root / "bin" / name).symlink_to("sh")
    command = ["/usr/sbin/chroot", str(root), "/agent/bin/fastness-agent", "boot", "--trust", "/nowhere"]
    result = subprocess.run(command, env={"PATH": "/bin"}, capture_output=True, text=True, check=False, timeout=60)
    assert "/nowhere cannot be read" in result.stderr, result.stderr
    assert result.returncode == 3


def test_nothing_that_it_needs_is_forgotten_and_nothing_of_the_server_comes_along(image: Path) -> None:
    names = {path.name for path in (image / "lib" / agent_image.VERSION / agent_image.packages_directory()).iterdir()}
    assert {"fastness", "httpx", "httpcore", "anyio", "cryptography", "orjson", "yaml"} <= names
    assert names.isdisjoint({"uvicorn", "pytest", "regopy", "dcap_qvl", "granian", "pip"})
    assert not list(image.rglob("*.py"))


def test_the_dracut_module_asks_for_what_is_there_and_installs_all_of_it(image: Path, tmp_path: Path) -> None:
    home, done = tmp_path / "sysroot/usr/lib/fastness", tmp_path / "done"
    shutil.copytree(image, home / "agent")
    module = DEPLOY / "dracut/50fastness/module-setup.sh"
    script = f"""
    set -eu
    require_binaries() {{ true; }}; dinfo() {{ echo "$*"; }}; instmods() {{ echo "modules $*" >> {done}; }}
    inst_simple() {{ echo "file $1" >> {done}; }}; inst_multiple() {{ echo "programs $*" >> {done}; }}
    inst_libdir_file() {{ echo "library $*" >> {done}; }}; ln_r() {{ echo "link $2" >> {done}; }}
    inst_hook() {{ echo "hook $1 $3" >> {done}; }}
    moddir={module.parent} initdir={tmp_path}/initdir systemdsystemunitdir=/usr/lib/systemd/system
    dracutsysrootdir={tmp_path}/sysroot
    . {module}
    code=0; check || code=$?; echo "check $code"
    echo '{{}}' > {home}/trust.json
    code=0; check || code=$?; echo "check $code"
    mkdir -p {tmp_path}/sysroot/usr/lib/ignition; echo '{{}}' > {tmp_path}/sysroot/usr/lib/ignition/user.ign
    mkdir -p {tmp_path}/sysroot/etc/systemd/system; ln -s /dev/null {tmp_path}/sysroot/etc/systemd/system/emergency.service
    ln -s /usr/lib/x.service {tmp_path}/sysroot/etc/systemd/system/alias.service
    code=0; check || code=$?; echo "check $code"
    depends; install; installkernel
    """
    output = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout
    assert output.splitlines() == [
        "fastness: /usr/lib/fastness/trust.json is missing: this image would believe nobody", "check 1",
        "fastness: /usr/lib/ignition/user.ign is missing: Ignition would apply what the host writes as user-data", "check 1",
        "check 255",
        "systemd ignition",
    ]  # fmt: skip
    installed = done.read_text()
    assert installed.count(f"file {home}/agent/") == sum(1 for path in (home / "agent").rglob("*") if path.is_file())
    assert "file /usr/lib/ignition/user.ign" in installed
    masks = tmp_path / "initdir/etc/systemd/system"
    assert [(path.name, os.readlink(path)) for path in masks.iterdir()] == [("emergency.service", "/dev/null")]
    # With systemd's own target the mask would make systemd ignore every OnFailure=emergency.target.
    assert f"file {module.parent}/emergency.target" in installed
    assert f"file {module.parent}/fastness-stop.service" in installed
    assert f"file {module.parent}/gate.conf" in installed
    for name in C_LIBRARY:
        assert f"{name}.so.*" in installed, "the agent would not start: dracut copies its files without what they need"
    assert ".mount" not in installed, "this image has no volumes"
    assert "link /usr/lib/systemd/system/ignition-fetch.service.requires/fastness-boot.service" in installed
    drivers = (agent_wheel.SOURCE / "fastness/agent/host/tee").glob("*.py")
    used = {name for path in drivers for name in re.findall(r'\.(?:tool|printed)\(\s*"(\w+)"', path.read_text())}
    assert {"getcap", "createek", "quote"} <= used
    assert {f"tpm2_{name}" for name in used} <= set(re.findall(r"tpm2_\w+", installed))


@pytest.mark.parametrize(
    ("volumes", "mounts"),
    [
        ("", set()), ('{"var": "/dev/x"}', {"sysroot-var.mount"}), ('{"root" : "/dev/x"}', {"sysroot.mount"}),
        ('{"var": "/dev/x", "root": "/dev/y"}', {"sysroot.mount", "sysroot-var.mount"}),
    ],
)  # fmt: skip
def test_every_volume_of_an_image_is_mounted_by_a_unit_that_the_root_requires(
    volumes: str, mounts: set[str], tmp_path: Path
) -> None:
    home, done = tmp_path / "usr/lib/fastness", tmp_path / "done"
    (home / "root/etc").mkdir(parents=True)
    done.touch()
    if volumes:
        (home / "volumes.json").write_text(volumes)
    script = f"""
    set -eu
    inst_simple() {{ echo "file $2" >> {done}; }}; inst_multiple() {{ true; }}; inst_hook() {{ true; }}
    ln_r() {{ echo "link $2" >> {done}; }}
    moddir={DEPLOY}/dracut/50fastness initdir={tmp_path}/initdir systemdsystemunitdir=/units dracutsysrootdir={tmp_path}
    . {DEPLOY}/dracut/50fastness/module-setup.sh
    install_volumes
    """
    subprocess.run(["bash", "-c", script], check=True)
    lines = done.read_text().splitlines()
    assert {line.rpartition("/")[2] for line in lines if line.startswith("file ")} == mounts
    assert {line for line in lines if line.startswith("link ")} == {
        f"link /units/initrd-root-fs.target.requires/{mount}" for mount in mounts
    }
    assert (tmp_path / "initdir/usr/lib/fastness/root/etc").exists() == ("sysroot.mount" in mounts)


@pytest.mark.parametrize("name", ["sysroot.mount", "sysroot-var.mount"])
def test_a_volume_is_mounted_without_a_condition_and_without_a_device_that_times_out(name: str) -> None:
    """A condition would be a way around, and systemd waits 90 seconds for a path below /dev and not for a broker."""
    text = (DEPLOY / "dracut/50fastness" / name).read_text()
    assert "Condition" not in text
    assert re.search(r"^What=/run/fastness/opened/(root|var)$", text, flags=re.M)
    assert "OnFailure=emergency.target" in text


def test_the_root_is_entered_only_behind_the_agent() -> None:
    gate = (DEPLOY / "dracut/50fastness/gate.conf").read_text().splitlines()
    assert {"Requires=fastness-leave-initrd.service", "After=fastness-leave-initrd.service"} <= set(gate)
    target, stop = (
        (DEPLOY / "dracut/50fastness" / name).read_text() for name in ("emergency.target", "fastness-stop.service")
    )
    assert re.findall(r"^(?:Requires|Wants)=(.*)$", target, flags=re.M) == ["fastness-stop.service"]
    assert not re.search(r"sulogin|/sh\b|StandardInput", stop), "a shell is root with good registers"


UNITS = sorted(str(path.relative_to(DEPLOY)) for kind in ("service", "mount") for path in DEPLOY.rglob(f"*.{kind}"))


@pytest.mark.parametrize("unit", UNITS)
def test_units_are_what_systemd_understands(unit: str, tmp_path: Path) -> None:
    require_program(Path("/usr/bin/systemd-analyze"), "systemd")
    for path in (DEPLOY / unit).parent.iterdir():
        if path.suffix in (".service", ".mount"):
            # The programs are those of the image, not of the machine that runs the tests.
            text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", path.read_text(), flags=re.M)
            (tmp_path / path.name).write_text(text)
    result = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / Path(unit).name)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert [line for line in result.stderr.splitlines() if Path(unit).name in line] == []


@pytest.mark.parametrize("volumes", [("var",), ("root",), ("root", "var")])
def test_no_unit_of_an_initial_file_system_waits_for_itself(volumes: tuple[str, ...], tmp_path: Path) -> None:
    """systemd breaks a cycle by leaving a unit out, and which one nobody chooses: it could be the one that opens the disk."""
    require_program(Path("/usr/bin/systemd-analyze"), "systemd")
    require_program(IGNITION / "ignition", "ignition")
    units, system = tmp_path / "units", Path("/usr/lib/systemd/system")
    units.mkdir()
    for path in (*IGNITION.iterdir(), *(DEPLOY / "dracut/50fastness").iterdir()):
        if path.suffix in (".service", ".target", ".mount"):
            text = re.sub(r"^(Exec\w+)=.*$", r"\1=/bin/true", path.read_text(), flags=re.M)
            (units / path.name).write_text(text.replace("EnvironmentFile", "#"))
    if "root" not in volumes:
        (units / "sysroot.mount").write_text("[Unit]\nDefaultDependencies=no\n[Mount]\nWhat=/x\nWhere=/sysroot\n")
    required = {
        "initrd-root-fs.target": [
            "sysroot.mount", *(f"sysroot-{volume}.mount" for volume in volumes if volume == "var")
        ],
        "initrd-root-device.target": ["fastness-unlock.service"],
        "initrd-switch-root.target": ["fastness-leave-initrd.service"], "ignition-fetch.service": ["fastness-boot.service"],
        "initrd.target": ["ignition-complete.target"],
        "ignition-complete.target": [path.name for path in IGNITION.glob("*.service")],
    }  # fmt: skip
    for unit, names in required.items():
        (units / f"{unit}.requires").mkdir()
        for name in names:
            (units / f"{unit}.requires" / name).symlink_to(units / name)
    drop_in = units / "initrd-switch-root.service.d"
    drop_in.mkdir()
    shutil.copy(DEPLOY / "dracut/50fastness/gate.conf", drop_in / "50-fastness.conf")
    for target in ("initrd.target", "initrd-switch-root.target"):
        result = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", "--recursive-errors=yes", target],
            capture_output=True, text=True, check=False, env={"SYSTEMD_UNIT_PATH": f"{units}:{system}", "PATH": "/usr/bin"},
        )  # fmt: skip
        assert "cycle" not in result.stderr, result.stderr
        assert not [line for line in result.stderr.splitlines() if "fastness" in line and "not found" in line]


@pytest.mark.parametrize("unit", sorted(str(path.relative_to(DEPLOY)) for path in DEPLOY.rglob("*.service")))
def test_units_start_the_agent_with_verbs_and_options_that_it_has(unit: str) -> None:
    text = (DEPLOY / unit).read_text().replace("\\\n", "")  # a line that goes on
    # What a variable of the unit stands for, word by word, as systemd splits it.
    for name, value in re.findall(r'^Environment="?(\w+)=([^"\n]*)"?$', text, flags=re.M):
        text = text.replace(f"$${name} ", f"{value} ").replace(f"${name} ", f"{value} ")
    # A shell that waits for something becomes the agent in the end.
    text = re.sub(r"^ExecStart=/bin/sh -c '.*; *exec (.*)'$", r"ExecStart=\1", text, flags=re.M)
    for line in re.findall(r"^ExecStart=(.*fastness-agent .*)$", text, flags=re.M):
        program, verb, *options = shlex.split(line)
        assert program == "/usr/lib/fastness/agent/bin/fastness-agent"
        agent_verb(verb).make_context(verb, list(options))


def test_the_unit_that_keeps_attesting_reads_what_the_other_unit_kept() -> None:
    unit = (DEPLOY / "systemd/fastness-identity.service").read_text()
    attest = (DEPLOY / "systemd/fastness-attest.service").read_text()
    assert re.search(r"^ExecStart=\S+/fastness-agent keep-identity$", unit, flags=re.M)
    made = agent_verb("keep-identity").make_context("keep-identity", []).params
    assert (str(made["source"]), str(made["target"])) == ("/run/fastness/identity", "/var/lib/fastness/identity")
    assert "ConditionPathExists=!" not in unit, "a directory that lies there must not win"
    assert f"ConditionPathExists=/var/lib/fastness/identity/{BROKER}" in attest
    assert "After=fastness-identity.service" in attest
    assert "--state /var/lib/fastness/identity" in attest


@pytest.mark.parametrize(
    "unit",
    ["systemd/fastness-attest.service", "systemd/fastness-agent.service", "dracut/50fastness/fastness-boot.service"],
)
def test_the_key_of_a_boot_outlives_the_units_that_prove_it(unit: str) -> None:
    """With a key of its own each, two units of one boot would look like two machines."""
    text = (DEPLOY / unit).read_text()
    assert BOOT_KEY.parent == Path("/run/fastness")
    for line in ("RuntimeDirectory=fastness", "RuntimeDirectoryMode=0700", "RuntimeDirectoryPreserve=yes"):
        assert line in text.splitlines()


@pytest.mark.parametrize("name", ["fastness-agent", "fastness-attest"])
def test_units_that_run_on_leave_no_dump_and_read_the_identity_that_was_kept(name: str) -> None:
    unit = (DEPLOY / f"systemd/{name}.service").read_text()
    assert re.search(r"^LimitCORE=0$", unit, flags=re.M)
    assert re.search(r"^After=.*\bfastness-identity\.service\b", unit, flags=re.M)
    assert f"ConditionPathExists=/var/lib/fastness/identity/{BROKER}" in unit
    assert re.search(
        r'^ExecStart=.* --kubeconfig (\$\{KUBECONFIG\}|"\$\$KUBECONFIG"\')$', unit.replace("\\\n", ""), flags=re.M
    )
    assert "Environment=KUBECONFIG=/etc/kubernetes/kubelet.conf" in unit
