"""What people ask of a cluster: which kinds, what they mean, what is there."""

from __future__ import annotations

import subprocess
import time
from typing import Any

import pytest

from tests.e2e.kubectl.conftest import Kubectl
from tests.e2e.kubectl.objects import config_map, machine_config, node, pod, pool
from tests.e2e.live import KUBECTL, environment


def test_version_names_client_and_server(kubectl: Kubectl) -> None:
    versions = kubectl.ok("version", "-o", "json").json
    assert versions["serverVersion"]["gitVersion"].startswith("v1.36.")
    assert "fastness" in versions["serverVersion"]["gitVersion"]


def test_api_resources_lists_kinds_with_short_names_and_scope(kubectl: Kubectl) -> None:
    rows = kubectl.ok("api-resources", "--no-headers").rows
    assert ["machineconfigpools", "mcp", "machineconfiguration.openshift.io/v1", "false", "MachineConfigPool"] in rows
    assert ["configmaps", "cm", "v1", "true", "ConfigMap"] in rows
    assert ["deployments", "deploy", "apps/v1", "true", "Deployment"] in rows


def test_api_resources_can_be_narrowed_to_a_group_and_verbs(kubectl: Kubectl) -> None:
    names = kubectl.ok("api-resources", "--api-group", "fastness.dev", "--verbs", "watch", "-o", "name").lines
    assert "verdicts.fastness.dev" in names
    assert all(name.endswith(".fastness.dev") for name in names)


def test_api_versions_lists_every_group(kubectl: Kubectl) -> None:
    assert {"v1", "apps/v1", "fastness.dev/v1alpha1"} <= set(kubectl.ok("api-versions").lines)


def test_explain_tells_the_meaning_and_type_of_a_field(kubectl: Kubectl) -> None:
    explanation = kubectl.ok("explain", "mcp.spec.paused").out
    assert "FIELD: paused <boolean>" in explanation
    assert "Whether rollouts to the nodes of this pool are held." in explanation


def test_explain_recursive_lists_the_fields_of_a_kind_of_kubernetes(kubectl: Kubectl) -> None:
    explanation = kubectl.ok("explain", "deployment.spec", "--recursive").out
    assert "minReadySeconds\t<integer>" in explanation
    assert "selector\t<LabelSelector>" in explanation


def test_explain_of_an_unknown_field_says_so(kubectl: Kubectl) -> None:
    assert 'field "pausd" does not exist' in kubectl.refused("explain", "mcp.spec.pausd")


def test_pools_print_the_columns_that_users_know(kubectl: Kubectl, unique: str) -> None:
    kubectl.ok("create", "-f", "-", stdin=pool(unique))
    heading, row = kubectl.ok("get", "mcp", unique).lines
    assert heading.split() == [
        "NAME", "CONFIG", "UPDATED", "UPDATING", "DEGRADED", "MACHINECOUNT", "READYMACHINECOUNT", "UPDATEDMACHINECOUNT",
        "DEGRADEDMACHINECOUNT", "AGE",
    ]  # fmt: skip
    assert row.split()[0] == unique


def test_machine_configs_print_generator_and_ignition_version(kubectl: Kubectl, unique: str) -> None:
    kubectl.ok("create", "-f", "-", stdin=machine_config(f"99-{unique}"))
    heading, row = kubectl.ok("get", "mc", f"99-{unique}").lines
    assert heading.split() == ["NAME", "GENERATEDBYCONTROLLER", "IGNITIONVERSION", "AGE"]
    assert row.split()[:2] == [f"99-{unique}", "3.4.0"]


def test_wide_output_adds_the_columns_of_lower_priority(kubectl: Kubectl, unique: str) -> None:
    kubectl.ok("create", "-f", "-", stdin=pod("p"))
    assert kubectl.ok("get", "pods").rows[0] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert "NOMINATED NODE   READINESS GATES" in kubectl.ok("get", "pods", "-o", "wide").lines[0]


