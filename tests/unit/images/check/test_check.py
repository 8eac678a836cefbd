"""Which ways of a host into an image are seen, each from a tree that has exactly that opening."""

from __future__ import annotations

import pytest

from fastness.images.check.check import Image, open_ways
from fastness.images.check.kernel_line import lacking, lines_of, without_contradictions, words_of
from fastness.images.check.layout import Parts, lacks, pieces
from fastness.images.check.tree import FilePiece, LinkPiece, MappedTree, Shape, unmasked
from fastness.images.check.ways import WAYS, WORDS
from fastness.protocol.pointer import SYSTEM_CONFIG, image_pointer

LINE = words_of(f"quiet {' '.join(WORDS)}")
UNIT = b"[Unit]\n[Install]\nWantedBy=multi-user.target\n"
PARTS = Parts(
    agent={"bin/fastness-agent": FilePiece("", b"#!/bin/sh\n", 0o755)}, trust=b"{}",
    dracut_module={"module-setup.sh": b"check() {\n}\n"},
    units={f"fastness-{name}.service": UNIT for name in ("agent", "attest", "identity")},
)  # fmt: skip


def opened(tree: MappedTree, line: tuple[str, ...] | None = LINE) -> dict[str, tuple[str, ...]]:
    return {opening.way.id: opening.places for opening in open_ways(Image(root=tree, line=line))}


def prepared(tree: MappedTree, shape: Shape = Shape.DEBIAN, platform: str = "") -> MappedTree:
    """A tree after everything was written to it."""
    files, links = dict(tree.files), dict(tree.links)
    for piece in pieces(shape, tree, PARTS, platform):
        files.pop(piece.path, None)
        links.pop(piece.path, None)
        if isinstance(piece, LinkPiece):
            links[piece.path] = piece.target
        else:
            files[piece.path] = piece.content
    return MappedTree(files, links)


UNITS = sorted({(way.id, unit) for way in WAYS for unit in way.units})


@pytest.mark.parametrize(("way", "unit"), UNITS, ids=lambda value: str(value))
def test_a_unit_that_listens_is_open_until_it_is_masked(way: str, unit: str) -> None:
    path = f"/usr/lib/systemd/system/{unit}"
    tree = MappedTree({path: b"[Service]\nExecStart=/usr/bin/listen\n"})
    assert opened(tree)[way] == (path,)
    assert opened(prepared(tree)) == {}


GENERATORS = sorted({(way.id, name) for way in WAYS for name in way.generators})


@pytest.mark.parametrize(("way", "generator"), GENERATORS, ids=lambda value: str(value))
def test_a_generator_that_listens_is_open_until_it_is_masked(way: str, generator: str) -> None:
    path = f"/usr/lib/systemd/system-generators/{generator}"
    tree = MappedTree({path: b"\x7fELF"})
    assert path in opened(tree)[way]
    assert opened(prepared(tree)) == {}


def test_a_mask_counts_only_where_systemd_looks_first() -> None:
    unit = "qemu-guest-agent.service"
    below, above = f"/usr/lib/systemd/system/{unit}", f"/etc/systemd/system/{unit}"
    assert unmasked(MappedTree({above: b"[Service]\n"}, {below: "/dev/null"}), unit) == above
    assert unmasked(MappedTree({below: b"[Service]\n"}, {above: "/dev/null"}), unit) is None
    assert unmasked(MappedTree({below: b"[Service]\n", above: b""}), unit) is None
    assert unmasked(MappedTree({below: b"[Service]\n"}, {above: "/usr/lib/x.service"}), unit) == above


def test_ignition_without_the_pointer_reads_user_data() -> None:
    ignition, pointer = "/usr/bin/ignition", f"/{SYSTEM_CONFIG}"
    assert opened(MappedTree({ignition: b"\x7fELF"})) == {"user-data": (f"{ignition} without {pointer}",)}
    assert opened(MappedTree({ignition: b"\x7fELF", pointer: image_pointer()})) == {}
    other = b'{"ignition": {"version": "3.0.0"}}'
    assert opened(MappedTree({pointer: other})) == {"user-data": (f"{pointer} is not the pointer to the agent",)}
    first = "/etc/ignition/user.ign"  # newer releases look there before they look at the pointer
    both = MappedTree({pointer: image_pointer(), first: other})
    assert opened(both) == {"user-data": (f"{first} is not the pointer to the agent",)}


@pytest.mark.parametrize("word", WORDS)
def test_each_word_is_asked_for_and_the_last_one_of_a_key_counts(word: str) -> None:
    (way,) = (way.id for way in WAYS if word in way.words)
    without = tuple(other for other in LINE if other != word)
    undone = (*LINE, f"{word.partition('=')[0]}=other")
    # Without a root nobody can say that the word has no reader.
    for line in (without, undone):
        openings = open_ways(Image(line=line))
        assert [(opening.way.id, opening.places) for opening in openings] == [
            (way, (f"the image's command line lacks {word}",))
        ]


