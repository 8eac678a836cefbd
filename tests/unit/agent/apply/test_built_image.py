"""A built image over a config: what the machine is still asked for, and whose /usr is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fastness.agent.apply.built_image import image_in, require_usr, with_image, without_usr
from fastness.agent.apply.steps import Put, Step
from fastness.agent.errors import BadConfig
from fastness.agent.host.states import ABSENT
from fastness.kinds.kind import JsonObject

BUILT = f"registry.example/os@sha256:{'b' * 64}"
CONFIG: JsonObject = {
    "metadata": {"name": "rendered-worker-1"},
    "spec": {"osImageURL": "base", "kernelArguments": ["nosmt"], "kernelType": "realtime", "extensions": ["usbguard"]},
}


def system(*, owns: bool, brings: bool) -> Any:
    return SimpleNamespace(owns_usr=owns, brings_usr=brings)


@pytest.mark.parametrize(("brings", "left"), [(True, None), (False, ["nosmt"])])
def test_a_machine_with_a_built_image_is_asked_for_no_packages_and_for_arguments_only_where_the_image_brings_none(
    brings: bool, left: list[str] | None
) -> None:
    config = with_image(CONFIG, BUILT, brings_arguments=brings)
    spec = config["spec"]
    assert (spec["osImageURL"], image_in(config)) == (BUILT, BUILT)
    assert (spec.get("kernelType"), spec.get("extensions"), spec.get("kernelArguments")) == (None, None, left)
    assert with_image(CONFIG, "") is CONFIG, "without an image all of it is the machine's again"


@pytest.mark.row("003-30")
def test_a_file_below_usr_without_an_image_build_is_refused_with_the_way_out() -> None:
    host = system(owns=True, brings=True)
    with pytest.raises(BadConfig, match=r"/usr/lib/mine: /usr belongs to the image of this machine") as refusal:
        require_usr(["/etc/a", "/usr/lib/mine", "/usr/local/bin/x"], "", host)
    assert "MachineOSConfig" in refusal.value.hint
    require_usr(["/usr/lib/mine"], BUILT, host)
    require_usr(["/usr/lib/mine"], "", system(owns=False, brings=False))
    require_usr(["/usr/local/bin/x", "/usrlike"], "", host)


def test_what_is_below_usr_comes_and_goes_with_the_image_and_nobody_writes_it() -> None:
    steps: list[Step] = [Put("/etc/a", ABSENT), Put("/usr/lib/mine", ABSENT), Put("/usr/local/x", ABSENT)]
    assert without_usr(steps, system(owns=True, brings=True)) == [steps[0], steps[2]]
    assert without_usr(steps, system(owns=True, brings=False)) == steps
