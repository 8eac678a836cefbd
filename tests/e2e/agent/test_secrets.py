"""A real agent with a config full of secrets: none of them is in anything that it prints, tells or leaves for others.

It applies, drifts, fails, undoes and is asked for a support bundle; then everything that leaves the machine is searched for
every secret, as it is, in base64 and in the encoding of data URLs.
"""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml

from tests.e2e.agent.test_agent_process import admit, notes
from tests.e2e.agent.test_virtual_machines import machine_config
from tests.e2e.live import FASTNESS, Live, environment, run
from tests.patience import PATIENCE, eventually

MIB = 1024 * 1024
MOST_MIB = 90  # far below what is replaced; bench/ holds the figure itself
NOBODY = 65534
WORDS = {
    kind: f"canary{number}{kind}Kq7Zx" for number, kind in enumerate(("file", "key", "unit", "hash", "late", "old"))
}
PEM = f"-----BEGIN PRIVATE KEY-----\n{WORDS['key']}\n-----END PRIVATE KEY-----\n"


def entry(path: str, content: str, mode: int) -> dict[str, Any]:
    """A file of a config."""
    return {"path": path, "mode": mode, "overwrite": True, "contents": {"source": f"data:,{quote(content)}"}}


def secret_config() -> dict[str, Any]:
    """Secrets wherever a config can hold them."""
    config = machine_config(
        "99-worker-secrets", entry("/etc/app/password", WORDS["file"], 0o600), entry("/etc/app/key.pem", PEM, 0o600)
    )
    unit = f"[Service]\nEnvironment=TOKEN={WORDS['unit']}\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"
    config["spec"]["config"]["systemd"] = {"units": [{"name": "app.service", "enabled": True, "contents": unit}]}
    config["spec"]["config"]["passwd"] = {"users": [{"name": "core", "passwordHash": f"$6$salt${WORDS['hash']}"}]}
    return config


FAILING = machine_config(
    "99-worker-failing", entry("/etc/app/late", WORDS["late"], 0o600), entry("/etc/passwd/x", WORDS["late"], 0o600)
)


def credentials(kubeconfig: Path) -> list[str]:
    """What the agent itself proves itself with."""
    user = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]
    return [str(user[key]) for key in ("token", "client-key-data") if user.get(key)]


def forms(secret: str) -> list[bytes]:
    """A secret as it may appear."""
    return [secret.encode(), base64.b64encode(secret.encode()).rstrip(b"=")[:-2], quote(secret).encode()]


