"""`fastness image`: approving makes machines acceptable, withdrawing ends it, and nothing unclear is written."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fastness.attestation.live.successor_guard import DOORS_CA, carried
from fastness.attestation.loops.images import IMAGES, SETS
from fastness.cli.main import cli
from fastness.keys.doors import doors_authority
from fastness.runtime.clock import SystemEntropy
from fastness.sim.tee import default_image
from tests.component.attestation.approvals import IMAGE, PCRS, SET, manifest, quoted, world
from tests.embedded.fixtures import Embedded

LABEL = {"pcrs": [{"id": 4, "value": "0" * 64, "events": []}]}


async def run(embedded: Embedded, *arguments: str) -> Result:
    given = ["image", *arguments, "--kubeconfig", str(embedded.kubeconfig)]
    return await asyncio.to_thread(lambda: CliRunner().invoke(cli, given))


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps({**manifest(), "notes": ["not kept"]}))
    return path


async def test_an_image_is_approved_listed_and_withdrawn(embedded_server: Embedded, listed: Path) -> None:
    async with world(embedded_server.cluster) as here:
        result = await run(embedded_server, "approve", IMAGE, "--manifest", str(listed))
        assert result.exit_code == 0, result.output
        assert PCRS[4] in result.stdout
        await here.settle()
        assert (await here.judge(quoted())).affirms("tpm")
        rows = json.loads((await run(embedded_server, "list", "-o", "json")).stdout)
        assert [(row["name"], row["state"], row["values"]) for row in rows] == [
            (f"fastness-system/{SET}", "approved", len(PCRS))
        ]
        result = await run(embedded_server, "withdraw", IMAGE)
        assert (result.exit_code, result.stdout) == (0, f"fastness-system/{SET}: withdrawn\n")
        assert not (await here.judge(quoted())).affirms("tpm")
        await here.settle()
        listing = (await run(embedded_server, "list")).stdout
        assert f"withdrawn {here.clock.now():%Y-%m-%d}" in listing


async def test_an_image_whose_values_wait_for_an_approval_is_listed(embedded_server: Embedded) -> None:
    image = IMAGE.rpartition("@")[0] + "@sha256:" + "7" * 64
    made = {
        "apiVersion": "fastness.dev/v1alpha1", "kind": "ReferenceValueSet", "metadata": {"name": f"image-{'7' * 64}"},
        "spec": {"source": "image", "image": image, "values": []},
    }  # fmt: skip
    await embedded_server.cluster.create(SETS, made)
    rows = json.loads((await run(embedded_server, "list", "-o", "json")).stdout)
    assert [(row["state"], row["image"]) for row in rows] == [("not approved", image)]


async def test_an_approval_says_which_authorities_its_image_carries(
    embedded_server: Embedded, listed: Path, tmp_path: Path
) -> None:
    cluster, trust = embedded_server.cluster, tmp_path / "trust.json"
    bundle = (await doors_authority(cluster, SystemEntropy(), datetime.now(UTC))).lineage
    trust.write_text(json.dumps({"ca": bundle.bundle, "configKeys": []}))
    result = await run(embedded_server, "approve", IMAGE, "--manifest", str(listed), "--trust", str(trust))
    assert result.exit_code == 0, result.output
    (image,) = (await cluster.list(IMAGES)).items
    assert image["metadata"]["annotations"][DOORS_CA] == carried(bundle.trusted)
    trust.write_text("{}")
    refused = await run(embedded_server, "approve", IMAGE, "--manifest", str(listed), "--trust", str(trust))
    assert (refused.exit_code, "no authorities" in refused.output) == (2, True)


async def test_approving_again_replaces_the_measurements(
    embedded_server: Embedded, listed: Path, tmp_path: Path
) -> None:
    async with world(embedded_server.cluster) as here:
        await run(embedded_server, "approve", IMAGE, "--manifest", str(listed))
        label = tmp_path / "label.json"
        label.write_text(json.dumps(LABEL))
        result = await run(embedded_server, "approve", IMAGE, "--label", str(label), "--zero", "11", "-o", "json")
        assert [value["name"] for value in json.loads(result.stdout)["values"]] == ["tpm_pcr4", "tpm_pcr11"]
        await here.settle()
        assert (await here.book()).query("tpm_pcr4") == ["0" * 64]
        assert (await here.book()).query("tpm_pcr7") is None


async def test_the_manifest_of_an_image_with_events_is_kept_for_explanations(
    embedded_server: Embedded, tmp_path: Path
) -> None:
    async with world(embedded_server.cluster) as here:
        path = tmp_path / "manifest.json"
        path.write_text(json.dumps(default_image().manifest()))
        result = await run(embedded_server, "approve", IMAGE, "--manifest", str(path))
        assert result.exit_code == 0, result.output
        assert "event_" not in result.stdout
        await here.settle()
        event = default_image().measurement.of_register(4)[0]
        owner = (await here.book()).owner("event_pcr4", event.digest.hex())
        assert owner is not None
        assert owner.image == IMAGE


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((IMAGE, "--manifest", "{file}", "--label", "{file}"), "say once what machines measure"),
        (("registry.example/os:latest", "--manifest", "{file}"), "no digest"),
        ((IMAGE, "--manifest", "{broken}"), "broken.json"),
        ((IMAGE, "--manifest", "{wrong}"), "do not end"),
        ((IMAGE, "--label", "{label}", "--zero", "4"), "--zero 4"),
        ((IMAGE, "--manifest", "{file}", "--secure-boot"), "go with --uki"),
        ((IMAGE, "--manifest", "{file}", "--until", "soon"), "valid-until"),
        ((IMAGE, "--uki", "{file}"), "manifest.json"),
    ],
)
async def test_what_is_unclear_ends_with_2_and_writes_nothing(
    embedded_server: Embedded, listed: Path, tmp_path: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    files = {
        "file": listed,
        "broken": tmp_path / "broken.json",
        "wrong": tmp_path / "wrong.json",
        "label": tmp_path / "l",
    }
    files["broken"].write_text("{")
    files["wrong"].write_text(json.dumps({"pcrs": [{"id": 4, "value": "11" * 32, "events": []}]}))
    files["label"].write_text(json.dumps(LABEL))
    result = await run(embedded_server, "approve", *(word.format(**files) for word in arguments))
    assert result.exit_code == 2, result.output
    assert complaint in result.stderr
    assert (await embedded_server.cluster.list(IMAGES)).items == []
    assert (await embedded_server.cluster.list(SETS)).items == []


async def test_withdrawing_what_nobody_approved_ends_with_1(embedded_server: Embedded) -> None:
    result = await run(embedded_server, "withdraw", IMAGE)
    assert (result.exit_code, "nothing approves" in result.stderr) == (1, True)


async def test_states_of_an_update_and_pools_are_part_of_an_approval(
    embedded_server: Embedded, listed: Path, tmp_path: Path
) -> None:
    ready = tmp_path / "ready.json"
    ready.write_text(json.dumps({"values": [{"name": "tpm_pcr11", "value": "cd" * 32}], "notes": ["not kept"]}))
    words = ["approve", IMAGE, "--manifest", str(listed), "--variant", f"ready={ready}", "--pool", "infra"]
    async with world(embedded_server.cluster) as here:
        result = await run(embedded_server, *words)
        assert result.exit_code == 0, result.output
        assert "ready" in result.stdout
        await here.settle()
        made = await embedded_server.cluster.get(SETS, SET)
        states = {
            entry["value"]: entry.get("variants") for entry in made["spec"]["values"] if entry["name"] == "tpm_pcr11"
        }
        assert states == {PCRS[11]: ["booted"], "cd" * 32: ["ready"]}
        assert made["spec"]["pools"] == ["infra"]
        assert (await run(embedded_server, *words[:-2])).exit_code == 0
    for bad in ("ready", "=x", f"ready={tmp_path}/none"):
        refused = await run(embedded_server, "approve", IMAGE, "--manifest", str(listed), "--variant", bad)
        assert (refused.exit_code, "--variant" in refused.output) == (2, True)


async def test_an_approval_repeats_what_measuring_found_open_and_strict_writes_none(
    embedded_server: Embedded, tmp_path: Path
) -> None:
    cluster, path = embedded_server.cluster, tmp_path / "measured.json"
    way = {"way": "credentials", "host": "h", "reason": "r", "remedy": "m", "places": ["the line"]}
    path.write_text(json.dumps({**manifest(), "open": [way], "unseen": ["the root"]}))
    refused = await run(embedded_server, "approve", IMAGE, "--manifest", str(path), "--strict")
    assert refused.exit_code == 1
    assert "its host can take this image over: credentials" in refused.stderr
    assert (await cluster.list(IMAGES)).items == []
    result = await run(embedded_server, "approve", IMAGE, "--manifest", str(path))
    assert result.exit_code == 0
    assert "fastness: open: credentials: h: r\n  m\n    the line\nfastness: not checked: the root\n" in result.stderr
    (image,) = (await cluster.list(IMAGES)).items
    assert "credentials" not in json.dumps(image)


async def test_strict_wants_somebody_to_have_looked_and_a_root_is_looked_at_here(
    embedded_server: Embedded, listed: Path, tmp_path: Path
) -> None:
    approve = ("approve", IMAGE, "--manifest", str(listed))
    refused = await run(embedded_server, *approve, "--strict")
    assert (refused.exit_code, "never checked" in refused.stderr) == (1, True)
    unit = tmp_path / "root/usr/lib/systemd/system/vmtoolsd.service"
    unit.parent.mkdir(parents=True)
    unit.write_text("[Service]\n")
    looked = await run(embedded_server, *approve, "--root", str(tmp_path / "root"))
    assert (looked.exit_code, "open: guest-agents: " in looked.stderr) == (0, True)
    strange = tmp_path / "strange.json"
    strange.write_text(json.dumps({**manifest(), "open": ["no way"]}))
    assert (await run(embedded_server, "approve", IMAGE, "--manifest", str(strange))).exit_code == 2
