"""A sealed system that was booted once: kept when kubelet and proof are good, left when they are not, whoever is away."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fastness.agent.apply.hosts import DirectoryMachine
from fastness.agent.apply.ports import Host
from fastness.agent.apply.trial import Trial, why_left
from fastness.agent.errors import KubeletDown
from fastness.agent.host.boot_entries import entry_of
from fastness.agent.host.errors import ImageFailure
from fastness.agent.host.states import Deployment, File
from fastness.kube.errors import Unavailable
from tests.component.agent.directory_machine import make_machine
from tests.component.agent.host.sealed_machines import A, B, driver, sealed_machine
from tests.standins.sealed_engine import SealedMachine
from tests.virtual import VirtualClock

WINDOW = 900.0


class OnTrial:
    """A machine that booted B once, and keeps A."""

    def __init__(self, directory: Path) -> None:
        self.engine: SealedMachine = sealed_machine(directory / "engine")
        self.machine: DirectoryMachine = make_machine(directory / "w0")
        self.host: Host = replace(self.machine.host, system=driver(self.engine))
        self.clock = VirtualClock()
        self.host.system.stage(Deployment(B))
        self.engine.boot()

    def trial(self, prove: Callable[[], Awaitable[None]] | None) -> Trial:
        return Trial(self.host, prove, self.clock, WINDOW)


@pytest.fixture
def booted(tmp_path: Path) -> OnTrial:
    return OnTrial(tmp_path)


async def watched(booted: OnTrial, trial: Trial) -> None:
    """Let the window of a trial pass."""
    watching = asyncio.ensure_future(trial.watch())
    await booted.clock.advance(WINDOW)
    await watching


async def proved() -> None:
    """The cluster accepts what the machine booted."""


async def away() -> None:
    raise Unavailable("the broker does not answer")


async def refused() -> None:
    raise ImageFailure("the image is not approved")


async def test_what_proved_itself_is_kept(booted: OnTrial) -> None:
    assert await booted.trial(proved).ended() == ""
    assert booted.engine.boot() == entry_of(B)


async def test_what_the_cluster_refuses_is_left_and_the_next_boot_knows_why(booted: OnTrial) -> None:
    why = await booted.trial(refused).ended()
    assert "cannot prove itself with it: the image is not approved" in why
    assert booted.engine.boot() == entry_of(A)
    assert why_left(booted.host) == why
    assert why_left(booted.host) == "", "told once"


async def test_while_nobody_can_judge_it_waits_and_then_goes_back(booted: OnTrial) -> None:
    trial = booted.trial(away)
    with pytest.raises(Unavailable):
        await trial.ended()
    await booted.clock.advance(WINDOW)
    assert "was not kept within 900 seconds" in await trial.ended()
    assert booted.engine.boot() == entry_of(A)


async def test_a_proof_that_comes_late_but_in_time_is_enough(booted: OnTrial) -> None:
    answers = [away, proved]
    trial = booted.trial(lambda: answers.pop(0)())
    with pytest.raises(Unavailable):
        await trial.ended()
    assert await trial.ended() == ""
    assert booted.engine.boot() == entry_of(B)


async def test_without_a_kubelet_that_runs_nothing_is_kept(booted: OnTrial, monkeypatch: Any) -> None:
    booted.host.root.put("/etc/systemd/system/kubelet.service", File(b"[Install]\nWantedBy=multi-user.target\n"))
    booted.host.units.enable(["kubelet.service"])
    monkeypatch.setattr(booted.machine.units, "is_running", lambda _unit: False)
    with pytest.raises(KubeletDown):
        await booted.trial(proved).ended()
    assert booted.engine.boot() == entry_of(A)


async def test_a_machine_that_never_hears_of_its_cluster_goes_back_by_itself(booted: OnTrial) -> None:
    await watched(booted, booted.trial(proved))
    assert any("was not kept within 900 seconds" in reason for reason in booted.machine.power.reasons)


async def test_what_is_kept_is_not_left_when_the_window_ends(booted: OnTrial) -> None:
    trial = booted.trial(proved)
    assert await trial.ended() == ""
    await watched(booted, trial)
    assert booted.machine.power.reasons == []


async def test_a_system_that_is_not_on_trial_proves_nothing(booted: OnTrial) -> None:
    booted.engine.boot()
    assert await booted.trial(refused).ended() == ""
    assert booted.engine.boot() == entry_of(A)
