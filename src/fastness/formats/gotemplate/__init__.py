"""Templates in Go's text/template language: from text to a tree, without running anything.

    lexer.py   From text to words: text between actions with the trimming done, and the words inside actions
    literals.py  Literals as Go writes them: quoted texts, characters and numbers
    parser.py  From words to the tree, with the scopes of variables checked
    tree.py    The tree that a template becomes

Understood is the whole language: text, comments and trimming, pipelines, fields, variables, literals of every sort but imaginary
numbers, `if`, `with`, `range`, `break`, `continue`, `define`, `block`, `template`. Which functions there are is the caller's
knowledge: a name that is none is refused here, as Go does.

* Parsing is total: a `Template` or a `TemplateError`, with line and column. Length and nesting are bounded.
* What Go refuses when it parses is refused here; what it refuses when it runs (types, missing keys) is the business of whoever
  runs the tree (`workloads/features/templates`).
"""

from fastness.formats.gotemplate.parser import MAX_DEPTH, MAX_TEXT, parse_template
from fastness.formats.gotemplate.tree import Template

__all__ = ["MAX_DEPTH", "MAX_TEXT", "Template", "parse_template"]
