"""A rendered config as states: modes, owners, masks, drop-ins, keys, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.agent.apply.accounts import Account, Accounts, password_hash, read_accounts, with_password_hash
from fastness.agent.apply.desired import Desired, Unit, desired
from fastness.agent.errors import BadConfig
from fastness.agent.host.states import ABSENT, Absent, File, Link
from fastness.formats import data_url as dataurl

ACCOUNTS = Accounts({"core": Account(1000, 1001, "/var/home/core"), "bob": Account(7, 8, "/b")}, {"staff": 50})


def of(accounts: Accounts = ACCOUNTS, **spec: Any) -> Desired:
    return desired({"metadata": {"name": "rendered-x"}, "spec": spec}, accounts)


def files(*entries: dict[str, Any]) -> Desired:
    return of(config={"storage": {"files": list(entries)}})


def test_defaults_are_those_of_a_plain_file_of_root() -> None:
    assert files({"path": "/a"}).paths["/a"].state == File(b"", 0o644, 0, 0)


def test_content_mode_and_owners_come_from_the_entry() -> None:
    packed = dataurl.encode(dataurl.gzip(b"text"))
    entry = {"path": "/a", "mode": 0o600, "user": {"name": "bob"}, "group": {"name": "staff"},
             "contents": {"source": packed, "compression": "gzip", "verification": {"hash": None}}}  # fmt: skip
    entry["contents"] = {"source": packed, "compression": "gzip"}
    assert files(entry).paths["/a"].state == File(b"text", 0o600, 7, 50)
    assert files({"path": "/a", "user": {"id": 3}, "group": {"id": 4}}).paths["/a"].state == File(b"", 0o644, 3, 4)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"path": "/a", "append": [{"source": "data:,x"}]}, "append"),
        ({"path": "/a", "mode": 0o4755}, "0777"),
        ({"path": "/a", "user": {"name": "nobody-here"}}, "nobody-here"),
        ({"path": "/a", "group": {"name": "none"}}, "none"),
        ({"path": "/a", "contents": {"source": "https://example.com/x"}}, "not in the config"),
        ({"path": "/a", "contents": {"source": "data:;base64,%%%"}}, "base64"),
        ({"path": "/a", "contents": {"source": "data:,x", "compression": "gzip"}}, "gzip"),
        ({"path": "/a", "contents": {"source": "data:,x", "verification": {"hash": "sha256-" + "0" * 64}}}, "hash"),
    ],
)
def test_a_file_that_cannot_be_carried_out_is_refused_by_name(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(BadConfig, match=message) as raised:
        files(entry)
    assert raised.value.hint
    if "user" not in entry and "group" not in entry:
        assert "/a" in raised.value.message


def unit(**more: Any) -> Desired:
    return of(config={"systemd": {"units": [{"name": "a.service", **more}]}})


UNIT = "/etc/systemd/system/a.service"


def test_a_masked_unit_is_a_link_whatever_its_contents() -> None:
    desired = unit(mask=True, contents="x", enabled=True)
    assert desired.paths[UNIT].state == Link("/dev/null")
    assert desired.units["a.service"] == Unit(True, True, False)


def test_an_explicit_unmask_takes_the_link_away_and_silence_does_not() -> None:
    assert unit(mask=False).paths[UNIT].state == ABSENT
    assert UNIT not in unit(enabled=True).paths


def test_drop_ins_have_places_of_their_own_and_an_empty_one_goes() -> None:
    desired = unit(contents="[Service]\n", dropins=[{"name": "1.conf", "contents": "x"}, {"name": "2.conf"}])
    assert desired.paths[f"{UNIT}.d/1.conf"].state == File(b"x", 0o644, 0, 0)
    assert isinstance(desired.paths[f"{UNIT}.d/2.conf"].state, Absent)
    assert set(desired.unit_paths("a.service")) == {UNIT, f"{UNIT}.d/1.conf", f"{UNIT}.d/2.conf"}


@pytest.mark.parametrize("entry", [{"name": "../x.service", "contents": "x"},
                                   {"name": "a.service", "dropins": [{"name": "../../x", "contents": "x"}]}])  # fmt: skip
def test_a_unit_name_is_no_path(entry: dict[str, Any]) -> None:
    with pytest.raises(BadConfig, match="slash"):
        of(config={"systemd": {"units": [entry]}})


def test_keys_of_all_entries_of_core_are_one_private_file_below_its_home() -> None:
    users = [{"name": "core", "sshAuthorizedKeys": ["one"], "passwordHash": "h1"},
             {"name": "other", "sshAuthorizedKeys": ["no"]}, {"name": "core", "sshAuthorizedKeys": ["two"]}]  # fmt: skip
    desired = of(config={"passwd": {"users": users}})
    target = desired.paths["/var/home/core/.ssh/authorized_keys.d/ignition"]
    assert target.state == File(b"one\ntwo\n", 0o600, 1000, 1001)
    assert (target.directory_mode, target.own_directories) == (0o700, True)
    assert desired.password == "h1"


def test_the_deployment_has_split_arguments_and_no_neutral_kernel() -> None:
    desired = of(kernelArguments=['a "b c"', "d"], osImageURL="img", kernelType="default", extensions=["x", "x"])
    assert desired.deployment == ("img", ("a", '"b c"', "d"), "", ("x",))


PASSWD = File(b"root:x:0:0::/root:/bin/sh\nbroken\n:x:1:1:::\ncore:x:1000:1001::/:/bin/sh\nbad:x:a:b::/x:/y\n")


def test_accounts_are_those_of_the_machine_and_nonsense_is_skipped() -> None:
    accounts = read_accounts(PASSWD, File(b"staff:x:50:\nx\n"))
    assert (set(accounts.users), accounts.groups) == ({"root", "core"}, {"staff": 50})
    assert accounts.home("core") == "/home/core"
    assert (accounts.uid("root"), accounts.gid("root")) == (0, 0)
    assert read_accounts(ABSENT, ABSENT) == Accounts()


def test_a_hash_replaces_one_field_and_keeps_every_other_byte() -> None:
    shadow = File(b"root:*:1::::::\ncore:old:2:0:9:7:::\n\xff\n", 0o600, 0, 42)
    changed = with_password_hash(shadow, "core", "new")
    assert changed == File(b"root:*:1::::::\ncore:new:2:0:9:7:::\n\xff\n", 0o600, 0, 42)
    assert password_hash(changed, "core") == "new"
    assert password_hash(changed, "alice") is None
    with pytest.raises(BadConfig, match="alice"):
        with_password_hash(shadow, "alice", "x")