def test_nodes_print_roles_and_version(kubectl: Kubectl, unique: str) -> None:
    kubectl.ok("create", "-f", "-", stdin=node(unique, **{"node-role.kubernetes.io/worker": ""}))
    name, state, role, _, version = kubectl.ok("get", "node", unique).rows[1]
    assert (name, state, role, version) == (unique, "Ready", "worker", "v1.36.0")


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("name", "configmap/c\n"),
        ("jsonpath={.data.k}", "v"),
        ("jsonpath={range .items[*]}{.metadata.name}{end}", ""),
        ("go-template={{.data.k}}", "v"),
        ("custom-columns=N:.metadata.name,K:.data.k,X:.data.x", "N     K     X\nc     v     <none>\n"),
    ],
)
def test_get_prints_in_every_form(kubectl: Kubectl, output: str, expected: str) -> None:
    kubectl.ok("create", "-f", "-", stdin=config_map("c"))
    assert kubectl.ok("get", "cm", "c", "-o", output).out == expected


def test_json_and_yaml_hold_the_whole_object(kubectl: Kubectl) -> None:
    kubectl.ok("create", "-f", "-", stdin=config_map("c"))
    got = kubectl.ok("get", "cm", "c", "-o", "json").json
    assert got["data"] == {"k": "v"}
    assert set(got["metadata"]) == {"creationTimestamp", "name", "namespace", "resourceVersion", "uid"}
    text = kubectl.ok("get", "cm", "c", "-o", "yaml", "--show-managed-fields").out
    assert text.startswith("apiVersion: v1\ndata:\n  k: v\nkind: ConfigMap\n")
    assert "manager: kubectl-create" in text


def test_labels_select_and_show_as_columns(kubectl: Kubectl) -> None:
    for name, color in (("a", "red"), ("b", "green"), ("c", "blue")):
        kubectl.ok("create", "-f", "-", stdin=config_map(name, labels={"color": color}))
    assert kubectl.ok("get", "cm", "-l", "color in (red,blue)", "-o", "name").lines == ["configmap/a", "configmap/c"]
    assert kubectl.ok("get", "cm", "-l", "color,color!=red", "-o", "name").lines == ["configmap/b", "configmap/c"]
    assert kubectl.ok("get", "cm", "-L", "color", "-l", "color=red", "--no-headers").rows[0][-1] == "red"


def test_field_selectors_narrow_a_list(kubectl: Kubectl) -> None:
    kubectl.ok("create", "-f", "-", stdin=pod("here", "n1"))
    kubectl.ok("create", "-f", "-", stdin=pod("there", "n2"))
    assert kubectl.ok("get", "pods", "--field-selector", "spec.nodeName=n1", "-o", "name").lines == ["pod/here"]
    assert kubectl.ok("get", "pods", "--field-selector", "metadata.name!=here", "-o", "name").lines == ["pod/there"]


def test_all_namespaces_add_a_column(kubectl: Kubectl, unique: str) -> None:
    kubectl.ok("create", "-f", "-", stdin=config_map(unique))
    rows = kubectl.ok("get", "cm", "-A").rows
    assert rows[0][:2] == ["NAMESPACE", "NAME"]
    assert [unique, unique] in [row[:2] for row in rows]


def test_small_chunks_return_every_object_once(kubectl: Kubectl) -> None:
    items = [config_map(f"c{number:02}") for number in range(23)]
    kubectl.ok("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": items})
    names = kubectl.ok("get", "cm", "--chunk-size", "5", "-o", "name", "-l", "!absent").lines
    assert sorted(names) == sorted(["configmap/kube-root-ca.crt", *(f"configmap/c{number:02}" for number in range(23))])


def test_sorting_and_ignoring_what_is_not_there(kubectl: Kubectl) -> None:
    for name, value in (("a", "2"), ("b", "1")):
        kubectl.ok("create", "-f", "-", stdin=config_map(name, {"k": value}, labels={"mine": "yes"}))
    listed = kubectl.ok("get", "cm", "-l", "mine", "--sort-by", "{.data.k}", "--no-headers").rows
    assert [row[0] for row in listed] == ["b", "a"]
    assert kubectl.ok("get", "cm", "nobody", "--ignore-not-found").out == ""


def test_several_kinds_at_once_and_a_category(kubectl: Kubectl) -> None:
    kubectl.ok("create", "deployment", "web", "--image", "registry.example/web:1")
    kubectl.ok("create", "-f", "-", stdin=pod("p"))
    assert kubectl.ok("get", "all", "-o", "name").lines == ["pod/p", "deployment.apps/web"]
    assert kubectl.ok("get", "pod/p", "deploy/web", "-o", "name").lines == ["pod/p", "deployment.apps/web"]


