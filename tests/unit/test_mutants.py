"""`make mutants` makes small mistakes in the code, and tells those that no test near them notices."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.git import git
from tools.mutants.__main__ import FOLDERS, ROOT, every_mutation, main, proof
from tools.mutants.equivalent import EQUIVALENT, Equivalent
from tools.mutants.mutations import chosen, mutations_of
from tools.mutants.nearest import PACKAGE, Nearest
from tools.mutants.trial import MutantsError


@pytest.mark.parametrize(
    ("code", "mutants"),
    [
        ("a < b", ["a <= b"]),
        ("a < b <= c", ["a <= b <= c", "a < b < c"]),
        ("(a) > (b)", ["(a) >= (b)"]),
        ("a == b", ["a != b"]),
        ("a is not None", ["a is None"]),
        ("a not in b", ["a in b"]),
        ("a and b and c", ["a or b and c", "a and b or c"]),
        ("not a", ["(a)"]),
        ("a - b", ["a + b", "(a)"]),
        ("a * b", ["a // b", "(a)"]),
        ("(a & b) | c", ["(a & b) & c", "(a & b)", "(a | b) | c", "((a)) | c"]),
        ("a = True", ["a = False"]),
        ("a = 5", ["a = 6", "a = 10"]),
        ("a = 0", ["a = 1"]),
        ("a = 2_000, 64 * 1024", ["a = 4000, 64 * 1024", "a = 2_000, 131072"]),
        ("a = 2 * 8 - 1", ["a = 16", "a = 30"]),
        ("a = 2 * b", ["a = 2 // b", "a = (2)", "a = 3 * b", "a = 4 * b"]),
        ("a = min(b, c)", ["a = max(b, c)"]),
        ("f()", ["pass"]),
        ("def f(a=1): ...", ["def f(a=2): ..."]),
        ("def f(a: int, *, b=False): ...", ["def f(a: int, *, b=True): ..."]),
        ("def f():\n    if a:\n        return", ["pass"]),
        ("if a:\n    raise E(1 + 1)", ["pass"]),
        ("for a in b:\n    if a:\n        continue", ["pass"]),
        ("def f() -> int | None:\n    return a", ["return None"]),
        ("def f() -> int:\n    return a", []),
        ("def f() -> bool:\n    return False", ["return True"]),
        ("zip(a, b, strict=True)", ["pass"]),
    ],
)  # fmt: skip
def test_a_mistake_of_each_kind(code: str, mutants: list[str]) -> None:
    """An operator, a value, something that is not done."""
    assert [each.after for each in mutations_of(code + "\n", "a.py")] == mutants


@pytest.mark.parametrize(
    "code",
    [
        '"""A text with 1 < 2."""',
        "a: Literal[1] | None = None",
        "@lru_cache(maxsize=10)\ndef f(a: Literal[2]) -> Literal[3]: ...",
        "raise E(1 + 1)",
        "a = f'{b + 1}'",
        "a = 'b' + c",
        "logger.warning(1 + 1)",
        "assert a < b",
        "A = tuple[int, bytes | None]",
        "A = Decoded | Changed",
        "if TYPE_CHECKING:\n    a = 1",
    ],
)
def test_what_is_no_decision_of_the_program_stays(code: str) -> None:
    """Texts, types, logs, and checks of the program itself."""
    assert mutations_of(code + "\n", "a.py") == []


def test_a_mutation_changes_its_place_alone() -> None:
    """Also behind other characters than ASCII's; two that look alike are distinguished."""
    source = "a = 'é', b < c\nif a:\n    return_(1)\nreturn_(1)\n"
    made = [each.made(source) for each in mutations_of(source, "a.py")]

    assert made[0] == source.replace("<", "<=")
    assert len(set(made)) == len(made)


