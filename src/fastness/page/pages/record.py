"""The record: what was decided and released, in order, and the proof of one entry."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import datetime

from fastness.formats import json
from fastness.formats.words import counted
from fastness.kinds.kind import JsonObject
from fastness.page.markup import Child, Markup, join, tag
from fastness.page.pages.layout import Frame, PageFrame, page
from fastness.page.pages.parts import advice, badge, facts, folded, section, short, table, when
from fastness.page.record import Proved
from fastness.record.entry import because
from fastness.record.live.reader import whole_note


def record_section(
    checkpoint: JsonObject | None, entries: Sequence[JsonObject], now: datetime, witnessed: str = ""
) -> Markup:
    """The checkpoint and a page of entries, newest first; `witnessed` is what the cluster says of its witnesses."""
    if checkpoint is None:
        return section("Record", tag("p", "There is no checkpoint yet.", class_="none"), id_="record")
    spec = checkpoint["spec"]
    oldest = min((int(entry["index"]) for entry in entries), default=0)
    older = (
        tag("p", tag("a", "Older entries", href=f"/trust?before={oldest}#record", class_="button")) if oldest else None
    )
    return section(
        "Record",
        facts([
            ("Checkpoint", join(f"{spec.get('size')} entries, signed ", when(str(spec.get("time", "")), now))),
            ("Root", tag("code", str(spec.get("rootHash", "")))), ("Origin", str(spec.get("origin", ""))),
            ("Witnesses", witnessed or "none: nobody outside would see that this record was rolled back"),
        ]),
        table("Newest entries", _HEADS, (_entry(entry, now) for entry in entries)),
        older,
        folded("Verify it yourself", advice(_VERIFY), tag("p", "The signed note:"), _note(checkpoint)),
        id_="record",
    )  # fmt: skip


_HEADS = ("Entry", "When", "What", "Who", "Resource", "Because of")
_VERIFY = (
    "fastness audit key    # the keys, to be kept in a safe place",
    "fastness audit export DIR",
    "fastness audit verify DIR --key KEY    # offline, by anybody; --witness KEY for each witness",
)


def entry_page(frame: Frame, proved: Proved, checkpoint: JsonObject) -> bytes:
    """One entry, and why it cannot have been put there later."""
    spec, entry = checkpoint["spec"], proved.entry
    lead = tag("span", badge("verified" if proved.holds else "not verified"), " ", _holds(proved, spec))
    path = table(
        "From the entry to the root", ("Step", "Side", "Hash"),
        ((str(step), side, tag("code", _text(digest))) for step, (side, digest) in enumerate(proved.path, 1)),
    )  # fmt: skip
    fix = advice((
        f"fastness audit prove {proved.index} > proof.json    # this entry with its proof and the signed checkpoint",
        "fastness audit verify proof.json --key KEY    # offline, by a verifier of its own",
    ))  # fmt: skip
    return page(
        frame, PageFrame(f"Entry {proved.index}", "/trust", "", back=("/trust#record", "Record"), lead=lead),
        section("What it says", facts([
            ("What", str(entry.get("what", ""))), ("When", when(str(entry.get("time", "")), frame.now)),
            ("Who", short(str(entry.get("who", "")))), ("Resource", str(entry.get("resource", ""))),
            ("Because of", because(entry)),
        ]), folded("All of it", tag("pre", json.encode(entry).decode("utf-8", "replace"), tabindex=0))),
        section("Proof", facts([
            ("Leaf", tag("code", _text(proved.leaf))), ("Root", tag("code", _text(proved.root))),
            ("Checkpoint", f"{spec.get('size')} entries, {spec.get('time', '')}"),
        ]), path, fix, folded("The signed note", _note(checkpoint))),
    )  # fmt: skip


def _holds(proved: Proved, spec: JsonObject) -> str:
    over = counted(int(spec.get("size") or 0), "entry", "entries")
    if proved.holds:
        return f"{counted(len(proved.path), 'hash leads', 'hashes lead')} from the entry to the root that was signed over {over}."
    return f"The record does not lead to the root that was signed over {over}. Compare it with a backup."


def _entry(entry: JsonObject, now: datetime) -> tuple[Child, ...]:
    index = int(entry["index"])
    return (
        tag("a", f"{index}", href=f"/record/{index}", aria_label=f"Entry {index} with its proof"),
        when(str(entry.get("time", "")), now), str(entry.get("what", "")), short(str(entry.get("who", ""))),
        str(entry.get("resource", "")) or "–", because(entry) or "–",
    )  # fmt: skip


def _note(checkpoint: JsonObject) -> Markup:
    return tag("pre", whole_note(checkpoint), tabindex=0)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
