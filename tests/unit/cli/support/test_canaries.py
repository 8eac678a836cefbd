"""A canary in each place of each kind that a bundle shows and users write: none of them leaves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fastness.cli.support.gather import collected_kinds
from fastness.cli.support.redact import redacted, scrubbed, taken_out
from fastness.cli.support.shapes import looks_like_key
from fastness.kinds.kind import JsonObject, Kind

KEY = "7hQ2mVx9LpRtZ3nK8sWdYb4C"
WORD = "swordfishcanary"
BASE32 = "mfrggzdfmztwq2lknnwg23tp"
NOT_FREE = ("enum", "pattern", "format")
DEEPEST = 12


def filled(schema: Any, canary: str, depth: int = 0) -> Any:
    """A value with the canary as every text that the schema lets a user write; None where there is none."""
    if not isinstance(schema, dict) or depth > DEEPEST:
        return None
    kind = schema.get("type")
    if kind == "string" and not any(name in schema for name in NOT_FREE):
        return canary
    if kind == "array":
        item = filled(schema.get("items"), canary, depth + 1)
        return [item] if item is not None else None
    members: JsonObject = {}
    for name, part in (schema.get("properties") or {}).items():
        value = filled(part, canary, depth + 1)
        if value is not None:
            members[name] = value
    more = schema.get("additionalProperties")
    if isinstance(more, dict) and (value := filled(more, canary, depth + 1)) is not None:
        members |= {"plain": value, canary: value}
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        members |= {"anything": canary, "list": [{"deep": canary}], canary: canary}
    return members or None


def holding(kind: Kind, canary: str) -> JsonObject:
    """An object of a kind with the canary wherever its schema lets a user write it."""
    made = filled(kind.schema, canary) or {}
    labels = {"example.com/x": canary, canary: "x"}
    meta = {
        "name": "x",
        "namespace": "theirs",
        "labels": labels,
        "annotations": {**labels, "fastness.dev/reason": canary},
    }
    return {**made, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta}


@pytest.mark.parametrize("kind", collected_kinds(), ids=lambda kind: f"{kind.kind}.{kind.group}")
@pytest.mark.parametrize("canary", [KEY, BASE32], ids=["base64", "base32"])
def test_no_key_leaves_from_any_field_of_any_kind(kind: Kind, canary: str) -> None:
    obj = holding(kind, canary)
    assert canary in json.dumps(obj)
    cleaned = redacted(obj)
    assert canary not in json.dumps(cleaned)
    assert canary not in "\n".join(taken_out(obj, cleaned))


CONTAINER = {
    "name": "c", "image": "i", "command": ["run", WORD], "args": [WORD], "env": [{"name": "PLAIN", "value": WORD}],
    "livenessProbe": {"exec": {"command": [WORD]}, "httpGet": {"httpHeaders": [{"name": "X-Plain", "value": WORD}]}},
    "lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", WORD]}}},
}  # fmt: skip
TEMPLATE = {"template": {"metadata": {"annotations": {"plain": WORD}}, "spec": {"containers": [CONTAINER]}}}
IGNITION = {
    "systemd": {"units": [{"name": "a.service", "contents": f"[Service]\nExecStart=/x {WORD}\n",
                           "dropins": [{"name": "b.conf", "contents": f"[Service]\nEnvironment=X={WORD}\n"}]}]},
    "storage": {"files": [{"path": "/etc/x", "contents": {"source": f"data:,{WORD}", "verification": {"hash": WORD}},
                           "append": [{"source": f"data:,{WORD}"}]}],
                "luks": [{"name": "root", "keyFile": {"source": f"data:,{WORD}"}, "clevis": {"custom": {"config": WORD}}}]},
    "passwd": {"users": [{"name": "core", "passwordHash": WORD, "sshAuthorizedKeys": [WORD], "gecos": WORD}]},
}  # fmt: skip
WORDS: dict[str, JsonObject] = {
    "units and files of a machine config": {"kind": "MachineConfig", "spec": {"config": IGNITION}},
    "kernel arguments": {"kind": "MachineConfig", "spec": {"kernelArguments": [f"rd.x={WORD}"]}},
    "an overlay": {"kind": "NodeOverlay", "spec": {"config": IGNITION}},
    "a pod": {"kind": "Pod", "spec": {"containers": [CONTAINER], "initContainers": [CONTAINER]}},
    "a deployment": {"kind": "Deployment", "spec": TEMPLATE},
    "a job of a cron job": {"kind": "CronJob", "spec": {"jobTemplate": {"spec": TEMPLATE}}},
    "a revision": {"kind": "ControllerRevision", "data": {"spec": TEMPLATE}},
    "init data": {"kind": "Pod", "metadata": {"annotations": {"io.katacontainers.config.hypervisor.cc_init_data": WORD}}},
    "a copy": {"kind": "Pod", "metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": WORD}}},
    "a cause": {"kind": "Pod", "metadata": {"annotations": {"kubernetes.io/change-cause": f"kubectl x {WORD}"}}},
    "an annotation": {"kind": "Namespace", "metadata": {"annotations": {"example.com/x": WORD}}},
    "a config map": {"kind": "ConfigMap", "metadata": {"namespace": "theirs"}, "data": {"x": WORD}, "binaryData": {"y": WORD}},
    "the broker's environment": {"kind": "KbsConfig", "spec": {"KbsEnvVars": {"PLAIN": WORD}}},
    "a policy": {"kind": "AppraisalPolicy", "spec": {"rego": WORD, "cases": [{"name": "x", "input": {"a": [WORD]}}]},
                 "status": {"active": {"rego": WORD}}},
    "a containerfile": {"kind": "MachineOSConfig", "spec": {"containerFile": [{"content": f"FROM x\nRUN {WORD}\n"}]}},
    "a header of the kubelet": {"kind": "KubeletConfig", "spec": {"kubeletConfig": {"staticPodURLHeader": {"X": [WORD]}}}},
    "the path of a webhook": {"kind": "ValidatingWebhookConfiguration",
                              "webhooks": [{"clientConfig": {"url": f"https://x/{WORD}", "service": {"path": f"/{WORD}"}}}]},
}  # fmt: skip


@pytest.mark.parametrize("place", WORDS)
def test_where_a_secret_may_be_a_plain_word_nothing_is_shown_but_its_size(place: str) -> None:
    obj = {"apiVersion": "x/v1", "metadata": {"name": "x"}, **WORDS[place]}
    cleaned = redacted(obj)
    assert WORD not in json.dumps(cleaned)
    listed = list(taken_out(obj, cleaned))
    assert listed
    assert WORD not in "\n".join(listed)


@pytest.mark.parametrize(
    "text",
    [
        "rendered-worker-0123456789abcdef0123456789abcdef", "quay.io/x/osc-must-gather-rhel9@sha256:" + "ab" * 32,
        "machineconfiguration.openshift.io/v1", "KubeletConfigV1Beta1ConfigurationOptions", "/usr/lib/firmware/OVMF_CODE_4M",
        "system:serviceaccount:fastness-system:fastness-broker", "worker-0.us-east-2.compute.internal",
        "openshift_sandboxed_containers_operator_1_12", "2026-11-01T00:00:00Z", "io.kubernetes.cri-o.TrySkipVolumeSELinuxLabel",
        "node.kubernetes.io/instance-type=m6a.8xlarge", "550e8400-e29b-41d4-a716-446655440000",
    ],
)  # fmt: skip
def test_names_digests_and_paths_stay(text: str) -> None:
    assert scrubbed(text) == text


@pytest.mark.parametrize("run", [KEY, BASE32, "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY1", "AKIA4KJ2HG7F5D3S9A1Q8Z"])
def test_keys_are_told_by_their_shape(run: str) -> None:
    assert looks_like_key(run)
    assert run not in scrubbed(f"the value is {run}, as it was")
