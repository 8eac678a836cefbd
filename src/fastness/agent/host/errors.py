"""What a host cannot or will not do.

    DriverError            code, hint
    ├── UnsafePath         a path that leaves the root, or is no path at all
    ├── FileFailure        the system refused to read or write a file
    │   ├── PathTaken      something that an update may not replace is in the way
    │   ├── CopyDamaged    what was kept to be brought back is gone or was changed
    │   └── TooMuchToKeep  what an update would replace is more than it may keep
    ├── CommandFailed      a program of the host ended badly or not in time
    ├── UnitFailure        a unit cannot be enabled, disabled or restarted
    ├── ImageFailure       an operating system cannot be deployed
    │   └── AnotherImage   what a program staged is not what it was asked for
    ├── TpmFailure         the TPM cannot be reached, or refuses
    ├── ReportFailure      the processor's reports cannot be had
    ├── UserDataFailure    a place of user-data cannot be read now
    │   └── BadUserData    it holds what no agent reads, and waiting does not change that
    ├── UnknownPlatform    nobody knows where user-data lies here
    ├── IdentityRefused    what lies where the machine's key is kept is not the agent's own
    ├── AlreadyRunning     another process works on this machine
    └── BadRecording       a recorded machine cannot be read (`hosttree`)

The message says what was tried and what the host answered; the hint says where to look.
"""

from __future__ import annotations

from fastness.agent.host.states import Pull
from fastness.runtime.errors import FastnessError


class DriverError(FastnessError):
    """A host did not do what it was asked."""

    code = "driver"
    hint = "See the log of the agent on that machine."


class UnsafePath(DriverError):
    """A path that leaves the root."""

    code = "unsafe-path"
    hint = "Use an absolute path without dot segments, and remove the symbolic link that leads out of the root."


class FileFailure(DriverError):
    """The system refused to read or write a file."""

    code = "file"
    hint = "Check free space, permissions and the file system of that path."


class PathTaken(FileFailure):
    """Something that an update may not replace is in the way."""

    code = "path-taken"
    hint = "Remove it, or choose another path."


class CopyDamaged(FileFailure):
    """What was kept to be brought back is gone or was changed."""

    code = "copy-damaged"
    hint = "Bring the file back by hand, from a backup or another machine."


class TooMuchToKeep(FileFailure):
    """What an update would replace is more than it may keep."""

    code = "too-much-to-keep"
    hint = "Move the file that the message names away, or free space on the machine; the agent tries again by itself."


class IdentityRefused(DriverError):
    """What lies where the machine's key is kept is not the agent's own."""

    code = "identity-refused"
    hint = "Somebody else may have written it. Remove the directory, and let the machine enrol anew."


class AlreadyRunning(DriverError):
    """Another process works on this machine."""

    code = "already-running"
    hint = "Two agents on one disk would destroy what each of them keeps: stop the other one first."


class CommandFailed(DriverError):
    """A program of the host ended badly; `status` is None when it did not run to its end, `output` what it printed."""

    code = "command"
    hint = "Run the command by hand on that machine to see more."

    def __init__(self, message: str, hint: str = "", *, status: int | None = None, output: str = "") -> None:
        super().__init__(message, hint)
        self.status = status
        self.output = output


class UnitFailure(DriverError):
    """A unit cannot be changed."""

    code = "unit"
    hint = "See `systemctl status` of that unit."


class ImageFailure(DriverError):
    """An operating system cannot be deployed; `pull` says whether its image came: not, where nothing else is said."""

    code = "image"
    hint = "Check that the image exists and that the machine may read it."

    def __init__(self, message: str, hint: str = "", *, pull: Pull = Pull.FAILED) -> None:
        super().__init__(message, hint)
        self.pull = pull


class AnotherImage(ImageFailure):
    """What a program staged is not what it was asked for: whatever came, it was not the image."""

    code = "another-image"


class TpmFailure(DriverError):
    """The TPM cannot be reached, or refuses."""

    code = "tpm"
    hint = (
        "Check that the TPM is enabled in the firmware and that tpm2-tools can reach it (tpm2_getcap properties-fixed)."
    )


class ReportFailure(DriverError):
    """The processor's reports cannot be had."""

    code = "report"
    hint = (
        "Check that the machine is a confidential guest, that its kernel is 6.7 or later, and that configfs is mounted "
        "(/sys/kernel/config/tsm/report)."
    )


class UserDataFailure(DriverError):
    """A place of user-data cannot be read now."""

    code = "user-data"
    hint = "Look at the user-data that the platform gives this machine; the agent tries again by itself."


class BadUserData(UserDataFailure):
    """A place of user-data holds what no agent reads: too much, no plain file, or in another encoding."""

    code = "bad-user-data"
    hint = "Give the machine the user-data of its pool as `fastness userdata POOL` prints it, with nothing added."


class UnknownPlatform(DriverError):
    """Nobody knows where user-data lies here."""

    code = "unknown-platform"
    hint = "Build the image with ignition.platform.id=… of its platform on the command line, or start the agent with --user-data."
