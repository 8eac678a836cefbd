"""Field ownership inside the write pipeline.

`fields/` decides who owns what; here its answers are put into objects and its refusals become API errors. Tests that look at
ownership go through this, production code has no other user.
"""

from __future__ import annotations

from datetime import datetime

from fastness.apiserver import fields
from fastness.apiserver.call import Call
from fastness.apiserver.catalog import Served
from fastness.apiserver.refusals import invalid
from fastness.apiserver.strategies import strategy_of
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import object_name, rfc3339
from fastness.kube.errors import ApiError, BadRequest, Cause, Conflict

# As kube-apiserver bounds it (validation of fieldManager): the name is stored with every object that its owner touches.
MAX_MANAGER = 128
_SPEC = fields.FieldSet.of(("spec",))
_ALL = fields.FieldSet.of(("spec",), ("status",))


class Ownership:
    """Writes `metadata.managedFields`."""

    def on_create(self, call: Call, served: Served, new: JsonObject, now: datetime) -> None:
        """Every field of a new object belongs to its creator."""
        self._set(
            new, fields.track_update(None, new, self._writer(call, served, "", now), served.fields, _reset(served, ""))
        )

    def on_update(
        self, call: Call, served: Served, new: JsonObject, old: JsonObject, subresource: str, now: datetime
    ) -> None:
        """Changed fields go to the writer."""
        writer = self._writer(call, served, subresource, now)
        self._set(new, fields.track_update(old, new, writer, served.fields, _reset(served, subresource)))

    def apply(
        self, call: Call, served: Served, live: JsonObject | None, config: JsonObject, subresource: str, now: datetime
    ) -> JsonObject:
        """The object after a server-side apply; raises Conflict, BadRequest, Invalid."""
        writer = self._writer(call, served, subresource, now)
        reset = _reset(served, subresource)
        try:
            done = fields.apply(live, config, writer, served.fields, force=call.force, reset=reset)
        except fields.ApplyConflict as error:
            raise Conflict(error.message, causes=error.causes) from error
        except fields.FieldsError as error:
            raise _refusal(served, config, error) from error
        return done.obj

    def _writer(self, call: Call, served: Served, subresource: str, now: datetime) -> fields.Writer:
        return fields.Writer(call.manager[:MAX_MANAGER], served.kind.api_version, rfc3339(now), subresource)

    def _set(self, obj: JsonObject, lines: list[JsonObject]) -> None:
        if lines:
            obj["metadata"]["managedFields"] = lines
        else:
            obj["metadata"].pop("managedFields", None)


def _reset(served: Served, subresource: str) -> fields.FieldSet:
    if served.storage_key == ("certificates.k8s.io", "certificatesigningrequests"):
        return _ALL  # a signing request is what it is: nobody owns any of it
    if subresource == "status" and not strategy_of(served.kind).status_keeps_metadata:
        return _SPEC
    return fields.reset_fields(subresource, has_status=served.kind.has_status)


def _refusal(served: Served, config: JsonObject, error: fields.FieldsError) -> ApiError:
    """A configuration that cannot be merged; a real API server answers 500 to most of these, which blames the wrong side."""
    if error.status == 400:
        return BadRequest(error.message)
    cause = Cause(error.path.lstrip("."), "FieldValueInvalid", f"Invalid value: {error.message}")
    return invalid(served, object_name(config).name, [cause])
