"""Files of an image that are other names of files: read where they lead in their layer, refused where they lead elsewhere."""

from __future__ import annotations

import gzip
from collections.abc import Iterator

import pytest

from fastness.formats import oci
from fastness.formats.oci_tree import MAX_WANTED
from fastness.machineconfig.live.image_tree import Contents, TreeReader
from fastness.machineconfig.live.registry_session import Refused, opened, trust_in
from fastness.machineconfig.streams.access import Place
from tests.component.builds.hostile_registry import Answer, HostileRegistry, hostile_registry
from tests.unit.formats.test_oci_tree import tar

HARD = b"1"
UKI = "boot/EFI/Linux/os.efi"


@pytest.fixture
def registry() -> Iterator[HostileRegistry]:
    """One that knows nothing yet."""
    with hostile_registry() as started:
        yield started


def wants(path: str) -> bool:
    return path.startswith("boot/")


async def contents(registry: HostileRegistry, *layers: bytes, reader: TreeReader | None = None) -> Contents:
    """What is read of an image of these layers."""
    name = registry.image(*layers)
    place = Place(oci.reference(name), insecure=True, login=None)
    async with opened(place, trust_in("")) as session:
        return await (reader or TreeReader(wants)).read_contents(session)


def linked(target: str, *files: tuple[str, bytes]) -> bytes:
    """A layer with files, and the kernel image as another name of one."""
    before, link = tar(*files).rstrip(b"\0"), tar((UKI, target), kind=HARD)
    return before + b"\0" * (-len(before) % 512) + link


async def test_a_hard_link_is_the_file_that_it_names_in_its_layer(registry: HostileRegistry) -> None:
    read = await contents(registry, gzip.compress(linked("usr/lib/os.efi", ("usr/lib/os.efi", b"kernel"))))
    assert read.problem is None
    assert read.tree[UKI].content == b"kernel"
    assert "usr/lib/os.efi" not in read.tree, "nobody asked for that one"


async def test_it_is_the_file_of_its_own_layer_and_not_of_one_above(registry: HostileRegistry) -> None:
    lower = linked("./usr/lib/os.efi", ("usr/lib/os.efi", b"lower"))
    read = await contents(registry, lower, tar(("usr/lib/os.efi", b"upper")))
    assert read.tree[UKI].content == b"lower"
    replaced = await contents(registry, lower, tar((UKI, b"upper")))
    assert replaced.tree[UKI].content == b"upper"


@pytest.mark.parametrize(
    ("target", "files", "problem"),
    [
        ("usr/lib/os.efi", (), "which is no file of the same layer"),
        ("usr/lib/os.efi", (("usr/lib/os.efi/", b""),), "which is no file of the same layer"),
        ("../../../etc/shadow", (), "leads out of the image"),
        ("/proc/../../x", (), "leads out of the image"),
        (UKI, (), "which is no file of the same layer"),
    ],
)
async def test_a_hard_link_that_leads_elsewhere_makes_the_image_unreadable(
    registry: HostileRegistry, target: str, files: tuple[tuple[str, bytes], ...], problem: str
) -> None:
    read = await contents(registry, linked(target, *files))
    assert read.problem is not None
    assert problem in read.problem.message
    assert not read.tree


async def test_a_link_to_a_link_is_not_followed(registry: HostileRegistry) -> None:
    body = tar(("boot/a", "boot/b"), ("boot/b", "boot/a"), kind=HARD)
    read = await contents(registry, body)
    assert read.problem is not None


async def test_a_layer_that_is_another_at_the_second_look_is_refused(registry: HostileRegistry) -> None:
    """A registry that answers differently each time cannot show one file to us and another to a machine."""
    layer = linked("usr/lib/os.efi", ("usr/lib/os.efi", b"kernel"))
    other = linked("usr/lib/os.efi", ("usr/lib/os.efi", b"KERNEL"))
    name = registry.image(layer)
    registry.answers["GET", f"blobs/{oci.digest_of(layer)}"] = Answer(bodies=iter((layer, other)))
    async with opened(Place(oci.reference(name), insecure=True, login=None), trust_in("")) as session:
        with pytest.raises(Refused, match="something else than"):
            await TreeReader(wants).read_contents(session)


async def test_a_list_that_names_a_list_is_no_image(registry: HostileRegistry) -> None:
    inner = registry.manifest({"manifests": []}).partition("@")[2]
    entry = {"digest": inner, "size": 1, "platform": {"os": "linux", "architecture": "amd64"}}
    name = registry.manifest({"manifests": [entry]})
    async with opened(Place(oci.reference(name), insecure=True, login=None), trust_in("")) as session:
        with pytest.raises(Refused, match="a list of images names another list"):
            await TreeReader(wants).read_contents(session)
        with pytest.raises(Refused, match="a list of images names another list"):
            await session.manifest()


async def test_layers_that_say_too_much_together_are_the_images_own_fault(registry: HostileRegistry) -> None:
    many = [tar(*((f"boot/{at}/{number}", b"") for number in range(MAX_WANTED))) for at in range(5)]
    read = await contents(registry, *many)
    assert read.problem is not None
    assert "paths of the layers" in read.problem.message
