"""Init data from a file, in whichever form somebody has it: the document, its encoded form, or a manifest that carries it."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fastness.cli.errors import CliError, Exit
from fastness.formats.errors import YamlError
from fastness.formats.initdata import InitData, InitDataError, parse_init_data
from fastness.formats.yaml import load_documents
from fastness.workloads.initdata.finding import Finding, Severity
from fastness.workloads.initdata.lint import lint_encoded
from fastness.workloads.initdata.workload import NotAWorkload, carried

MAX_FILE: Final = 16 * 1024 * 1024
STDIN: Final = "-"


@dataclass(frozen=True, slots=True)
class Loaded:
    """The document as bytes (empty: there is none), and what is wrong with how it was wrapped."""

    text: bytes
    findings: list[Finding] = field(default_factory=list)


def load(file: str, *, lenient: bool = False) -> Loaded:
    """Read a file; what is wrong with the wrapping is a finding if lenient, else CliError."""
    data = read_bytes(file)
    loaded = _from_manifest(data) or _from_text(data)
    if not lenient and not loaded.text:
        reason = loaded.findings[0].message if loaded.findings else "there is no init data in it"
        raise CliError(f"{file}: {reason}", loaded.findings[0].hint if loaded.findings else "", Exit.NO)
    return loaded


def parsed(loaded: Loaded, place: str) -> InitData:
    """The document, which must be right in itself; raises CliError."""
    try:
        return parse_init_data(loaded.text.decode())
    except UnicodeDecodeError as error:
        raise CliError(f"{place}: not UTF-8", code=Exit.NO) from error
    except InitDataError as error:
        raise CliError(f"{place}: {error}", f"{error.hint} `fastness initdata lint` tells more.", Exit.NO) from error


def read_bytes(file: str) -> bytes:
    """The content of a file or of standard input; raises CliError."""
    try:
        if file == STDIN:
            data = sys.stdin.buffer.read(MAX_FILE + 1)
        else:
            with Path(file).open("rb") as opened:
                data = opened.read(MAX_FILE + 1)
    except OSError as error:
        raise CliError(f"{file}: {error.strerror or error}", code=Exit.USAGE) from error
    if len(data) > MAX_FILE:
        raise CliError(f"{file}: larger than {MAX_FILE} bytes", code=Exit.USAGE)
    return data


def _from_text(data: bytes) -> Loaded:
    """The document itself, or the single line that is its encoded form."""
    line = data.strip()
    if b"\n" in line or b"=" in line.rstrip(b"=") or not line:
        return Loaded(data)
    findings, text = lint_encoded(line.decode("utf-8", "replace"))
    return Loaded(text or b"", findings)


def _from_manifest(data: bytes) -> Loaded | None:
    """What a workload carries, or None where this is no manifest."""
    try:
        documents = load_documents(data)
    except YamlError:
        return None
    objects = [
        document.value for document in documents if isinstance(document.value, dict) and document.value.get("kind")
    ]
    for obj in objects:
        try:
            encoded, findings = carried(obj)
        except NotAWorkload:
            continue
        if not encoded:
            none = Finding("W7", Severity.WARNING, "the workload carries no init data", "Apply some to it.", "metadata")
            return Loaded(b"", [*findings, none])
        wrapping, text = lint_encoded(encoded)
        return Loaded(text or b"", [*findings, *wrapping])
    return (
        Loaded(b"", [Finding("W7", Severity.WARNING, "there is no workload in it", NotAWorkload.hint)])
        if objects
        else None
    )
