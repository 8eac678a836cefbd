"""Regular expressions as Go and RE2 read them, where they run, and how much that costs.

    parser.py   From a pattern to a tree
    program.py  From the tree to a program, and running it over a text: all ways at once, in linear time

Known are alternatives, groups with and without names, repetitions (greedy and lazy), classes with ranges and their POSIX names,
escapes, anchors, word boundaries, and the flags i, m, s and U. Not known are Unicode classes (`\\pL`); back-references and
look-around do not exist in RE2 either.

* Reading is total: a `Regexp` or a `RegexpError`. The length of a pattern, its nesting and the size of the program are bounded.
* Running never goes back: each character of a text is looked at once, with at most as many threads as the program has steps. The
  caller is told how many that were (`spend`) and may end it.
* Of several matches the leftmost counts, and of those the one that a search from left to right through the pattern finds first.
"""

from fastness.formats.regexp.parser import MAX_PATTERN
from fastness.formats.regexp.program import Regexp, compile_regexp

__all__ = ["MAX_PATTERN", "Regexp", "compile_regexp"]
