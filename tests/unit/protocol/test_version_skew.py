"""An older agent meets a newer control plane: it says which version it reads, and guesses nothing.

The reverse, a newer agent before older doors, is in tests/unit/release/test_handshake.py.
"""

from __future__ import annotations

import pytest

from fastness.crypto.secret import SecretBytes
from fastness.formats import json
from fastness.formats.errors import FormatError
from fastness.protocol.disk_keys import BadDiskAnswer, read_answer
from fastness.protocol.user_data import parse_user_data


@pytest.mark.parametrize("version", [2, 0, "1", None])
def test_an_agent_does_not_guess_what_a_newer_broker_says_of_its_disk(version: object) -> None:
    answer = {
        "version": version,
        "volume": "var",
        "keys": [],
        "expect": None,
        "settings": {},
        "opening": 1,
        "recorded": {},
    }
    with pytest.raises(BadDiskAnswer, match="version 1"):
        read_answer(SecretBytes(json.encode(answer)), "var")


@pytest.mark.parametrize("version", ["fastness.dev/userdata/v2", "fastness.dev/userdata/v10", "", 1])
def test_an_agent_does_not_guess_what_newer_user_data_says(version: object) -> None:
    document = {"version": version, "pool": "worker", "ticket": "x", "server": "https://cluster.example:8000"}
    with pytest.raises(FormatError, match=r"fastness\.dev/userdata/v1"):
        parse_user_data(json.encode(document))