def leaks(data: bytes, secrets: list[str]) -> list[str]:
    return [secret[:12] for secret in secrets if any(form in data for form in forms(secret))]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A control plane without machines of its own, and a node."""
    with Live.start(tmp_path_factory.mktemp("secrets")) as started:
        admit(started)
        yield started


@contextmanager
def agent(live: Live, root: Path, log: Path) -> Iterator[subprocess.Popen[str]]:
    """An agent that says as much as it can."""
    words = [FASTNESS, "agent", "run", "--node", "byhand", "--root", root, "--fast", "--log-level", "debug"]
    with log.open("a") as output:
        process = subprocess.Popen(
            [*map(str, words), "--kubeconfig", str(live.kubeconfig)],
            env=environment(live.home), stdout=output, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE)


@pytest.fixture(scope="module")
def root(live: Live) -> Path:
    """What the machine of the node has before its first config."""
    root = live.home / "machine"
    (root / "etc").mkdir(parents=True)
    (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\ncore:x:1000:1000::/home/core:/bin/sh\n")
    (root / "etc/shadow").write_text(f"root:*:1::::::\ncore:{WORDS['old']}:1::::::\n")
    (root / "etc/shadow").chmod(0o600)
    return root


def wait(live: Live, state: str, *, done: bool = True) -> None:
    """Until the node is in a state, with what it should have or not."""

    def so() -> bool:
        report = notes(live)
        return report.get("state") == state and (report.get("currentConfig") == report.get("desiredConfig")) == done

    eventually(so, f"{state}: {notes(live)}")


def rendered_has(live: Live, name: str) -> bool:
    """Whether what the node should have was made with a config."""
    goal = notes(live).get("desiredConfig", "")
    pool = live.kubectl("get", "mcp", "worker", "-o", "json").json["spec"]["configuration"]
    return goal == pool["name"] and any(source["name"] == name for source in pool.get("source", ()))


def change(live: Live, config: dict[str, Any]) -> None:
    applied = live.kubectl("apply", "-f", "-", stdin=config)
    assert applied.code == 0, applied.err
    eventually(lambda: rendered_has(live, config["metadata"]["name"]), "the new config is desired")


def read_as_nobody(directory: Path) -> str:
    """The files below a directory in which somebody without rights finds a secret."""
    command = ["grep", "-rlE", "canary[0-9]", "."]
    nobody: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    # Closed directories make grep end with 2, which is what is hoped for.
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False, **nobody)
    return str(done.stdout)


def test_no_secret_is_in_anything_that_an_agent_prints_tells_or_leaves(live: Live, root: Path, tmp_path: Path) -> None:
    log = tmp_path / "agent.log"
    with agent(live, root, log) as process:
        wait(live, "Done")
        change(live, secret_config())
        wait(live, "Done")
        assert WORDS["hash"] in (root / "etc/shadow").read_text()
        limits = Path(f"/proc/{process.pid}/limits").read_text()
        assert "Max core file size        0                    0 " in limits
        (root / "etc/app/password").write_text(f"{WORDS['late']}")
        unit = root / "etc/systemd/system/app.service"
        unit.write_text(f"{unit.read_text()}# {WORDS['late']}\n")
        wait(live, "Degraded")
        reasons = [notes(live)["reason"]]
        (root / "etc/app/password").write_text(WORDS["file"])
        unit.write_text(unit.read_text().replace(f"# {WORDS['late']}\n", ""))
        wait(live, "Done")
        change(live, FAILING)
        wait(live, "Degraded", done=False)
        reasons.append(notes(live)["reason"])
        assert not (root / "etc/app/late").exists()
        objects = live.kubectl("get", "events,nodes,machineconfignodes", "-A", "-o", "json").out
        bundle = run(
            [FASTNESS, "support", "bundle", "--dest-dir", "bundle", "--kubeconfig", live.kubeconfig],
            environment(live.home), cwd=tmp_path,
        )  # fmt: skip
        assert bundle.code == 0, bundle.err
        assert live.kubectl("delete", "mc", "99-worker-failing").code == 0
        wait(live, "Done")
        if os.geteuid() == 0:
            assert read_as_nobody(root).split() == ["./etc/systemd/system/app.service"]
            assert read_as_nobody(live.home / "machine.state") == ""
    secrets = [*WORDS.values(), *credentials(live.kubeconfig)]
    assert "content differs: sha256" in reasons[0]
    assert "/etc/passwd" in reasons[1]
    assert leaks("\n".join((*reasons, objects, bundle.out, bundle.err)).encode(), secrets) == []
    assert leaks(log.read_bytes(), secrets) == []
    files = [path for path in (tmp_path / "bundle").rglob("*") if path.is_file()]
    assert len(files) > 5
    assert [(path.name, leaks(path.read_bytes(), secrets)) for path in files if leaks(path.read_bytes(), secrets)] == []


def test_replaced_files_of_200_megabytes_come_back_and_the_agent_stays_small(
    live: Live, root: Path, tmp_path: Path
) -> None:
    with (root / "etc/full").open("wb") as full, (root / "etc/sparse").open("wb") as sparse:
        for _ in range(100):
            full.write(os.urandom(1_000_000))
        sparse.seek(99_999_999)
        sparse.write(b"x")
    digests = {name: digest(root / "etc" / name) for name in ("full", "sparse")}
    with agent(live, root, tmp_path / "agent.log") as process:
        wait(live, "Done")
        change(
            live,
            machine_config("99-worker-large", entry("/etc/full", "small", 0o600), entry("/etc/sparse", "small", 0o600)),
        )
        wait(live, "Done")
        assert (root / "etc/full").read_text() == "small"
        assert live.kubectl("delete", "mc", "99-worker-large").code == 0
        eventually(lambda: (root / "etc/full").stat().st_size == 100_000_000, "the way back")
        wait(live, "Done")
        peak = peak_mib(process.pid)
    assert {name: digest(root / "etc" / name) for name in digests} == digests
    assert not list((live.home / "machine.state/agent").glob("kept/*"))
    assert peak < MOST_MIB, f"{peak:.1f} MiB"


def digest(path: Path) -> str:
    with path.open("rb") as handle:
        whole = sha256()
        while block := handle.read(MIB):
            whole.update(block)
    return whole.hexdigest()


def peak_mib(pid: int) -> float:
    """The most memory that a process had at any moment."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    raise AssertionError("the kernel does not say it")
