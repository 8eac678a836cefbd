"""Somebody who may write ResourceBindings, and nothing else, cannot hold up the broker with a pattern."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.component.release.broker.brokered_cluster import brokered_cluster, subject, until
from tests.component.rights import somebody

BINDINGS = "/apis/fastness.dev/v1alpha1/resourcebindings"
STATUS = "default/attestation-status/status"
HOSTILE = "*a*a*a*a*a*a*a*a*b"
LONG = "a" * 128


async def test_a_pattern_with_many_stars_delays_nobody(tmp_path: Path) -> None:
    async with brokered_cluster(tmp_path) as here:
        guest, other = await here.guest(subject(name="a")), await here.guest(subject(name="b"))
        for machine in (guest, other):
            assert (await machine.attest()).status_code == 200
        assert here.server is not None
        author = await somebody(here.server, tmp_path, "binder", "fastness.dev", ["resourcebindings"], ["create"])
        async with author:
            for number in range(20):
                spec = {"resource": f"{HOSTILE}{number}/{HOSTILE}/{HOSTILE}", "subjects": {"pools": ["worker"]}}
                binding = {
                    "apiVersion": "fastness.dev/v1alpha1", "kind": "ResourceBinding",
                    "metadata": {"name": f"slow-{number}"}, "spec": spec,
                }  # fmt: skip
                assert (await author.post(BINDINGS, json=binding)).status_code == 201
            open_door = {"resource": "default/seen/*", "subjects": {"pools": ["worker"]}}
            last = {
                "apiVersion": "fastness.dev/v1alpha1", "kind": "ResourceBinding",
                "metadata": {"name": "last"}, "spec": open_door,
            }  # fmt: skip
            assert (await author.post(BINDINGS, json=last)).status_code == 201

        async def arrived() -> bool:
            return bool((await guest.get("default/seen/nothing")).status_code == 404)

        await until(arrived)
        clock = asyncio.get_running_loop().time
        began = clock()
        refused, answer = await asyncio.gather(guest.get(f"{LONG}/{LONG}/{LONG}"), other.get(STATUS))
        assert (refused.status_code, answer.status_code) == (403, 200)
        assert clock() - began < 5
