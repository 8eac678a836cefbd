"""`kubectl apply` on both sides, `diff`, and who owns which field afterwards."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.kubectl.conftest import Kubectl
from tests.e2e.kubectl.objects import config_map, pool
from tests.patience import PATIENCE


def value(kubectl: Kubectl, path: str, name: str = "cm/c") -> str:
    return kubectl.ok("get", name, "-o", f"jsonpath={{{path}}}").out


def test_apply_creates_configures_and_then_leaves_alone(kubectl: Kubectl) -> None:
    first, second = config_map("c", {"a": "1", "b": "1"}), config_map("c", {"a": "2"})
    assert kubectl.ok("apply", "-f", "-", stdin=first).out == "configmap/c created\n"
    assert kubectl.ok("apply", "-f", "-", stdin=first).out == "configmap/c unchanged\n"
    assert kubectl.ok("apply", "-f", "-", stdin=second).out == "configmap/c configured\n"
    assert value(kubectl, ".data") == '{"a":"2"}'


def test_apply_keeps_what_others_added(kubectl: Kubectl) -> None:
    kubectl.ok("apply", "-f", "-", stdin=config_map("c", {"a": "1"}))
    kubectl.ok("label", "cm", "c", "by=hand")
    kubectl.ok("apply", "-f", "-", stdin=config_map("c", {"a": "2"}))
    assert value(kubectl, ".metadata.labels.by") == "hand"


def test_apply_merges_lists_of_native_kinds_by_key(kubectl: Kubectl) -> None:
    kubectl.ok("create", "deployment", "web", "--image", "registry.example/web:1")
    patch = '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"registry.example/side:1"}]}}}}'
    kubectl.ok("patch", "deployment", "web", "-p", patch)
    assert value(kubectl, ".spec.template.spec.containers[*].name", "deploy/web") == "side web"


def test_apply_works_for_our_own_kinds(kubectl: Kubectl, unique: str) -> None:
    name = f"machineconfigpool.machineconfiguration.openshift.io/{unique}"
    assert kubectl.ok("apply", "-f", "-", stdin=pool(unique)).out == f"{name} created\n"
    assert kubectl.ok("apply", "-f", "-", stdin=pool(unique, paused=True)).out == f"{name} configured\n"
    assert value(kubectl, ".spec.paused", f"mcp/{unique}") == "true"


def test_server_side_conflicts_name_the_field_and_its_owner(kubectl: Kubectl) -> None:
    mine, theirs = config_map("c", {"k": "1"}), config_map("c", {"k": "2"})
    assert kubectl.ok("apply", "--server-side", "-f", "-", stdin=mine).out == "configmap/c serverside-applied\n"
    refusal = kubectl.refused("apply", "--server-side", "--field-manager", "other", "-f", "-", stdin=theirs)
    assert 'Apply failed with 1 conflict: conflict with "kubectl": .data.k' in refusal
    assert value(kubectl, ".data.k") == "1"


def test_forced_conflicts_take_the_field_over(kubectl: Kubectl) -> None:
    kubectl.ok("apply", "--server-side", "-f", "-", stdin=config_map("c", {"k": "1", "l": "1"}))
    forced = ("apply", "--server-side", "--field-manager", "other", "--force-conflicts", "-f", "-")
    kubectl.ok(*forced, stdin=config_map("c", {"k": "2"}))
    assert value(kubectl, ".data") == '{"k":"2","l":"1"}'
    refusal = kubectl.refused("apply", "--server-side", "-f", "-", stdin=config_map("c", {"k": "3", "l": "1"}))
    assert 'conflict with "other": .data.k' in refusal


def test_a_field_that_is_no_longer_applied_is_removed(kubectl: Kubectl) -> None:
    for data in ({"a": "1", "b": "1"}, {"a": "1"}):
        kubectl.ok("apply", "--server-side", "-f", "-", stdin=config_map("c", data))
    assert value(kubectl, ".data") == '{"a":"1"}'


def test_managed_fields_tell_apply_and_update_apart(kubectl: Kubectl) -> None:
    kubectl.ok("apply", "--server-side", "--field-manager", "me", "-f", "-", stdin=config_map("c"))
    kubectl.ok("label", "cm", "c", "by=hand")
    owners = kubectl.ok("get", "cm", "c", "-o", "json", "--show-managed-fields").json["metadata"]["managedFields"]
    assert [(owner["manager"], owner["operation"]) for owner in owners] == [
        ("me", "Apply"),
        ("kubectl-label", "Update"),
    ]
    assert owners[1]["fieldsV1"] == {"f:metadata": {"f:labels": {".": {}, "f:by": {}}}}


def test_pruning_deletes_what_left_the_set(kubectl: Kubectl) -> None:
    both = {
        "apiVersion": "v1", "kind": "List",
        "items": [config_map("a", labels={"set": "x"}), config_map("b", labels={"set": "x"})],
    }  # fmt: skip
    kubectl.ok("apply", "-f", "-", stdin=both)
    only = config_map("a", labels={"set": "x"})
    pruned = kubectl.ok(
        "apply", "--prune", "-l", "set=x", "--prune-allowlist", "core/v1/ConfigMap", "-f", "-", stdin=only
    )
    assert pruned.lines == ["configmap/a unchanged", "configmap/b pruned"]


def test_diff_shows_what_apply_would_change_and_says_so_by_its_exit_code(kubectl: Kubectl) -> None:
    kubectl.ok("apply", "-f", "-", stdin=config_map("c", {"k": "old"}))
    same = kubectl("diff", "-f", "-", stdin=config_map("c", {"k": "old"}))
    assert (same.code, same.out) == (0, "")
    differs = kubectl("diff", "-f", "-", stdin=config_map("c", {"k": "new"}))
    assert differs.code == 1
    assert "-  k: old\n+  k: new\n" in differs.out
    assert value(kubectl, ".data.k") == "old"


def test_a_dry_run_of_apply_reports_and_changes_nothing(kubectl: Kubectl) -> None:
    kubectl.ok("apply", "-f", "-", stdin=config_map("c", {"k": "old"}))
    applied = kubectl.ok("apply", "--dry-run=server", "-f", "-", stdin=config_map("c", {"k": "new"}))
    assert applied.out == "configmap/c configured (server dry run)\n"
    assert value(kubectl, ".data.k") == "old"


def test_a_whole_directory_is_applied_with_server_side_apply(kubectl: Kubectl, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n")
    for _ in range(2):
        applied = kubectl.ok("apply", "--server-side", "-f", str(tmp_path))
        assert applied.lines == ["configmap/a serverside-applied", "configmap/b serverside-applied"]


def test_apply_shows_what_nothing_acts_on_and_the_object_keeps_saying_it(kubectl: Kubectl) -> None:
    made = kubectl.ok("create", "deployment", "idle", "--image", "registry.example/web:1")
    why = "no controller of this API makes pods. Use a Kubernetes for workloads."
    text = f"Deployment: stored, and Fastness does not act on it: {why}"
    assert made.err == f"Warning: {text}\n"
    assert kubectl.ok("label", "deployment", "idle", "a=b").err == ""
    kubectl.ok("wait", "deployment", "idle", "--for=condition=ActedOn=false", f"--timeout={PATIENCE}s")
    assert value(kubectl, '.status.conditions[?(@.type=="ActedOn")].message', "deploy/idle") == text
