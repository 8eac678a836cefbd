"""Logs of builds in a support bundle: as text, without credentials, and nobody else's ConfigMaps."""

from __future__ import annotations

from pathlib import Path

from fastness.builds.build_objects import BUILD_LABEL, LOG, NAMESPACE
from fastness.cli.support.gather import Bounds, Bundle, gather_build_logs
from fastness.kinds.kind import JsonObject


def stored(name: str, log: str, namespace: str = NAMESPACE, **labels: str) -> JsonObject:
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}, "data": {LOG: log}}


def test_the_log_of_every_build_is_a_file_without_credentials(tmp_path: Path) -> None:
    bundle = Bundle(tmp_path, Bounds())
    secret = '{"auths":{"r.example":{"auth":"bWU6c2VjcmV0"}}}'
    gather_build_logs(bundle, [
        stored("log-worker-1", f"STEP 1\nSTEP 2\n{secret}\n", **{BUILD_LABEL: "worker-1"}),
        stored("log-of-somebody", "private"), stored("log-x", "private", "default", **{BUILD_LABEL: "x"}),
    ])  # fmt: skip
    (entry,) = bundle.entries
    assert entry.path == f"namespaces/{NAMESPACE}/builds/worker-1.log"
    text = (tmp_path / entry.path).read_text()
    assert text.startswith("STEP 1\nSTEP 2\n")
    assert "bWU6c2VjcmV0" not in text
