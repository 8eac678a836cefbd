"""Containerfiles: what people add to an image, and the file that is built.

    problems(text)                  all that is wrong with what somebody wrote; nothing when it can be built
    whole(layer, labels, packages)  the file for the builder: base, packages, config, then what people wrote
    layer_names(…)                  what each layer on top of the base is

A stage is a layer: `packages` is the base with the packages that the config asks for, `configs` has the files of the config, and
what people write goes on top of it, in a layer of its own. Whoever begins with `FROM configs AS final` says so; whoever does
not, gets that line. Files of a config lie over those that packages bring: whoever wrote a MachineConfig has the last word.

A build has no network, and no image but the base, and the extensions image where one is named, was pulled for it. So a stage
begins with `configs` or with an earlier stage, and nothing is copied or added from anywhere else but the stage `extensions`: that
is told before a build, not after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Final, NamedTuple

from fastness.builds.packages import NO_PACKAGES, STAGE, Packages
from fastness.formats import json

CONFIGS: Final = "configs"
FINAL: Final = "final"
PACKAGES: Final = "packages"
CONFIG: Final = "config"
CONTENT: Final = "content"
BASE: Final = "oci:/build/base:base"
EXTENSIONS: Final = "oci:/build/extensions:base"
LAYER: Final = "dev.fastness.layer"
"""The annotation of a layer that says what it is."""
ROOT: Final = "root"
MOST_BYTES: Final = 4096
MOST_INSTRUCTIONS: Final = 100
_KNOWN: Final = frozenset({
    "ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL", "MAINTAINER", "ONBUILD", "RUN",
    "SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR",
})  # fmt: skip
_STAGE: Final = re.compile(r"FROM\s+(?P<image>\S+)(?:\s+AS\s+(?P<name>\S+))?\s*\Z", re.IGNORECASE | re.ASCII)
_HEREDOC: Final = re.compile(r"<<-?\s*[\"']?(\w+)[\"']?", re.ASCII)
_REMOTE: Final = re.compile(r"(?:https?|git|ftp)://|git@", re.IGNORECASE | re.ASCII)


class Instruction(NamedTuple):
    """One instruction: the line where it begins, its word in capitals, the whole of it on one line."""

    line: int
    word: str
    text: str


def instructions(text: str) -> Iterator[Instruction]:
    """The instructions of a Containerfile; comments are left out, and what a here-document holds is skipped."""
    lines = iter(enumerate(text.splitlines(), 1))
    for number, first in lines:
        if not first.strip() or first.lstrip().startswith("#"):
            continue
        parts = [first.strip()]
        while parts[-1].endswith("\\"):
            parts[-1] = parts[-1][:-1].rstrip()
            following = (text.strip() for _, text in lines)
            parts.append(next((text for text in following if text and not text.startswith("#")), ""))
        whole_text = " ".join(part for part in parts if part)
        for end in _HEREDOC.findall(whole_text):
            while (body := next(lines, None)) is not None and body[1].strip() != end:
                pass
        yield Instruction(number, whole_text.split(None, 1)[0].upper() if whole_text else "", whole_text)


def problems(text: str) -> tuple[str, ...]:
    """What is wrong with what somebody wrote, each with its line and what to do."""
    if len(text.encode()) > MOST_BYTES:
        return (f"it has more than {MOST_BYTES} bytes: put what is long into the base image",)
    if any(ord(character) < 32 and character not in "\t\n\r" for character in text):
        return ("it has control characters: write text",)
    steps = list(instructions(text))
    if len(steps) > MOST_INSTRUCTIONS:
        return (f"it has more than {MOST_INSTRUCTIONS} instructions: join some",)
    return tuple(_problems(steps))


def _problems(steps: list[Instruction]) -> Iterator[str]:
    stages = {CONFIGS}
    for number, word, text in steps:
        if word not in _KNOWN:
            yield f"line {number}: {word[:40]} is no instruction: write one of {', '.join(sorted(_KNOWN))}"
            continue
        if len(text.split(None, 1)) < 2:
            yield f"line {number}: {word} says nothing: give it an argument"
            continue
        if word == "FROM":
            match = _STAGE.match(text)
            image = match["image"] if match else text.split(None, 1)[1]
            if image not in stages:
                yield f"line {number}: FROM {image[:80]}: a build has no other image: begin with FROM {CONFIGS} AS {FINAL}"
            if match and match["name"]:
                stages.add(match["name"])
        elif word in ("COPY", "RUN", "ADD"):
            yield from _sources(number, word, text, stages)


def _sources(number: int, word: str, text: str, stages: set[str]) -> Iterator[str]:
    for source in _taken_from(text.split()[1:]):
        if source not in (*stages, STAGE) and not source.isdecimal():
            yield f"line {number}: {word} from {source[:80]}: a build has earlier stages, and the extensions image as {STAGE}"
    if word == "ADD" and _REMOTE.search(text):
        yield f"line {number}: ADD from elsewhere: a build has no network; put the file into a MachineConfig or the base image"


def _taken_from(words: list[str]) -> Iterator[str]:
    """The stages or images that flags of an instruction name; flags come before everything else."""
    for flag in takewhile(lambda word: word.startswith("--"), words):
        name, _, value = flag.partition("=")
        parts = [f"from={value}"] if name == "--from" else value.split(",") if name == "--mount" else []
        yield from (part.partition("=")[2] for part in parts if part.startswith("from="))


def uses_stage(text: str, stage: str) -> bool:
    """Whether a Containerfile takes something from a stage."""
    return any(stage in _taken_from(each.text.split()[1:]) for each in instructions(text))


def whole(layer: str, labels: Mapping[str, str], packages: Packages = NO_PACKAGES) -> str:
    """The file that is built: the base, what is installed, the config, then what people wrote."""
    named = " ".join(f"{key}={json.encode(value).decode()}" for key, value in sorted(labels.items()))
    lines = [f"FROM {EXTENSIONS} AS {STAGE}"] if packages or uses_stage(layer, STAGE) else []
    if packages:
        lines += [f"FROM {BASE} AS {PACKAGES}", packages.command(), f"FROM {PACKAGES} AS {CONFIGS}"]
    else:
        lines.append(f"FROM {BASE} AS {CONFIGS}")
    lines += [f"COPY {ROOT}/ /", f"LABEL {named}"]
    first = next((each.word for each in instructions(layer)), "")
    if first and first not in ("FROM", "ARG"):
        lines.append(f"FROM {CONFIGS} AS {FINAL}")
    return "\n".join([*lines, layer.strip("\n")]).strip("\n") + "\n"


def layer_names(layer: str, packages: Packages) -> tuple[str, ...]:
    """What the layers on top of the base are, lowest first; whatever comes after them is what people wrote."""
    config = (*((PACKAGES,) if packages else ()), CONFIG)
    return (*config, CONTENT) if any(True for _ in instructions(layer)) else config