def test_cloud_init_is_asked_about_only_where_it_is_installed() -> None:
    without = tuple(word for word in LINE if word != "cloud-init=disabled")
    assert opened(MappedTree(), without) == {}
    places = opened(MappedTree({"/usr/bin/cloud-init": b"#!"}), without)["cloud-init"]
    assert len(places) == 3
    assert opened(prepared(MappedTree({"/usr/bin/cloud-init": b"#!"})), None) == {}


@pytest.mark.parametrize(
    ("way", "path"),
    [
        ("boot-loader", "/boot/grub/grub.cfg"),
        ("boot-loader", "/boot/efi/EFI/debian/grubx64.efi"),
        ("boot-loader", "/boot/efi/EFI/Linux/image.efi.extra.d/words.addon.efi"),
        ("boot-loader", "/boot/efi/EFI/Linux/image.efi.extra.d/root.cred"),
        ("boot-loader", "/boot/efi/loader/addons/words.addon.efi"),
        ("boot-loader", "/efi/loader/entries/debian.conf"),
        ("ignition-again", "/boot/ignition.firstboot"),
    ],
)
def test_what_a_disk_can_say_before_the_kernel_is_named(way: str, path: str) -> None:
    assert opened(MappedTree({path: b"content"}))[way] == (path,)


def test_a_boot_loader_that_looks_for_the_flag_is_named_for_both() -> None:
    tree = MappedTree({"/boot/grub2/grub.cfg": b"if [ -f /ignition.firstboot ]; then"})
    assert set(opened(tree)) == {"boot-loader", "ignition-again"}


@pytest.mark.parametrize(
    "source", ["LABEL=data", "UUID=0123-4567", "PARTLABEL=var", "/dev/vdb1", "/dev/disk/by-label/x"]
)
def test_a_mount_by_a_name_that_another_disk_can_carry_is_open(source: str) -> None:
    table = (
        f"# {source} /commented ext4\n{source} /var ext4 defaults 0 2\ntmpfs /tmp tmpfs\n/dev/mapper/data /srv ext4\n"
    )
    assert opened(MappedTree({"/etc/fstab": table.encode()})) == {"second-disk": (f"/etc/fstab: /var is {source}",)}


@pytest.mark.parametrize(
    ("words", "open_root"),
    [
        ("root=LABEL=root", True), ("root=UUID=12", True), ("root=/dev/vda1", True), ("root=/dev/mapper/root", False),
        ("root=PARTUUID=1 roothash=ab", False), ("root=UUID=1 usrhash=ab", False), ("", False),
    ],
)  # fmt: skip
def test_a_root_that_another_disk_can_carry_is_open_unless_it_is_sealed(words: str, open_root: bool) -> None:
    assert ("root-by-name" in opened(MappedTree(), (*LINE, *words_of(words)))) is open_root


@pytest.mark.parametrize(
    "word",
    ["init=/bin/sh", "rd.break", "systemd.debug_shell", "systemd.run=reboot", "ignition.config.url=http://x", "single"],
)
def test_words_that_hand_the_machine_over_are_named(word: str) -> None:
    (place,) = opened(MappedTree(), (*LINE, word))["command-line"]
    assert word in place
    assert "command-line" not in opened(MappedTree(), (*LINE, "systemd.debug_shell=no"))


def test_the_line_inside_of_an_image_counts_and_not_those_of_the_tree() -> None:
    tree = MappedTree({"/etc/kernel/cmdline": b"init=/bin/sh\n"})
    assert opened(tree) == {}
    assert "command-line" in opened(tree, None)


def test_lines_are_found_where_builders_and_boot_loaders_read_them() -> None:
    tree = MappedTree({
        "/etc/kernel/cmdline": b'quiet note="two words"\n',
        "/usr/lib/bootc/kargs.d/10-a.toml": b'kargs = ["a=1"]\n',
        "/usr/lib/bootc/kargs.d/20-b.toml": b'kargs = ["b"]\nmatch-architectures = ["x86_64"]\n',
        "/usr/lib/bootc/kargs.d/30-c.toml": b"no toml",
        "/etc/default/grub": b'GRUB_TIMEOUT=1\nGRUB_CMDLINE_LINUX="g=1 h"\n',
        "/boot/loader/entries/one.conf": b"title one\noptions o=1\noptions p\n",
    })  # fmt: skip
    assert lines_of(tree) == {
        "/etc/kernel/cmdline": ("quiet", 'note="two words"'), "/usr/lib/bootc/kargs.d": ("a=1", "b"),
        "/etc/default/grub": ("g=1", "h"), "/boot/loader/entries/one.conf": ("o=1", "p"),
    }  # fmt: skip


