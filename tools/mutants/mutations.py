"""The small mistakes that can be made in a module: a comparison that is off by one, a check that is missing."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

_COMPARED: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
_CALCULATED: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "//"),
    ast.FloorDiv: ("//", "*"),
    ast.Div: ("/", "*"),
    ast.Mod: ("%", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}
_TYPE = re.compile(r"None|bool|bytes|float|int|str|[A-Z]\w*[a-z]\w*(\[.*\])?")
_SWAPPED = {"min": "max", "max": "min"}
_CHECKS = {"strict", "stacklevel"}
"""Arguments that change nothing where the program is right (``zip``), or only a text (``warn``)."""
_SIZE = 1000
_MAY_BE_NONE = {"None", "bool", "Any", "object"}


@dataclass(frozen=True, order=True)
class Mutation:
    """One small mistake.

    Args:
        module: The file, inside the package: ``core/clock.py``.
        line: The number of its line.
        kind: What kind of mistake it is.
        before: The code of these lines, on one line.
        after: The same with the mistake.
        number: Of several that look alike in a module, which one.
        start: The first byte of the source that changes.
        end: The byte after the last.
        text: What stands there instead.
    """

    module: str
    line: int
    kind: str
    before: str
    after: str
    number: int
    start: int
    end: int
    text: str

    def __str__(self) -> str:
        return f"{self.module}:{self.line}  {self.before}  ->  {self.after}"

    def made(self, source: str) -> str:
        """The source with the mistake."""
        code = source.encode()
        return (code[: self.start] + self.text.encode() + code[self.end :]).decode()


def chosen(mutations: Iterable[Mutation], count: int, seed: int) -> list[Mutation]:
    """So many of them by chance. A change of the code elsewhere leaves the choice nearly as it is."""

    def place(each: Mutation) -> bytes:
        told = f"{seed} {each.module} {each.before} {each.after} {each.number}"
        return hashlib.sha256(told.encode()).digest()

    return sorted(sorted(mutations, key=place)[:count])


def mutations_of(source: str, module: str, before: Container[str] | None = None) -> list[Mutation]:
    """All mutations of a module's code. Docstrings, annotations, decorators and texts of errors and logs are left as they are.

    Args:
        source: The code.
        module: Its name.
        before: Only mutations of code like this: to compile all takes long. None = all.
    """
    found: list[Mutation] = []
    alike: dict[tuple[str, str], int] = {}
    for mutation in _Finder(source, module).found():
        if before is not None and mutation.before not in before:
            continue
        code = mutation.made(source)
        if mutation.before != mutation.after and _compiles(code):
            seen = (mutation.before, mutation.after)
            number = alike[seen] = alike.get(seen, 0) + 1
            found.append(replace(mutation, number=number))
    return found


def _compiles(code: str) -> bool:
    try:
        compile(code, "a mutant", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


class _Finder:
    def __init__(self, source: str, module: str) -> None:
        self._source, self._module = source, module
        self._code = source.encode()
        self._lines = [0]
        for line in self._code.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def found(self) -> Iterator[Mutation]:
        """In the order of the source."""
        yield from self._all(ast.parse(self._source).body, ())

    def _all(self, nodes: Iterable[ast.AST | None], returned: Sequence[str]) -> Iterator[Mutation]:
        for node in nodes:
            if node is not None:
                yield from self._of_expression(node)
                yield from self._of_statement(node, returned)
                yield from self._inside(node, returned)

    def _inside(self, node: ast.AST, returned: Sequence[str]) -> Iterator[Mutation]:
        """What may change in the parts of a node; ``returned`` is what its function may return."""
        match node:
            case ast.Raise() | ast.Assert() | ast.JoinedStr() | ast.Import() | ast.ImportFrom():
                return
            case ast.Call(func=ast.Attribute(value=ast.Name(id="logger"))):
                return
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                return
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from self._all([*node.args.defaults, *node.args.kw_defaults], ())
                yield from self._all(node.body, _names(node.returns))
            case ast.ClassDef():
                yield from self._all(node.body, ())
            case ast.AnnAssign():
                yield from self._all([node.value], returned)
            case ast.Call():
                passed = [each.value for each in node.keywords if each.arg not in _CHECKS]
                yield from self._all([node.func, *node.args, *passed], returned)
            case ast.BinOp() if _number(node) is not None:
                return  # it is one number, however it is written
            case _:
                yield from self._all(ast.iter_child_nodes(node), returned)

    def _of_expression(self, node: ast.AST) -> Iterator[Mutation]:
        """Another operator, or another value."""
        match node:
            case ast.Compare():
                sides = [node.left, *node.comparators]
                for left, right, operator in zip(sides, node.comparators, node.ops, strict=False):
                    yield self._between("comparison", left, right, _COMPARED[type(operator)])
            case ast.BoolOp():
                operators = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
                for left, right in zip(node.values, node.values[1:], strict=False):
                    yield self._between("and, or", left, right, operators)
            case ast.UnaryOp(op=ast.Not()):
                yield self._instead("not dropped", node, f"({self._text(node.operand)})")
            case ast.BinOp():
                yield from self._of_calculation(node)
            case ast.Constant(value=int() as value):  # True and False are such too
                for other in _others(value):
                    yield self._instead("value", node, str(other))
            case ast.Call(func=ast.Name(id="min" | "max" as name)):
                yield self._instead("min, max", node.func, _SWAPPED[name])

    def _of_calculation(self, node: ast.BinOp) -> Iterator[Mutation]:
        value = _number(node)
        if value is not None:
            for other in _others(value):
                yield self._instead("value", node, str(other))
        elif type(node.op) in _CALCULATED and not (_is_text(node) or _is_type(node)):
            operators = _CALCULATED[type(node.op)]
            yield self._between("calculation", node.left, node.right, operators)
            yield self._instead("operand dropped", node, f"({self._text(node.left)})")

    def _of_statement(self, node: ast.AST, returned: Sequence[str]) -> Iterator[Mutation]:
        """Something that is not done."""
        match node:
            case ast.If(
                body=[ast.Raise() | ast.Return() | ast.Continue() | ast.Break()], orelse=[]
            ):
                yield self._instead("check dropped", node, "pass")
            case ast.Expr(value=ast.Call() as call) if not _is_log(call):
                yield self._instead("call dropped", node, "pass")
            case ast.Return(value=ast.Constant(value=None | False)):
                return  # whoever asks takes None for False
            case ast.Return(value=ast.expr()) if _MAY_BE_NONE.intersection(returned):
                yield self._instead("returns None", node, "return None")

    def _between(
        self, kind: str, left: ast.expr, right: ast.expr, operators: tuple[str, str]
    ) -> Mutation:
        """Another operator between two operands."""
        start, end = self._end(left), self._start(right)
        text = self._code[start:end].decode().replace(*operators, 1)
        return self._mutation(kind, start, end, text)

    def _instead(self, kind: str, node: ast.expr | ast.stmt, text: str) -> Mutation:
        return self._mutation(kind, self._start(node), self._end(node), text)

    def _mutation(self, kind: str, start: int, end: int, text: str) -> Mutation:
        line = self._code.count(b"\n", 0, start)
        first = self._lines[line]
        last = self._lines[self._code.count(b"\n", 0, end) + 1]
        before = self._code[first:last].decode()
        after = f"{self._code[first:start].decode()}{text}{self._code[end:last].decode()}"
        told = (" ".join(each.split()) for each in (before, after))
        return Mutation(self._module, line + 1, kind, *told, 0, start, end, text)

    def _text(self, node: ast.expr) -> str:
        return self._code[self._start(node) : self._end(node)].decode()

    def _start(self, node: ast.expr | ast.stmt) -> int:
        return self._lines[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._lines[node.end_lineno - 1] + node.end_col_offset


def _others(value: float) -> list[float]:
    """What may stand in the place of a truth value or a number.

    One more of a round size, as 50,000 rows or 64 KB, is a mistake of nobody.
    """
    if isinstance(value, bool):
        return [not value]
    if value >= _SIZE and (value % 1000 == 0 or value % 1024 == 0):
        return [value * 2]
    return list(dict.fromkeys((value + 1, value * 2 or 1)))


def _number(node: ast.BinOp) -> float | None:
    """The number that an expression of nothing but numbers stands for, as ``64 * 1024``; it is one decision."""
    leaves = [each for each in ast.walk(node) if not isinstance(each, ast.BinOp | ast.operator)]
    if not all(
        isinstance(each, ast.Constant) and type(each.value) in (int, float) for each in leaves
    ):
        return None
    number: float = eval(ast.unparse(node))
    return number


def _names(annotation: ast.expr | None) -> list[str]:
    """The types of a union, as an annotation names them."""
    return ast.unparse(annotation).split(" | ") if annotation is not None else []


def _is_text(node: ast.BinOp) -> bool:
    """Whether texts are joined."""
    return any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in (node.left, node.right)
    )


def _is_type(node: ast.BinOp) -> bool:
    """Whether it is a union of types, by the look of a side of it."""
    sides = map(ast.unparse, (node.left, node.right))
    return isinstance(node.op, ast.BitOr) and any(map(_TYPE.fullmatch, sides))


def _is_log(call: ast.Call) -> bool:
    return ast.unparse(call.func).startswith("logger.")
