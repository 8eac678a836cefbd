"""Init-data as user-data: the disk that holds it, and the file that keeps it for this boot."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastness.agent.boot.boot import BootRefused
from fastness.agent.boot.enrol import RetryBudget
from fastness.agent.boot.user_data import Given, ask_of_host
from fastness.agent.host.errors import BadUserData, ReportFailure
from fastness.agent.host.tee.configfs_tsm import TsmAttester, TsmReports
from fastness.agent.host.tee.this_boot import InitDataFile, RuntimeLog
from fastness.agent.host.user_data import places_of
from fastness.agent.host.user_data.init_data import MAGIC, MAX_DOCUMENT, InitDataDisk
from fastness.formats.initdata import InitData, write_init_data
from tests.initdisks import disk, document, packed, user_data
from tests.virtual import SeededEntropy, VirtualClock

GOOD = document(user_data())


def patience() -> RetryBudget:
    return RetryBudget(VirtualClock(), SeededEntropy(1), 0)


def guest(place: Path) -> TsmAttester:
    """A confidential guest whose files are in a directory."""
    return TsmAttester(
        TsmReports(place / "reports"), place / "identity", SeededEntropy(2), "snp",
        runtime_log=RuntimeLog(place / "measured"), init_data=InitDataFile(place / "run" / "init-data"),
    )  # fmt: skip


@pytest.mark.parametrize("name", ["vdb", "sdc"])
async def test_the_disk_is_known_by_how_it_begins(tmp_path: Path, name: str) -> None:
    assert await disk(tmp_path, packed(GOOD.text), name).read() == GOOD


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (MAGIC, "init-data-truncated"),
        (MAGIC + (1 << 40).to_bytes(8, "little") + bytes(512), "less than it says"),
        (MAGIC + (9).to_bytes(8, "little") + b"not gzip!", "init-data-gzip"),
        (packed(bytes(MAX_DOCUMENT + 1)), "init-data-bomb"),
        (packed(b"\xff\xfe"), "not UTF-8"),
        (packed(b"fjt_secret = ["), "init-data-syntax"),
    ],
)
async def test_a_disk_that_no_agent_reads_is_refused_without_a_word_of_it(
    tmp_path: Path, content: bytes, says: str
) -> None:
    with pytest.raises(BadUserData, match=says) as refused:
        await disk(tmp_path, content).read()
    assert "fjt_secret" not in f"{refused.value.message}{refused.value.hint}"


async def test_two_disks_are_refused_and_none_or_one_for_others_is_no_user_data(tmp_path: Path) -> None:
    assert await disk(tmp_path, bytes(512)).read() is None
    assert await InitDataDisk(blocks=tmp_path / "none", devices=tmp_path).read() is None
    assert await disk(tmp_path, packed(write_init_data("sha256", {"aa.toml": ""}).encode())).read() is None
    two = disk(tmp_path, packed(GOOD.text))
    disk(tmp_path, packed(GOOD.text), "vdc")
    with pytest.raises(BadUserData, match="2 disks"):
        await two.read()


def test_where_it_can_be_it_comes_before_what_nobody_measures() -> None:
    for platform in ("qemu", "kubevirt"):
        assert isinstance(places_of(platform)[0], InitDataDisk)


async def test_the_document_is_kept_for_every_proof_of_this_boot(tmp_path: Path) -> None:
    machine = guest(tmp_path)
    assert await machine.init_data() == ""
    ask = await ask_of_host([disk(tmp_path, packed(GOOD.text))], machine, "", patience())
    assert (ask.pool, ask.server, ask.ticket.reveal()) == ("worker", "https://a.example", "fjt_secret")
    place = tmp_path / "run" / "init-data"
    assert place.stat().st_mode & 0o777 == 0o600
    # Another program of this boot, while the disk shows another document.
    disk(tmp_path, packed(document(user_data(pool="infra")).text))
    assert await guest(tmp_path).init_data() == GOOD.text.decode()


async def test_an_attempt_that_takes_user_data_from_elsewhere_leaves_no_document(tmp_path: Path) -> None:
    machine = guest(tmp_path)
    await ask_of_host([disk(tmp_path, packed(GOOD.text))], machine, "", patience())
    await ask_of_host([Given(user_data(pool="infra").encode())], machine, "", patience())
    assert await machine.init_data() == ""


async def test_a_link_in_place_of_the_document_is_not_followed(tmp_path: Path) -> None:
    place = tmp_path / "run" / "init-data"
    place.parent.mkdir()
    place.symlink_to(tmp_path / "vda")
    with pytest.raises(ReportFailure, match="cannot be read"):
        await guest(tmp_path).init_data()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (document(user_data(), **{"aa.toml": "x"}), "refused at /data: there are other entries"),
        (document('{"ignition":{"version":"3.2.0"},"storage":{}}'), "refused at /storage: files"),
    ],
)
async def test_the_strict_reader_reads_it(tmp_path: Path, content: InitData, says: str) -> None:
    machine = guest(tmp_path)
    with pytest.raises(BootRefused, match=says) as refused:
        await ask_of_host([disk(tmp_path, packed(content.text))], machine, "", patience())
    assert refused.value.reason == "user-data-refused"
    assert await machine.init_data() == ""
