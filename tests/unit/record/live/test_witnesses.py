"""What a witness answers is bounded, whoever it is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from fastness.crypto.cosignatures import WitnessSigner
from fastness.crypto.notes import NoteSigner
from fastness.crypto.secret import SecretBytes
from fastness.formats.tlog import Checkpoint
from fastness.keys.errors import WitnessFailed
from fastness.protocol.witness import MAX_ANSWER
from fastness.record.live.log import LogView, extend
from fastness.record.live.tiles import FileTiles
from fastness.record.live.witnesses import Witness, Witnesses

KEY = WitnessSigner("witness.example/w1", SecretBytes(bytes(32))).verifier
PIECES = 1000


class Endless(httpx.AsyncByteStream):
    """An answer far longer than any cosignature; counts what was taken of it."""

    def __init__(self) -> None:
        self.taken = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for _ in range(PIECES):
            self.taken += 1
            yield bytes(MAX_ANSWER)


async def test_an_answer_without_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    answer, tiles = Endless(), FileTiles(tmp_path)
    root = await extend(tiles, 0, [b"entry"])
    note = NoteSigner("log.example/record", SecretBytes(bytes(32))).sign(
        Checkpoint("log.example/record", 1, root).text()
    )
    transport = httpx.MockTransport(lambda _: httpx.Response(200, stream=answer))
    async with httpx.AsyncClient(transport=transport) as client:
        with pytest.raises(WitnessFailed, match="answers without end"):
            await Witnesses().cosign(client, Witness("w1", "http://witness.example", KEY), note, LogView(tiles, 1))
    assert answer.taken == 2
