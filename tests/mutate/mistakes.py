"""Small realistic mistakes in Python source: each one place of the syntax tree, written as text, with the rest of the file untouched."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

COMPARED = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
COMPUTED = {ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.FloorDiv: "*", ast.Mod: "+"}
LARGEST = 100
"""Numbers beyond that are limits of formats and times; one more or less is nothing that a test has to know."""
UNSEEN = ("log", "_log", "self._log", "notify")
"""What is only told to people who read logs: leaving it out, or another number in it, is no mistake of the kind meant here."""
MOMENT = re.compile(r"\.time\(\)|clock\(\)|monotonic(?:_ns)?\(\)|\bdeadline\b|\bnow - ")
"""One side of a comparison of two moments of a running clock, or of how long ago one was with a limit, which are never equal: with or without
`=` is the same."""
ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


@dataclass(frozen=True)
class Mistake:
    """`start` and `end` are offsets in the file's UTF-8 bytes; `line` counts from 1."""

    file: str
    line: int
    start: int
    end: int
    new: str
    what: str

    def applied(self, source: bytes) -> bytes:
        return source[: self.start] + self.new.encode() + source[self.end :]


class _Places(ast.NodeVisitor):
    def __init__(self, file: str, source: bytes) -> None:
        self.found: list[Mistake] = []
        self._file = file
        self._source = source
        self._lines = [0]
        for line in source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def _at(self, line: int, column: int) -> int:
        return self._lines[line - 1] + column

    def _text(self, node: ast.expr | ast.stmt) -> str:
        return self._source[self._span(node)[0] : self._span(node)[1]].decode()

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _note(self, node: ast.expr | ast.stmt, new: str, what: str) -> None:
        self.found.append(Mistake(self._file, node.lineno, *self._span(node), new, what))

    def _between(self, left: ast.expr, right: ast.expr, new: str, what: str) -> None:
        """The operator between the two, where nothing else stands there (no bracket, no line break)."""
        start, end = self._span(left)[1], self._span(right)[0]
        operator = self._source[start:end].decode()
        if operator.strip() and "(" not in operator and ")" not in operator and "\n" not in operator:
            self.found.append(Mistake(self._file, left.lineno, start, end, f" {new} ", f"{operator.strip()} → {what}"))

    def visit_Compare(self, node: ast.Compare) -> None:
        is_of_moments = isinstance(node.ops[0], ORDERED) and MOMENT.search(self._text(node))
        if len(node.ops) == 1 and not is_of_moments and (new := COMPARED.get(type(node.ops[0]))):
            self._between(node.left, node.comparators[0], new, new)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        new = "or" if isinstance(node.op, ast.And) else "and"
        self._between(node.values[0], node.values[1], new, new)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        is_text = any(
            isinstance(side, ast.JoinedStr | ast.Constant) and not _is_number(side) for side in (node.left, node.right)
        )
        if not is_text and (new := COMPUTED.get(type(node.op))):
            self._between(node.left, node.right, new, new)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._note(node, f"({self._text(node.operand)})", "not left out")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Of `zip` without its `strict`, which is a check of its own, of what cannot be; of `field` nothing: how a class is made."""
        if isinstance(node.func, ast.Name) and node.func.id == "zip":
            for argument in node.args:
                self.visit(argument)
        elif isinstance(node.func, ast.Name) and node.func.id == "field":
            return
        elif not self._text(node).startswith(UNSEEN):
            self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._note(node, str(not node.value), f"{node.value} → {not node.value}")
        elif isinstance(node.value, int) and 0 <= node.value <= LARGEST:
            self._note(node, str(node.value + 1), f"{node.value} → {node.value + 1}")

    def visit_If(self, node: ast.If) -> None:
        """Nothing where all that it guards is a log line, which may be left out too."""
        if not node.orelse and all(self._text(each).startswith(UNSEEN) for each in node.body):
            return
        if not isinstance(node.test, ast.NamedExpr) and self._text(node.test) != "TYPE_CHECKING":
            self._note(node.test, "False", f"never: if {self._text(node.test)}")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        """A call for its effect, left out."""
        call = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(call, ast.Call) and not self._text(call).startswith(UNSEEN):
            self._note(node, "pass", f"left out: {self._text(node).splitlines()[0]}")
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and isinstance(node.value, ast.BinOp | ast.Compare | ast.BoolOp):
            self.generic_visit(node)
        elif node.value is not None and not isinstance(node.value, ast.Constant):
            self._note(node, "return None", f"nothing instead of {self._text(node.value).splitlines()[0]}")
            self.generic_visit(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        self._note(node, "break", "continue → break")

    def visit_Break(self, node: ast.Break) -> None:
        self._note(node, "continue", "break → continue")

    def visit_arguments(self, node: ast.arguments) -> None:
        """Annotations and defaults of a signature are left alone."""

    def visit_Module(self, node: ast.Module) -> None:
        """Not durations and sizes that are computed there (`2 * HOUR`): a little more or less is nothing that a test has to know."""
        for each in node.body:
            if not (isinstance(each, ast.Assign) and isinstance(each.value, ast.BinOp)):
                self.visit(each)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Not what only says how others are called; one of asyncio's protocols, or uvicorn's, is no such."""
        if not any(re.fullmatch(r"Protocol(\[.*\])?", ast.unparse(base)) for base in node.bases):
            for each in node.body:
                self.visit(each)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for each in node.body:  # not the decorators, which describe
            self.visit(each)

    visit_FunctionDef = _function  # noqa: N815  # the names are of `ast`
    visit_AsyncFunctionDef = _function  # noqa: N815


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def mistakes(file: str, source: bytes) -> Iterator[Mistake]:
    """Those of one file, in the order of the file, only such as still compile."""
    places = _Places(file, source)
    places.visit(ast.parse(source))
    for mistake in sorted(places.found, key=lambda each: (each.start, each.end)):
        try:
            compile(mistake.applied(source), file, "exec")
        except SyntaxError:
            continue
        yield mistake
