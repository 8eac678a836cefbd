"""The command as a whole: names, helps, hints, and how little it imports."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from fastness import __version__
from fastness.apiserver.store import StoreInUse
from fastness.app.parts import LacksCluster, LacksOption
from fastness.cli.errors import CliError, Exit
from fastness.cli.lazy import LazyGroup
from fastness.cli.main import VERBS, cli, main
from fastness.cli.room_errors import ROOMS, reported_errors
from fastness.crypto.errors import BadKey
from fastness.keys.errors import DamagedRecord
from fastness.kube.errors import Forbidden, NoCluster
from fastness.pools.membership import SeveralPools
from fastness.runtime.errors import FastnessError
from tests.patience import PATIENCE

HEAVY = (
    "httpx",
    "cryptography",
    "uvicorn",
    "jsonschema_rs",
    "msgspec",
    "yaml",
    "sqlite3",
)
# What a process that runs a part loads, and nobody who reads a help or mistypes an option.
RUNNING = (
    "httpx",
    "cryptography",
    "uvicorn",
    "uvloop",
    "jsonschema_rs",
    "fastness.app.controllers",
)
# What an agent on day two does without, 13 MiB of it: it neither proves itself nor shows a certificate here.
NOT_ON_NODES = (
    "cryptography",
    "prometheus_client",
    "http.server",
    "httpcore",
    "jsonschema_rs",
    "uvicorn",
    "fastness.kinds.registry",
    "fastness.kinds.machineconfiguration.controller_config",
    "fastness.agent.boot",
    "fastness.machineconfig.render.base",
)
SOURCES = Path(__file__).resolve().parents[3] / "src" / "fastness"


def invoke(*words: str) -> Result:
    return CliRunner().invoke(cli, list(words), prog_name="fastness")


def test_help_lists_every_verb_and_the_exit_codes() -> None:
    help_text = invoke("--help").output
    for verb in VERBS:
        assert re.search(rf"^  {verb} ", help_text, re.MULTILINE), verb
    assert "Exit codes: 0 done, 1 the answer is no" in " ".join(help_text.split())


@pytest.mark.parametrize("words", [("--help",), ("--version",), ("no-such-verb",)])
def test_asking_for_help_imports_nothing_heavy(words: tuple[str, ...]) -> None:
    script = (
        "import sys; from fastness.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        f"print(*(name for name in {HEAVY!r} if name in sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert done.stderr.splitlines()[-1] == ""


@pytest.mark.parametrize(
    ("words", "absent"),
    [
        (("version",), HEAVY),
        (("kubeconfig", "--state", "/nowhere"), HEAVY),
        (("crds", "--roles"), ("httpx", "uvicorn", "fastness.app.controllers")),
        (
            ("agent", "boot", "--trust", "/nowhere"),
            ("fastness.agent.apply", "fastness.agent.kata", "fastness.keys", "rich", "pygments"),
        ),
        (("agent", "run", "--node", "n", "--root", "/nowhere/root", "--kubeconfig", "/nowhere"), NOT_ON_NODES),
        (("up", "--help"), HEAVY + RUNNING),
        (("up", "--machines", "many"), HEAVY + RUNNING),
        (("demo", "--help"), HEAVY + RUNNING),
        (("demo", "--machines", "1"), HEAVY + RUNNING),
        (("serve", "--help"), RUNNING),
        (("serve", "--roles", "cook"), RUNNING),
        (("serve", "--adopt", "everything"), RUNNING),
        (("machine", "list", "--kubeconfig", "/nowhere"), ("httpx", "uvicorn", "fastness.app", "fastness.apiserver")),
        (("ticket", "--help"), ("httpx", "uvicorn", "fastness.app", "fastness.apiserver")),
        (("vault", "show", "--state", "/nowhere"), ("uvicorn", "jsonschema_rs", "fastness.apiserver.server")),
        (
            ("doctor", "--state", "/nowhere"),
            ("httpx", "uvicorn", "fastness.app", "fastness.attestation.live.collateral"),
        ),
    ],
)
def test_a_light_verb_imports_nothing_of_the_heavy_ones(words: tuple[str, ...], absent: tuple[str, ...]) -> None:
    script = (
        "import sys; from fastness.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        f"print('loaded:', *(name for name in {absent!r} if name in sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert done.stderr.splitlines()[-1] == "loaded:"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_a_help_of_its_own(verb: str) -> None:
    result = invoke(verb, "--help")
    assert result.exit_code == 0
    assert result.output.startswith(f"Usage: fastness {verb}")


@pytest.mark.parametrize("verb", VERBS)
def test_the_line_in_the_list_is_the_first_line_of_the_help(verb: str) -> None:
    command = cli.get_command(click.Context(cli), verb)
    assert command is not None
    if isinstance(command, click.Group):
        return  # a family says what its verbs have in common
    first = (command.help or "").strip().partition("\n\n")[0]
    assert first.split()[0] == VERBS[verb].help.split()[0]


def groups(command: click.Command, name: str = "fastness") -> Iterator[tuple[str, LazyGroup]]:
    if isinstance(command, click.Group):
        if isinstance(command, LazyGroup):
            yield name, command
        context = click.Context(command)
        for below in command.list_commands(context):
            subcommand = command.get_command(context, below)
            assert subcommand is not None, f"{name} {below}"
            yield from groups(subcommand, f"{name} {below}")


def test_the_lines_of_every_table_begin_as_the_help_of_the_verb_does() -> None:
    tables = dict(groups(cli))
    assert {"fastness", "fastness agent", "fastness machine", "fastness initdata"} <= tables.keys()
    for name, group in tables.items():
        for below, row in group.verbs.items():
            command = group.get_command(click.Context(group), below)
            assert command is not None
            assert name == "fastness" or (command.help or "").startswith(row.help.rstrip(".")), f"{name} {below}"


def test_an_unknown_verb_names_the_closest_one() -> None:
    result = invoke("backpu")
    assert result.exit_code == Exit.USAGE
    assert "there is no verb 'backpu'. Did you mean 'backup'?" in result.output


def test_a_verb_like_no_other_points_to_the_help() -> None:
    assert "See `fastness --help`." in invoke("xyzzy").output


def test_an_unknown_option_is_wrong_use() -> None:
    result = invoke("version", "--nonsense")
    assert result.exit_code == Exit.USAGE
    assert "No such option" in result.output


def test_version_is_printed_in_both_forms() -> None:
    assert invoke("--version").output == f"fastness {__version__}\n"
    assert invoke("version").output.startswith(f"fastness {__version__} (Kubernetes API v1.36, Python 3.")


def test_options_come_from_the_environment_too() -> None:
    result = CliRunner().invoke(cli, ["version"], prog_name="fastness", env={"FASTNESS_VERSION_OUTPUT": "json"})
    assert result.output.startswith("{")


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (StoreInUse("process 7 has it"), Exit.MISSING, "process 7 has it"),
        (NoCluster("nothing says where", "Set KUBECONFIG."), Exit.MISSING, "nothing says where"),
        (LacksOption("--webhook-url is missing", "Give it."), Exit.USAGE, "--webhook-url is missing"),
        (LacksCluster("no API server"), Exit.MISSING, "no API server"),
        (DamagedRecord("a tile is missing", "Restore it."), Exit.MISSING, "a tile is missing"),
        (BadKey("no key of ours"), Exit.MISSING, "no key of ours"),
        (Forbidden("you may not"), Exit.CLUSTER, "you may not"),
        (FileNotFoundError(2, "No such file or directory", "gone"), Exit.MISSING, "gone: No such file or directory"),
    ],
)
def test_errors_of_the_layers_become_a_sentence_a_hint_and_a_code(error: Exception, code: Exit, words: str) -> None:
    with pytest.raises(CliError) as caught, reported_errors():
        raise error
    assert caught.value.message == words
    assert caught.value.exit_code == code
    assert caught.value.hint == getattr(error, "hint", "")


def test_every_room_whose_errors_are_told_has_an_error_of_that_name() -> None:
    for name in ROOMS:
        module, _, kind = name.partition(":")
        assert issubclass(getattr(import_module(module), kind), FastnessError), name


def test_an_error_of_ours_that_no_verb_lets_out_is_a_defect() -> None:
    with pytest.raises(SeveralPools), reported_errors():
        raise SeveralPools("two pools claim it")


def test_a_defect_is_not_disguised_as_an_error_of_the_user() -> None:
    with pytest.raises(ZeroDivisionError), reported_errors():
        raise ZeroDivisionError


def test_the_hint_stands_on_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    CliError("it broke", "mend it").show()
    assert capsys.readouterr().err == "fastness: it broke\n  mend it\n"


def test_hints_name_only_verbs_that_exist() -> None:
    named: dict[str, set[str]] = {}
    for path in SOURCES.rglob("*.py"):
        for verb in re.findall(r"`fastness ([a-z][a-z-]*)", path.read_text()):
            named.setdefault(verb, set()).add(str(path.relative_to(SOURCES)))
    assert {verb: files for verb, files in named.items() if verb not in VERBS} == {}


def test_an_interrupt_while_a_verb_is_imported_ends_with_its_own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> click.Command:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "get_command", interrupted)
    result = invoke("version")
    assert (result.exit_code, "Aborted" in result.output) == (Exit.INTERRUPTED, False)


def test_what_nobody_expected_is_shown_as_a_defect(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> click.Command:
        raise LookupError("a verb that we broke")

    monkeypatch.setattr(cli, "get_command", broken)
    monkeypatch.setattr("sys.argv", ["fastness", "version"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == Exit.DEFECT
    assert "LookupError: a verb that we broke" in capsys.readouterr().err
