"""An administrator rolls the whole control plane back to yesterday's backup: the witness refuses, and everybody sees it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.attestation.test_confidential_cluster import Confidential
from tests.e2e.live import FASTNESS, Live, environment, run
from tests.patience import eventually


def test_a_control_plane_that_was_rolled_back_is_seen_by_its_witness(tmp_path: Path) -> None:
    with Live.start(tmp_path, "--machines", "1") as live:
        cluster = Confidential(live)
        eventually(lambda: cluster.attested() == 1, "an attested machine")
        with _witness(tmp_path, cluster.fastness("audit", "key").out) as (key, url):
            _name(live, key, url)
            eventually(lambda: _condition(live, "Witnessed")[0] == "True", "a cosigned record")
            backed = cluster.fastness("backup", "--state", str(live.state), str(tmp_path / "yesterday.db"))
            assert backed.code == 0, backed.err
            size = _size(live)
            assert cluster.fastness("sim", "reboot", "worker-0", "--state", str(live.state)).code == 0
            eventually(
                lambda: _size(live) > size and _newest(live)["status"]["witnesses"] == "1/1", "what happened since"
            )
            live.stop()
            _roll_back(tmp_path)
            with Live.start(tmp_path, "--machines", "1") as again:
                eventually(lambda: _condition(again, "Witnessed") == ("False", "RolledBack"), "the witness to refuse")
                eventually(
                    lambda: _condition(again, "Recorded") == ("False", "RecordBehind"), "the record to stand still"
                )
                assert _size(again) == size
                doctor = Confidential(again).fastness("doctor", "--kubeconfig", str(again.kubeconfig))
                assert doctor.code == 1
                assert re.search(r"! +witnesses +0 of 1 witness cosigned the record: witness w1 has seen", doctor.out)


@contextmanager
def _witness(home: Path, log: str) -> Iterator[tuple[str, str]]:
    """A witness as its owner runs it: its key, and where it listens."""
    env = environment(home)
    key = run([FASTNESS, "witness", "key", "--state", "witness", "--name", "witness.example/w1"], env, cwd=home).out
    command = [str(FASTNESS), "witness", "run", "--state", "witness", "--log", log, "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, cwd=home, env=env, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            address = re.search(r"on (http://\S+)", process.stderr.readline())
            assert address is not None
            yield key.strip(), address[1]
        finally:
            process.terminate()


def _name(live: Live, key: str, url: str) -> None:
    """Name the witness in the cluster, with the confirmation that the first try asks for."""
    patch: dict[str, object] = {"spec": {"witnesses": [{"name": "w1", "key": key, "url": url}]}}
    words = ("patch", "confidentialcluster", "cluster", "--type=merge", "-p")
    confirmation = re.search(r"confirm-lower=([0-9a-f]+)", live.kubectl(*words, json.dumps(patch)).err)
    assert confirmation is not None
    patch["metadata"] = {"annotations": {"fastness.dev/confirm-lower": confirmation[1]}}
    assert live.kubectl(*words, json.dumps(patch)).code == 0


def _roll_back(home: Path) -> None:
    """The state of yesterday in place of today's; keys stay, as they do for whoever owns the machine."""
    (home / "state").rename(home / "today")
    words = ["restore", "--state", "state", "--vault", "today/vault.json", "yesterday.db"]
    done = run([FASTNESS, *words], environment(home), cwd=home)
    assert done.code == 0, done.err
    (home / "today/pki").rename(home / "state/pki")


def _condition(live: Live, kind: str) -> tuple[str, str]:
    path = "{.status.conditions[?(@.type=='%s')].%s}"
    status, reason = (
        live.kubectl("get", "confidentialcluster", "cluster", "-o", f"jsonpath={path % (kind, field)}").out
        for field in ("status", "reason")
    )
    return status, reason


def _newest(live: Live) -> dict[str, dict[str, str]]:
    items = live.kubectl("get", "auditcheckpoints", "-o", "json").json["items"]
    newest: dict[str, dict[str, str]] = max(items, key=lambda item: int(item["spec"]["size"]))
    return {"status": {"witnesses": ""}, **newest}


def _size(live: Live) -> int:
    return int(_newest(live)["spec"]["size"])
