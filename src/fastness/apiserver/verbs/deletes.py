"""Deletes: what is asked for, what holds an object, what is left behind.

* Preconditions (uid, resourceVersion) are checked against the head; a miss is a conflict and nothing happens.
* `Orphan` and `Foreground` become finalizers that the garbage collector works off; `Background` deletes at once and the collector
  finds the dependents.
* Finalizers keep the object: it gets a deletionTimestamp and stays until the last of them is gone. A namespace is kept by
  `spec.finalizers` until its content is gone.
* There are no kubelets behind the embedded API, so pods need no grace period and go at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastness.apiserver import storable
from fastness.apiserver.admission.admit import Admission, Operation
from fastness.apiserver.call import Call
from fastness.apiserver.catalog import Served
from fastness.apiserver.definitions import CRD_KEY
from fastness.apiserver.refusals import options_invalid, precondition_failed
from fastness.apiserver.store import Key, Store
from fastness.apiserver.strategies import strategy_of
from fastness.apiserver.verbs.convert import outward
from fastness.apiserver.verbs.drafts import part
from fastness.apiserver.verbs.writes import Writer, Written, is_held
from fastness.formats import json
from fastness.kinds.kind import JsonObject
from fastness.kube.errors import BadRequest
from fastness.kube.port import DeleteOptions, Propagation

_PROPAGATION_FINALIZERS = {Propagation.ORPHAN: "orphan", Propagation.FOREGROUND: "foregroundDeletion"}


def options_of(body: Any, query: Mapping[str, str]) -> DeleteOptions:
    """DeleteOptions from a body and query parameters, the body first; raises BadRequest."""
    if body is None:
        body = {}
    if not isinstance(body, dict):
        raise BadRequest("DeleteOptions must be a JSON object")
    if body.get("kind", "DeleteOptions") != "DeleteOptions":
        raise BadRequest(f"the body of a delete is DeleteOptions, not {str(body['kind'])[:40]}")
    policy_name = body.get("propagationPolicy") or query.get("propagationPolicy") or _legacy(body, query)
    if policy_name not in {policy.value for policy in Propagation}:
        text = f'Unsupported value: "{str(policy_name)[:40]}": supported values: "Foreground", "Background", "Orphan"'
        raise options_invalid("DeleteOptions", "propagationPolicy", "FieldValueNotSupported", text)
    if (body.get("propagationPolicy") or query.get("propagationPolicy")) and "orphanDependents" in {**body, **query}:
        text = f'Invalid value: "{policy_name}": orphanDependents and propagationPolicy exclude each other'
        raise options_invalid("DeleteOptions", "propagationPolicy", "FieldValueInvalid", text)
    preconditions = part(body, "preconditions")
    dry_run = body.get("dryRun") or ([query["dryRun"]] if query.get("dryRun") else [])
    # An unknown word is refused, not ignored: whoever asks for a trial must not get a deletion.
    if dry_run not in ([], ["All"]):
        text = f'Unsupported value: {dry_run!r:.60}: supported values: "All"'
        raise options_invalid("DeleteOptions", "dryRun", "FieldValueNotSupported", text)
    return DeleteOptions(
        uid=preconditions.get("uid") or "",
        resource_version=preconditions.get("resourceVersion") or "",
        propagation=Propagation(policy_name),
        grace_seconds=_grace(body.get("gracePeriodSeconds", query.get("gracePeriodSeconds"))),
        dry_run=bool(dry_run),
    )


def _legacy(body: Mapping[str, Any], query: Mapping[str, str]) -> str:
    orphan = body.get("orphanDependents", query.get("orphanDependents"))
    return Propagation.ORPHAN.value if orphan in (True, "true") else Propagation.BACKGROUND.value


def _grace(value: Any) -> int | None:
    if value is None:
        return None
    try:
        seconds = int(value)
    except (TypeError, ValueError) as error:
        raise BadRequest(f"gracePeriodSeconds: {str(value)[:40]!r} is not a number of seconds") from error
    return max(seconds, 1) if seconds < 0 else seconds  # a negative period is the shortest one, as in Kubernetes


class Deleter:
    """Deletes objects."""

    def __init__(self, store: Store, writer: Writer, admission: Admission) -> None:
        self._store = store
        self._writer = writer
        self._admission = admission

    async def delete(self, call: Call, served: Served, namespace: str, name: str, options: DeleteOptions) -> Written:
        """Delete one object, or mark it when finalizers hold it; raises NotFound, Conflict, Forbidden."""
        key = Key(*served.storage_key, namespace if served.kind.namespaced else "", name)
        head, old = await self._writer.read(served, key)
        # Before admission: who deletes what it saw must not have rules, and people, asked about something else.
        _check_preconditions(served, old, options)
        self._admission.review(call, served, Operation.DELETE, None, old)
        trial_run = call.dry_run or options.dry_run
        # On the record before it happens: a crash after this leaves an entry of something that did not happen, never the
        # reverse.
        recorded = not trial_run and await self._admission.written_down(call, served, Operation.DELETE, None, old)
        # Writing the record took time: what is deleted now may not be what was judged, so everything is asked once more.
        if recorded and self._store.head(key) is not head:
            return await self.delete(call, served, namespace, name, options)
        # Asking again changes nothing: a new timestamp would prolong what is already ending.
        if old["metadata"].get("deletionTimestamp") and is_held(served, old):
            return Written(outward(served, head.body))
        marked = _with_propagation(self._writer.marked(old), options.propagation)
        if served.storage_key in (("", "namespaces"), CRD_KEY):
            # Their deletion is a process of its own, without a grace period and without a new generation.
            generation = {"generation": old["metadata"]["generation"]} if "generation" in old["metadata"] else {}
            marked["metadata"] = {**marked["metadata"], **generation}
            del marked["metadata"]["deletionGracePeriodSeconds"]
        # kubectl shows it, and admission refuses new content by it while the namespace is emptied.
        if served.storage_key == ("", "namespaces"):
            marked["status"] = {**(old.get("status") or {}), "phase": "Terminating"}
        if not is_held(served, marked):
            last = marked if strategy_of(served.kind).graceful else _copied(old)
            if call.dry_run or options.dry_run:
                return Written(json.encode(last), deleted=True)
            return Written(outward(served, await self._writer.remove(served, key, head, last)), deleted=True)
        if call.dry_run or options.dry_run:
            return Written(json.encode(marked))
        return await self._writer.settle(call, served, key, head, marked, old)


def _copied(obj: JsonObject) -> JsonObject:
    return {**obj, "metadata": dict(obj["metadata"])}


def _check_preconditions(served: Served, old: JsonObject, options: DeleteOptions) -> None:
    meta = old["metadata"]
    for label, expected, actual in (
        ("UID", options.uid, meta["uid"]),
        ("ResourceVersion", options.resource_version, meta["resourceVersion"]),
    ):
        # "Delete what I looked at": without it a controller with an old list deletes the successor of the same name.
        if expected and expected != actual:
            why = f"the {label} in the precondition ({expected}) does not match the {label} in record ({actual})"
            raise precondition_failed(served, meta["name"], why)


def _with_propagation(obj: JsonObject, propagation: Propagation) -> JsonObject:
    # The newest request decides how dependents go; the API refuses both finalizers on one object.
    finalizers = [
        entry for entry in obj["metadata"].get("finalizers") or () if entry not in _PROPAGATION_FINALIZERS.values()
    ]
    if propagation in _PROPAGATION_FINALIZERS:
        finalizers.append(_PROPAGATION_FINALIZERS[propagation])
    fields = {**obj["metadata"], "finalizers": finalizers}
    if not finalizers:
        del fields["finalizers"]
    return {**obj, "metadata": fields}


def deleted_status(served: Served, body: bytes) -> JsonObject | None:
    """The `Status` that answers a finished delete, or None for kinds that answer with the object."""
    if strategy_of(served.kind).returns_deleted:
        return None
    identity = storable.name_of(body)
    details = {"name": identity.name, "group": served.kind.group, "kind": served.kind.plural, "uid": identity.uid}
    return {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": {name: value for name, value in details.items() if value},
    }  # fmt: skip
