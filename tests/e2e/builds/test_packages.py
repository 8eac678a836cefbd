"""Extensions and kernel arguments of a config, in the image: real package managers, no network; dnf has `test_users_packages`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fastness.builds.errors import BuildFailed
from fastness.builds.inputs import BuildInputs, ImageFile
from fastness.builds.kernel_arguments import PLACE, arguments_file
from fastness.builds.live.buildah import Buildah
from fastness.builds.live.workshop import BuildLimits
from fastness.builds.log import BuildLog
from fastness.builds.packages import packages_for
from fastness.kinds.kind import JsonObject
from tests.components import require_program, require_root
from tests.e2e.builds.package_bases import apt_base, deb_extensions, rpm_extensions
from tests.e2e.builds.registry_images import pulled, pushed_busybox, pushed_with
from tests.e2e.builds.test_buildah import order
from tests.e2e.machineconfig.local_registry import LocalRegistry, running_registry

pytestmark = pytest.mark.processes
LARGE = BuildLimits(seconds=300, processes=200, memory=1024**3, file=1024**3, free=0)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    """A registry on loopback that anybody may read and write."""
    program = require_program(Path("/usr/bin/docker-registry"), "docker-registry")
    require_program(Path("/usr/bin/buildah"), "buildah")
    require_root("the sandbox of builds")
    with running_registry(program, tmp_path_factory.mktemp("registry")) as running:
        yield running


def made_of(base: str, spec: JsonObject, source: str, layer: str = "", *files: ImageFile) -> BuildInputs:
    return BuildInputs(base, layer, files, packages=packages_for(spec, source))


async def built(registry: LocalRegistry, directory: Path, inputs: BuildInputs, name: str) -> str:
    plain = order(registry, inputs.base, name=name)
    return await Buildah(directory, LARGE).build(type(plain)(
        plain.name, inputs, plain.target, plain.pull, plain.push, plain.labels
    ), BuildLog())  # fmt: skip


async def test_apt_of_the_base_installs_them_where_that_is_what_it_has(registry: LocalRegistry, tmp_path: Path) -> None:
    source = deb_extensions(registry, tmp_path / "debs", "sysstat", "usbguard")
    inputs = made_of(apt_base(registry), {"extensions": ["sysstat"]}, source)
    content = pulled(registry, await built(registry, tmp_path / "builds", inputs, "worker-apt"))[0]
    assert content["usr/lib/installed/sysstat"] == b"sysstat\n"
    assert "usr/lib/installed/usbguard" not in content, "what nobody asked for stays out"


async def test_a_base_without_a_package_manager_and_an_image_without_the_package_are_told(
    registry: LocalRegistry, tmp_path: Path
) -> None:
    source = rpm_extensions(registry, tmp_path / "rpms", "usbguard")
    with pytest.raises(
        BuildFailed, match=r"\Athe base image has no package manager \(dnf, .*usbguard cannot be installed"
    ):
        await built(
            registry,
            tmp_path / "a",
            made_of(pushed_busybox(registry), {"extensions": ["usbguard"]}, source),
            "worker-n",
        )
    wrong = made_of(apt_base(registry), {"extensions": ["usbguard"]}, source)
    with pytest.raises(BuildFailed, match=r"\Athe extensions image has no repository that apt-get reads"):
        await built(registry, tmp_path / "b", wrong, "worker-w")
    lacking = made_of(wrong.base, {"extensions": ["sysstat"]}, deb_extensions(registry, tmp_path / "debs", "usbguard"))
    with pytest.raises(BuildFailed, match=r"\Aapt-get could not install sysstat from the extensions image"):
        await built(registry, tmp_path / "c", lacking, "worker-m")


async def test_what_people_write_may_install_from_the_extensions_image_themselves(
    registry: LocalRegistry, tmp_path: Path
) -> None:
    source = rpm_extensions(registry, tmp_path / "rpms", "mine")
    layer = "RUN --mount=type=bind,from=extensions,target=/x cp /x/usr/share/rpm-ostree/extensions/noarch/*.rpm /etc/\n"
    image = await built(registry, tmp_path / "b", made_of(pushed_busybox(registry), {}, source, layer), "worker-e")
    assert "etc/mine-1-1.noarch.rpm" in pulled(registry, image)[0]


@pytest.mark.row("003-31")
@pytest.mark.row("003-32")
async def test_arguments_come_with_the_image_and_those_of_the_base_go_only_while_a_config_says_so(
    registry: LocalRegistry, tmp_path: Path
) -> None:
    shipped = {"usr/lib/bootc/kargs.d/10-base.toml": b'kargs = ["quiet", "rhgb"]\nmatch-architectures = ["x86_64"]\n',
               "usr/lib/bootc/kargs.d/20-other.toml": b'kargs = ["other"]\n'}  # fmt: skip
    base = pushed_with(registry, shipped)
    added = ImageFile(PLACE, arguments_file(["nosmt", 'x="a b"']))
    inputs = BuildInputs(base, "", (added,), removed_arguments=("quiet",))
    content = pulled(registry, await built(registry, tmp_path / "a", inputs, "worker-k"))[0]
    assert content["usr/lib/bootc/kargs.d/10-base.toml"] == b'kargs = ["rhgb"]\nmatch-architectures = ["x86_64"]\n'
    assert content["usr/lib/bootc/kargs.d/20-other.toml"] == b'kargs = ["other"]\n'
    assert content[PLACE.lstrip("/")] == b'kargs = ["nosmt", "x=\\"a b\\""]\n'

    after = pulled(registry, await built(registry, tmp_path / "b", BuildInputs(base), "worker-l"))[0]
    assert after["usr/lib/bootc/kargs.d/10-base.toml"] == shipped["usr/lib/bootc/kargs.d/10-base.toml"]
    assert PLACE.lstrip("/") not in after
