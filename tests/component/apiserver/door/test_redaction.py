"""A secret that is sent to the API comes back to those who may read it, and appears nowhere else."""

from __future__ import annotations

import base64
import io
import json
import logging
from typing import Any

import pytest

from fastness.observe import logs, metrics
from tests.embedded.fixtures import Embedded

CANARY = "cAnArY5eCr3t"
ENCODED = base64.b64encode(CANARY.encode()).decode()
SECRETS = "/api/v1/namespaces/default/secrets"
MINE = f"{SECRETS}/mine"
APPLY = "application/apply-patch+yaml"
JSON = "application/json"
MERGE = "application/merge-patch+json"
YAML = "application/yaml"


def secret(**parts: Any) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine"}, **parts})


BAD: list[tuple[str, str, str, str]] = [
    ("POST", SECRETS, JSON, secret(data={"k": CANARY + "!"})),
    ("POST", SECRETS, JSON, secret(data={"k": [CANARY]})),
    ("POST", SECRETS, JSON, secret(data={"k": CANARY * 100 + "!"})),
    ("POST", SECRETS, JSON, secret(data=CANARY)),
    ("POST", SECRETS, JSON, secret(stringData={"k": {"x": CANARY}})),
    ("POST", SECRETS, JSON, secret(stringData=[CANARY])),
    ("POST", SECRETS, JSON, secret(immutable=CANARY)),
    ("POST", SECRETS, JSON, secret(type="kubernetes.io/tls", data={"tls.crt": ENCODED})),
    ("POST", SECRETS, JSON, secret(type="kubernetes.io/dockerconfigjson", data={".dockerconfigjson": ENCODED})),
    ("POST", SECRETS, JSON, secret(data={"k": ENCODED})[:-2]),
    ("POST", SECRETS, JSON, CANARY),
    ("POST", SECRETS, YAML, f"metadata: {{name: a}}\ndata: {{k: !!int {CANARY}}}"),
    ("POST", SECRETS, YAML, f"metadata: {{name: a}}\ndata: {{k: !x {CANARY}}}"),
    ("POST", SECRETS, YAML, f"metadata: {{name: a}}\ndata: {{k: {CANARY}: x: y}}"),
    ("POST", SECRETS, "application/vnd.kubernetes.protobuf", "k8s\0" + CANARY),
    ("POST", f"{SECRETS}?fieldValidation=Strict", JSON, secret(data={"k": ENCODED}, extra={"x": CANARY})),
    ("PUT", MINE, JSON, secret(data={"k": CANARY + "="})),
    ("PATCH", MINE, "application/json-patch+json", json.dumps([{"op": "test", "path": "/data/k", "value": CANARY}])),
    ("PATCH", MINE, "application/json-patch+json", json.dumps([{"op": CANARY, "path": "/data/k"}])),
    ("PATCH", MINE, "application/json-patch+json", json.dumps([{"op": "add", "path": "/data/k", "value": [CANARY]}])),
    ("PATCH", MINE, MERGE, json.dumps({"data": {"k": CANARY + "!"}})),
    ("PATCH", MINE, MERGE, json.dumps({"data": [CANARY]})),
    ("PATCH", MINE, MERGE, json.dumps({"stringData": {"k": 7, "l": [CANARY]}})),
    ("PATCH", MINE, "application/strategic-merge-patch+json", json.dumps({"data": {"k": [CANARY]}})),
    ("PATCH", MINE, "application/strategic-merge-patch+json", json.dumps({"data": {"$patch": CANARY}})),
    ("PATCH", f"{MINE}?fieldManager=a", APPLY, secret(data={"k": [CANARY]})),
    ("PATCH", f"{MINE}?fieldManager=a", APPLY, secret(data={"k": CANARY})),
    ("POST", "/apis/authentication.k8s.io/v1/tokenreviews", JSON, json.dumps({"spec": {"token": [CANARY]}})),
]


def leaks(text: str) -> bool:
    return CANARY in text or ENCODED in text


@pytest.fixture
def log_lines() -> Any:
    """Everything that is logged, at every level."""
    root = logging.getLogger("fastness")
    before = (list(root.handlers), root.level, root.propagate)
    stream = io.StringIO()
    logs.configure(level="debug", stream=stream, as_json=True)
    yield stream
    root.handlers[:], root.propagate = before[0], before[2]
    root.setLevel(before[1])
    for name in ("asyncio", "uvicorn"):
        library = logging.getLogger(name)
        library.handlers[:] = []
        library.setLevel(logging.NOTSET)
        library.propagate = True


async def test_a_secret_appears_in_no_refusal_log_audit_line_or_metric(
    embedded_server: Embedded, log_lines: io.StringIO
) -> None:
    async with embedded_server.client() as client:
        created = await client.post(SECRETS, content=secret(data={"k": ENCODED}), headers={"content-type": JSON})
        assert (created.status_code, leaks(created.text)) == (201, True)
        for method, path, kind, body in BAD:
            answer = await client.request(method, path, content=body.encode(), headers={"content-type": kind})
            assert 400 <= answer.status_code < 500, (body, answer.text)
            assert not leaks(answer.text + str(answer.headers)), (body, answer.text)
        read = await client.get(MINE)
        assert read.json()["data"] == {"k": ENCODED}
        assert (await client.delete(MINE)).status_code == 200
    audit = "".join((embedded_server.directory / name).read_text() for name in ("audit.log", "audit-refused.log"))
    assert audit.count("\n") == len(BAD) + 2
    assert not leaks(audit)
    assert not leaks(log_lines.getvalue())
    assert "audit.write" in log_lines.getvalue()
    assert not leaks(metrics.exposition().decode())


async def test_a_secret_is_not_on_disk_in_clear(embedded_server: Embedded) -> None:
    async with embedded_server.client() as client:
        await client.post(SECRETS, content=secret(data={"k": ENCODED}), headers={"content-type": JSON})
    for path in embedded_server.directory.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert CANARY.encode() not in content, path
            assert ENCODED.encode() not in content, path


async def test_other_kinds_say_which_value_is_wrong(embedded_server: Embedded) -> None:
    async with embedded_server.client() as client:
        answer = await client.post(
            "/api/v1/namespaces/default/configmaps", json={"metadata": {"name": "c"}, "data": [CANARY]}
        )
    assert leaks(answer.text)
