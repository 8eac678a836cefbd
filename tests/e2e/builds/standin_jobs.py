"""A stand-in for whoever runs Jobs: the pods of builds as processes with the product's own entry point, one step after the other.

What a kubelet would mount is laid into a directory, and what a container says at its end is read from there. It follows the rules
of the Job that it is given: what must not be tried again is not, and everything else is until the limit.
"""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from fastness.builds.build_objects import NAMESPACE
from fastness.builds.job import BUILD, CONTEXT_KEY, KNOWN, ORDER, PULL, PUSH, STEPS, WAY, WAY_KEY, WORK
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import CONFIG_MAP, POD, SECRET
from fastness.kinds.kubernetes.native import JOB
from fastness.kube.errors import NotFound
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions

STATUS = WriteOptions(subresource="status")


class StandInJobs:
    """Runs every Job that it sees, and answers for the logs of its pods."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self.cluster = cluster
        self.directory = directory
        self.pods: list[str] = []
        self.running: asyncio.subprocess.Process | None = None
        self.step = ""
        self._printed: dict[tuple[str, str], bytearray] = {}

    async def log(self, pod: str, namespace: str, container: str, *, lines: int, most: int) -> bytes:
        """As a kubelet answers."""
        text = bytes(self._printed.get((pod, container), b""))[-most:]
        return b"".join(b"2026-01-01T00:00:00Z " + line for line in text.splitlines(keepends=True)[-lines:])

    async def run(self) -> None:
        """Run Jobs until cancelled."""
        async with asyncio.TaskGroup() as group, self.cluster.watch(
            JOB.resource, Scope(NAMESPACE), initial=True
        ) as events:  # fmt: skip
            under_way: dict[str, asyncio.Task[None]] = {}
            async for event in events:
                uid = event.object.get("metadata", {}).get("uid")
                if event.type == "DELETED" and uid in under_way:
                    under_way[uid].cancel()
                elif event.type == "ADDED" and not (event.object.get("status") or {}).get("conditions"):
                    under_way[uid] = group.create_task(self._job(event.object))

    async def _job(self, job: JsonObject) -> None:
        name, spec = job["metadata"]["name"], job["spec"]
        final = {
            code for rule in spec["podFailurePolicy"]["rules"] for code in rule.get("onExitCodes", {}).get("values", ())
        }
        for number in range(spec["backoffLimit"] + 1):
            self.pods.append(f"{name}-{number}")
            code = await self._pod(f"{name}-{number}-{job['metadata']['uid'][:8]}", job)
            if code == 0 or code in final:
                break
        kind = "Complete" if code == 0 else "Failed"
        conditions = [{"type": kind, "status": "True", "message": "as the pods say"}]
        with suppress(NotFound):
            await self._patch(JOB.resource, name, {"status": {"conditions": conditions}})

    async def _pod(self, name: str, job: JsonObject) -> int:
        meta = {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {"batch.kubernetes.io/job-name": job["metadata"]["name"]},
        }
        containers = [{"name": "push", "image": "builder"}]
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": containers}}
        await self.cluster.create(POD.resource, pod)
        root = self.directory / name
        await self._mount(root, job["spec"]["template"]["spec"]["volumes"])
        ended: list[JsonObject] = []
        for step in STEPS:
            await self._patch(
                POD.resource, name, {"status": _statuses([*ended, {"name": step, "state": {"running": {}}}])}
            )
            code = await self._container(name, step, root)
            said = (root / "dev/termination-log").read_text() if (root / "dev/termination-log").exists() else ""
            (root / "dev/termination-log").unlink(missing_ok=True)
            ended.append({"name": step, "state": {"terminated": {"exitCode": code, "message": said}}})
            await self._patch(POD.resource, name, {"status": _statuses(ended)})
            if code:
                return code
        return 0

    async def _mount(self, root: Path, volumes: list[JsonObject]) -> None:
        for place in (WORK, KNOWN, "/dev"):
            (root / place.lstrip("/")).mkdir(parents=True)
        for volume in volumes:
            if "secret" in volume:
                given = await self.cluster.get(SECRET.resource, volume["secret"]["secretName"], NAMESPACE)
                self._lay(root / volume["name"] / WAY.lstrip("/") / WAY_KEY, given["data"][WAY_KEY])
            elif "configMap" in volume:
                given = await self.cluster.get(CONFIG_MAP.resource, volume["configMap"]["name"], NAMESPACE)
                self._lay(root / ORDER.lstrip("/") / CONTEXT_KEY, given["binaryData"][CONTEXT_KEY])

    def _lay(self, path: Path, content: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(content))

    async def _container(self, pod: str, step: str, root: Path) -> int:
        way = root / WAY.lstrip("/")
        if step in (PULL, PUSH):
            way.symlink_to(root / step / WAY.lstrip("/"))
        self.step = step
        process = self.running = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "fastness.builds.live.pod", step, env={**os.environ, "FASTNESS_BUILD_ROOT": str(root)},
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        printed = self._printed.setdefault((pod, step), bytearray())
        try:
            assert process.stdout is not None
            while chunk := await process.stdout.read(65536):
                printed += chunk
            return await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
            if step in (PULL, PUSH):
                way.unlink()

    async def _patch(self, resource: Any, name: str, patch: JsonObject) -> None:
        await self.cluster.patch(resource, name, patch, PatchType.MERGE, NAMESPACE, STATUS)


def _statuses(ended: list[JsonObject]) -> JsonObject:
    made = [{"image": "x", "imageID": "x", "ready": False, "restartCount": 0, **each} for each in ended]
    init = [each for each in made if each["name"] in (PULL, BUILD)]
    return {"initContainerStatuses": init, "containerStatuses": made[len(init) :]}


@asynccontextmanager
async def standing_in(cluster: Cluster, directory: Path) -> AsyncIterator[StandInJobs]:
    """Somebody who runs Jobs, for the time of the block."""
    jobs = StandInJobs(cluster, directory)
    work = asyncio.ensure_future(jobs.run())
    try:
        yield jobs
    finally:
        work.cancel()
        await asyncio.wait((work,))
