"""`kubectl create`: every generator that people use, files, and what happens to bad ones."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.kubectl.conftest import Kubectl
from tests.e2e.kubectl.objects import config_map


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("configmap c --from-literal=a=b", "configmap/c"),
        ("secret generic s --from-literal=a=b", "secret/s"),
        ("secret docker-registry d --docker-server=r.example --docker-username=u --docker-password=p", "secret/d"),
        ("serviceaccount robot", "serviceaccount/robot"),
        ("role r --verb=get,list --resource=pods", "role.rbac.authorization.k8s.io/r"),
        ("rolebinding b --clusterrole=view --user=jane", "rolebinding.rbac.authorization.k8s.io/b"),
        ("pdb p --selector=app=x --min-available=1", "poddisruptionbudget.policy/p"),
        ("quota q --hard=pods=3", "resourcequota/q"),
        ("deployment web --image=registry.example/web:1 --replicas=2", "deployment.apps/web"),
        ("service clusterip web --tcp=80:8080", "service/web"),
        ("job once --image=registry.example/job:1", "job.batch/once"),
        ("cronjob often --image=registry.example/job:1 --schedule=0/5_*_*_*_*", "cronjob.batch/often"),
        ("ingress front --rule=web.example/*=web:80", "ingress.networking.k8s.io/front"),
    ],
)
def test_generators_create_what_they_say(kubectl: Kubectl, words: str, name: str) -> None:
    made = kubectl.ok("create", *(word.replace("_", " ") for word in words.split()))
    assert made.out == f"{name} created\n"
    assert kubectl.ok("get", name, "-o", "name").out == f"{name}\n"


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("namespace {}-more", "namespace/{}-more"),
        ("clusterrole {} --verb=get --resource=nodes", "clusterrole.rbac.authorization.k8s.io/{}"),
        ("clusterrolebinding {} --clusterrole=view --group=devs", "clusterrolebinding.rbac.authorization.k8s.io/{}"),
        ("priorityclass {} --value=7", "priorityclass.scheduling.k8s.io/{}"),
    ],
)
def test_generators_of_cluster_wide_kinds(kubectl: Kubectl, unique: str, words: str, name: str) -> None:
    assert kubectl.ok("create", *words.format(unique).split()).out == f"{name.format(unique)} created\n"


def test_secrets_come_back_as_they_were_given(kubectl: Kubectl, live: Any) -> None:
    canary = "canary-that-must-be-sealed"
    kubectl.ok("create", "secret", "generic", "s", f"--from-literal=password={canary}")
    stored = kubectl.ok("get", "secret", "s", "-o", "jsonpath={.data.password}").out
    assert base64.b64decode(stored).decode() == canary
    assert kubectl.ok("get", "secret", "s", "--no-headers").rows[0][:3] == ["s", "Opaque", "1"]
    for path in live.state.glob("state.db*"):
        assert canary.encode() not in path.read_bytes()
        assert base64.b64encode(canary.encode()) not in path.read_bytes()


def test_a_token_says_who_it_is_for_and_when_it_ends(kubectl: Kubectl, unique: str) -> None:
    kubectl.ok("create", "serviceaccount", "robot")
    token = kubectl.ok("create", "token", "robot", "--duration", "20m").out.strip()
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert claims["sub"] == f"system:serviceaccount:{unique}:robot"
    assert claims["exp"] - claims["iat"] == 1200
    assert claims["kubernetes.io"]["namespace"] == unique


def test_every_namespace_gets_its_account_and_the_root_certificate(kubectl: Kubectl) -> None:
    kubectl.ok("wait", "--for=create", "sa/default", "cm/kube-root-ca.crt", "--timeout=10s")


def test_files_and_directories_of_yaml_are_created(kubectl: Kubectl, tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: b}\n"
    )
    (tmp_path / "two.json").write_text(json.dumps(config_map("c")))
    assert kubectl.ok("create", "-f", str(tmp_path)).lines == [
        "configmap/a created",
        "secret/b created",
        "configmap/c created",
    ]


def test_a_list_of_objects_is_created_item_by_item(kubectl: Kubectl) -> None:
    items = {"apiVersion": "v1", "kind": "List", "items": [config_map("a"), config_map("b")]}
    assert kubectl.ok("create", "-f", "-", stdin=items).lines == ["configmap/a created", "configmap/b created"]


def test_generated_names_differ(kubectl: Kubectl) -> None:
    template = config_map("x")
    template["metadata"] = {"generateName": "run-"}
    names = {kubectl.ok("create", "-f", "-", "-o", "name", stdin=template).out for _ in range(3)}
    assert len(names) == 3
    assert all(name.startswith("configmap/run-") for name in names)


def test_a_dry_run_on_the_server_checks_and_stores_nothing(kubectl: Kubectl) -> None:
    preview = kubectl.ok("create", "--dry-run=server", "-o", "json", "-f", "-", stdin=config_map("c")).json
    assert preview["metadata"]["uid"]
    assert "not found" in kubectl.refused("get", "cm", "c")
    bad = config_map("c", {"bad key": "x"})
    assert "data[bad key]" in kubectl.refused("create", "--dry-run=server", "-f", "-", stdin=bad)


def test_a_name_that_is_taken_is_refused(kubectl: Kubectl) -> None:
    kubectl.ok("create", "-f", "-", stdin=config_map("c"))
    assert 'configmaps "c" already exists' in kubectl.refused("create", "-f", "-", stdin=config_map("c"))


def test_a_pod_runs_from_an_image_name(kubectl: Kubectl) -> None:
    assert kubectl.ok("run", "p", "--image", "registry.example/app:1", "--labels", "a=b").out == "pod/p created\n"
    assert kubectl.ok("get", "pods", "-l", "a=b", "-o", "jsonpath={.items[0].status.phase}").out == "Pending"
