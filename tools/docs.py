"""The reference pages: written from the code, so that they cannot disagree with it.

    python tools/docs.py --write     write docs/reference anew
    python tools/docs.py --check     say which pages are stale; exit code 1 if any is

A page is a function without arguments that returns Markdown; `PAGES` and `pages` name them all. What a page tells stands in
the code once: verbs in `cli`, kinds and their fields in `kinds`, metrics and log events in `observe`, errors in the exception
trees, reads and writes in the declarations of controllers. The output depends on nothing else: no clock, no environment.
`--check` also asks `tools/maps.py` whether what packages and pages say of modules is so.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

import fastness
from fastness.apiserver import kube_loops
from fastness.app.controllers import graph, product_loops
from fastness.cli.errors import Exit
from fastness.cli.main import VERBS, cli
from fastness.kinds.kind import Kind, Scope
from fastness.kinds.not_acted_on import EMBEDDED, EVERYWHERE, NotActedOn
from fastness.kinds.registry import all_kinds
from fastness.kube.controllers.controller import Controller
from fastness.kube.controllers.not_acted_on import EmbeddedNotActedOnLoop
from fastness.kube.informers import Informers
from fastness.observe import logs, metrics
from fastness.runtime.clock import SystemEntropy

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # run as a script, its neighbours and the tables of tests are not on the path

from tools import acceptance, chart_pages, driver_pages, maps, reach  # noqa: E402

REFERENCE = Path("docs/reference")
COMMAND = "python tools/docs.py --write"
NOTE = f"<!-- Written by `{COMMAND}`; changes by hand are lost. -->"
DEEPEST = 6


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [heading, ["---"] * len(heading), *([_cell(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _cell(text: str) -> str:
    plain = " ".join(text.split()).replace("|", "\\|")
    return plain if plain.startswith("`") else plain.replace("<", "&lt;")


def page(title: str, *parts: str) -> str:
    """A page: its title, the note that it is generated, its parts."""
    return "\n\n".join([f"# {title}", NOTE, *(part.strip("\n") for part in parts)]) + "\n"


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


# The command line.


def command_line() -> str:
    """Every verb with its arguments and options."""
    intro = (
        "Results go to standard output, everything else to standard error. Exit codes are in [exit-codes.md](exit-codes.md). "
        "An option can also be given in the environment: `--log-level` of `up` is `FASTNESS_UP_LOG_LEVEL`."
    )
    completion = (
        "## Completion\n\nFor bash, in `~/.bashrc`:\n\n"
        '```bash\neval "$(_FASTNESS_COMPLETE=bash_source fastness)"\n```\n\n'
        "zsh and fish take `zsh_source` and `fish_source`."
    )
    context = click.Context(cli, info_name="fastness")
    return page("Command line", intro, *(_verb(context, name) for name in VERBS), completion)


def _verb(parent: click.Context, name: str) -> str:
    command = cli.get_command(parent, name)
    if command is None:
        raise LookupError(name)
    return _described(command, click.Context(command, info_name=name, parent=parent), name)


def _described(command: click.Command, context: click.Context, name: str) -> str:
    """One verb, and after it those that it groups."""
    help_text = inspect.cleandoc(command.help or "")
    first, _, rest = help_text.partition("\n\n")
    rest = "\n".join(f"    {line}" for line in rest.splitlines()) if rest.startswith("fastness ") else rest
    usage = f"```\n{command.get_usage(context).removeprefix('Usage: ')}\n```"
    rows = [row for parameter in command.params if (row := parameter.get_help_record(context)) is not None]
    options = table(("Option", "Meaning"), ((_code(option), text) for option, text in rows)) if rows else ""
    below = [
        _described(member, click.Context(member, info_name=each, parent=context), f"{name} {each}")
        for each, member in _members(command, context)
    ]
    return "\n\n".join(part for part in (f"## {name}", first, usage, rest, options.rstrip(), *below) if part)


def _members(command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    """The verbs that a group has, by name; of those that it imports one by one, too."""
    if isinstance(command, click.Group):
        for name in sorted(command.list_commands(context)):
            if (member := command.get_command(context, name)) is not None:
                yield name, member


def exit_codes() -> str:
    """What the process says when it ends."""
    return page("Exit codes", inspect.getdoc(Exit) or "")


# Kinds.


def kinds() -> str:
    """Every kind that the API serves without a definition of the user."""
    ours, native = _split()
    intro = (
        "What the API serves on a fresh start. `fastness crds --with all` prints the definitions of the first list for a "
        "Kubernetes cluster; the second list is Kubernetes' own. Columns are those of `kubectl get` after NAME; columns in "
        "parentheses show with `-o wide`."
    )
    heading = ("Kind", "Group and version", "Resource", "Short", "Scope", "Columns", "What it is")
    own = table(heading, (_kind_row(kind, link=True) for kind in ours))
    other = table(heading[:5], (_kind_row(kind, link=False)[:5] for kind in native))
    return page("Kinds", intro, "## Kinds of Fastness and of its neighbours", own, "## Kinds of Kubernetes", other)


def _split() -> tuple[list[Kind], list[Kind]]:
    kinds = all_kinds()
    return [kind for kind in kinds if not kind.native], [kind for kind in kinds if kind.native]


def _kind_row(kind: Kind, *, link: bool) -> tuple[str, ...]:
    name = f"[{kind.kind}](kinds/{kind.group}.md#{kind.kind.lower()}-{kind.version})" if link else kind.kind
    columns = ", ".join(f"({column.name})" if column.priority else column.name for column in kind.columns)
    scope = "namespace" if kind.scope is Scope.NAMESPACED else "cluster"
    where = kind.api_version + (" (deprecated)" if kind.deprecated else "")
    return name, where, _code(kind.plural), ", ".join(kind.short_names), scope, columns, kind.description


def group_page(group: str, members: Sequence[Kind]) -> str:
    """The fields of all kinds of one group."""
    return page(group, "Back to [all kinds](../kinds.md).", *(_kind_fields(kind) for kind in members))


def _kind_fields(kind: Kind) -> str:
    heading = f"## {kind.kind} {kind.version}\n\n{kind.description}"
    facts = [f"`kubectl get {kind.short_names[0] if kind.short_names else kind.plural}`"]
    facts.append("lives in a namespace" if kind.namespaced else "belongs to the cluster")
    if kind.subresources:
        facts.append(f"subresources: {', '.join(kind.subresources)}")
    rows = list(_fields(kind.schema, ""))
    fields = table(("Field", "Type", "Meaning"), rows) if rows else "Every field is kept as it is written."
    return "\n\n".join((heading, "; ".join(facts) + ".", fields))


def _fields(schema: Mapping[str, Any], path: str, depth: int = 0) -> Iterator[tuple[str, str, str]]:
    required = set(schema.get("required", ()))
    for name, node in sorted(schema.get("properties", {}).items()):
        where = f"{path}.{name}".lstrip(".")
        if not path and name in ("apiVersion", "kind", "metadata"):
            continue
        yield _code(where), _type(node) + (", required" if name in required else ""), _meaning(node)
        below, suffix = node, ""
        if node.get("type") == "array":
            below, suffix = node.get("items", {}), "[]"
        elif isinstance(node.get("additionalProperties"), Mapping):
            below, suffix = node["additionalProperties"], ".*"
        if depth < DEEPEST:
            yield from _fields(below, where + suffix, depth + 1)


def _type(node: Mapping[str, Any]) -> str:
    if node.get("x-kubernetes-int-or-string"):
        return "integer or string"
    kind = str(node.get("type", "any"))
    if kind == "array":
        return f"list of {_type(node.get('items', {}))}"
    if kind == "object" and isinstance(node.get("additionalProperties"), Mapping):
        return f"map to {_type(node['additionalProperties'])}"
    return f"{kind} ({node['format']})" if "format" in node else kind


def _meaning(node: Mapping[str, Any]) -> str:
    sentences = [str(node["description"])] if node.get("description") else []
    if "enum" in node:
        sentences.append(
            "One of " + ", ".join(_code(str(value)) if value != "" else "empty" for value in node["enum"]) + "."
        )
    if "default" in node:
        sentences.append(f"Default `{node['default']}`.")
    sentences += [f"Rule: {rule['message']}." for rule in node.get("x-kubernetes-validations", ()) if "message" in rule]
    return " ".join(sentences).replace("..", ".")


# What is seen from outside.


def metric_names() -> str:
    """Every metric."""
    intro = "At `/metrics`, in the text format of Prometheus. Declared in `fastness.observe.metrics` and nowhere else."
    rows = []
    for meter in metrics.REGISTRY:
        labels = ", ".join(map(_code, meter.label_names))
        rows.append((_code(meter.name), meter.kind, labels, meter.text))
    return page("Metrics", intro, table(("Name", "Type", "Labels", "Meaning"), sorted(rows)))


def log_events() -> str:
    """Every event of the log."""
    intro = (
        "A log line is an event out of this list with named values; on a terminal it is readable text, otherwise one JSON "
        "object. `correlation` is the same from a request to the reconciles that follow from it."
    )
    return page(
        "Log events", intro, table(("Event", "Meaning"), ((_code(name), text) for name, text in logs.EVENTS.items()))
    )


def errors() -> str:
    """Every error that has a code of its own, by package."""
    intro = (
        "Every error has a stable code and a hint. Errors of the API travel as a Kubernetes `Status`: the code is the HTTP "
        "status and the reason is the name. A hint that depends on the case stands in the message itself."
    )
    by_module: dict[str, list[tuple[str, str, str, str]]] = {}
    for error in sorted(_error_types(), key=lambda error: (error.__module__, inspect.getsourcelines(error)[1])):
        meaning = (inspect.getdoc(error) or "").partition("\n")[0]
        hint = _text(error, "hint")
        row = (error.__name__, _code(str(getattr(error, "code", ""))), meaning, hint)
        by_module.setdefault(error.__module__, []).append(row)
    heading = ("Error", "Code", "Meaning", "What to do")
    return page("Errors", intro, *(f"## {module}\n\n{table(heading, rows)}" for module, rows in by_module.items()))


def _text(error: type[Exception], name: str) -> str:
    value = getattr(error, name, "")
    return value if isinstance(value, str) else ""


def _error_types() -> Iterator[type[Exception]]:
    for module in pkgutil.walk_packages(fastness.__path__, "fastness."):
        if module.name.endswith("__main__"):
            continue
        for value in vars(importlib.import_module(module.name)).values():
            declared = inspect.isclass(value) and issubclass(value, Exception) and value.__module__ == module.name
            if declared and isinstance(getattr(value, "code", None), str | int):
                yield value


def controllers() -> str:
    """What controllers read and write."""
    intro = (
        "A controller declares what it reads and writes; a write that is not declared is refused in process. Arrows into a "
        "controller are reads, arrows out of it are writes."
    )
    nowhere: Any = SimpleNamespace(listen=None)  # declarations are class attributes: drawing them needs no cluster
    informers = Informers(nowhere, clock=nowhere, entropy=nowhere)
    product = product_loops(nowhere, informers, nowhere, SystemEntropy())
    embedded = (
        *kube_loops(nowhere, nowhere, nowhere, "", (), nowhere).controllers,
        EmbeddedNotActedOnLoop(nowhere, nowhere),
    )
    return page(
        "Controllers", intro,
        "## Of the product: embedded and on any Kubernetes", _drawn(product),
        "## What Kubernetes does itself: embedded only", _drawn(embedded),
    )  # fmt: skip


def not_acted_on() -> str:
    """What is stored and changes nothing."""
    intro = (
        "Kinds and fields that the API takes and stores because clients and manuals write them, and on which Fastness does not "
        "act. Whoever sets one gets a warning with the answer, and the object says so: in the condition `ActedOn`, or in an "
        "event where the kind has no conditions. Empty and false values and those in the last column ask for nothing."
    )
    return page(
        "What is not acted on", intro,
        "## In every cluster", _not_acted_on(EVERYWHERE),
        "## Where Fastness is the API server",
        "In a real cluster other programs may do this work: nobody is warned there.", _not_acted_on(EMBEDDED),
    )  # fmt: skip


def _not_acted_on(entries: Iterable[NotActedOn]) -> str:
    heading = ("Kind", "Group", "Field", "Why", "What to do instead", "Asks for nothing")
    return table(heading, (
        (entry.kind.kind, entry.kind.group, _code(entry.field) or "all of it", entry.why, entry.instead,
         ", ".join(_code(str(value)) for value in entry.harmless))
        for entry in entries
    ))  # fmt: skip


def who_may_write_what() -> str:
    """What each role reaches, through controllers and doors as well."""
    intro = (
        "What somebody with a role can move: the kinds that its rules let it write, the controllers and doors that read them, "
        "and the kinds that those controllers write. An object in a namespace that does not count is read by nobody, so it is "
        "not here. What a controller does with what it reads is decided in its code, and admission looks at every write; the "
        "[how-to](../how-to/who-may-write-what.md) says which role is for whom."
    )
    parts = []
    for holder in reach.holders():
        rows = [
            (
                _code(f"{row.name}{f'.{row.kind.group}' if row.kind.group else ''}"),
                ", ".join(row.verbs) + (f" of {', '.join(row.names)}" if row.names else ""),
                ", ".join(row.controllers) or "–", ", ".join(row.doors) or "–", ", ".join(row.moves) or "–",
            )
            for row in reach.reaches(holder)
        ]  # fmt: skip
        heading = ("Writes", "Verbs", "Read by controllers", "Read by doors", "So controllers may write")
        body = table(heading, rows) if rows else "Writes nothing that anybody of ours reads."
        parts += [f"## {holder.title}, bound in {holder.where}", body]
    return page("Who may write what", intro, *parts)


def _drawn(loops: Sequence[Controller]) -> str:
    rows = (
        (
            _code(loop.name),
            (inspect.getdoc(type(loop)) or "").partition("\n")[0],
            ", ".join(sorted({_every(source.resource.kind) for source in loop.sources})) or "every kind",
            ", ".join(sorted({_every(resource.kind) for resource in loop.writes})),
        )
        for loop in loops
    )
    return f"```mermaid\n{graph(loops)}```\n\n{table(('Controller', 'What it does', 'Reads', 'Writes'), rows)}"


def _every(kind: str) -> str:
    return "every kind" if kind == "*" else kind


# The manual of confidential containers.


def manual_rows() -> str:
    """Every command of the manual: what it should do, what it does here, and which are still open."""
    from tests.manual.table import Row, rows  # test data: a walk holds every word of it to what really happens

    by_n = sorted(rows(), key=lambda row: row.n)
    counts = {state: sum(row.state == state for row in by_n) for state in ("works", "differs", "open")}
    intro = (
        "The commands of the manual *Deploying confidential containers on bare-metal servers*, in its order, against "
        "`fastness up --profile containers --machines 3`. `oc` is `kubectl` but for `oc project` and `oc adm policy`. Every row "
        "that is not open is run by a test, which compares what is printed here with what is printed then; … stands for anything."
    )
    summary = f"{len(by_n)} commands: {counts['works']} work, {counts['differs']} differ on purpose, {counts['open']} are open."

    def ours(row: Row) -> str:
        parts = [row.open] if row.open else [_line(row.command.ours) or "(prints nothing)", row.differs]
        if row.fails is not None:
            parts.append(f"As printed it fails: {_line(row.fails.ours)}")
        return "; ".join(part for part in parts if part)

    def command(row: Row) -> str:
        printed = " ".join(row.printed.replace("\\\n", " ").split())
        corrected = "" if row.open or row.command.run == row.printed else f", run as `{row.command.run}`"
        return f"`{printed}`{corrected}"

    cells = ((str(row.n), row.section, command(row), row.expected, ours(row), row.state) for row in by_n)
    return page(
        "The manual, row by row",
        intro,
        summary,
        table(("Row", "Section", "Command", "Expected", "Ours", "State"), cells),
        "## Around the commands\n\nWhat the manual's operator does beside its commands and is not here: the metrics of sandboxes "
        "and, of peer pods, the parts whose content comes from a cloud. `enablePeerPods` brings the machine configs with their "
        "two files (or the same files from the installer's DaemonSet), the class `kata-remote`, the DaemonSet `osc-caa-ds` as "
        "soon as its owner made `peer-pods-cm` and `peer-pods-secret`, and the gate `confidential` in `peer-pods-cm` and in the "
        "ConfigMap of the image. Open are the image of the adaptor, the job that builds the image of the virtual machines, the "
        "kinds PeerPodConfig and PeerPod, and the webhook `mwebhook.peerpods.io` that exchanges CPU and memory for "
        "`kata.peerpods.io/vm`.",
    )


def _line(lines: Sequence[str]) -> str:
    """Output in one cell: the line that says most, without the heading of a table."""
    telling = [line.strip() for line in lines if line.strip() not in ("", "…")]
    cell = telling[-1] if len(telling) == 2 and telling[0].startswith("NAME") else telling[0] if telling else ""
    return f"`{' '.join(cell.split())}`" if cell else "(an error)" if lines else ""


# The source documents, row by row.


def acceptance_rows() -> str:
    """Every row of docs/acceptance: the tests that prove it, or why none does."""
    all_rows, proofs = acceptance.rows(ROOT), acceptance.proved(ROOT)
    intro = (
        "What the source documents ask for ([docs/acceptance](../acceptance/index.md)), and the tests that would fail if a user "
        "could not do it."
    )
    counts = table(("Table", "Rows", "Proved by a test"), acceptance.summary(all_rows, proofs))
    cells = ((row.id, row.does, _proof(proofs.get(row.id, ())) or f"none: {row.open}") for row in all_rows)
    return page("Acceptance, row by row", intro, counts, table(("Row", "A user", "Proved by"), cells))


def _proof(tests: Sequence[str]) -> str:
    return ", ".join(f"`{test}`" for test in tests)


PAGES: Mapping[str, Callable[[], str]] = {
    "acceptance.md": acceptance_rows,
    "chart.md": lambda: page("Values of the chart", *chart_pages.chart_values(table)),
    "cli.md": command_line,
    "controllers.md": controllers,
    "errors.md": errors,
    "exit-codes.md": exit_codes,
    "kinds.md": kinds,
    "log-events.md": log_events,
    "metrics.md": metric_names,
    "not-acted-on.md": not_acted_on,
    "os-drivers.md": lambda: page("Drivers of operating systems", *driver_pages.os_drivers(table)),
    "permissions.md": lambda: page("Every right of every role", *chart_pages.permissions(table)),
    "seed-001.md": manual_rows,
    "who-may-write-what.md": who_may_write_what,
}


def pages() -> dict[Path, str]:
    """Every page by its path in the repository."""
    written = {REFERENCE / name: make() for name, make in PAGES.items()}
    groups: dict[str, list[Kind]] = {}
    for kind in _split()[0]:
        groups.setdefault(kind.group, []).append(kind)
    written |= {REFERENCE / "kinds" / f"{group}.md": group_page(group, members) for group, members in groups.items()}
    return dict(sorted(written.items()))


def stale(root: Path) -> list[str]:
    """Pages that differ from what the code says, are missing, or that nothing writes any more."""
    generated = pages()
    present = {path.relative_to(root) for path in (root / REFERENCE).rglob("*.md")}
    differing = {path for path, text in generated.items() if path not in present or (root / path).read_text() != text}
    return sorted(str(path) for path in differing | (present - set(generated)))


def write(root: Path) -> list[str]:
    """Write what is stale, remove what nothing writes any more; returns the paths."""
    generated, changed = pages(), stale(root)
    for name in changed:
        path = root / name
        if Path(name) in generated:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(generated[Path(name)])
        else:
            path.unlink()
    return changed


def main(arguments: Sequence[str]) -> int:
    """Write or check; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", action="store_true", help="write the pages anew")
    what.add_argument("--check", action="store_true", help="fail when a page is stale")
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository")
    options = parser.parse_args(arguments)
    try:
        wrong = acceptance.problems(acceptance.rows(options.root), acceptance.proved(options.root))
    except acceptance.BadRow as error:
        wrong = [str(error)]
    if options.check:
        wrong += maps.problems(options.root)
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return 1
    changed = write(options.root) if options.write else stale(options.root)
    for name in changed:
        print(f"{'wrote' if options.write else 'stale:'} {name}")
    if changed and options.check:
        print(f"{len(changed)} pages are not in step with the code: run `{COMMAND}`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
