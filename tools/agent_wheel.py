"""Build the wheel of the agent: `python tools/agent_wheel.py [DIRECTORY]`.

The modules in it are those that the verbs of the agent can import, found by reading import statements from there on. Modules of
the server end the search: a function that names one of them is never called on a machine. So the list needs no upkeep; a test
checks that the wheel works alone and that the dependencies in `deploy/agent/pyproject.toml` are exactly those that its modules
import.
"""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

HOME = Path(__file__).parents[1]
SOURCE = HOME / "src"
RECIPE = HOME / "deploy" / "agent" / "pyproject.toml"
START = "fastness.cli.machine"
SERVER = (
    "fastness.apiserver",
    "fastness.keys",
    "fastness.http",
    "fastness.record",
    "fastness.attestation",
    "fastness.enrolment",
    "fastness.release",
    "fastness.admission",
    "fastness.page",
    "fastness.sim",
    "fastness.app",
    "fastness.machineconfig.loops",
    "fastness.workloads.loops",
)


def place(module: str) -> Path | None:
    """The file of a module of ours; None if there is none of that name."""
    base = SOURCE.joinpath(*module.split("."))
    files = [path for path in (base / "__init__.py", base.with_suffix(".py")) if path.exists()]
    return files[0] if files else None


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports anywhere, also what may be an attribute of one."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def closure() -> tuple[dict[str, Path], set[str]]:
    """The modules of the agent with their files, and the foreign packages that they import."""
    verbs = [f"{START}.{path.stem}" for path in sorted(SOURCE.joinpath(*START.split(".")).glob("agent*.py"))]
    waiting, modules, foreign = verbs, dict[str, Path](), set[str]()
    while waiting:
        module = waiting.pop()
        path = place(module)
        if module in modules or path is None or module.startswith(SERVER):
            continue
        modules[module] = path
        waiting += [module.rpartition(".")[0]] if "." in module else []
        for name in imports(path):
            top = name.partition(".")[0]
            if top == "fastness":
                waiting.append(name)
            elif top not in sys.stdlib_module_names:
                foreign.add(top)
    return modules, foreign


def build(directory: Path) -> Path:
    """Build the wheel into a directory; its file."""
    directory.mkdir(parents=True, exist_ok=True)
    modules, _ = closure()
    with tempfile.TemporaryDirectory() as scratch:
        stage = Path(scratch)
        for path in modules.values():
            target = stage / path.relative_to(SOURCE)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        shutil.copyfile(RECIPE, stage / "pyproject.toml")
        shutil.copyfile(HOME / "LICENSE", stage / "LICENSE")
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory.resolve())]
        subprocess.run(command, cwd=stage, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return next(directory.glob("fastness_agent-*.whl"))


if __name__ == "__main__":
    print(build(Path(sys.argv[1]) if len(sys.argv) > 1 else HOME / "dist"))
