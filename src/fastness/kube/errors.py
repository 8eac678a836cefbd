"""Why the API said no, the same for both adapters, and why it could not even be asked.

    ApiError                 code, reason, message, causes, details
    ├── BadRequest           400  the request cannot be understood
    ├── Unauthorized         401
    ├── Forbidden            403
    ├── NotFound             404
    ├── MethodNotAllowed     405
    ├── AlreadyExists        409
    ├── Conflict             409  the object moved on, or another manager owns the field
    ├── Expired              410  the asked version was compacted away: list again
    ├── TooLarge             413
    ├── UnsupportedMedia     415
    ├── Invalid              422  understood, and wrong: `causes` name the fields
    ├── TooManyRequests      429  also a disruption budget that blocks an eviction
    ├── InternalError        500
    ├── Unavailable          503  the store or the server cannot answer now
    └── Timeout              504

    ConfigError              code, hint
    ├── NoCluster            nothing says where the cluster is
    ├── BadConfig            a file or a field of it is wrong; the message names both
    └── Unsupported          a way to reach a cluster that we do not take on purpose

An `ApiError` converts to the Kubernetes `Status` body and back (`status`, `from_status`), so a refusal reads the same in process,
over HTTPS and from a real kube-apiserver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from fastness.kinds.kind import JsonObject
from fastness.runtime.errors import FastnessError


@dataclass(frozen=True, slots=True)
class Cause:
    """One field that is wrong: `reason` is a Kubernetes cause type such as FieldValueInvalid."""

    field: str
    reason: str
    message: str

    def to_json(self) -> JsonObject:
        """The cause as `Status.details.causes` has it."""
        return {"reason": self.reason, "message": self.message, **({"field": self.field} if self.field else {})}


class ApiError(Exception):
    """A refusal with everything a `Status` body says."""

    code: ClassVar[int] = 500
    reason: ClassVar[str] = "InternalError"
    hint: ClassVar[str] = "See the server's log under the correlation id of this request."
    always_details: ClassVar[bool] = False  # an empty `details` is how Kubernetes says "about no object in particular"

    def __init__(
        self,
        message: str,
        *,
        group: str = "",
        kind: str = "",
        name: str = "",
        uid: str = "",
        causes: Sequence[Cause] = (),
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.group, self.kind, self.name, self.uid = group, kind, name, uid
        self.causes = tuple(causes)
        self.retry_after = retry_after
        self.continue_token = ""

    def status(self) -> JsonObject:
        """The Kubernetes `Status` body of this refusal."""
        details: JsonObject = {
            key: value
            for key, value in (("name", self.name), ("group", self.group), ("kind", self.kind), ("uid", self.uid))
            if value
        }
        if self.causes:
            details["causes"] = [cause.to_json() for cause in self.causes]
        if self.retry_after is not None:
            details["retryAfterSeconds"] = self.retry_after
        meta = {"continue": self.continue_token} if self.continue_token else {}
        return {
            "kind": "Status", "apiVersion": "v1", "metadata": meta, "status": "Failure",
            "message": self.message, "reason": self.reason, **({"details": details} if details or self.always_details else {}),
            "code": self.code,
        }  # fmt: skip


class BadRequest(ApiError):
    """The request cannot be understood."""

    code, reason, hint = 400, "BadRequest", "Correct the body or the parameter that the message names."


class Unauthorized(ApiError):
    """No credential, or one that does not verify."""

    code, reason, hint = 401, "Unauthorized", "Use the kubeconfig that `fastness kubeconfig` prints, or a fresh token."


class Forbidden(ApiError):
    """Known, and not allowed."""

    code, reason, hint = 403, "Forbidden", "Ask `kubectl auth can-i --list` what is allowed; a RoleBinding changes it."
    always_details = True


class NotFound(ApiError):
    """No such object, or no such resource."""

    code, reason, hint = 404, "NotFound", "List the collection, or `kubectl api-resources` for the kind."
    always_details = True


class MethodNotAllowed(ApiError):
    """The resource does not have this verb."""

    code, reason, hint = 405, "MethodNotAllowed", "`kubectl api-resources -o wide` shows the verbs of each kind."
    always_details = True
    allow: tuple[str, ...] = ()
    """The methods that there are, for the header `Allow`."""


class AlreadyExists(ApiError):
    """The name is taken."""

    code, reason, hint = 409, "AlreadyExists", "Choose another name, or apply or patch the existing object."


class Conflict(ApiError):
    """The object moved on since it was read, or another manager owns a field."""

    code, reason, hint = 409, "Conflict", "Read the object again and repeat the change, or force the apply."


class Expired(ApiError):
    """The asked resource version was compacted away."""

    code, reason, hint = 410, "Expired", "List again and watch from the version of that list."


class TooLarge(ApiError):
    """The body is larger than the limit."""

    code, reason, hint = 413, "RequestEntityTooLarge", "Split the object, or move large content out of it."


class UnsupportedMedia(ApiError):
    """A content type that nobody here decodes."""

    code, reason, hint = 415, "UnsupportedMediaType", "Send application/json, or a patch type that the kind supports."


class Invalid(ApiError):
    """Understood and wrong; `causes` name the fields."""

    code, reason, hint = 422, "Invalid", "Correct the fields that the causes name."


class TooManyRequests(ApiError):
    """Over a limit, or an eviction that a disruption budget blocks."""

    code, reason, hint = 429, "TooManyRequests", "Wait for the time in Retry-After and try again."


class InternalError(ApiError):
    """A defect of ours."""


class Unavailable(ApiError):
    """The server cannot answer now; nothing was changed."""

    code, reason, hint = 503, "ServiceUnavailable", "Try again; `/readyz?verbose` says what is missing."


class Timeout(ApiError):
    """The answer did not come in time; the outcome is unknown."""

    code, reason, hint = 504, "Timeout", "Read the object to see whether the change happened."


_BY_REASON: Mapping[str, type[ApiError]] = {kind.reason: kind for kind in (
    BadRequest, Unauthorized, Forbidden, NotFound, MethodNotAllowed, AlreadyExists, Conflict, Expired, TooLarge,
    UnsupportedMedia, Invalid, TooManyRequests, InternalError, Unavailable, Timeout,
)}  # fmt: skip
_BY_CODE: Mapping[int, type[ApiError]] = {
    **{kind.code: kind for kind in _BY_REASON.values()},
    409: Conflict,
}


def from_status(code: int, body: Mapping[str, Any]) -> ApiError:
    """The error that a `Status` body, or a bare HTTP code, stands for."""
    details = body.get("details") or {}
    kind = _BY_REASON.get(body.get("reason") or "", _BY_CODE.get(code, InternalError))
    if body.get("reason") == "Gone":
        kind = Expired
    causes = [
        Cause(entry.get("field", ""), entry.get("reason", ""), entry.get("message", ""))
        for entry in details.get("causes") or ()
    ]
    return kind(
        str(body.get("message") or f"the server answered {code}"),
        group=details.get("group", ""), kind=details.get("kind", ""), name=details.get("name", ""),
        uid=details.get("uid", ""), causes=causes, retry_after=details.get("retryAfterSeconds"),
    )  # fmt: skip


class ConfigError(FastnessError):
    """How to reach the cluster is not known."""

    code = "cluster-config"


class NoCluster(ConfigError):
    """Nothing says where the cluster is."""

    code = "no-cluster"


class BadConfig(ConfigError):
    """A file, or a field of it, is wrong."""

    code = "bad-cluster-config"


class Unsupported(ConfigError):
    """A way to reach a cluster that is not taken."""

    code = "unsupported-cluster-config"
