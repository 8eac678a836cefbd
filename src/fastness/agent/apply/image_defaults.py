"""What lies in /etc over the same default of the image goes, so that programs read the image's.

Before a machine boots an image of its pool its files are in /etc, where the agent wrote them. When it runs that image, a file of
which the image has the same below /usr is needed no more: left there it would hide what the next image brings. Rules:

- Only what is equal goes, and only where nobody else had a file: an original that was kept, or one that the image ships in its
  own /etc, would come back and win.
- A unit is disabled before its file goes and enabled after, so that its links lead to the file that is left.
- A machine that leaves its image writes all of it again before it reboots (`steps`: another image does not stay).
"""

from __future__ import annotations

from fastness.agent.apply.desired import UNITS, Desired, Target
from fastness.agent.apply.matching import has_default, matches
from fastness.agent.apply.steps import Disk, Enable, Put, Step, Word, kept_path
from fastness.agent.host.states import ABSENT, Absent, File


def uncover_steps(current: Desired, disk: Disk) -> list[Step]:
    """The steps that leave files to the image which has the same; none where there is nothing to do."""
    hiding = [path for path, target in current.paths.items() if _hides(path, target, disk)]
    units = [
        name for name, unit in current.units.items()
        if unit.enabled and f"{UNITS}/{name}" in hiding and disk.units.is_enabled(name) == Word.ENABLED
    ]  # fmt: skip
    return [
        *(Enable(name, Word.DISABLED) for name in units),
        *(Put(path, ABSENT) for path in hiding),
        *(Enable(name, Word.ENABLED) for name in units),
    ]


def _hides(path: str, target: Target, disk: Disk) -> bool:
    state = target.state
    if not isinstance(state, File) or not has_default(path, state, disk.root):
        return False
    others = (disk.originals.inspect(kept_path(path), 0), disk.root.inspect(f"/usr{path}", 0))
    return matches(disk.root.inspect(path, len(state.content)), state) and all(
        isinstance(each, Absent) for each in others
    )
