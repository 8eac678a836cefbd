"""`serve --roles controllers` on a real API server that holds what nobody can read: it goes on, and says which object it is.

A real API server takes ten thousand levels wherever a schema keeps what it does not know. An object of 1,500 once ended the
controllers, and every restart of them. Its author needs the right to create KubeletConfigs and no other.

And every kind that controllers and doors follow is filled with what the API server lets through (`tests.hostile`): nothing ends,
readiness stays, and neither is a process that starts with all of it there held up. `FASTNESS_SOAK=1` searches longer.
"""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from fastness.kinds.kind import JsonObject, Kind
from fastness.kinds.registry import all_kinds
from fastness.kube.places import HOME
from tests.e2e.cli.serving import KUBELET_CONFIGS, eventually, serving
from tests.e2e.live import FASTNESS, environment, run
from tests.hostile import hostile, permitted
from tests.realkube import RealKube

RBAC = "rbac.authorization.k8s.io"
LEVELS = 1500
EACH = 60 if os.environ.get("FASTNESS_SOAK") else 2
DOORS = "controllers,configserver,enrol,broker,gate,page"
# Whoever may write these has the API server itself refuse or rewrite everything: that is no way to feed an informer.
NOT_FED = {"validatingwebhookconfigurations", "mutatingwebhookconfigurations", "validatingadmissionpolicies"}
# Of these only the object `cluster` counts, and no rule of ours in the definition says so.
READ_BY_NAME = {"machineconfigurations", "osimagestreams"}


@pytest.fixture(scope="module")
def admin(bare_kube: RealKube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """The administrator of a cluster with our definitions, in which alice may create KubeletConfigs and nothing else."""
    env = environment(tmp_path_factory.mktemp("home"), KUBECONFIG=str(bare_kube.kubeconfig))
    assert (
        run(
            ["kubectl", "apply", "--server-side", "-f", "-"],
            env,
            stdin=run([FASTNESS, "crds", "--with", "all"], env).out,
        ).code
        == 0
    )
    run(["kubectl", "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"], env)
    rule = {
        "apiGroups": ["machineconfiguration.openshift.io"], "resources": ["kubeletconfigs"], "verbs": ["create"],
    }  # fmt: skip
    role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": "tuner"}, "rules": [rule]}
    binding = {
        "apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "tuner"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "tuner"},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "alice"}],
    }  # fmt: skip
    with bare_kube.client() as client:
        client.post(f"/apis/{RBAC}/v1/clusterroles", json=role).raise_for_status()
        client.post(f"/apis/{RBAC}/v1/clusterrolebindings", json=binding).raise_for_status()
        yield client


def _deep_body(name: str) -> str:
    inner = '{"a":' * LEVELS + "1" + "}" * LEVELS
    return (
        f'{{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"KubeletConfig","metadata":{{"name":"{name}"}},'
        f'"spec":{{"kubeletConfig":{inner}}}}}'
    )


def test_an_object_of_1500_levels_by_somebody_who_may_create_nothing_else(
    bare_kube: RealKube, admin: httpx.Client, tmp_path: Path
) -> None:
    with serving(bare_kube, tmp_path) as served:
        eventually(lambda: served.ready().is_success, "readiness")
        admin.delete(f"{KUBELET_CONFIGS}/deep")
        with bare_kube.client("alice") as alice:
            answer = alice.post(
                KUBELET_CONFIGS, content=_deep_body("deep"), headers={"content-type": "application/json"}
            )
            assert answer.status_code == 201, answer.text[:300]
        eventually(lambda: served.aside("kubeletconfigs") == 1, "the object was not set aside")
        served.works(admin, "good-1")
        ready = served.ready()
        assert (ready.status_code, "1 of kubeletconfigs" in ready.text) == (200, True), ready.text
    with serving(bare_kube, tmp_path) as served:  # its first list has the object in it
        eventually(lambda: served.aside("kubeletconfigs") == 1, "the object was not set aside after a restart")
        served.works(admin, "good-2")
        doctor = run([FASTNESS, "doctor", "--kubeconfig", bare_kube.kubeconfig], environment(tmp_path))
        assert "set aside: kubeletconfigs deep" in doctor.out, doctor.out + doctor.err
        admin.delete(f"{KUBELET_CONFIGS}/deep").raise_for_status()
        eventually(lambda: served.aside("kubeletconfigs") == 0, "a deleted object stayed set aside")


def test_nothing_that_the_api_server_takes_of_any_kind_ends_a_process_or_holds_its_next_start_up(
    bare_kube: RealKube, admin: httpx.Client, tmp_path: Path
) -> None:
    ports = [f"--{door}-port=0" for door in ("config", "internal", "enrol", "broker", "gate", "page")]
    doors = [*ports, "--internal-url", "https://127.0.0.1:1", "--vault", str(tmp_path / "vault.json")]
    # A short lease is lost again and again while a loaded machine takes in its first lists, and all of them begin anew.
    doors += ["--lease-seconds", "30"]
    with serving(bare_kube, tmp_path, DOORS, *doors) as served:
        # Until this replica leads it has the informers of the doors alone.
        eventually(lambda: served.ready().is_success and len(served.followed()) > 40, "readiness, and the lead")
        followed = served.followed().keys() - NOT_FED
        kinds = [kind for kind in all_kinds() if kind.plural in followed and kind.storage_version]
        with ThreadPoolExecutor(4) as pool:
            accepted = dict(
                zip((kind.plural for kind in kinds), pool.map(lambda kind: fed(admin, kind), kinds), strict=True)
            )
        assert sum(accepted.values()) > len(kinds), accepted
        served.works(admin, "good-3")
        ready = served.ready()
        assert ready.is_success, ready.text
    with serving(bare_kube, tmp_path, DOORS, *doors) as served:  # the first lists have all of it
        eventually(lambda: served.ready().is_success and len(served.followed()) > 40, "readiness with all of it there")
        served.works(admin, "good-4")


def fed(admin: httpx.Client, kind: Kind) -> int:
    """How many hostile objects of a kind the API server took: of any shape, and of shapes that the schema allows."""
    source = random.Random(f"{os.environ.get('FASTNESS_SEED', '1')} {kind.plural}")  # repeatable
    shapeless = [*hostile(kind)]
    objects = [*source.sample(shapeless, min(EACH, len(shapeless))), *(permitted(kind, source) for _ in range(EACH))]
    own = f"hostile-{secrets.token_hex(4)}"
    return sum(_written(admin, kind, obj, f"{own}-{number}") for number, obj in enumerate(objects))


def _written(admin: httpx.Client, kind: Kind, obj: JsonObject, name: str) -> bool:
    """Whether the API server took an object, and as much of its status as it takes; singletons have the name of theirs."""
    place = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
    if kind.namespaced:
        place += f"/namespaces/{HOME}"
    answer = _post(admin, f"{place}/{kind.plural}", obj, "cluster" if kind.plural in READ_BY_NAME else name)
    if "only one object may exist" in answer.text:
        answer = _post(admin, f"{place}/{kind.plural}", obj, "cluster")
    if answer.is_success and "status" in kind.subresources:
        as_merge = {"content-type": "application/merge-patch+json"}
        path = f"{place}/{kind.plural}/{answer.json()['metadata']['name']}/status"
        admin.patch(path, json={"status": obj.get("status")}, headers=as_merge)
    return answer.is_success


def _post(admin: httpx.Client, path: str, obj: JsonObject, name: str) -> httpx.Response:
    whole = {**obj, "metadata": {**obj["metadata"], "name": name}}
    return admin.post(path, json=whole, params={"fieldValidation": "Ignore"})
