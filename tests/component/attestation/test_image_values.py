"""Values that are computed from images in registries: what is read, what is said, and when it counts for whom."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from fastness.attestation.evidence.checks import Appraisal
from fastness.attestation.live.image_contents import ImageContents, ImageUnreadable
from fastness.attestation.loops.built_images import APPROVED_BY, BuiltImages
from fastness.attestation.loops.image_values import BUILDS, CONFIGS, ImageValues
from fastness.attestation.loops.images import IMAGES, SETS
from fastness.attestation.values.differences import differences
from fastness.attestation.values.pushed_here import PUSHED_HERE, vouch
from fastness.attestation.values.values import ReferenceValues
from fastness.cli.images.show import described
from fastness.formats import json
from fastness.formats.cosign import Signature
from fastness.formats.evidence.efi.signature_lists import SIG_X509
from fastness.formats.tar_stream import Member, MemberKind
from fastness.images import whole_image
from fastness.images.firmware import FirmwareVars
from fastness.images.measure import BootChain, Disk, measure_uki, predict
from fastness.images.platforms import variables_of
from fastness.images.uki import write_uki
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of
from fastness.kube.controllers.fenced import FencedCluster
from fastness.kube.port import DELETE, PatchType
from fastness.record.entry import RecordEntry
from fastness.record.live.door_keys import DoorSigner
from tests.component.attestation.approvals import IMAGE, NAMESPACE, SET, World, approved_image, world_of
from tests.embedded.fixtures import Embedded
from tests.lowering import lowered
from tests.measuredboot import minted
from tests.virtual import SeededEntropy
from tools.release import signing

UKI = write_uki(minted.stub(), minted.sections())
UKI_PATH = "boot/EFI/Linux/os.efi"
EXPECTED = measure_uki(UKI, FirmwareVars.blank(), secure_boot=False).registers


def files(**content: bytes) -> ImageContents:
    named = {path.replace("__", "/"): each for path, each in content.items()}
    return ImageContents({path: Member(path, MemberKind.FILE, len(each), "", each) for path, each in named.items()})


class Registry:
    """A registry of one image, and how often it was read."""

    def __init__(self) -> None:
        self.image = ImageContents({UKI_PATH: Member(UKI_PATH, MemberKind.FILE, len(UKI), "", UKI)})
        self.others: dict[str, ImageContents] = {}
        self.problem: ImageUnreadable | None = None
        self.signed: list[Signature] = []
        self.secrets: list[str] = []

    async def contents(self, image: str, secret: str = "") -> ImageContents:
        self.secrets.append(secret)
        if self.problem is not None:
            raise self.problem
        return self.others.get(image, self.image)

    async def signatures(self, image: str, secret: str = "") -> Sequence[Signature]:
        return self.signed


class Written:
    """A record, and persons that it names."""

    def __init__(self) -> None:
        self.entries: list[RecordEntry] = []

    async def append(self, entry: RecordEntry) -> None:
        self.entries.append(entry)

    async def person(self, resource: str, whats: Sequence[str]) -> str:
        return f"who wrote {resource}"


class Reading(World):
    """The loops of images with one that reads them."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.registry, self.record = Registry(), Written()

    async def committed(self, name: str = "os") -> tuple[str, str, str]:
        entry = await self.condition(IMAGES, name, "Committed", NAMESPACE)
        return entry["status"], entry["reason"], entry["message"]

    async def counting(self, pool: str = "worker") -> ReferenceValues:
        sets = (await self.cluster.list(SETS)).items
        return ReferenceValues.of(sets, self.clock.now(), await self._counting(IMAGES), pool=pool)


@asynccontextmanager
async def reading(embedded: Embedded, **spec: Any) -> AsyncIterator[Reading]:
    async with world_of(Reading, embedded.cluster) as here:
        await here.cluster.create(CONFIDENTIAL_CLUSTER.resource, confidential(**spec))
        for resource in (CONFIDENTIAL_CLUSTER.resource, BUILDS, CONFIGS):
            here.followed.append(resource)
        fenced = FencedCluster(here.cluster, ImageValues.name, ImageValues.writes)
        here.loops.insert(0, ImageValues(fenced, here.informers, here.clock, here.registry))
        fenced = FencedCluster(here.cluster, BuiltImages.name, BuiltImages.writes)
        record: Any = here.record
        here.loops.append(BuiltImages(fenced, here.informers, record, here.clock))
        yield here


