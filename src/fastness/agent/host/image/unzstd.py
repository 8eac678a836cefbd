"""Unpacking zstd with the program of that name, for initial file systems that are packed so.

A program, because Python has none before 3.14 and no other part needs one: whoever built such an image has it, and what it reads
is parsed in another process. Where it is missing that is said, and the image counts as not looked at.
"""

from __future__ import annotations

import subprocess
import tempfile
from typing import Final

from fastness.agent.host.process import ENVIRONMENT, MAX_SHOWN
from fastness.formats.cpio import CpioError

PROGRAM: Final = "zstd"
_INSTALL: Final = "Install zstd, or pack the initial file system with gzip or xz."


def unzstd(frame: bytes, most: int) -> bytes:
    """What a frame holds, or one byte more than `most` where it holds more; raises CpioError."""
    with tempfile.TemporaryFile() as packed, tempfile.TemporaryFile() as errors:
        packed.write(frame)
        packed.seek(0)
        try:
            process = subprocess.Popen(  # noqa: S603 - a fixed command, found in the fixed PATH of the drivers
                [PROGRAM, "--decompress", "--stdout", "--quiet"],
                stdin=packed, stdout=subprocess.PIPE, stderr=errors, env=ENVIRONMENT,
            )  # fmt: skip
        except OSError as error:
            message = (
                f"the initial file system is packed with zstd, and the program zstd cannot be run: {error.strerror}"
            )
            raise CpioError("no-zstd", message, "", _INSTALL) from error
        with process:
            assert process.stdout is not None  # noqa: S101 - a pipe was asked for
            content = process.stdout.read(most + 1)
            if len(content) > most:
                process.kill()  # a small frame may hold petabytes
                return content
        if process.returncode != 0:
            errors.seek(0)
            complaint = errors.read(MAX_SHOWN).decode(errors="replace").strip()
            raise CpioError("damaged", f"the initial file system cannot be unpacked: {complaint}")
        return content
