"""Rendering searched: order does not matter, nothing is lost, taking a change back leads back, blame is true."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fastness.formats import json
from fastness.machineconfig.render.blame import PartKind
from fastness.machineconfig.render.render import Rendered, render
from fastness.machineconfig.rollout.plan import Proposal, State, plan
from tests.unit.machineconfig.build import file, ignition, mc, pool

PATHS = st.sampled_from(["/etc/a", "/etc/b", "/etc/c.d/x", "/var/lib/d"])
FILES = st.builds(file, PATHS, st.text("ab\n", max_size=6), mode=st.sampled_from([0o600, 0o644]))
UNITS = st.fixed_dictionaries(
    {"name": st.sampled_from(["a.service", "b.timer"])},
    optional={"enabled": st.booleans(), "mask": st.booleans()},
)
DOCUMENTS = st.builds(
    lambda files, units, version: ignition(*files, units=units, version=version),
    st.lists(FILES, max_size=3, unique_by=lambda part: str(part["path"])),
    st.lists(UNITS, max_size=2, unique_by=lambda part: str(part["name"])),
    st.sampled_from(["3.2.0", "3.5.0"]),
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "kernelArguments": st.lists(st.sampled_from(["a", "b=1"]), max_size=2),
        "kernelType": st.sampled_from(["", "default", "realtime"]),
        "fips": st.booleans(),
        "unknown": st.integers(-9, 9),
    },
)
CONFIGS = st.lists(
    st.builds(
        lambda name, document, spec, role: mc(f"{name:02d}-{role}", document, role, **spec),
        st.integers(0, 99), st.none() | DOCUMENTS, SPECS, st.sampled_from(["worker", "infra"]),
    ),
    min_size=1, max_size=5, unique_by=lambda part: str(part["metadata"]["name"]),
)  # fmt: skip


def rendered(configs: list[dict[str, Any]]) -> Rendered:
    result = render(pool("infra"), configs)
    assert isinstance(result, Rendered), result
    return result


@given(CONFIGS, st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(configs: list[dict[str, Any]], chance: Any) -> None:
    shuffled = list(configs)
    chance.shuffle(shuffled)
    assert rendered(shuffled).spec == rendered(configs).spec
    assert rendered(shuffled).name == rendered(configs).name


@given(CONFIGS)
def test_rendering_is_repeatable_on_a_copy_of_the_objects(configs: list[dict[str, Any]]) -> None:
    assert rendered(json.decode(json.encode(configs))).name == rendered(configs).name


@given(CONFIGS)
def test_every_file_and_unit_of_a_source_is_in_the_result_and_unknown_fields_stay(
    configs: list[dict[str, Any]],
) -> None:
    result = rendered(configs).spec
    paths = {entry["path"] for entry in (result["config"].get("storage") or {}).get("files", ())}
    for config in configs:
        document = config["spec"].get("config") or {}
        assert {entry["path"] for entry in (document.get("storage") or {}).get("files", ())} <= paths
    assert ("unknown" in result) == any("unknown" in config["spec"] for config in configs)


@given(CONFIGS, st.builds(lambda document, spec: mc("98-bad", document, **spec), DOCUMENTS, SPECS))
def test_taking_a_config_back_leads_to_the_config_before(configs: list[dict[str, Any]], more: dict[str, Any]) -> None:
    before = rendered(configs)
    rendered([*configs, more])
    after = [config for config in [*configs, more] if config is not more]
    assert rendered(after).name == before.name


@given(CONFIGS)
def test_a_proposal_that_changes_nothing_has_an_empty_plan(configs: list[dict[str, Any]]) -> None:
    state = State([pool("infra"), pool("worker")], configs)
    assert not plan(state, Proposal(configs))
    assert not plan(state, Proposal())


@given(CONFIGS)
def test_the_blamed_config_has_the_value_that_was_rendered(configs: list[dict[str, Any]]) -> None:
    result = rendered(configs)
    named = {config["metadata"]["name"]: config for config in configs}
    for entry in (result.spec["config"].get("storage") or {}).get("files", ()):
        [origin] = [candidate for candidate in result.blame.of(entry["path"]) if candidate.kind is PartKind.FILE]
        source = named[origin.fields["contents.source"]]
        [mine] = [
            candidate
            for candidate in source["spec"]["config"]["storage"]["files"]
            if candidate["path"] == entry["path"]
        ]
        assert mine["contents"]["source"] == entry["contents"]["source"]
        assert origin.source == origin.history[-1].config
        assert set(origin.overridden) <= {touch.config for touch in origin.history[:-1]}
