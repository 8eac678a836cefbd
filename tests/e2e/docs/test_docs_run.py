"""Every transcript in the documentation works, word for word, against a live control plane."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.components import require_program, require_root
from tests.e2e.docs.transcript import FOREGROUND, MAKE_UP, Shell, Step, blocks, matches, steps
from tests.e2e.live import Live, environment
from tests.realkube import RealKube

ROOT = Path(__file__).resolve().parents[3]
REFERENCE = "docs/reference"
PAGES = sorted(
    path.relative_to(ROOT)
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    if not path.is_relative_to(ROOT / REFERENCE)
)
ELSEWHERE = "<!-- transcript: by "
"""Such a page is run by the test that it names."""
TRANSCRIPTS = [page for page in PAGES if steps(text := (ROOT / page).read_text()) and ELSEWHERE not in text]
ON_KUBERNETES = "<!-- transcript: on a real Kubernetes -->"
ALONE = "<!-- transcript: without a control plane -->"
WITH_SOURCE = "<!-- transcript: beside a checkout in fastness -->"
AS_ROOT = re.compile(r"<!-- transcript: as root with ([\w, -]+) -->")
"""Such a page needs root, and Debian packages with a program of the same name."""
ON_ITS_OWN = frozenset({
    "docs/how-to/collect-a-support-bundle.md",  # shows what the bundle of a cluster without anything else holds
    "docs/how-to/deliver-through-the-gate.md",  # it turns enforcement on, for everybody
    "docs/how-to/enrol-machines.md",  # likewise
})  # fmt: skip
"""Pages that begin in a control plane which nobody has used; the others share one, which costs two seconds of a processor."""
NOT_RUN: dict[str, str] = {
    "docs/how-to/log-in-with-an-identity-provider.md": "it needs a provider; tests/component/page/test_provider_login.py has one"
}
"""Pages with `console-norun` blocks, each with the reason."""
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(#[^)\s]*)?\)")


@pytest.fixture
def bare_kube(real_kube_binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKube]:
    """A real cluster that has no DNS yet, unlike that of other tests: the page lets a person state where it will be.

    It ends with the page: it is not there for nothing while others are read.
    """
    with RealKube.start(tmp_path_factory.mktemp("bare"), real_kube_binaries, unsafe_no_fsync=True) as kube:
        yield kube


@dataclass
class Shared:
    """A control plane for pages, one after the other: none of them needs what another one changes."""

    live: Live
    readers: set[str] = field(default_factory=set)

    def takes(self, page: str) -> bool:
        """Whether a page may begin here; not for its second chance, which would find what its first one left."""
        welcome = page not in ON_ITS_OWN and page not in self.readers
        self.readers.add(page)
        return welcome


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    with Live.start(tmp_path_factory.mktemp("shared")) as live:
        yield Shared(live)


@pytest.fixture
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shell]:
    """A session as the page begins it: in an empty directory, beside a real Kubernetes, or beside a running control plane."""
    text = (ROOT / request.param).read_text()
    if needs := AS_ROOT.search(text):
        require_root("the sandbox of builds")
        for package in needs[1].split(", "):
            require_program(Path("/usr/bin") / package, package)
    kubeconfig, running = "", None
    if ON_KUBERNETES in text:
        kubeconfig = str(request.getfixturevalue("bare_kube").kubeconfig)
    elif ALONE not in text and not steps(text)[0].command.startswith(FOREGROUND):
        kubeconfig = "state/kubeconfig"
        running = _plane(request.getfixturevalue("shared"), str(request.param), tmp_path)
    if WITH_SOURCE in text:
        (tmp_path / "fastness").symlink_to(ROOT)
    session = Shell(tmp_path, environment(tmp_path, **({"KUBECONFIG": kubeconfig} if kubeconfig else {})))
    try:
        yield session
    finally:
        session.close()
        if running is not None:
            running.stop()


def _plane(shared: Shared, page: str, home: Path) -> Live | None:
    """A control plane in `home/state`: the shared one, or a new one that the caller ends."""
    if not shared.takes(page):
        return Live.start(home)
    (home / "state").symlink_to(shared.live.state)
    return None


@pytest.mark.processes
@pytest.mark.parametrize(("shell", "page"), [(page, page) for page in TRANSCRIPTS], indirect=["shell"], ids=str)
def test_transcripts_print_what_the_page_shows(shell: Shell, page: Path) -> None:
    for step in steps((ROOT / page).read_text()):
        printed = shell.run(step)
        assert matches(step.expected, printed), difference(page, step, printed)


def difference(page: Path, step: Step, printed: list[str]) -> str:
    expected, actual = "\n".join(step.expected), "\n".join(printed)
    return f"{page}\n$ {step.command}\n--- shown\n{expected}\n--- printed\n{actual}"


def test_make_up_is_what_the_transcripts_start_in_its_place() -> None:
    commands = subprocess.run(
        ["make", "--no-print-directory", "-n", "up"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=30
    ).stdout
    assert commands.splitlines()[-1].endswith(MAKE_UP.replace("fastness up", "/fastness up --state state"))


def test_the_readme_has_a_transcript() -> None:
    assert Path("README.md") in TRANSCRIPTS


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_commands_stand_in_transcripts_that_run(page: Path) -> None:
    for tag, content in blocks((ROOT / page).read_text()):
        if tag == "console-norun":
            assert NOT_RUN.get(str(page)), f"{page} has a transcript that is not run, and no reason"
        elif tag != "console":
            assert not re.search(r"^\$ ", content, re.MULTILINE), f"{page}: tag this block `console`:\n{content}"


@pytest.mark.parametrize(
    "page", [*PAGES, *sorted(path.relative_to(ROOT) for path in (ROOT / REFERENCE).rglob("*.md"))], ids=str
)
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.finditer((ROOT / page).read_text()):
        target = link[1]
        if "://" not in target and not target.startswith("mailto:"):
            assert (ROOT / page.parent / target).exists(), f"{page}: {target}"


def test_every_page_is_reachable_from_the_index() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md" or not page.exists():
            continue
        reached.add(page)
        waiting += [
            (page.parent / link[1]).resolve() for link in LINK.finditer(page.read_text()) if "://" not in link[1]
        ]
    assert {ROOT / page for page in PAGES} <= reached
