"""What cannot be done to virtual machines: errors of the API whose hints are about the simulator.

    NoSuch        404  a machine or a fault that is not there
    NotPossible   400  something that cannot be asked for
    DoneAlready   409  something that stands in the way of itself

They travel through the control socket by their reason (`control_client.refusal`), so that command line and page tell the same.
"""

from __future__ import annotations

from typing import ClassVar

from fastness.kube.errors import BadRequest, Conflict, NotFound


class NoSuch(NotFound):
    """A machine or a fault that is not there."""

    hint: ClassVar[str] = "`fastness sim list` shows the machines, `fastness sim faults` what was done to them."


class NotPossible(BadRequest):
    """Something that cannot be asked for."""

    hint: ClassVar[str] = "`fastness sim faults` tells what can be done, and `fastness sim --help` how to ask for it."


class DoneAlready(Conflict):
    """Something that was done and not undone."""

    hint: ClassVar[str] = "`fastness sim undo` takes back what was done, `fastness sim faults` lists it."
