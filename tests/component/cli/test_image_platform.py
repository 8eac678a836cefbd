"""`fastness image platform`: what it prints is what a cluster takes, from a store of variables and from a machine that runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fastness.cli.main import cli
from fastness.formats.evidence.efi.signature_lists import SIG_X509, guid_text
from fastness.images.platforms import firmware_of, variables_of
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.kind import JsonObject
from fastness.kube.errors import Forbidden
from fastness.kube.port import PatchType, WriteOptions
from tests.embedded.fixtures import Embedded
from tests.lowering import word_of
from tests.measuredboot import minted

KEYS = minted.keys(minted.siglist(SIG_X509, minted.Signer("db").der))


def run(*words: str) -> Result:
    return CliRunner().invoke(cli, ["image", "platform", *words])


@pytest.fixture
def efivars(tmp_path: Path) -> Path:
    """Variables as Linux shows them: four bytes of attributes before each."""
    for (vendor, name), value in KEYS.items():
        (tmp_path / f"{name}-{guid_text(vendor)}").write_bytes(bytes((7, 0, 0, 0)) + value)
    return tmp_path


def entry(result: Result) -> JsonObject:
    (made,) = json.loads(result.stdout)["spec"]["images"]["platforms"]
    return dict(made)


async def test_what_is_printed_is_applied_and_another_name_stands_beside_it(
    embedded_server: Embedded, efivars: Path
) -> None:
    cluster, made = (
        embedded_server.cluster,
        {"apiVersion": CONFIDENTIAL_CLUSTER.api_version, "kind": "ConfidentialCluster"},
    )
    await cluster.create(
        CONFIDENTIAL_CLUSTER.resource,
        {**made, "metadata": {"name": "cluster"}, "spec": {"mode": "Enforce", "simulated": True}},
    )
    for name, pools in (("rack", ()), ("shelf", ("--pool", "gpu"))):
        document = json.loads(run(name, "--efivars", str(efivars), *pools).stdout)
        options = WriteOptions(manager=f"platform-{name}")
        with pytest.raises(Forbidden) as refused:
            await cluster.patch(CONFIDENTIAL_CLUSTER.resource, "cluster", document, PatchType.APPLY, "", options)
        document["metadata"]["annotations"] = {"fastness.dev/confirm-lower": word_of(refused.value)}
        forced = WriteOptions(manager=f"platform-{name}", force=True)
        await cluster.patch(CONFIDENTIAL_CLUSTER.resource, "cluster", document, PatchType.APPLY, "", forced)
    stored = (await cluster.get(CONFIDENTIAL_CLUSTER.resource, "cluster"))["spec"]["images"]["platforms"]
    assert [(each["name"], each.get("pools", []), each["secureBoot"]) for each in stored] == [
        ("rack", [], True), ("shelf", ["gpu"], True),
    ]  # fmt: skip
    assert firmware_of(stored[0]["variables"]).variables == KEYS


def test_a_store_of_a_virtual_machine_gives_the_same_as_a_machine_that_runs(efivars: Path, tmp_path: Path) -> None:
    store = Path("/usr/share/OVMF/OVMF_VARS_4M.ms.fd")
    if not store.exists():
        pytest.skip("missing: OVMF_VARS_4M.ms.fd; Debian package ovmf")
    variables = entry(run("rack", "--firmware-vars", str(store)))["variables"]
    assert {"PK", "KEK", "db"} <= set(variables)
    assert variables_of(firmware_of(variables)) == variables


def test_what_cannot_be_so_is_refused(efivars: Path, tmp_path: Path) -> None:
    both = run("rack", "--efivars", str(efivars), "--firmware-vars", __file__)
    assert (both.exit_code, "say once" in both.stderr) == (2, True)
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    unowned = run("rack", "--efivars", str(nothing))
    assert (unowned.exit_code, "no platform key is enrolled" in unowned.stderr) == (1, True)
    assert entry(run("rack", "--efivars", str(nothing), "--no-secure-boot")) == {
        "name": "rack", "secureBoot": False, "variables": {},
    }  # fmt: skip
    damaged = next(efivars.glob("db-*"))
    damaged.write_bytes(bytes(4) + b"x" * 40)
    assert run("rack", "--efivars", str(efivars)).exit_code == 2
