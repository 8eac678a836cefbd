"""Every rule about one config, with its message, and what a confidential pool refuses."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.formats import data_url as dataurl
from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.kinds.machineconfiguration.names import PINNED_IMAGES_FILE
from fastness.machineconfig.render.errors import BadSettings, Severity
from fastness.machineconfig.render.generated import KUBELET, Owners, fits, generate
from fastness.machineconfig.render.validate import EXTENSIONS, examine, problems
from tests.unit.machineconfig.build import file, ignition, mc

CONFIDENTIAL = TrustModel.CONFIDENTIAL_CLUSTER


def fields(config: dict[str, Any], trust: TrustModel = TrustModel.NONE) -> dict[str, str]:
    return {problem.field: problem.code for problem in problems(config, trust) if problem.fatal}


@pytest.mark.parametrize("kernel", ["", "default", "realtime", "64k-pages"])
def test_known_kernel_types_are_good(kernel: str) -> None:
    assert problems(mc("a", kernelType=kernel)) == []


def test_an_unknown_kernel_type_is_named_with_the_known_ones() -> None:
    [problem] = problems(mc("99-rt", kernelType="realtme"))
    assert str(problem) == (
        "MachineConfig 99-rt: spec.kernelType: 'realtme' is not a kernel type (use one of default, realtime, 64k-pages)"
    )


@pytest.mark.parametrize(
    ("version", "code"),
    [("3.9.0", "unknown-version"), ("4.0.0", "unknown-version"), ("three", "invalid-version"), (3, "invalid-version")],
)
def test_versions_that_do_not_exist_and_that_are_none_are_told_apart(version: object, code: str) -> None:
    [problem] = problems(mc("a", {"ignition": {"version": version}}))
    assert problem.code == f"ignition-{code}"
    assert "2.2, 3.0, 3.1, 3.2, 3.3, 3.4, 3.5" in str(problem)


@pytest.mark.parametrize("version", ["2.2.0", "3.0.0", "3.1.0", "3.2.0", "3.3.0", "3.4.0", "3.5.0"])
def test_every_supported_version_is_brought_to_the_current_one(version: str) -> None:
    entry = file("/etc/a") | ({"filesystem": "root"} if version == "2.2.0" else {})
    examined = examine(mc("a", ignition(entry, version=version)))
    assert examined.problems == ()
    assert examined.document is not None
    assert examined.document["ignition"]["version"] == "3.5.0"
    assert examined.document["storage"]["files"][0]["path"] == "/etc/a"


def test_a_wholly_empty_document_and_none_are_accepted() -> None:
    assert problems(mc("a", {})) == []
    assert problems(mc("a")) == []


@pytest.mark.parametrize(
    ("document", "field"),
    [
        (ignition(file("etc/relative")), "spec.config.storage.files[0].path"),
        (ignition(file("/a"), file("/a")), "spec.config.storage.files[1].path"),
        (ignition(units=[{"name": "no-suffix"}]), "spec.config.systemd.units[0].name"),
        (ignition({"path": "/a", "contents": {"source": "data:;base64,%%%"}}), "spec.config.storage.files[0].contents.source"),
        (ignition(users=[{"name": 7}]), "spec.config.passwd.users[0].name"),
    ],
)  # fmt: skip
def test_what_ignition_refuses_is_a_problem_with_its_place(document: dict[str, Any], field: str) -> None:
    fatal = [problem for problem in problems(mc("a", document)) if problem.fatal]
    assert any(problem.field.startswith(field.rpartition(".")[0]) for problem in fatal), fatal


@pytest.mark.parametrize("mode", [0o1000, 0o2755, 0o4755, 0o7777])
@pytest.mark.parametrize("version", ["2.2.0", "3.2.0", "3.5.0"])
def test_modes_above_0777_are_refused_in_every_version(mode: int, version: str) -> None:
    document = ignition({**file("/a"), "mode": mode, "filesystem": "root"}, version=version)
    if version != "2.2.0":
        del document["storage"]["files"][0]["filesystem"]
    mode_problems = [problem for problem in problems(mc("a", document)) if problem.code == "file-mode"]
    assert [problem.field for problem in mode_problems] == ["spec.config.storage.files[0].mode"]
    assert f"{mode:#o}" in mode_problems[0].reason


def test_a_gzip_bomb_is_refused_before_it_fills_the_memory() -> None:
    bomb = dataurl.encode(dataurl.gzip(bytes(40 * 1024 * 1024)))
    document = ignition({"path": "/a", "contents": {"source": bomb, "compression": "gzip"}})
    [problem] = problems(mc("a", document))
    assert problem.code == "ignition-contents-too-large"


def test_a_wrong_hash_is_refused() -> None:
    contents = {"source": "data:,a", "verification": {"hash": "sha256-" + "0" * 64}}
    [problem] = problems(mc("a", ignition({"path": "/a", "contents": contents})))
    assert problem.code == "ignition-hash-mismatch"


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_extensions_on_the_list_are_good(extension: str) -> None:
    assert problems(mc("a", extensions=[extension])) == []


def test_other_extensions_are_refused_also_without_an_ignition_document() -> None:
    [problem] = problems(mc("a", extensions=["sysstat", "nethack"]))
    assert (problem.field, problem.reason) == ("spec.extensions", "nethack is not supported")


@pytest.mark.parametrize(
    "spec",
    [
        {"kernelArguments": "nosmt"},
        {"kernelArguments": [1]},
        {"extensions": {}},
        {"fips": "yes"},
        {"kernelType": []},
        {"config": []},
        {"config": "text"},
        {"osImageURL": 5},
    ],
)
def test_a_field_of_another_type_is_a_problem_and_nothing_else_breaks(spec: dict[str, Any]) -> None:
    assert fields(mc("a", **spec)) == {f"spec.{next(iter(spec))}": "shape"}


def test_an_object_without_a_spec_is_a_problem() -> None:
    assert fields({"kind": "MachineConfig", "metadata": {"name": "a", "labels": {"a": "b"}}}) == {"spec": "shape"}


def test_a_config_without_labels_is_selected_by_nobody_and_says_so() -> None:
    config = mc("a")
    del config["metadata"]["labels"]
    assert fields(config) == {"metadata.labels": "no-role"}


def test_an_unknown_field_is_a_warning_that_names_the_closest() -> None:
    [problem] = problems(mc("a", kernelArgument=["a"]))
    assert problem.severity is Severity.WARNING
    assert "kernelArguments" in problem.way_out


def test_all_problems_are_told_at_once() -> None:
    config = mc("a", ignition({**file("/a"), "mode": 0o4755}), kernelType="x", extensions=["y"])
    assert set(fields(config)) >= {"spec.kernelType", "spec.extensions", "spec.config.storage.files[0].mode"}


REFUSED: dict[str, Any] = {
    "kernelArguments": ["nosmt"],
    "kernelType": "realtime",
    "fips": True,
    "extensions": ["usbguard"],
}


@pytest.mark.parametrize("field", REFUSED)
def test_a_confidential_pool_refuses_the_four_fields_and_names_config_field_and_way_out(field: str) -> None:
    [problem] = problems(mc("99-host", **{field: REFUSED[field]}), CONFIDENTIAL)
    assert (problem.config, problem.field, problem.code) == ("99-host", f"spec.{field}", "confidential")
    assert "confidential pool" in problem.reason
    assert "bake it into the image" in problem.way_out


@pytest.mark.parametrize("field", REFUSED)
def test_a_host_of_pod_vms_may_set_them_with_a_warning(field: str) -> None:
    [problem] = problems(mc("a", **{field: REFUSED[field]}), TrustModel.CONTAINERS_HOST)
    assert (problem.severity, problem.code) == (Severity.WARNING, "host-not-attested")


@pytest.mark.parametrize(
    "neutral",
    [
        {"kernelArguments": []},
        {"kernelArguments": None},
        {"kernelArguments": [" "]},
        {"kernelType": ""},
        {"kernelType": "default"},
        {"fips": False},
        {"extensions": []},
        {"extensions": None},
    ],
)
def test_neutral_values_are_not_refused(neutral: dict[str, Any]) -> None:
    assert problems(mc("a", **neutral), CONFIDENTIAL) == []


@pytest.mark.parametrize(
    "document",
    [
        ignition(kernelArguments={"shouldExist": ["nosmt"]}),
        ignition(kernelArguments={"shouldNotExist": ["quiet"]}),
        ignition(file("/etc/pivot/kernel-args", "ADD nosmt\n")),
        ignition(file("/usr/lib/bootc/kargs.d/10.toml")),
        ignition(file("/lib/bootc/kargs.d/10.toml")),
        ignition(storage={"directories": [{"path": "/usr/lib/bootc/kargs.d"}]}),
        ignition(storage={"links": [{"path": "/usr/lib/bootc/kargs.d/a.toml", "target": "/etc/a"}]}),
        ignition(storage={"links": [{"path": "/opt/k", "target": "/usr/lib/bootc/kargs.d"}]}),
        ignition(storage={"links": [{"path": "/etc/k", "target": "../usr/lib/bootc/kargs.d"}]}),
    ],
)
def test_the_side_doors_to_the_command_line_are_shut_in_a_confidential_pool(document: dict[str, Any]) -> None:
    assert "confidential" in fields(mc("a", document), CONFIDENTIAL).values()
    assert "confidential" not in fields(mc("a", document)).values()


@pytest.mark.parametrize("path", ["/etc/pivot/kernel-args.bak", "/usr/lib/bootc/kargs.d.txt", "/etc/kargs.d/a"])
def test_a_path_that_only_looks_alike_is_good(path: str) -> None:
    assert problems(mc("a", ignition(file(path))), CONFIDENTIAL) == []


WEAK = [
    ["--cipher", "cipher_null-ecb"], ["--cipher=cipher_null"], ["-c", "null"], ["-ccipher_null-ecb"], ["-c=cipher_null"],
    ["-qc", "cipher_null-ecb"], ["-qyccipher_null"], ["--cipher", "aes-xts-plain64", "--cipher", "null"], ["--cipher"],
    ["--key-size", "128"], ["-s64"], ["-s", "x"], ["--type", "luks2", "--cipher=aes-ecb"],
]  # fmt: skip


@pytest.mark.parametrize("options", WEAK)
def test_a_disk_that_its_host_could_read_is_refused_in_a_confidential_pool(options: list[str]) -> None:
    """Pitfall 24: a null cipher looks like encryption."""
    luks = {"luks": [{"name": "data", "device": "/dev/vdb", "options": options}]}
    disk_problems = problems(mc("99-disk", ignition(storage=luks)), CONFIDENTIAL)
    assert {(problem.field, problem.code) for problem in disk_problems} == {
        ("spec.config.storage.luks[0].options", "weak-disk")
    }
    assert "data asks for" in str(disk_problems[0])
    assert "aes-xts-plain64" in str(disk_problems[0])
    assert problems(mc("99-disk", ignition(storage=luks))) == [], "elsewhere it is a matter of taste"


@pytest.mark.parametrize(
    "options",
    [
        [], ["--cipher", "aes-xts-plain64", "--key-size", "512"], ["-c=aes-gcm-random", "--integrity", "aead"],
        ["-hcipher-null"], ["-h", "c"], ["--pbkdf=argon2id", "--", "-c", "null"], ["-s512", "-q"],
    ],
)  # fmt: skip
def test_options_of_a_disk_that_weaken_nothing_are_good(options: list[str]) -> None:
    luks = {"luks": [{"name": "data", "device": "/dev/vdb", "options": options}]}
    assert [
        problem for problem in problems(mc("a", ignition(storage=luks)), CONFIDENTIAL) if problem.code == "weak-disk"
    ] == []


def test_disks_and_luks_of_the_first_boot_are_not_refused() -> None:
    luks = {"luks": [{"name": "root", "device": "/dev/disk/by-partlabel/root"}]}
    assert problems(mc("a", ignition(storage=luks)), CONFIDENTIAL) == []


OWNER = {
    "kind": "KubeletConfig",
    "metadata": {"name": "k", "uid": "u"},
    "spec": {"logLevel": 4},
}


@pytest.mark.parametrize("field", REFUSED)
def test_who_generated_a_config_proves_nothing(field: str) -> None:
    """Attack: a KubeletConfig of the own making, and its config with one of the four fields beside what it generates."""
    made = generate(KUBELET, OWNER, "worker", "1", Owners())
    fits(made, "worker", CONFIDENTIAL)
    made["spec"] = {**made["spec"], field: REFUSED[field]}
    assert [problem.field for problem in problems(made, CONFIDENTIAL)] == [f"spec.{field}"]
    with pytest.raises(BadSettings, match=r"pool worker: .*refused in a confidential pool"):
        fits(made, "worker", CONFIDENTIAL)
    fits(made, "worker", TrustModel.CONTAINERS_HOST)


BOOT_FILES = (
    "/boot/loader/entries/evil.conf", "/boot/grub2/user.cfg", "/boot", "/efi/loader/loader.conf", "/etc/default/grub",
    "/etc/default/grub.d/50.cfg", "/etc/grub.d/40_custom", "/etc/kernel/cmdline", "/etc/kernel/install.d/90-x.install",
    "/usr/lib/kernel/cmdline", "/lib/kernel/cmdline", "/sysroot/boot/loader/entries/a.conf", "/etc/fastness/boot-loader",
)  # fmt: skip


@pytest.mark.parametrize("path", BOOT_FILES)
def test_a_file_that_changes_the_boot_is_refused_like_the_arguments(path: str) -> None:
    refusals = problems(mc("99-boot", ignition(file(path))), CONFIDENTIAL)
    assert [(entry.field, entry.code) for entry in refusals if entry.fatal] == [
        ("spec.config.storage.files[0]", "confidential")
    ]
    assert "changes what the machine boots, which is refused in a confidential pool" in refusals[0].reason
    assert [problem for problem in problems(mc("99-boot", ignition(file(path)))) if problem.fatal] == [], (
        "elsewhere it is allowed"
    )
    target = {"links": [{"path": "/opt/elsewhere", "target": path}]}
    assert [problem.code for problem in problems(mc("a", ignition(storage=target)), CONFIDENTIAL)] == ["confidential"]


@pytest.mark.parametrize(
    "path", ["/bootstrap/x", "/etc/default/grub2-notes", "/etc/kernel-notes", "/opt/boot/a", "/efiles"]
)
def test_a_path_beside_the_boot_is_good(path: str) -> None:
    assert problems(mc("a", ignition(file(path))), CONFIDENTIAL) == []


@pytest.mark.parametrize("group", ["files", "links", "directories"])
def test_what_the_agent_writes_from_pinned_image_sets_is_refused_with_the_way_out(group: str) -> None:
    entry = {"path": PINNED_IMAGES_FILE} | ({"target": "/etc/other"} if group == "links" else {})
    document = {"ignition": {"version": "3.5.0"}, "storage": {group: [entry]}}
    [problem] = problems(mc("99-pins", document))
    assert (problem.field, problem.code, problem.fatal) == (
        f"spec.config.storage.{group}[0].path", "pinned-images", True,
    )  # fmt: skip
    assert "make a PinnedImageSet" in str(problem)
    assert problems(mc("99-mine", ignition(file("/etc/crio/crio.conf.d/51-mine")))) == []


@pytest.mark.parametrize(
    ("clevis", "member"),
    [
        ({"tpm2": True}, "tpm2"), ({"tang": [{"url": "http://tang", "thumbprint": "x"}]}, "tang"),
        ({"custom": {"pin": "sss", "config": "{}"}}, "custom.pin"),
    ],
)  # fmt: skip
def test_a_disk_that_its_host_opens_by_clevis_is_refused_in_a_confidential_pool(clevis: Any, member: str) -> None:
    """The host has the virtual TPM and the network of the initrd: such a disk opens whatever was booted."""
    luks = {"luks": [{"name": "root", "device": "/dev/vdb", "clevis": clevis}]}
    refusals = problems(mc("99-disk", ignition(storage=luks)), CONFIDENTIAL)
    assert [(problem.field, problem.code) for problem in refusals] == [
        (f"spec.config.storage.luks[0].clevis.{member}", "disk-opened-by-host")
    ]
    assert problems(mc("99-disk", ignition(storage=luks))) == [], "elsewhere it is a matter of taste"
