"""What administrators do through the broker, as Trustee's clients ask for it.

Resources are sealed and stored; policies and reference values become the objects that everybody uses (AppraisalPolicy,
ReferenceValueSet), so that there is one place for each, with one history and one set of controllers.

* Every write is on the record with the administrator's name before it happens; what was written is not.
* A policy is tried in a process of its own before it is written, and refused if it is none; its controller tries it again.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any, Final

from fastness.attestation.live.policy_workers import Try, run_trial
from fastness.attestation.policy.cases import proven_by_nothing
from fastness.attestation.values.rvps import MAX_MESSAGE
from fastness.crypto.secret import SecretBytes
from fastness.formats import json
from fastness.http import Answer, Request
from fastness.http.refusals import Refusal
from fastness.kinds.fastness_dev.appraisal_policy import APPRAISAL_POLICY
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import object_name
from fastness.kube.errors import AlreadyExists, Invalid
from fastness.kube.informers import Informer
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.protocol.kbs_path import ResourcePath, disk_of, split_path
from fastness.record.entry import Record, RecordEntry
from fastness.release.door.broker.values import NAME, RegisteredValues
from fastness.release.live.admins import Admin
from fastness.release.live.resources import MAX_RESOURCE, SealedResources

MAX_POLICY_BODY: Final = 512 * 1024
TEES: Final = ("tpm", "tdx", "snp")
ALL_RESOURCES: Final = "*/*/*"
RESOURCE_POLICY: Final = "kbs-resource-policy"
_AS: Final = WriteOptions(manager="broker-admin", force=True)
_CREATED: Final = Answer(200)


class Administration:
    """The handlers of administrators."""

    def __init__(
        self,
        cluster: Cluster,
        sealed: SealedResources,
        policies: Informer,
        values: RegisteredValues,
        record: Record,
        attempt: Try = run_trial,
    ) -> None:
        self._cluster = cluster
        self._values = values
        self._sealed = sealed
        self._policies = policies
        self._record = record
        self._try = attempt

    async def write_resource(self, request: Request, admin: Admin) -> Answer:
        """Seal and store a resource; raises Refusal, ApiError, RecordError."""
        path = _path(request.values)
        if disk_of(path) is not None:
            raise Refusal(403, "reserved-path", "keys of disks are made here, and written by nobody")
        value = SecretBytes(await request.body(MAX_RESOURCE))
        # Before the write, and only the path: a write that fails afterwards is one entry too many, a secret in the record would
        # be for ever.
        await self._recorded("resource-written", admin, str(path))
        await self._sealed.write(path, value)
        return _CREATED

    async def delete_resource(self, request: Request, admin: Admin) -> Answer:
        """Take a resource away; raises Refusal, ApiError, RecordError."""
        path = _path(request.values)
        await self._recorded("resource-deleted", admin, str(path))
        if not await self._sealed.delete(path):
            raise Refusal(404, "no-such-resource", "there is no such resource")
        return _CREATED

    async def list_resources(self, _request: Request, _admin: Admin) -> Answer:
        """The paths of what is stored; raises Refusal, ApiError, RecordError."""
        return Answer(200, json.encode(await self._sealed.list()))

    async def write_policy(self, request: Request, admin: Admin) -> Answer:
        """Write a policy about evidence; raises Refusal, ApiError, RecordError."""
        body = _object(await request.body(MAX_POLICY_BODY))
        tees = _tees(body.get("policy_id"))
        text = _rego(body)
        await self._demand_policy(tees[0], text)
        for tee in tees:
            await self._put_policy(admin, f"kbs-{tee}", tee, text)
        return _CREATED

    async def write_resource_policy(self, request: Request, admin: Admin) -> Answer:
        """Write the policy about resources; raises Refusal, ApiError, RecordError."""
        text = _rego(_object(await request.body(MAX_POLICY_BODY)))
        await self._demand_policy(ALL_RESOURCES, text)
        await self._put_policy(admin, RESOURCE_POLICY, ALL_RESOURCES, text)
        return _CREATED

    async def list_policies(self, _request: Request, _admin: Admin) -> Answer:
        """The policies about evidence, by name; raises Refusal, ApiError, RecordError."""
        return Answer(200, json.encode([{"policy-id": name} for name in self._named(resources=False)]))

    async def list_resource_policies(self, _request: Request, _admin: Admin) -> Answer:
        """The policies about resources, by name; raises Refusal, ApiError, RecordError."""
        return Answer(200, json.encode(self._named(resources=True)))

    async def write_value(self, request: Request, admin: Admin) -> Answer:
        """Register reference values; raises Refusal, ApiError, RecordError."""
        message = await request.body(MAX_MESSAGE)
        await self._recorded("values-written", admin, NAME)
        await self._values.register(message)
        return _CREATED

    async def read_value(self, request: Request, _admin: Admin) -> Answer:
        """A reference value, as Trustee's clients ask for one; raises Refusal, ApiError, RecordError."""
        return Answer(200, json.encode(self._values.query("/".join(request.values))))

    def _named(self, *, resources: bool) -> list[str]:
        return sorted(
            object_name(policy).name for policy in self._policies.list() if ("/" in policy["spec"]["for"]) is resources
        )

    async def _demand_policy(self, target: str, text: str) -> None:
        """Go on only with a text that is a policy; raises Refusal."""
        trial = await self._try(_spec(target, text))
        if trial.error is not None:
            raise Refusal(400, "bad-policy", trial.error)

    async def _put_policy(self, admin: Admin, name: str, target: str, text: str) -> None:
        await self._recorded("policy-written", admin, name)
        spec = _spec(target, text)
        made = {
            "apiVersion": APPRAISAL_POLICY.api_version,
            "kind": "AppraisalPolicy",
            "metadata": {"name": name},
            "spec": spec,
        }
        try:
            await self._cluster.create(APPRAISAL_POLICY.resource, made, _AS)
        except AlreadyExists:
            await self._cluster.patch(APPRAISAL_POLICY.resource, name, {"spec": spec}, PatchType.MERGE, "", _AS)
        except Invalid as error:
            raise Refusal(400, "bad-policy", error.message) from error

    async def _recorded(self, what: str, admin: Admin, resource: str) -> None:
        await self._record.append(RecordEntry(what, _who(admin), resource))


