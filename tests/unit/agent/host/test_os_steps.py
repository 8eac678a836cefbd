"""The table of decisions about operating systems, row by row and as a whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.agent.host.os_steps import (
    DEFAULT_KERNEL,
    KERNELS,
    Arguments,
    DropStaged,
    Kernel,
    OsStep,
    Packages,
    Present,
    ResetKernel,
    Switch,
    os_steps,
)
from fastness.agent.host.states import NOTHING, Deployment
from fastness.formats.os_status import OsEntry
from fastness.machineconfig.render.validate import EXTENSIONS

A, B = (f"registry.example/os@sha256:{digit * 64}" for digit in "ab")
A_ELSEWHERE = f"mirror.example/copy:9@sha256:{'a' * 64}"
RT = OsEntry(A, KERNELS["realtime"], DEFAULT_KERNEL)


@pytest.mark.parametrize(
    ("present", "new", "old", "steps"),
    [
        (Present(OsEntry(A)), Deployment(A), NOTHING, ()),
        (Present(OsEntry(A)), Deployment(A_ELSEWHERE), NOTHING, ()),
        (Present(OsEntry(A)), NOTHING, NOTHING, ()),
        (Present(OsEntry(A), (), OsEntry(A)), Deployment(A), NOTHING, ()),
        (Present(OsEntry(A), (), OsEntry(B)), Deployment(A), NOTHING, (DropStaged(),)),
        (Present(OsEntry(A), (), OsEntry(B), ()), Deployment(B), NOTHING, ()),
        (Present(OsEntry(A)), Deployment(B), NOTHING, (Switch(B),)),
        (Present(OsEntry(A), (), OsEntry(A), ("x",)), Deployment(B), NOTHING, (DropStaged(), Switch(B))),
        # Arguments: of the staged deployment where they can be told, else set once more.
        (Present(OsEntry(A), (), OsEntry(B), ()), Deployment(B, ("x",)), NOTHING,
         (DropStaged(), Switch(B), Arguments((), ("x",)))),
        (Present(OsEntry(A), (), OsEntry(B), None), Deployment(B, ("x",)), NOTHING, (Arguments((), ("x",)),)),
        (Present(OsEntry(A), ("root=1", "x")), Deployment(A, ("x",)), NOTHING, ()),
        (Present(OsEntry(A), ("root=1", "x")), Deployment(A), Deployment(A, ("x",)), (Arguments(("x",), ()),)),
        (Present(OsEntry(A), ("root=1", "x")), Deployment(A), NOTHING, ()),
        # Kernel and packages.
        (Present(OsEntry(A)), Deployment(A, (), "realtime"), NOTHING, (Kernel(KERNELS["realtime"]),)),
        (Present(RT), Deployment(A, (), "realtime"), Deployment(A, (), "realtime"), ()),
        (Present(RT), Deployment(A), Deployment(A, (), "realtime"), (ResetKernel(DEFAULT_KERNEL, KERNELS["realtime"]),)),
        (Present(RT), Deployment(B, (), "realtime"), Deployment(A, (), "realtime"),
         (ResetKernel(DEFAULT_KERNEL, KERNELS["realtime"]), Switch(B), Kernel(KERNELS["realtime"]))),
        (Present(OsEntry(A, ("usbguard", "htop"))), Deployment(A, (), "", ("kerberos",)), Deployment(A, (), "", ("usbguard",)),
         (Packages(("krb5-workstation", "libkadm5"), ("usbguard",)),)),
    ],
)  # fmt: skip
def test_the_table(present: Present, new: Deployment, old: Deployment, steps: tuple[OsStep, ...]) -> None:
    assert os_steps(present, new, old) == steps


entries = st.builds(
    OsEntry,
    st.sampled_from([A, B]),
    st.sampled_from([(), ("usbguard",), KERNELS["realtime"], ("htop",)]),
    st.sampled_from([(), DEFAULT_KERNEL]),
)
arguments = st.lists(st.sampled_from(["x", "y", "root=1"]), max_size=3).map(tuple)
deployments = st.builds(
    Deployment, st.sampled_from([A, B]), arguments, st.sampled_from(["", "realtime"]),
    st.lists(st.sampled_from(sorted(EXTENSIONS)), max_size=2, unique=True).map(tuple),
)  # fmt: skip


@given(st.builds(Present, entries, arguments, st.none() | entries, st.none() | arguments), deployments, deployments)
def test_steps_come_in_one_order_and_end_at_what_was_asked_for(
    present: Present, new: Deployment, old: Deployment
) -> None:
    steps = os_steps(present, new, old)
    order = [DropStaged, ResetKernel, Switch, Arguments, Kernel, Packages]
    places = [order.index(type(step)) for step in steps]
    assert places == sorted(set(places)), "each kind at most once, in the order of the table"
    switches = [step.image for step in steps if isinstance(step, Switch)]
    if present.staged is None:
        assert switches == ([new.image] if present.booted.image != new.image else [])
    if switches:
        assert not any(isinstance(step, Switch) for step in os_steps(Present(OsEntry(new.image)), new, old))