def confidential(**spec: Any) -> JsonObject:
    return {
        "apiVersion": CONFIDENTIAL_CLUSTER.api_version, "kind": "ConfidentialCluster", "metadata": {"name": "cluster"},
        "spec": {"mode": "Enforce", "simulated": True, **spec},
    }  # fmt: skip


def bare(name: str = "os", **notes: str) -> JsonObject:
    approval = approved_image(name)
    approval["metadata"]["annotations"] = notes
    return approval


async def vouched(here: Reading, pool: str = "worker", image: str = IMAGE) -> str:
    """The controllers' word for an image that they had built."""
    return vouch(pool, image, await DoorSigner("controllers", here.cluster, here.clock, SeededEntropy(5)).current())


async def built(here: Reading, pool: str = "worker", name: str = "worker-1", note: str | None = None) -> None:
    """A build of the image for a pool, as the loop of builds leaves it; with another note than its own where one is given."""
    word = await vouched(here, pool) if note is None else note
    api = names.API_VERSION
    described = {
        "apiVersion": api, "kind": "MachineOSConfig", "metadata": {"name": pool},
        "spec": {
            "machineConfigPool": {"name": pool}, "imageBuilder": {"imageBuilderType": "Job"},
            "renderedImagePushSecret": {"name": "push"}, "renderedImagePushSpec": f"registry.example/os/{pool}:latest",
        },
    }  # fmt: skip
    await here.cluster.create(CONFIGS, described)
    build = {
        "apiVersion": api, "kind": "MachineOSBuild",
        "metadata": {
            "name": name, "labels": {names.BUILD_POOL_LABEL: pool},
            "annotations": {names.PUSH_SECRET: "push", PUSHED_HERE: word, names.MADE_OF: "00-worker,50-chrony"},
        },
        "spec": {
            "machineConfig": {"name": f"rendered-{pool}-0123456789"}, "machineOSConfig": {"name": pool},
            "renderedImagePushSpec": f"registry.example/os/{pool}:{name}",
        },
    }  # fmt: skip
    await here.cluster.create(BUILDS, build)
    done = {
        "type": "Succeeded", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    status = {"status": {"conditions": [done], "digestedImagePushSpec": IMAGE}}
    await here.cluster.patch(BUILDS, name, status, PatchType.MERGE, "", here.status)


async def test_an_approval_by_digest_is_enough_and_says_which_file_gave_the_values(embedded_server: Embedded) -> None:
    async with reading(embedded_server) as here:
        await here.cluster.create(IMAGES, bare())
        await here.settle()
        status, reason, message = await here.committed()
        assert (status, reason) == ("True", "ImageCommitted")
        assert "computed from /boot/EFI/Linux/os.efi" in message
        assert "snp: the launch measurement is of the firmware" in message
        values = {value["name"]: value for value in (await here.cluster.get(SETS, SET))["spec"]["values"]}
        assert values["tpm_pcr4"]["value"] == EXPECTED[4].hex()
        assert values["tpm_pcr11"]["note"] == "computed from /boot/EFI/Linux/os.efi"
        assert (await here.counting()).query("tpm_pcr11") == [EXPECTED[11].hex()]


def with_loader(loader: bytes) -> ImageContents:
    path = "usr/lib/systemd/boot/efi/systemd-bootx64.efi"
    members = {UKI_PATH: UKI, path: loader}
    return ImageContents({name: Member(name, MemberKind.FILE, len(each), "", each) for name, each in members.items()})


async def test_values_hold_under_boot_loaders_of_other_approved_images_for_as_long_as_those_are_approved(
    embedded_server: Embedded,
) -> None:
    async with reading(embedded_server) as here:
        newer, other = minted.loader("252.40-1", text=b"newer"), IMAGE.replace("sha256:", "sha256:ff")[: len(IMAGE)]
        here.registry.image, here.registry.others = with_loader(minted.loader()), {other: with_loader(newer)}
        own, turned, alone = (
            predict(BootChain(UKI, loader, Disk.UNKNOWN), FirmwareVars.blank(), secure_boot=False).registers[4].hex()
            for loader in (minted.loader(), newer, b"")
        )
        await here.cluster.create(IMAGES, bare())
        await here.settle()
        assert set((await here.counting()).query("tpm_pcr4") or ()) == {own, alone}
        approval = bare("newer")
        approval["spec"]["image"] = other
        await here.cluster.create(IMAGES, approval)
        for _ in range(3):
            await here.settle()
        first = {
            value["value"]
            for value in (await here.cluster.get(SETS, SET))["spec"]["values"]
            if value["name"] == "tpm_pcr4"
        }
        assert first == {own, turned, alone}
        await here.cluster.delete(IMAGES, "newer", NAMESPACE, DELETE)
        for _ in range(3):
            await here.settle()
        assert set((await here.counting()).query("tpm_pcr4") or ()) == {own, alone}


async def test_a_sealed_build_says_with_its_values_which_root_it_names_and_which_configs_it_was_made_of(
    embedded_server: Embedded,
) -> None:
    async with reading(embedded_server) as here:
        line = f"composefs.digest=v1-sha512-12:{'a' * 128} quiet".encode()
        uki = write_uki(minted.stub(), minted.sections(cmdline=line))
        here.registry.image = ImageContents({UKI_PATH: Member(UKI_PATH, MemberKind.FILE, len(uki), "", uki)})
        await built(here)
        await here.cluster.create(IMAGES, bare())
        await here.settle()
        measured = measure_uki(uki, FirmwareVars.blank(), secure_boot=False).registers
        claims = {"tpm": {f"pcr{pcr:02}": value.hex() for pcr, value in measured.items()}}
        appraisal = Appraisal("tpm", (), claims, None)
        *_, image = differences(appraisal, await here.counting(), refused=False)
        assert (image.name, image.code) == ("approved image", "ok")
        assert image.seen.startswith(IMAGE)
        assert f"it names the root {'a' * 128}" in image.hint
        assert "build worker-1 of rendered-worker-0123456789 (00-worker, 50-chrony)" in image.hint
        facts = described(await here.cluster.get(SETS, SET), [])
        assert (facts["root"], facts["built by"].split()[0]) == ("a" * 128, "worker-1")


async def test_an_image_is_read_once_until_the_method_changes(
    embedded_server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with reading(embedded_server) as here:
        await here.cluster.create(IMAGES, bare())
        await here.settle()
        await here.settle()
        assert len(here.registry.secrets) == 1
        monkeypatch.setattr("fastness.attestation.values.computed.METHOD", f"{whole_image.METHOD}-next")
        await here.settle()
        assert len(here.registry.secrets) == 2


async def test_the_keys_of_the_firmware_are_part_of_the_values_and_other_keys_mean_other_values(
    embedded_server: Embedded,
) -> None:
    signer, other = minted.Signer("db"), minted.Signer("other")
    image = signer.sign(UKI)
    firmware = FirmwareVars(minted.keys(minted.siglist(SIG_X509, signer.der)))
    both = FirmwareVars(minted.keys(minted.siglist(SIG_X509, other.der, signer.der)))

    def platform(variables: FirmwareVars) -> JsonObject:
        return {"platforms": [{"name": "rack", "secureBoot": True, "variables": variables_of(variables)}]}

    async with reading(embedded_server, images=platform(firmware)) as here:
        here.registry.image = ImageContents({UKI_PATH: Member(UKI_PATH, MemberKind.FILE, len(image), "", image)})
        await here.cluster.create(IMAGES, bare())
        await here.settle()
        first = measure_uki(image, firmware, secure_boot=True).registers
        assert (await here.counting()).query("tpm_pcr7") == [first[7].hex()]
        assert (await here.counting()).query("tpm_pcr14") == [first[14].hex()]
        await lowered(here.cluster, {"images": platform(both)})
        await here.settle()
        second = measure_uki(image, both, secure_boot=True).registers
        assert (await here.counting()).query("tpm_pcr7") == [second[7].hex()] != [first[7].hex()]


async def test_a_registry_that_does_not_answer_is_asked_again_and_the_condition_says_why(
    embedded_server: Embedded,
) -> None:
    async with reading(embedded_server) as here:
        here.registry.problem = ImageUnreadable("registry.example cannot be asked: timed out")
        await here.cluster.create(IMAGES, bare())
        await here.settle()
        status, reason, message = await here.committed()
        assert (status, reason) == ("False", "ComputationFailed")
        assert "cannot be asked: timed out" in message
        assert "pull secret" in message
        here.registry.problem = None
        await here.settle()
        assert (await here.committed())[:2] == ("True", "ImageCommitted")


async def test_values_stay_while_a_registry_is_away_after_the_method_changed(
    embedded_server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with reading(embedded_server) as here:
        await here.cluster.create(IMAGES, bare())
        await here.settle()
        here.registry.problem = ImageUnreadable("away")
        monkeypatch.setattr("fastness.attestation.values.computed.METHOD", f"{whole_image.METHOD}-next")
        await here.settle()
        assert (await here.counting()).query("tpm_pcr11") == [EXPECTED[11].hex()]


@pytest.mark.parametrize(
    ("image", "words"),
    [
        (files(), "no unified kernel image"),
        (files(boot__EFI__Linux__os_efi=b"x"), "no unified kernel image"),
        (ImageContents({UKI_PATH: Member(UKI_PATH, MemberKind.FILE, 3, "", b"MZx")}), "/boot/EFI/Linux/os.efi:"),
        (ImageContents({"boot": Member("boot", MemberKind.LINK, 0, "usr/evil")}), "/boot is a link to usr/evil"),
    ],
)
async def test_an_image_of_which_nothing_can_be_said_has_no_values_and_says_what_to_do(
    embedded_server: Embedded, image: ImageContents, words: str
) -> None:
    async with reading(embedded_server) as here:
        here.registry.image = image
        await here.cluster.create(IMAGES, bare())
        await here.settle()
        status, reason, message = await here.committed()
        assert (status, reason) == ("False", "ComputationFailed")
        assert words in message
        assert (await here.counting()).empty


async def test_bytes_that_are_no_good_are_not_read_again(embedded_server: Embedded) -> None:
    async with reading(embedded_server) as here:
        here.registry.problem = ImageUnreadable("a layer leads out of the image", "Build it anew.", lasting=True)
        await here.cluster.create(IMAGES, bare())
        await here.settle()
        await here.settle()
        assert len(here.registry.secrets) == 1
        assert "leads out of the image. Build it anew." in (await here.committed())[2]


async def test_what_a_person_measured_goes_before_what_is_computed(embedded_server: Embedded) -> None:
    async with reading(embedded_server) as here:
        await here.cluster.create(IMAGES, approved_image())
        await here.settle()
        assert here.registry.secrets == []
        assert (await here.counting()).query("tpm_pcr4") == [f"{4:064x}"]


def labelled() -> Mapping[str, str]:
    manifest = measure_uki(UKI, FirmwareVars.blank(), secure_boot=False).to_manifest()
    return {"org.coreos.pcrs": json.canonical(manifest).decode()}


async def test_a_label_counts_where_a_person_approved_the_image_and_its_files_tell_nothing(
    embedded_server: Embedded,
) -> None:
    async with reading(embedded_server) as here:
        here.registry.image = ImageContents({}, labelled())
        await here.cluster.create(IMAGES, bare())
        await here.settle()
        assert "label org.coreos.pcrs" in (await here.committed())[2]
        assert (await here.counting()).query("tpm_pcr11") == [EXPECTED[11].hex()]


async def test_what_a_build_says_of_itself_in_a_label_never_counts(embedded_server: Embedded) -> None:
    async with reading(embedded_server) as here:
        here.registry.image = ImageContents({}, labelled())
        await built(here)
        await here.cluster.create(IMAGES, bare())
        await here.settle()
        assert (await here.committed())[:2] == ("False", "ComputationFailed")
        assert (await here.counting()).empty


async def test_a_build_has_values_that_count_for_nothing_until_somebody_approves_it(embedded_server: Embedded) -> None:
    async with reading(embedded_server) as here:
        await built(here)
        await here.settle()
        values = await here.cluster.get(SETS, SET)
        assert values["spec"]["pools"] == ["worker"]
        assert len(values["spec"]["values"]) > 4
        assert (await here.condition(SETS, SET, "Published"))["reason"] == "NotApproved"
        assert (await here.counting()).empty
        assert (await here.cluster.list(IMAGES)).items == []
        assert here.registry.secrets == ["push"], "a build is read with the secret that it was pushed with"
        await here.cluster.create(IMAGES, bare())
        await here.settle()
        assert (await here.counting()).query("tpm_pcr11") == [EXPECTED[11].hex()]
        assert (await here.counting("gpu")).empty, "values of a build count for no other pool"


async def test_values_of_a_build_are_its_pools_alone_whatever_the_approval_says(embedded_server: Embedded) -> None:
    async with reading(embedded_server) as here:
        await built(here)
        await here.cluster.create(IMAGES, bare(**{"fastness.dev/pools": "gpu"}))
        await here.settle()
        status, _, message = await here.committed()
        assert status == "False"
        assert "was built for pool worker, and its approval is for gpu" in message
        assert (await here.counting()).empty
        assert (await here.counting("gpu")).empty


async def test_what_was_built_for_a_pool_stays_its_own_when_the_build_is_gone(embedded_server: Embedded) -> None:
    async with reading(embedded_server) as here:
        await built(here)
        await here.cluster.create(IMAGES, bare())
        await here.settle()
        await here.cluster.delete(BUILDS, "worker-1", "", DELETE)
        await here.settle()
        assert not (await here.counting()).empty
        assert (await here.counting("gpu")).empty


async def test_values_of_a_build_that_nobody_approved_go_with_it(embedded_server: Embedded) -> None:
    async with reading(embedded_server) as here:
        await built(here)
        await here.settle()
        await here.cluster.delete(BUILDS, "worker-1", "", DELETE)
        await here.settle()
        assert (await here.cluster.list(SETS)).items == []


async def test_a_standing_approval_approves_builds_of_its_pools_once_and_of_no_other(embedded_server: Embedded) -> None:
    async with reading(embedded_server) as here:
        await built(here)
        await here.settle()
        await lowered(here.cluster, {"images": {"approval": "BuiltHere", "pools": ["gpu"]}})
        await here.settle()
        assert (await here.cluster.list(IMAGES)).items == []
        await lowered(here.cluster, {"images": {"approval": "BuiltHere", "pools": ["gpu", "worker"]}})
        await here.settle()
        (approval,) = (await here.cluster.list(IMAGES)).items
        assert annotations_of(approval)[APPROVED_BY] == "ConfidentialCluster.spec.images"
        assert not (await here.counting()).empty
        assert (await here.counting("gpu")).empty
        await here.cluster.delete(IMAGES, approval["metadata"]["name"], NAMESPACE, DELETE)
        await here.settle()
        assert (await here.cluster.list(IMAGES)).items == [], "what a person took back stays taken back"
        assert (await here.counting()).empty


async def test_the_record_says_who_wrote_a_layer_and_what_approved_the_image(embedded_server: Embedded) -> None:
    async with reading(embedded_server, images={"approval": "BuiltHere", "pools": ["worker"]}) as here:
        await built(here)
        await here.settle()
        made, approved = here.record.entries
        assert (made.what, approved.what) == ("image-built", "image-approved")
        assert made.detail["layer"] == "worker by who wrote machineosconfigs/worker"
        assert approved.detail["by"] == "ConfidentialCluster.spec.images"
        await here.settle()
        assert len(here.record.entries) == 2


def signer(key: signing.PrivateKey, **more: Any) -> JsonObject:
    return {"name": "release", "key": signing.public_pem(key).decode(), **more}


def signature(key: signing.PrivateKey, digest: str) -> Signature:
    document = signing.payload(digest, "registry.example/os")
    return Signature(document, base64.b64decode(signing.sign(key, document)))


async def test_where_a_signer_is_asked_for_values_wait_for_the_signature_of_this_very_image(
    embedded_server: Embedded,
) -> None:
    key, other = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    digest = IMAGE.partition("@")[2]
    async with reading(embedded_server, images={"signers": [signer(key)]}) as here:
        await here.cluster.create(IMAGES, approved_image())
        for useless in ([], [signature(other, digest)], [signature(key, f"sha256:{'0' * 64}")]):
            here.registry.signed = useless
            await here.settle()
            status, reason, message = await here.committed()
            assert (status, reason) == ("False", "SignatureMissing")
            assert "signature by release" in message
            assert "cosign sign" in message
            assert (await here.counting()).empty
        here.registry.signed = [signature(other, digest), signature(key, digest)]
        await here.settle()
        assert (await here.committed())[:2] == ("True", "ImageCommitted")
        another = {"images": {"signers": [signer(other)]}}
        here.registry.signed = []
        await lowered(here.cluster, another)
        await here.settle()
        assert (await here.committed())[1] == "SignatureMissing", "what one key signed says nothing about the next"


async def test_a_signer_of_other_images_is_not_asked_for(embedded_server: Embedded) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    async with reading(embedded_server, images={"signers": [signer(key, images=["registry.example/other"])]}) as here:
        await here.cluster.create(IMAGES, approved_image())
        await here.settle()
        assert (await here.committed())[:2] == ("True", "ImageCommitted")