def _who(admin: Admin) -> str:
    """A name as the record takes it."""
    return (
        "admin:"
        # A name is what its minter wrote; into a line of the record it comes without anything that could look like another field.
        + "".join(char if char.isascii() and (char.isalnum() or char in ":@._/-") else "-" for char in admin.name)[:200]
    )


def _path(segments: Sequence[str]) -> ResourcePath:
    path = split_path(segments)
    if path is None:
        raise Refusal(400, "bad-path", "a resource is repository/type/tag, of [a-z0-9._-], without dot segments")
    return path


def _object(body: bytes) -> JsonObject:
    value = json.decode(body)
    if not isinstance(value, dict):
        raise Refusal(400, "bad-message", "the body is not a JSON object")
    return value


def _tees(policy_id: Any) -> tuple[str, ...]:
    """The kinds of evidence that a policy id of Trustee stands for."""
    if policy_id in ("default", "default_cpu"):
        return TEES
    if policy_id in TEES:
        return (policy_id,)
    raise Refusal(400, "bad-policy-id", f"policy_id is default, default_cpu or one of {', '.join(TEES)}")


def _rego(body: JsonObject) -> str:
    text = body.get("policy")
    try:
        if not isinstance(text, str):
            raise ValueError("policy")
        return base64.b64decode(
            text.rstrip("=").encode("ascii") + b"=" * (-len(text.rstrip("=")) % 4), b"-_", True
        ).decode()
    except (ValueError, binascii.Error) as error:
        raise Refusal(400, "bad-message", "policy is Rego in base64url without padding") from error


def _spec(target: str, rego: str) -> JsonObject:
    """A policy as the protocol gives it: without cases, so the one for everybody stands in."""
    return {"for": target, "rego": rego, "cases": [proven_by_nothing(target)], "active": True}
