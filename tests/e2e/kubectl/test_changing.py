"""Changing what is there: replace, edit, patch, label, annotate, scale."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.kubectl.conftest import Kubectl
from tests.e2e.kubectl.objects import SERVING, config_map, pod, pool


@pytest.fixture
def stored(kubectl: Kubectl) -> Kubectl:
    kubectl.ok("create", "-f", "-", stdin=config_map("c", {"k": "v", "keep": "me"}))
    return kubectl


def data(kubectl: Kubectl) -> str:
    return kubectl.ok("get", "cm", "c", "-o", "jsonpath={.data}").out


def test_replace_puts_the_whole_object(stored: Kubectl) -> None:
    assert stored.ok("replace", "-f", "-", stdin=config_map("c", {"k": "w"})).out == "configmap/c replaced\n"
    assert data(stored) == '{"k":"w"}'


def test_replace_of_an_old_version_is_a_conflict(stored: Kubectl) -> None:
    old = stored.ok("get", "cm", "c", "-o", "json").json
    stored.ok("label", "cm", "c", "a=b")
    assert "the object has been modified" in stored.refused("replace", "-f", "-", stdin=old)


def test_replace_of_what_is_not_there_is_refused(kubectl: Kubectl) -> None:
    assert 'configmaps "c" not found' in kubectl.refused("replace", "-f", "-", stdin=config_map("c"))


def test_forced_replace_makes_a_new_object(stored: Kubectl) -> None:
    before = stored.ok("get", "cm", "c", "-o", "jsonpath={.metadata.uid}").out
    stored.ok("replace", "--force", "-f", "-", stdin=config_map("c"))
    assert stored.ok("get", "cm", "c", "-o", "jsonpath={.metadata.uid}").out != before


def editor(tmp_path: Path, script: str) -> str:
    path = tmp_path / "editor.sh"
    path.write_text(f"#!/bin/sh\nset -e\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_edit_stores_what_the_editor_leaves(stored: Kubectl, tmp_path: Path) -> None:
    edited = stored.ok("edit", "cm", "c", EDITOR=editor(tmp_path, "sed -i 's/k: v/k: edited/' \"$1\""))
    assert edited.out == "configmap/c edited\n"
    assert data(stored) == '{"k":"edited","keep":"me"}'


def test_edit_without_a_change_writes_nothing(stored: Kubectl, tmp_path: Path) -> None:
    before = stored.ok("get", "cm", "c", "-o", "jsonpath={.metadata.resourceVersion}").out
    assert "Edit cancelled" in stored.ok("edit", "cm", "c", EDITOR=editor(tmp_path, "true")).err
    assert stored.ok("get", "cm", "c", "-o", "jsonpath={.metadata.resourceVersion}").out == before


def test_edit_opens_again_with_the_reason_when_a_value_is_refused(
    kubectl: Kubectl, unique: str, tmp_path: Path
) -> None:
    kubectl.ok("create", "-f", "-", stdin=pool(unique, paused=False))
    copy = tmp_path / "seen"
    script = (
        f"test ! -e {copy} || {{ cp $1 {copy}; exit 1; }}; touch {copy}; sed -i 's/paused: false/paused: maybe/' $1"
    )
    assert kubectl("edit", "mcp", unique, EDITOR=editor(tmp_path, script)).code == 1
    assert "# * spec.paused: Invalid value" in copy.read_text()


@pytest.mark.parametrize(
    ("kind", "patch", "expected"),
    [
        ("merge", '{"data":{"k":null,"new":"1"}}', '{"keep":"me","new":"1"}'),
        ("strategic", '{"data":{"k":"s"}}', '{"k":"s","keep":"me"}'),
        ("json", '[{"op":"move","from":"/data/k","path":"/data/moved"}]', '{"keep":"me","moved":"v"}'),
    ],
)
def test_patches_of_every_type(stored: Kubectl, kind: str, patch: str, expected: str) -> None:
    assert stored.ok("patch", "cm", "c", "--type", kind, "-p", patch).out == "configmap/c patched\n"
    assert data(stored) == expected


def test_a_patch_without_effect_says_so(stored: Kubectl) -> None:
    assert stored.ok("patch", "cm", "c", "-p", '{"data":{"k":"v"}}').out == "configmap/c patched (no change)\n"


def test_a_failed_test_in_a_json_patch_changes_nothing(stored: Kubectl) -> None:
    patch = '[{"op":"remove","path":"/data/k"},{"op":"test","path":"/data/keep","value":"you"}]'
    assert "/data/keep" in stored.refused("patch", "cm", "c", "--type", "json", "-p", patch)
    assert data(stored) == '{"k":"v","keep":"me"}'


def test_custom_kinds_have_no_strategic_patch(kubectl: Kubectl, unique: str) -> None:
    kubectl.ok("create", "-f", "-", stdin=pool(unique))
    refusal = kubectl.refused("patch", "mcp", unique, "--type", "strategic", "-p", '{"spec":{"paused":true}}')
    assert "application/strategic-merge-patch+json is not supported" in refusal


def test_a_status_is_patched_through_its_own_door_only(kubectl: Kubectl) -> None:
    kubectl.ok("create", "-f", "-", stdin=pod("p"))
    kubectl.ok("patch", "pod", "p", "--type", "merge", "-p", SERVING)
    assert kubectl.ok("get", "pod", "p", "-o", "jsonpath={.status.phase}").out == "Pending"
    kubectl.ok("patch", "pod", "p", "--subresource", "status", "--type", "merge", "-p", SERVING)
    assert kubectl.ok("get", "pod", "p", "-o", "jsonpath={.status.phase}").out == "Running"


def test_labels_are_set_changed_only_on_request_and_removed(stored: Kubectl) -> None:
    assert stored.ok("label", "cm", "c", "a=1").out == "configmap/c labeled\n"
    assert "already has a value (1), and --overwrite is false" in stored.refused("label", "cm", "c", "a=2")
    stored.ok("label", "cm", "c", "a=2", "--overwrite")
    assert stored.ok("label", "cm", "c", "a-").out == "configmap/c unlabeled\n"
    assert stored.ok("get", "cm", "c", "-o", "jsonpath={.metadata.labels}").out == ""


def test_a_bad_label_is_refused_with_its_rule(stored: Kubectl) -> None:
    refusal = stored.refused("patch", "cm", "c", "-p", '{"metadata":{"labels":{"a":"not ok"}}}')
    assert "metadata.labels" in refusal
    assert "not ok" in refusal


def test_annotations_are_set_on_many_objects_at_once(stored: Kubectl) -> None:
    stored.ok("create", "-f", "-", stdin=config_map("d"))
    lines = stored.ok("annotate", "cm", "c", "d", "note=seen").lines
    assert lines == ["configmap/c annotated", "configmap/d annotated"]
    assert stored.ok("get", "cm", "d", "-o", "jsonpath={.metadata.annotations.note}").out == "seen"


def test_scale_changes_the_number_and_holds_to_a_precondition(kubectl: Kubectl) -> None:
    kubectl.ok("create", "deployment", "web", "--image", "registry.example/web:1", "--replicas", "2")
    assert kubectl.ok("scale", "deploy", "web", "--replicas", "5").out == "deployment.apps/web scaled\n"
    refusal = kubectl.refused("scale", "deploy", "web", "--current-replicas", "2", "--replicas", "1")
    assert "Expected replicas to be 2, was 5" in refusal
    assert kubectl.ok("get", "deploy", "web", "-o", "jsonpath={.spec.replicas} {.metadata.generation}").out == "5 2"


def test_set_image_patches_one_container(kubectl: Kubectl) -> None:
    kubectl.ok("create", "deployment", "web", "--image", "registry.example/web:1")
    kubectl.ok("set", "image", "deploy/web", "web=registry.example/web:2")
    image = kubectl.ok("get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
    assert image.out == "registry.example/web:2"