def test_the_same_seed_chooses_the_same() -> None:
    """Another seed others; a line more in the module moves the rest of the choice down, and changes it by one at most."""
    source = "".join(f"a{number} < b\n" for number in range(100))
    every = mutations_of(source, "a.py")
    with_another = mutations_of("x < y\n" + source, "a.py")
    some = {each.after for each in chosen(every, 20, 1)}

    assert some == {each.after for each in chosen(list(reversed(every)), 20, 1)}
    assert some != {each.after for each in chosen(every, 20, 2)}
    assert len(some - {each.after for each in chosen(with_another, 20, 1)}) <= 1
    assert len(chosen(every, 1000, 1)) == 100


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A package of three modules, with the tests of one."""
    files = {
        "pyspark_upsert_kafka/__init__.py": "",
        "pyspark_upsert_kafka/core/__init__.py": "",
        "pyspark_upsert_kafka/core/larger.py": (
            "def larger(a, b):\n    if a < b:\n        return b\n    return a\n"
        ),
        "pyspark_upsert_kafka/core/largest.py": (
            "from pyspark_upsert_kafka.core.larger import larger\n\n\ndef largest(a, *more):\n"
            "    for b in more:\n        a = larger(a, b)\n    return a\n"
        ),
        "pyspark_upsert_kafka/core/untested.py": "A = 1\n",
        "pyspark_upsert_kafka/core/shown.py": '"""One more.\n\n>>> f(1)\n2\n"""\n\n\ndef f(a):\n    return a + 1\n',
        "tests/__init__.py": "",
        "tests/unit/core/samples.py": (
            "from pyspark_upsert_kafka.core.largest import largest\n\n\ndef more():\n"
            "    from tests.unit.core.more_samples import more\n"
        ),
        "tests/unit/core/more_samples.py": "from tests.unit.core.samples import largest\n",
        "tests/unit/core/test_larger.py": (
            "from pyspark_upsert_kafka.core.larger import larger\n\n\ndef test_it():\n"
            "    assert larger(1, 2) == 2\n    assert larger(2, 1) == 2\n"
        ),
        "tests/unit/core/test_all.py": "from tests.unit.core.samples import largest\n",
        "tests/unit/other/test_elsewhere.py": "from pyspark_upsert_kafka.core.larger import larger\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    git(tmp_path, "init", "--quiet")
    return tmp_path


def test_the_nearest_tests_of_a_module(tree: Path) -> None:
    """Examples of its docstrings, its own file and those of its folder that import it; else those that do so by something else.

    What is beside the tests may import one another.
    """
    nearest = Nearest(tree)

    assert nearest.of("core/larger.py") == (
        "tests/unit/core/test_larger.py",
        "tests/unit/core/test_all.py",
    )
    assert nearest.of("core/largest.py") == ("tests/unit/core/test_all.py",)
    assert nearest.of("core/untested.py") == ()
    assert nearest.of("core/shown.py") == ("pyspark_upsert_kafka/core/shown.py",)
    (tree / "tests/unit/core/test_larger.py").unlink()
    assert Nearest(tree).of("core/larger.py") == ("tests/unit/core/test_all.py",)


@pytest.mark.long("runs pytest for each of seven mistakes")
def test_a_mistake_is_noticed_or_survives(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Numbers that are equal may be compared either way: that one is named as no mistake. The tree stays as it is."""
    every = every_mutation(tree, ["core/larger.py", "core/untested.py"])
    before = (tree / "pyspark_upsert_kafka/core/larger.py").read_text()
    same = Equivalent("core/larger.py", "if a < b:", "if a <= b:", "they are equal")

    with pytest.raises(MutantsError, match=r"^1 of 3 .* 33\.3%; 0 more"):
        proof(tree, every, [], jobs=1)
    assert "survivor: core/larger.py:2  if a < b:  ->  if a <= b:" in capsys.readouterr().out
    assert proof(tree, every_mutation(tree, ["core/larger.py"]), [same], jobs=1).said == (
        "1 of 1 mutations are noticed, 100.0%; 1 more change nothing"
    )
    assert proof(tree, every_mutation(tree, ["core/shown.py"]), [], jobs=1).said.startswith(
        "3 of 3"
    )
    assert (tree / "pyspark_upsert_kafka/core/larger.py").read_text() == before


@pytest.mark.parametrize(
    ("added", "said"),
    [
        ("    assert larger(1, 1) == 2\n", "test_larger.py::test_it fails without"),
        pytest.param(
            "import nothing_of_this_name\n",
            "test_larger.py fails without",
            marks=pytest.mark.long("runs pytest once more"),
        ),
    ],
)
def test_tests_that_fail_by_themselves_notice_nothing(tree: Path, added: str, said: str) -> None:
    """They would notice all."""
    test = tree / "tests/unit/core/test_larger.py"
    test.write_text(test.read_text() + added)

    with pytest.raises(MutantsError, match=re.escape(said)):
        proof(tree, every_mutation(tree, ["core/larger.py"]), [], jobs=1)


def test_what_is_named_the_same_is_a_mutation_of_the_code() -> None:
    """A line that has changed is looked at again."""
    modules = sorted({each.module for each in EQUIVALENT})
    code = {each.before for each in EQUIVALENT}
    made = {(each.module, each.before, each.after) for each in every_mutation(ROOT, modules, code)}

    assert [each for each in EQUIVALENT if (each.module, each.before, each.after) not in made] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_folders_are_there(folder: str) -> None:
    """One that was moved would be left out."""
    assert (ROOT / PACKAGE / folder).exists()


def test_a_folder_that_is_not_there_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """All of no mutations would be noticed."""
    with pytest.raises(SystemExit):
        main(["--list", "core/position"])

    assert (
        "no folder or module core/position; give one as core/positions" in capsys.readouterr().err
    )
