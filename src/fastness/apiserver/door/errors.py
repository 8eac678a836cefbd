"""What errors become at the API: `Status` objects, as every Kubernetes client reads them.

Other doors answer with small problem documents (`http/refusals`); here the row of the error table for `ApiError` makes a refusal
that is written as the error's own `Status`.
"""

from __future__ import annotations

from typing import Final

from fastness.apiserver.refusals import method_not_allowed, no_such_resource
from fastness.formats import json
from fastness.http import Answer
from fastness.http.edge import ErrorTable
from fastness.http.refusals import Refusal
from fastness.http.route import NoRoute, WrongMethod, allow_header
from fastness.kube.errors import ApiError, MethodNotAllowed


class StatusRefusal(Refusal):
    """An error of the API as it goes out."""

    def __init__(self, error: ApiError) -> None:
        super().__init__(error.code, error.reason, error.message)
        self._error = error

    def answer(self) -> Answer:
        """The Status, with the headers that its code demands."""
        error = self._error
        headers: tuple[tuple[bytes, bytes], ...] = ()
        if error.retry_after is not None:
            headers = ((b"retry-after", b"%d" % error.retry_after),)
        if error.code == 401:
            headers = (*headers, (b"www-authenticate", b"Bearer"))
        if isinstance(error, MethodNotAllowed):
            headers = (*headers, allow_header(error.allow))
        return Answer(error.code, json.encode(error.status()), headers=headers)


def _of_api(error: ApiError, _route: str) -> Refusal:
    return StatusRefusal(error)


def _no_route(_error: NoRoute, _route: str) -> Refusal:
    return StatusRefusal(no_such_resource())


def _wrong_method(error: WrongMethod, _route: str) -> Refusal:
    return StatusRefusal(method_not_allowed(error.method, error.methods))


def defect(correlation: str) -> Refusal:
    """What an unexpected exception becomes: nothing but where the log tells of it."""
    return StatusRefusal(ApiError(f"an internal error occurred, see the log under {correlation}"))


ERRORS: Final[ErrorTable] = {ApiError: _of_api, NoRoute: _no_route, WrongMethod: _wrong_method}
