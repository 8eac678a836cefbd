"""The real cluster that other tests compare with does what its fixture promises."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import httpx
import pytest

from tests.patience import PATIENCE
from tests.realkube import RealKube, StartFailed
from tests.realkube.fixtures import binaries_or_skip


def test_programs_are_of_one_pinned_release(real_kube: RealKube) -> None:
    with real_kube.client() as admin:
        assert admin.get("/version").json()["gitVersion"].startswith("v1.36.")


def test_admin_may_everything_by_token(real_kube: RealKube) -> None:
    with real_kube.client() as admin:
        assert admin.get("/api/v1/secrets").status_code == 200


def test_admin_may_everything_by_certificate(real_kube: RealKube) -> None:
    keys = (str(real_kube.credentials.admin_certificate), str(real_kube.credentials.admin_key))
    trust = real_kube.trust()
    trust.load_cert_chain(*keys)
    with httpx.Client(base_url=real_kube.url, verify=trust, trust_env=False) as admin:
        assert admin.get("/api/v1/secrets").status_code == 200


def test_alice_may_nothing_but_ask(real_kube: RealKube) -> None:
    with real_kube.client("alice") as alice:
        assert alice.get("/version").status_code == 200
        assert alice.get("/api/v1/namespaces/default/configmaps").status_code == 403


def test_viewer_reads_but_sees_no_secrets_and_writes_nothing(real_kube: RealKube) -> None:
    with real_kube.client("viewer") as viewer:
        assert viewer.get("/api/v1/namespaces/default/configmaps").status_code == 200
        assert viewer.get("/api/v1/namespaces/default/secrets").status_code == 403
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "realkube-viewer"}}
        assert viewer.post("/api/v1/namespaces/default/configmaps", json=body).status_code == 403


def test_node_may_touch_its_own_node_and_no_other(real_kube: RealKube) -> None:
    with real_kube.client("node") as node:
        for name, code in (("worker-0", 201), ("worker-1", 403)):
            body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
            assert node.post("/api/v1/nodes", json=body, params={"dryRun": "All"}).status_code == code


def test_client_without_credential_is_anonymous(real_kube: RealKube) -> None:
    with real_kube.client(None) as nobody:
        assert nobody.get("/api/v1/namespaces").status_code == 403


def test_key_material_is_private(real_kube: RealKube) -> None:
    for path in (real_kube.kubeconfig, *map(real_kube.kubeconfig_for, real_kube.users)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(real_kube.directory.stat().st_mode) == 0o700


def test_controllers_work_namespace_is_emptied_and_removed(real_kube: RealKube) -> None:
    with real_kube.client() as admin:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "realkube-gone"}}
        admin.post("/api/v1/namespaces", json=body).raise_for_status()
        admin.delete("/api/v1/namespaces/realkube-gone").raise_for_status()
        deadline = time.monotonic() + PATIENCE
        while admin.get("/api/v1/namespaces/realkube-gone").status_code != 404:
            assert time.monotonic() < deadline, "the namespace controller did not finish"
            time.sleep(0.1)


def test_stop_ends_every_program(real_kube_binaries: Path, tmp_path: Path) -> None:
    kube = RealKube.start(tmp_path, real_kube_binaries, unsafe_no_fsync=True)
    pids = kube.pids()
    assert set(pids) == {"etcd", "kube-apiserver", "kube-controller-manager"}
    kube.stop()
    kube.stop()
    assert not (kube.directory / "etcd").exists()
    assert (kube.directory / "etcd.log").exists()
    for pid in pids.values():
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_failed_start_shows_the_log_and_leaves_nothing_running(real_kube_binaries: Path, tmp_path: Path) -> None:
    with pytest.raises(StartFailed, match="unknown flag: --no-such-flag") as caught:
        RealKube.start(tmp_path, real_kube_binaries, apiserver_flags=["--no-such-flag"])
    assert "kube-apiserver ended" in str(caught.value)
    assert not any(place.startswith(str(tmp_path)) for place in working_directories())


def working_directories() -> list[str]:
    """Where all processes run that we may look at; every program runs in the directory of its cluster."""
    directories = []
    for entry in Path("/proc").glob("[0-9]*/cwd"):
        try:
            directories.append(os.readlink(entry))
        except OSError:
            continue
    return directories


def test_missing_programs_skip_here_and_fail_in_ci(tmp_path: Path) -> None:
    nothing = {"PATH": "", "XDG_CACHE_HOME": str(tmp_path)}
    with pytest.raises(pytest.skip.Exception, match=r"tools/realkube\.py ensure"):
        binaries_or_skip(nothing)
    with pytest.raises(pytest.fail.Exception, match=r"tools/realkube\.py ensure"):
        binaries_or_skip({**nothing, "CI": "true"})