def test_raw_paths_are_readable(kubectl: Kubectl, unique: str) -> None:
    assert kubectl.ok("get", "--raw", "/readyz").out == "ok"
    listed = kubectl.ok("get", "--raw", f"/api/v1/namespaces/{unique}/configmaps").json
    assert listed["kind"] == "ConfigMapList"
    assert "fastness_api_request_seconds" in kubectl.ok("get", "--raw", "/metrics").out


def watch(kubectl: Kubectl, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(KUBECTL), "-n", kubectl.namespace, "get", *words], text=True, stdout=subprocess.PIPE,
        env=environment(kubectl.live.home, KUBECONFIG=str(kubectl.live.kubeconfig)),
    )  # fmt: skip


def test_a_watch_prints_every_change(kubectl: Kubectl) -> None:
    kubectl.ok("create", "-f", "-", stdin=config_map("first", labels={"mine": "yes"}))
    watching = watch(
        kubectl, "cm", "-l", "mine", "-w", "--output-watch-events", "-o", "jsonpath={.type}={.object.data.k} "
    )
    try:
        assert watching.stdout is not None
        assert watching.stdout.read(len("ADDED=v ")) == "ADDED=v "
        kubectl.ok("patch", "cm", "first", "-p", '{"data":{"k":"w"}}')
        kubectl.ok("delete", "cm", "first")
        assert watching.stdout.read(len("MODIFIED=w DELETED=w ")) == "MODIFIED=w DELETED=w "
    finally:
        watching.kill()
        watching.communicate()


def test_a_watch_of_a_table_adds_rows(kubectl: Kubectl) -> None:
    watching = watch(kubectl, "pods", "-w")
    try:
        assert watching.stdout is not None
        time.sleep(0.2)
        kubectl.ok("create", "-f", "-", stdin=pod("p"))
        assert watching.stdout.readline().split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
        assert watching.stdout.readline().split()[:3] == ["p", "0/1", "Pending"]
    finally:
        watching.kill()
        watching.communicate()


def event(unique: str, name: str, involved: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": unique},
        "involvedObject": {"namespace": unique, **involved}, "reason": "Tested", "message": "it was looked at",
        "type": "Normal", "count": 1, "source": {"component": "tests"},
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
    }  # fmt: skip


def test_describe_shows_fields_and_the_events_of_that_object(kubectl: Kubectl, unique: str) -> None:
    kubectl.ok("create", "-f", "-", stdin=pod("p", labels={"app": "x"}))
    uid = kubectl.ok("get", "pod", "p", "-o", "jsonpath={.metadata.uid}").out
    for name, of in (("e1", uid), ("e2", "another")):
        about = {"kind": "Pod", "name": "p", "uid": of, "apiVersion": "v1"}
        kubectl.ok("create", "-f", "-", stdin=event(unique, name, about))
    description = kubectl.ok("describe", "pod", "p").out
    assert "Labels:       app=x" in description
    assert description.count("Tested") == 1
    assert "it was looked at" in description


def test_describe_works_for_our_own_kinds(kubectl: Kubectl, unique: str) -> None:
    kubectl.ok("create", "-f", "-", stdin=pool(unique, paused=True))
    description = kubectl.ok("describe", "mcp", unique).out
    assert "Kind:         MachineConfigPool" in description
    assert "Paused: true" in " ".join(description.split())


def test_events_lists_those_of_one_object(kubectl: Kubectl, unique: str) -> None:
    for name in ("a", "b"):
        about = {"kind": "ConfigMap", "name": name, "uid": name, "apiVersion": "v1"}
        kubectl.ok("create", "-f", "-", stdin=event(unique, name, about))
    assert len(kubectl.ok("events").lines) == 3
    rows = kubectl.ok("events", "--for", "configmap/a", "--no-headers").rows
    assert [row[3] for row in rows] == ["ConfigMap/a"]


def test_a_resource_that_does_not_exist_is_named(kubectl: Kubectl) -> None:
    assert kubectl.refused("get", "nosuch") == 'error: the server doesn\'t have a resource type "nosuch"\n'
    assert kubectl.refused("get", "cm", "nobody") == ('Error from server (NotFound): configmaps "nobody" not found\n')
