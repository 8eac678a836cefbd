"""Whatever a file holds, judging and rendering it gives problems, never a crash."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.machineconfig.render.render import Rendered, RenderFailure, render
from fastness.machineconfig.render.suggest import layer
from fastness.machineconfig.render.validate import problems
from fastness.machineconfig.rollout.plan import Proposal, State, plan
from tests.unit.machineconfig.build import mc, pool

WORDS = st.sampled_from(
    [
        "config", "ignition", "version", "3.5.0", "2.2.0", "storage", "files", "path", "/etc/a", "contents", "source", "data:,a",
        "mode", "systemd", "units", "name", "a.service", "passwd", "users", "core", "kernelArguments", "shouldExist", "links",
        "target", "kernelType", "fips", "extensions", "directories", "osImageURL", "append", "sshAuthorizedKeys", "dropins",
    ]
)  # fmt: skip
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 5000) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)
SPECS = st.dictionaries(WORDS, ANYTHING, max_size=4)
DOCUMENTS = st.fixed_dictionaries(
    {"ignition": st.just({"version": "3.5.0"}) | ANYTHING},
    optional={
        "storage": st.dictionaries(st.sampled_from(["files", "links", "directories", "disks"]), ANYTHING, max_size=3),
        "systemd": st.fixed_dictionaries({"units": ANYTHING}),
        "passwd": st.fixed_dictionaries({"users": ANYTHING}),
        "kernelArguments": ANYTHING,
    },
)


def judged(config: dict[str, Any]) -> None:
    for trust in TrustModel:
        assert all(str(problem) for problem in problems(config, trust))
    layer([config])


@given(SPECS)
def test_any_spec(spec: dict[str, Any]) -> None:
    judged({**mc("a"), "spec": spec})


@given(DOCUMENTS)
def test_any_document_is_judged_rendered_and_planned(document: dict[str, Any]) -> None:
    config = mc("a", document)
    judged(config)
    result = render(pool(), [mc("0"), config])
    assert isinstance(result, Rendered | RenderFailure)
    assert isinstance(result, RenderFailure) == any(problem.fatal for problem in problems(config))
    plan(State([pool()], [mc("0")]), Proposal([config]))


@given(ANYTHING, ANYTHING)
def test_any_metadata(meta: Any, spec: Any) -> None:
    config = {"kind": "MachineConfig", "metadata": meta, "spec": spec}
    assert any(problem.fatal for problem in problems(config))


@given(st.dictionaries(st.sampled_from(["name", "labels", "annotations", "ownerReferences"]), ANYTHING))
def test_any_member_of_metadata(meta: dict[str, Any]) -> None:
    problems(
        {"kind": "MachineConfig", "metadata": meta, "spec": {"kernelArguments": ["a"]}}, TrustModel.CONFIDENTIAL_CLUSTER
    )