def test_a_line_keeps_its_words_and_loses_those_that_contradict() -> None:
    line = without_contradictions(
        ("quiet", "systemd.import-credentials=yes", "root=/dev/mapper/r"), ("systemd.import_credentials=no",)
    )
    assert line == ("quiet", "root=/dev/mapper/r", "systemd.import_credentials=no")
    assert lacking(line, ("systemd.import_credentials=no",)) == ()


@pytest.mark.parametrize("shape", Shape)
def test_a_prepared_tree_lacks_nothing_and_preparing_it_again_gives_the_same(shape: Shape) -> None:
    start = MappedTree({"/etc/kernel/cmdline": b"quiet\n"} if shape is Shape.DEBIAN else {})
    tree = prepared(start, shape, "qemu")
    assert lacks(shape, tree) == []
    assert opened(tree, None) == {}
    assert prepared(tree, shape, "qemu") == tree
    assert prepared(tree, shape) == tree, "an image that names its platform keeps it"
    assert lacks(shape, prepared(tree, shape, "aws")) == []
    for unit in PARTS.units:
        assert tree.links[f"/usr/lib/systemd/system/multi-user.target.wants/{unit}"] == f"../{unit}"


@pytest.mark.parametrize("shape", Shape)
def test_what_an_image_lacks_is_named_with_what_follows_from_it(shape: Shape) -> None:
    tree = prepared(MappedTree(), shape, "qemu")
    for path in [*tree.files, *tree.links]:
        files = {name: content for name, content in tree.files.items() if name != path}
        links = {name: target for name, target in tree.links.items() if name != path}
        named = [lack.path for lack in lacks(shape, MappedTree(files, links))]
        if "fastness-" in path and path.endswith(".service"):
            assert named == [path]
        if path.endswith("90-certificates.conf"):
            assert named == [path]
        if path in ("/etc/kernel/cmdline", "/usr/lib/bootc/kargs.d/50-fastness.toml"):
            assert named == ["ignition.platform.id on the kernel command line"]


def test_two_platforms_on_one_line_are_none() -> None:
    tree = prepared(MappedTree(), Shape.FCOS, "qemu")
    other = MappedTree(
        {**tree.files, "/usr/lib/bootc/kargs.d/60.toml": b'kargs = ["ignition.platform.id=metal"]'}, tree.links
    )
    (lack,) = lacks(Shape.FCOS, other)
    assert "ignition.platform.id=metal, ignition.platform.id=qemu" in lack.path


KUBEADM = b"""[Service]
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
"""


def test_a_kubelet_that_reads_the_settings_of_the_image_makes_no_keys_and_another_is_named() -> None:
    unit = "/usr/lib/systemd/system/kubelet.service"
    kubeadm = MappedTree({unit: b"[Service]\nExecStart=/usr/bin/kubelet\n", f"{unit}.d/10-kubeadm.conf": KUBEADM})
    assert lacks(Shape.DEBIAN, prepared(kubeadm, platform="qemu")) == []
    own = b'[Service]\nEnvironment="KUBELET_CONFIG_ARGS=--config-dir=/etc/kubelet.d"\n'
    late = MappedTree({**kubeadm.files, "/etc/systemd/system/kubelet.service.d/95-own.conf": own})
    (lack,) = lacks(Shape.DEBIAN, prepared(late, platform="qemu"))
    assert (lack.path, "no proof names" in lack.consequence) == (f"{unit} (--config-dir)", True)


def test_a_kubelet_of_rhcos_reads_the_directory_that_its_unit_names() -> None:
    start = b"[Service]\nExecStart=/usr/bin/kubelet --config=/etc/kubernetes/kubelet.conf"
    unit = "/etc/systemd/system/kubelet.service"
    with_directory = MappedTree({unit: start + b" \\\n  --config-dir=/etc/openshift/kubelet.conf.d \\\n  --v=2\n"})
    assert lacks(Shape.RHCOS, prepared(with_directory, Shape.RHCOS, "aws")) == []
    assert [lack.path for lack in lacks(Shape.RHCOS, prepared(MappedTree({unit: start}), Shape.RHCOS, "aws"))] == [
        f"{unit} (--config-dir)"
    ]


def test_a_commit_of_ostree_gets_its_settings_below_usr_etc() -> None:
    tree = prepared(MappedTree({"/usr/etc/hosts": b""}), Shape.FCOS)
    assert tree.links["/usr/etc/systemd/system/emergency.service"] == "/dev/null"
    assert tree.names("/etc") == []
    cloud = MappedTree({**tree.files, "/usr/bin/cloud-init": b"#!"}, tree.links)
    assert opened(cloud, None) == {}
