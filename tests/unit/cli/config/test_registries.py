"""`fastness plan` for objects about registries: what a mirror does to machines, and what would be refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from fastness.cli.main import cli
from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.render.base.runtime import REGISTRIES_CONF
from tests.unit.machineconfig.build import file, ignition, mc, node, pool
from tests.unit.machineconfig.render.registries.build import icsp, idms, image, itms, release, signed

Write = Callable[..., str]
BASE = mc("01-worker-container-runtime", ignition(file(names.REGISTRIES_CONF, REGISTRIES_CONF)))
MIRRORED = idms("site", {"quay.io": ["m.example.com"]})


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def writes(name: str, *objects: Any) -> str:
        target = tmp_path / name
        target.write_text("---\n".join(yaml.safe_dump(part) for part in objects))
        return str(target)

    return writes


@pytest.fixture
def state(write: Write) -> str:
    """A cluster with one worker and an Image that says nothing."""
    return write("state.yaml", BASE, workers(), node("n1", "worker"), image())


def workers() -> dict[str, Any]:
    made = pool()
    made["metadata"]["labels"][names.BUILT_IN_LABEL] = ""
    return made


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def test_a_mirror_for_digests_is_taken_with_a_reload(write: Write, state: str) -> None:
    result = run("plan", "-f", write("new.yaml", MIRRORED), "--offline", state)
    assert result.exit_code == 0, result.output
    assert "/etc/containers/registries.conf changed  [99-worker-generated-registries] -> Special" in result.stdout
    assert "n1: Special" in result.stdout
    assert '+location = "m.example.com"' in result.stdout


def test_a_mirror_for_tags_moves_pods_away_first(write: Write, state: str) -> None:
    result = run("plan", "-f", write("new.yaml", itms("site", {"quay.io": ["m.example.com"]})), "--offline", state)
    assert result.exit_code == 0
    assert "n1: drain, then Special" in result.stdout


def test_an_object_that_is_there_is_replaced(write: Write) -> None:
    before = write("state.yaml", BASE, workers(), node("n1", "worker"), image(), MIRRORED)
    same = run("plan", "-f", write("same.yaml", MIRRORED), "--offline", before)
    assert same.stdout.startswith("Nothing changes")
    other = run("plan", "-f", write("new.yaml", idms("site", {"quay.io": ["n.example.com"]})), "--offline", before)
    assert '-location = "m.example.com"' in other.stdout
    assert '+location = "n.example.com"' in other.stdout


@pytest.mark.parametrize("word", ["idms", "imagedigestmirrorset", "ImageDigestMirrorSets"])
def test_deleting_a_mirror_set(write: Write, word: str) -> None:
    before = write("state.yaml", BASE, workers(), node("n1", "worker"), image(), MIRRORED)
    result = run("plan", "--delete", f"{word}/site", "--offline", before, "-o", "json")
    [change] = json.loads(result.stdout)["pools"][0]["changes"]
    assert change["path"] == names.REGISTRIES_CONF
    unknown = run("plan", "--delete", f"{word}/sites", "--offline", before)
    assert "there is no ImageDigestMirrorSet 'sites' to delete" in unknown.stderr
    assert "Did you mean site?" in unknown.stderr


def test_deleting_a_policy_of_a_namespace_and_the_image(write: Write) -> None:
    before = write("state.yaml", BASE, workers(), image(), MIRRORED, signed("own", "quay.io", namespace="team"))
    result = run("plan", "--delete", "imagepolicy/team/own", "--offline", before)
    assert "/etc/crio/policies/team.json removed" in result.stdout
    gone = run("plan", "--delete", "image/cluster", "--offline", before)
    assert "/etc/crio/policies/team.json removed" in gone.stdout
    assert "/etc/containers/registries.conf changed" in gone.stdout


def test_what_would_be_refused_is_named_with_a_way_out(write: Write, state: str) -> None:
    result = run("plan", "-f", write("new.yaml", icsp("bad", {"QUAY io": ["m"]})), "--offline", state)
    assert result.exit_code == 1
    assert 'ImageContentSourcePolicy bad would be refused: invalid format for source "QUAY io"' in result.stderr
    broken = write("broken.yaml", workers(), image(), icsp("bad", {"QUAY io": ["m"]}))
    assert "ImageContentSourcePolicy bad: invalid format" in run("plan", "-f", state, "--offline", broken).stderr


def test_without_an_image_nothing_would_follow(write: Write) -> None:
    bare = write("state.yaml", BASE, workers())
    result = run("plan", "-f", write("new.yaml", MIRRORED), "--offline", bare)
    assert result.exit_code == 1
    assert "no Image 'cluster'" in result.stderr
    both = run("plan", "-f", write("both.yaml", MIRRORED, image()), "--offline", bare)
    assert both.exit_code == 0
    assert "m.example.com" in both.stdout


def test_the_release_of_the_files_counts_and_kinds_of_the_same_name_do_not(write: Write) -> None:
    version = {**release("quay.io/ocp@sha256:" + "a" * 64), "apiVersion": "config.openshift.io/v1"}
    before = write("state.yaml", BASE, workers(), image(), version)
    left_out = run("plan", "-f", write("new.yaml", image(blocked=["quay.io"])), "--offline", before)
    assert "blocked" not in left_out.stdout
    foreign = {**image(blocked=["a.io"]), "apiVersion": "image.openshift.io/v1"}
    assert run("plan", "-f", write("foreign.yaml", foreign), "--offline", before).stdout.startswith("Nothing changes")
    named = image(blocked=["a.io"])
    named["metadata"]["name"] = "other"
    assert run("plan", "-f", write("named.yaml", named), "--offline", before).stdout.startswith("Nothing changes")
