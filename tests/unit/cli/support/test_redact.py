"""Nothing that is a credential leaves in a bundle, wherever it stands; what helps stays."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fastness.cli.support.redact import is_credential, redacted, scrubbed
from fastness.cli.support.shapes import REDACTED
from tests.growth import in_proportion

ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghjkmnpqrstuvwxyz23456789"
canaries = st.text(ALPHABET, min_size=16, max_size=40).map(lambda text: f"Canary{text}")
PEM = "-----BEGIN EC PRIVATE KEY-----\nMHc{0}\n{0}\n-----END EC PRIVATE KEY-----\n"
TEXTS = {
    "private key": PEM,
    "key that was cut off": "-----BEGIN PRIVATE KEY-----\n{0}\n",
    "bearer": "GET /x Authorization: Bearer {0} -> 401",
    "basic": "sent basic {0}",
    "ticket": "machine came with fst_{0}",
    "token": "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ4In0.{0}",
    "bootstrap": "password={0}",
    "quoted with blanks": 'the db said password="some {0} thing" again',
    "yaml": "db:\n  password: some {0} thing\n",
    "json in text": '{{"a": 1, "apiKey": "{0}", "b": 2}}',
    "json in json": '{{\\"clientToken\\": \\"{0}\\"}}',
    "userinfo": "proxy http://bob:{0}@proxy.example:3128/",
    "token in an address": "git clone https://{0}@git.example/x",
    "variable": "PCCS_USER_TOKEN={0} USER_TOKEN_HASH={0} ./start",
    "after a harmless name": "secretName: x password={0}",
    "option": "--admin-token={0} --verbose",
    "data url": "data:text/plain;charset=utf-8;base64,{0}",
    "crypt": "core:$6${0}$abc:1",
    "structured log": '{{"level": "info", "env": [{{"name": "API_TOKEN", "value": "{0}"}}]}}',
    "variable in yaml": "env:\n- name: PCCS_API_KEY\n  value: {0}\n",
    "variable in json": '[\n{{\n "name": "clientSecret",\n "value": "x{0}"\n}}]',
    "docker": '{{"auths": {{"registry.example": {{"auth": "{0}"}}}}}}',
    "kubeconfig": "    client-key-data: {0}\n    token: {0}\n",
}


def placed(text: str, depth: int, how: int) -> Any:
    """A text below lists and maps."""
    value: Any = text
    for level in range(depth):
        value = [value] if (how >> level) & 1 else {"plain": value}
    return value


@pytest.mark.parametrize("kind", TEXTS)
@given(canary=canaries, depth=st.integers(0, 4), how=st.integers(0, 15))
def test_no_credential_survives_in_text_of_any_object(kind: str, canary: str, depth: int, how: int) -> None:
    text = TEXTS[kind].format(canary)
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "annotations": {"note": text}},
           "data": {"file": placed(text, depth, how)}, "status": {"message": text}}  # fmt: skip
    printed = yaml.safe_dump(redacted(obj), width=10**6)
    assert canary not in printed
    assert canary not in scrubbed(f"2026-01-01T00:00:00Z worker-0 {text}")


@given(canary=canaries, prefix=st.text(st.characters(codec="utf-8"), max_size=30))
def test_base64_of_a_private_key_does_not_survive(canary: str, prefix: str) -> None:
    hidden = base64.b64encode(PEM.format(canary).encode()).decode()
    assert hidden[:40] not in scrubbed(f"{prefix}\n{hidden}\n")


@given(
    canary=canaries, name=st.sampled_from(["token", "PASSWORD", "apiKey", "PCCS_API_KEY", "pullSecret", "passwordHash"])
)
def test_fields_and_variables_named_after_credentials_lose_their_text(canary: str, name: str) -> None:
    obj = {"kind": "Pod", "metadata": {"name": "x"}, "spec": {
        name: canary, "deep": [{name: [canary]}], "env": [{"name": name, "value": canary}, {"name": "PASS", "value": canary}],
    }}  # fmt: skip
    assert canary not in json.dumps(redacted(obj))


@given(canary=canaries)
def test_secrets_never_leave_and_neither_do_copies_of_them(canary: str) -> None:
    assert redacted({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": canary}}) is None
    copy = json.dumps({"kind": "Secret", "stringData": {"plain": canary}})
    obj = {"kind": "ConfigMap", "metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": copy},
           "managedFields": [{"manager": canary}]}, "binaryData": {"blob": canary}}  # fmt: skip
    assert canary not in json.dumps(redacted(obj))


def test_what_helps_stays() -> None:
    pod = {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "p", "uid": "u", "labels": {"app": "x", "pod-template-hash": "5d59d67564"},
            "annotations": {"fastness.dev/drift-policy": "repair"},
        },
        "spec": {
            "automountServiceAccountToken": True, "imagePullSecrets": [{"name": "pull"}],
            "volumes": [{"secret": {"secretName": "tls"}}], "containers": [{
                "name": "c", "image": "i@sha256:" + "a" * 64, "command": ["sleep"],
                "env": [{"name": "PASS", "valueFrom": {"secretKeyRef": {"name": "luks", "key": "pass"}}}],
            }],
        },
        "status": {"conditions": [{"type": "Ready", "reason": "", "message": "token of node worker-0 was renewed"}]},
    }  # fmt: skip
    assert redacted(pod) == pod


def test_a_file_of_a_machine_config_is_shown_by_its_size_only() -> None:
    source = "data:text/plain;charset=utf-8;base64,dnNvY2stbG9vcGJhY2sK"
    config = {
        "kind": "MachineConfig",
        "metadata": {},
        "spec": {"files": [{"path": "/etc/x", "contents": {"source": source}}]},
    }
    printed = json.dumps(redacted(config))
    assert "dnNvY2" not in printed
    assert "20-characters" in printed
    assert "/etc/x" in printed


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("token", True), ("userToken", True), ("PCCS_ADMIN_TOKEN_HASH", True), ("secretHash", True), (".dockerconfigjson", True),
        ("example.com/api-key", True), ("tokenName", False), ("secretRef", False), ("secretKeyRef", False), ("tokens", False),
        ("secretName", False), ("keys", False), ("author", False), ("", False),
    ],
)  # fmt: skip
def test_names_of_credentials_are_told_from_names_of_their_holders(name: str, is_one: bool) -> None:
    assert is_credential(name) is is_one


@given(st.text(max_size=400))
def test_any_text_is_taken_and_a_second_look_finds_nothing_more(text: str) -> None:
    once = scrubbed(text)
    assert scrubbed(once).count(REDACTED) <= once.count(REDACTED) + 1


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "token",
        "ey-",
        "Bearer ",
        "data:",
        "-----BEGIN PRIVATE KEY-----",
        "x=",
        "ab_",
        '\\"',
        "secretName: ",
        "name: a ",
        "{",
    ],
)
def test_a_long_hostile_line_costs_time_in_proportion(piece: str) -> None:
    assert in_proportion(lambda size: scrubbed(piece * (size // len(piece))), 200_000)
