"""What the layers raise is one sentence, also when tasks that ran side by side raise it in groups."""

from __future__ import annotations

import errno

import pytest

from fastness.apiserver.store.errors import DiskFull
from fastness.app.parts import LackingError, LacksCluster, LacksOption
from fastness.cli.errors import CliError, Exit
from fastness.cli.room_errors import reported_errors


def test_a_full_disk_in_a_group_of_tasks_is_a_sentence_with_a_way_out() -> None:
    full = OSError(errno.ENOSPC, "No space left on device", "state/kubeconfig")
    with pytest.raises(CliError) as caught, reported_errors():
        raise ExceptionGroup("tasks", [ExceptionGroup("inner", [full])])
    assert caught.value.message == "state/kubeconfig: No space left on device"
    assert "Free space" in caught.value.hint
    assert caught.value.exit_code == Exit.MISSING


def test_of_several_errors_of_ours_the_first_is_told() -> None:
    with pytest.raises(CliError, match="no key"), reported_errors():
        raise ExceptionGroup("doors", [CliError("no key"), DiskFull("full")])


def test_a_defect_among_them_is_shown_with_all_the_others() -> None:
    with pytest.raises(ExceptionGroup), reported_errors():
        raise ExceptionGroup("tasks", [DiskFull("full"), KeyError("defect")])


@pytest.mark.parametrize(("lacking", "code"), [(LacksOption, Exit.USAGE), (LacksCluster, Exit.MISSING)])
def test_what_a_door_lacks_is_told_with_what_to_give(lacking: type[LackingError], code: Exit) -> None:
    with pytest.raises(CliError) as caught, reported_errors():
        raise ExceptionGroup("doors", [lacking("the broker has no key", "Give --vault FILE.")])
    assert (caught.value.message, caught.value.hint) == ("the broker has no key", "Give --vault FILE.")
    assert caught.value.exit_code == code
