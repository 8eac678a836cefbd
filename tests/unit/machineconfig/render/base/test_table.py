"""The table of what a machine gets: every row says why, and every combination is a config that can be served."""

from __future__ import annotations

import re
from typing import Final

import pytest

from fastness.attestation.machine import proof_age
from fastness.formats import json
from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.kinds.machineconfiguration import names
from fastness.machineconfig import ignition
from fastness.machineconfig.render.base import kubelet
from fastness.machineconfig.render.base.node_inputs import NodeInputs
from fastness.machineconfig.render.base.rows import CRIO, PROXY, applying
from fastness.machineconfig.render.base.table import TABLE, Part, base_names, documents, rows_of
from fastness.machineconfig.render.generated import Owners, base_configs, fits
from fastness.machineconfig.render.render import Rendered, Setting, render
from fastness.machineconfig.render.validate import problems
from fastness.machineconfig.serving import document
from tests.unit.machineconfig.build import controller_config, pool
from tests.unit.machineconfig.nodes import KINDS, PLAIN, all_inputs, files_of, units_of

EVERY: Final = all_inputs()
OWNERS: Final = Owners.of([], [], controller_config())


def rendered(inputs: NodeInputs) -> Rendered:
    result = render(pool(inputs.role), base_configs(inputs.role, inputs, OWNERS, "v1"), Setting(trust=inputs.trust))
    assert isinstance(result, Rendered), result
    return result


def test_every_row_says_why_it_is_there() -> None:
    reasons = [(row.place, row.reason) for rows in TABLE.values() for row in rows]
    assert all(len(reason) > 20 for _, reason in reasons)
    assert not [place for place, reason in reasons if reason.endswith(".")], "it goes on in a sentence"


@pytest.mark.parametrize("name", EVERY)
def test_no_two_rows_write_the_same_thing(name: str) -> None:
    places = [row.place for rows in TABLE.values() for row in applying(rows, EVERY[name])]
    assert len(places) == len(set(places))


@pytest.mark.parametrize("name", EVERY)
def test_every_base_is_good_in_its_pool_and_leaves_what_a_machine_proves_alone(name: str) -> None:
    inputs = EVERY[name]
    for config in base_configs(inputs.role, inputs, OWNERS, "v1"):
        assert problems(config, inputs.trust) == []
        refused = [problem.reason for problem in problems(config, TrustModel.CONFIDENTIAL_CLUSTER) if problem.fatal]
        # The one thing that is done elsewhere and never there: a boot loader is part of what a confidential machine proves.
        assert [names.BOOT_LOADER_FILE in reason for reason in refused] == [True] * len(refused)
        assert not refused or not inputs.confidential
        fits(config, inputs.role, inputs.trust)
        assert set(config["spec"]) == {"config"}


@pytest.mark.parametrize("version", ["2.2.0", "3.1.0", "3.2.0", "3.3.0", "3.4.0", "3.5.0"])
@pytest.mark.parametrize("name", [name for name in EVERY if name.endswith("-full")])
def test_every_base_can_be_served_to_old_and_new_machines(name: str, version: str) -> None:
    result = rendered(EVERY[name])
    served = document(result.manifest(pool(), Setting().defaults), version)
    assert ignition.inspect(json.decode(served)).config is not None


@pytest.mark.parametrize("name", KINDS)
def test_secrets_are_for_root_alone_and_programs_can_run(name: str) -> None:
    for part in documents(KINDS[name]).values():
        modes = {entry["path"]: entry["mode"] for entry in (part.get("storage") or {}).get("files") or ()}
        assert modes.get("/var/lib/kubelet/config.json", 0o600) == 0o600
        for path, text in files_of(part).items():
            assert (modes[path] == 0o755) == (text.startswith("#!") or path.endswith("/.dummy")), path


@pytest.mark.parametrize("name", EVERY)
def test_units_name_programs_by_full_path_and_require_what_is_there(name: str) -> None:
    parts = documents(EVERY[name])
    units = {key: unit for part in parts.values() for key, unit in units_of(part).items()}
    written = {path for part in parts.values() for path in files_of(part)}
    for key, unit in units.items():
        text = unit.get("contents", "")
        for start in re.findall(r"^ExecStart(?:Pre|Post)?=[-+!@:]*(\S+)", text, re.MULTILINE):
            assert start.startswith("/"), f"{key}: {start}"
            assert not start.startswith("/usr/local/") or start in written, f"{key} starts {start}, which nobody writes"
    for target in re.findall(r"^Requires=(.+)$", units["kubelet.service"]["contents"], re.MULTILINE):
        assert set(target.split()) <= {*units, "crio.service", "containerd.service"}


def test_the_configs_of_a_role_have_the_names_that_people_know() -> None:
    assert base_names("worker") == ("00-worker", "01-worker-container-runtime", "01-worker-kubelet")


def test_a_row_is_found_by_its_config_and_its_place() -> None:
    [row] = rows_of("01-infra-kubelet", "infra", "/etc/kubernetes/kubelet.conf")
    assert "settings" in row.reason
    assert rows_of("01-worker-kubelet", "worker", "/etc/motd") == []
    assert rows_of("50-mine", "worker", "kubelet.service") == []


def test_when_rows_apply_can_be_said() -> None:
    assert (CRIO & PROXY).text == "CRI-O, with a proxy"
    assert not (CRIO & PROXY).holds(PLAIN)


def test_the_taint_is_the_one_that_a_proof_takes_away() -> None:
    assert kubelet.NOT_ATTESTED == {"key": proof_age.TAINT_KEY, "effect": proof_age.STAY_AWAY}


def test_the_runtime_s_files_are_only_of_the_one_that_runs() -> None:
    crio, containerd = (
        files_of(documents(KINDS[f"kubernetes-{name}"])[Part.RUNTIME]) for name in ("crio", "containerd")
    )
    assert "/etc/crio/crio.conf.d/00-default" in crio
    assert "/etc/containerd/config.toml" not in crio
    assert list(containerd) == ["/etc/containerd/config.toml"]


@pytest.mark.parametrize("name", EVERY)
def test_boot_loaders_are_updated_where_no_machine_proves_its_own(name: str) -> None:
    inputs = EVERY[name]
    text = files_of(documents(inputs)[Part.HOST]).get(names.BOOT_LOADER_FILE)
    assert text == (None if inputs.trust is TrustModel.CONFIDENTIAL_CLUSTER else "update\n")
