"""Who may import whom: imports point inwards only."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import pyspark_upsert_kafka

ROOT = Path(pyspark_upsert_kafka.__file__).parent
NAME = "pyspark_upsert_kafka"

MAY_IMPORT = {
    "core": set(),
    "formats": {"core"},
    "logins": {"core", "http_request"},
    "kafka": {"logins", "core"},
    "registry": {"logins", "formats", "core", "http_request"},
    "connector": set(),
    "connector.format_catalog": {"registry", "formats", "core"},
    "connector.local_time": set(),
    "connector.spark_task": set(),
    "connector.interpreter": {"core"},
    "connector.bad_messages": {"kafka", "core"},
    "connector.schema_inference": {"connector.format_catalog", "kafka", "formats", "core"},
    "connector.reading": {
        "connector.schema_inference",
        "connector.bad_messages",
        "connector.format_catalog",
        "connector.local_time",
        "connector.spark_task",
        "kafka",
        "formats",
        "core",
    },
    "connector.planning": {
        "connector.schema_inference",
        "connector.reading",
        "connector.bad_messages",
        "connector.format_catalog",
        "connector.spark_task",
        "kafka",
        "formats",
        "core",
    },
    "connector.dead_letter_replay": {"connector.bad_messages", "kafka", "core"},
    "connector.reported_writes": {"core"},
    "connector.writing": {
        "connector.reported_writes",
        "connector.format_catalog",
        "connector.local_time",
        "connector.spark_task",
        "kafka",
        "formats",
        "core",
    },
    "connector.listener": {"connector.listener_metrics", "connector.reported_writes", "core"},
    "connector.listener_metrics": {"connector.listener", "core"},
    "connector.changelog": {"connector.spark_task", "formats", "core"},
    "connector.lakehouse": {"connector.changelog", "core"},
    "connector.read_request": {
        "connector.schema_inference",
        "connector.format_catalog",
        "kafka",
        "core",
    },
    "connector.change_stream": {
        "connector.read_request",
        "connector.planning",
        "connector.reading",
        "core",
    },
    "connector.read_changes": {
        "connector.change_stream",
        "connector.schema_inference",
        "connector.read_request",
        "connector.format_catalog",
        "kafka",
        "core",
    },
    "connector.read_table": {
        "connector.read_request",
        "connector.planning",
        "connector.reading",
        "connector.format_catalog",
        "core",
    },
    "connector.datasource": {
        "connector.planning",
        "connector.schema_inference",
        "connector.writing",
        "core",
    },
    "sql": {
        "connector.schema_inference",
        "connector.writing",
        "connector.format_catalog",
        "kafka",
        "core",
    },
    "cli": {
        "sql",
        "connector.planning",
        "connector.schema_inference",
        "connector.reading",
        "connector.bad_messages",
        "connector.change_stream",
        "connector.datasource",
        "connector.dead_letter_replay",
        "connector.writing",
        "connector.listener",
        "connector.read_request",
        "connector.format_catalog",
        "kafka",
        "logins",
        "formats",
        "core",
        "version",
    },
    "__main__": {"cli"},
    "http_request": set(),
    "version": set(),
}
"""The folders, and the files beside them, and what of the package each imports beside itself: reading and writing do not
know each other, and nobody knows scripts and the command line. The public names in ``__init__`` come from everywhere."""

FOR_A_NEIGHBOUR = 10
"""Modules that one neighbour in their folder alone imports, and that would be one module of a usual length with it."""

USUAL_LINES = 450

NETWORK = {
    "aiohttp", "asyncio", "ftplib", "http", "httpx", "requests", "smtplib", "socket", "socketserver",
    "ssl", "urllib.request", "urllib3", "xmlrpc",
}  # fmt: skip
EDGES = {"kafka", "registry", "logins", "http_request.py"}
CLIENTS = {"confluent_kafka", "kafka"}
CLIENT_FOLDERS = {
    "librdkafka": {"confluent_kafka"},
    "kafka_python": {"kafka"},
    "native": {"confluent_kafka"},
    "local": {"confluent_kafka"},
}
"""The folders of ``kafka`` that may import a client, and which; ``local`` tries whether a broker answers. A new client has a
line here, and its library one in ``CLIENTS``."""
ENGINES = {"confluent_kafka", "kafka", "numpy", "pandas", "polars", "pyarrow", "orjson"}


def modules(ring: str = ".") -> list[Path]:
    """The source files of a ring."""
    return sorted((ROOT / ring).rglob("*.py"))


@lru_cache(maxsize=400)  # more files than the package has
def parsed(file: Path) -> ast.Module:
    """What a file says, parsed once."""
    return ast.parse(file.read_text(encoding="utf-8"))


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """The statements in a module, at any depth; expressions, which are most of it, hold none."""
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        for each in getattr(node, part, ()):
            yield each
            yield from statements(each)


@cache
def imports(file: Path) -> list[str]:
    """Every module that a file imports, anywhere in it, by its full name."""
    found: list[str] = []
    for node in statements(parsed(file)):
        if isinstance(node, ast.Import):
            found += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} imports by a relative name"
            found += (f"{node.module}.{alias.name}" for alias in node.names)
    return found


def part_of(module: str) -> str:
    """The part of our package in which a module is, by its full name: ``core``, ``connector.reading``, ..."""
    parts = module.split(".")[1:]
    return ".".join(parts[: 2 if parts[0] == "connector" else 1])


def imported_parts(file: Path) -> set[str]:
    """The parts of our package that a file imports: ``core``, ``connector.reading``, ..."""
    return {part_of(name) for name in imports(file) if name.startswith(f"{NAME}.")}


def network_modules(file: Path) -> set[str]:
    """The modules for network connections that a file imports."""
    names = set(imports(file))
    return {
        module
        for module in NETWORK
        if any(name == module or name.startswith(f"{module}.") for name in names)
    }


def at_import(file: Path) -> Iterator[str]:
    """The top-level packages that importing a file loads: not those for type checkers or in functions."""
    for node in parsed(file).body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def is_there(name: str) -> bool:
    """Whether a full name is that of a module, or of something that a module has."""
    path = ROOT.parent.joinpath(*name.split("."))
    if path.is_dir() or path.with_suffix(".py").is_file():
        return True
    folder, file = path.parent / "__init__.py", path.parent.with_suffix(".py")
    return any(each.is_file() and path.name in names_of(each) for each in (folder, file))


@cache
def names_of(file: Path) -> set[str]:
    """The names that a file defines or imports, anywhere in it."""
    found: set[str] = set()
    for node in statements(parsed(file)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update(alias.asname or alias.name for alias in node.names)
        else:
            found |= bound_by(node)
    return found


def broken_by(files: Iterable[Path], wrong: Callable[[Path], set[str]]) -> dict[str, set[str]]:
    """The files that break a rule, each with the imports that are wrong about it."""
    found = {str(file.relative_to(ROOT)): wrong(file) for file in files}
    assert len(found) > 0
    return {file: names for file, names in found.items() if names}


def rule_of(file: Path) -> str:
    """The part of our package in which a file is."""
    module = file.relative_to(ROOT.parent).with_suffix("")
    return part_of(".".join(module.parts).removesuffix(".__init__"))


def test_imports_point_inwards():
    """The core knows nobody, formats and the edges know the core, and nobody who is inside knows who is outside."""
    files = [file for file in modules() if file != ROOT / "__init__.py"]

    def wrong(file: Path) -> set[str]:
        part = rule_of(file)
        return imported_parts(file) - MAY_IMPORT[part] - {part}

    assert broken_by(files, wrong) == {}


def clients(file: Path) -> set[str]:
    """The Kafka clients that a file imports."""
    return {name.partition(".")[0] for name in imports(file)} & CLIENTS


def test_only_the_edge_knows_a_kafka_client():
    """Whoever wants Kafka asks the seam, so that another client can take its place."""
    files = [file for file in modules() if file.relative_to(ROOT).parts[0] != "kafka"]

    assert broken_by(files, clients) == {}


def test_each_folder_has_its_place():
    """A new folder of the package is ruled as well, and a new file beside them; what may be imported is."""
    files = [file for file in modules() if file != ROOT / "__init__.py"]
    imported: dict[str, set[str]] = defaultdict(set)
    for file in files:
        imported[rule_of(file)] |= imported_parts(file) - {rule_of(file)}

    assert imported == MAY_IMPORT


def test_a_client_is_imported_in_its_folder_alone():
    """What both clients share depends on neither."""

    def wrong(file: Path) -> set[str]:
        folder = file.relative_to(ROOT / "kafka").parts[0]
        return clients(file) - CLIENT_FOLDERS.get(folder, set())

    assert broken_by(modules("kafka"), wrong) == {}


def test_native_functions_have_one_entry():
    """Nobody outside knows a module of `kafka.native`, and of the rest of the package that folder knows no client."""
    native, seam = ROOT / "kafka" / "native", f"{NAME}.kafka.native"

    def inside(file: Path) -> set[str]:
        entry = {f"{seam}.{name}" for name in names_of(native / "__init__.py")}
        return {name for name in imports(file) if name.startswith(f"{seam}.")} - entry

    def clients_of_ours(file: Path) -> set[str]:
        return {name for name in imports(file) if name.startswith(f"{NAME}.kafka.librdkafka")}

    outside = [file for file in modules() if native not in file.parents]
    assert broken_by(outside, inside) == {}
    assert broken_by(modules("kafka/native"), clients_of_ours) == {}


def test_each_client_is_ruled():
    """The folder of each client is named here with the library that it may import, and the library is one of CLIENTS."""
    folders = {
        file.parent.name
        for file in (ROOT / "kafka").glob("*/__init__.py")
        if "CLIENT" in names_of(file)
    }

    assert len(folders) > 1
    assert folders <= {*CLIENT_FOLDERS}
    assert set().union(*CLIENT_FOLDERS.values()) == CLIENTS


def test_only_the_edges_know_the_network():
    """A broker or a registry is asked by its edge; everyone else is given what it answered."""
    files = [file for file in modules() if file.relative_to(ROOT).parts[0] not in EDGES]

    assert broken_by(files, network_modules) == {}


def circle(imported: dict[str, set[str]]) -> list[str]:
    """Parts of the package that import each other, one after another; empty when there is no circle."""
    try:
        TopologicalSorter(imported).prepare()
    except CycleError as error:
        return [*error.args[1]]
    return []


def test_no_circle_in_the_core():
    """Its folders and the files beside them have an order, in which each imports those before it alone."""
    core = ROOT / "core"
    imported: dict[str, set[str]] = {}
    for file in modules("core"):
        part = file.relative_to(core).with_suffix("").parts[0]
        parts = {name.split(".")[2] for name in imports(file) if name.startswith(f"{NAME}.core.")}
        imported[part] = imported.get(part, set()) | parts - {part}

    assert circle(imported) == []
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) != []


def test_a_module_is_one_decision():
    """Few modules serve one neighbour alone, with which they would be one of a usual length: fewer each time, never more."""
    modules_ = {
        ".".join(file.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(
            ".__init__"
        ): file
        for file in modules()
    }
    importers: dict[str, set[str]] = defaultdict(set)
    for importer, file in modules_.items():
        for full in imports(file):
            importers[full if full in modules_ else full.rpartition(".")[0]].add(importer)
    lines = {module: len(file.read_text().splitlines()) for module, file in modules_.items()}
    alone = [
        f"{module} for {importer}"
        for module, file in modules_.items()
        if file.name != "__init__.py" and len(importers[module]) == 1
        for importer in importers[module]
        if modules_[importer].parent == file.parent
        and lines[module] + lines[importer] <= USUAL_LINES
    ]

    assert len(alone) <= FOR_A_NEIGHBOUR, "\n".join(alone)


def test_the_core_loads_no_engine():
    """Planning is plain Python: Arrow and its like are loaded by those who handle data."""
    assert broken_by(modules("core"), lambda file: {*at_import(file)} & ENGINES) == {}


@pytest.mark.parametrize("folder", ["tests", "tools", "benchmarks", "examples"])
def test_what_others_import_is_there(folder):
    """Tests and tools that no one runs every day follow when a module moves or a name changes."""
    wanted = {
        name
        for file in (ROOT.parent / folder).rglob("*.py")
        for name in imports(file)
        if name.startswith((f"{NAME}.", "tests.", "tools."))
    }

    assert [name for name in sorted(wanted) if not is_there(name)] == []


def test_unit_tests_mirror_the_package():
    """Unit tests of a folder of the package are in the folder of the same name."""
    unit = Path(__file__).parent
    folders = {file.parent.relative_to(unit) for file in unit.rglob("test_*.py")}

    assert len(folders) > 10
    assert [str(folder) for folder in folders if not (ROOT / folder).is_dir()] == []


MOST_WITH_ONE_CONSUMER = 0.35
"""The share of names with one consumer that there may be, beside interfaces, entry points and tables: each is a border too many.
Lower it when rooms are joined."""

ENTRIES = {ROOT / "__init__.py", ROOT / "__main__.py"}
"""What users call is taken from here."""


def test_names_that_others_import_have_two_consumers():
    """Or are an interface, an entry point or a table: where many have one, a decision is spread over modules that are too small.

    What a package passes on counts where it is defined, and that package is no consumer.
    """
    uses: dict[tuple[Path, str], set[Path]] = defaultdict(set)
    excused: set[tuple[Path, str]] = set()
    for file in modules():
        for module, name, local in imported_names(file):
            defined = definition(module_file(module), name)
            if file in ENTRIES or local in used_in_code(file):
                uses[defined].add(file)
            elif local in used_names(file):  # beside what is passed on
                uses[defined].add(file)
                excused.add(defined)
            if file in ENTRIES or is_interface_or_table(*defined):
                excused.add(defined)
    lonely = {name for name, users in uses.items() if len(users) == 1} - excused

    share = len(lonely) / len(uses)
    most = Counter(str(file.relative_to(ROOT)) for file, _ in lonely).most_common(10)
    assert share <= MOST_WITH_ONE_CONSUMER, f"{share:.3f}; most are in {most}"


def definition(file: Path, name: str) -> tuple[Path, str]:
    """Where a name is defined that is imported from a file, which may have imported it itself."""
    for node in parsed(file).body:
        if isinstance(node, ast.ImportFrom) and f"{node.module}".startswith(NAME):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return definition(module_file(f"{node.module}"), alias.name)
    return file, name


def is_interface_or_table(file: Path, name: str) -> bool:
    """Whether a name is a protocol, or is bound to a collection that is written out."""
    for node in parsed(file).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return any(ast.unparse(base).startswith("Protocol") for base in node.bases)
        if name in bound_by(node):
            return is_table(node)
    return False


def bound_by(node: ast.AST) -> set[str]:
    """The names that an assignment binds."""
    targets = getattr(node, "targets", [node.target] if isinstance(node, ast.AnnAssign) else [])
    return {
        each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)
    }


def is_table(node: ast.AST) -> bool:
    """Whether an assignment or an expression is a collection that is written out, or is made of one."""
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        return node.value is not None and is_table(node.value)
    if isinstance(node, ast.Call):  # MappingProxyType({...}), or Section("Writing", (...))
        return any(map(is_table, node.args))
    return isinstance(node, (ast.Dict, ast.Tuple, ast.List, ast.Set, ast.DictComp, ast.SetComp))


@cache
def used_in_code(file: Path) -> set[str]:
    """The names that a file uses: not those that only annotate or stand in its tables.

    Who annotates with a name takes it as part of what another name takes or returns. A name in a table is registered there.
    """
    body = [node for node in parsed(file).body if not is_table(node)]
    return loaded_in(body, but_in=("annotation", "returns"))


@cache
def used_names(file: Path) -> set[str]:
    """The names that a file uses, anywhere in it."""
    return loaded_in(parsed(file).body)


def loaded_in(body: Iterable[ast.AST], but_in: Sequence[str] = ()) -> set[str]:
    """The names in the code of a file, and what it takes of modules; but those in these parts of its nodes.

    It looks at each node once: `ast.walk` takes three times as long.
    """
    found: set[str] = set()
    waiting: list[object] = [*body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, ast.AST):
            if isinstance(node, (ast.Name, ast.Attribute)):
                found.add(node.id if isinstance(node, ast.Name) else node.attr)
            waiting += [getattr(node, part, None) for part in node._fields if part not in but_in]
    return found


def imported_names(file: Path) -> Iterator[tuple[str, str, str]]:
    """The names of other modules of the package that a file uses, each with its module, and as it is called here."""
    whole: dict[str, str] = {}
    for node in statements(parsed(file)):
        if isinstance(node, ast.ImportFrom) and f"{node.module}".startswith(NAME):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                if file_of(full).is_file() or file_of(full).with_suffix("").is_dir():
                    whole[alias.asname or alias.name] = full
                else:
                    yield f"{node.module}", alias.name, alias.asname or alias.name
    for node in ast.walk(parsed(file)) if whole else ():
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in whole
            and not node.attr.startswith("__")
        ):
            yield whole[node.value.id], node.attr, node.attr


def module_file(module: str) -> Path:
    """The file of a module or of a package."""
    file = file_of(module)
    return file if file.is_file() else file.with_suffix("") / "__init__.py"


def file_of(module: str) -> Path:
    """Where a module would be."""
    return ROOT.parent.joinpath(*module.split(".")).with_suffix(".py")


@pytest.mark.parametrize(
    ("source", "used"),
    [
        ("def f(x: A) -> B: ...\nc: C = D()", {"D", "c"}),
        ("TABLE = {'a': A}\nREAD = MappingProxyType({'b': B})\nALL = Section('c', (C, D))", set()),
        ("def f():\n    return {'a': A}", {"A"}),
        ("B = A(1)", {"A", "B"}),
    ],
)
def test_what_annotates_and_what_is_registered_is_no_use(tmp_path, source, used):
    """An annotation is a part of another name's interface, and an entry of a module's table is no call."""
    file = tmp_path / "module.py"
    file.write_text(source)

    assert used_in_code(file) == used


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("import pyspark_upsert_kafka.connector.writing.writer", {"connector.writing"}),
        ("from pyspark_upsert_kafka.connector.writing import writer", {"connector.writing"}),
        ("from pyspark_upsert_kafka.connector import writing", {"connector.writing"}),
        ("def f():\n    from pyspark_upsert_kafka.kafka.clients import Cluster", {"kafka"}),
        (
            "class A:\n  async def f():\n    with x:\n      import pyspark_upsert_kafka.connector.writing",
            {"connector.writing"},
        ),
        (
            "if x: pass\nelif y: pass\nelse:\n  import pyspark_upsert_kafka.connector.writing",
            {"connector.writing"},
        ),
        (
            "for x in y: pass\nelse:\n  import pyspark_upsert_kafka.connector.writing",
            {"connector.writing"},
        ),
        (
            "try: pass\nexcept E:\n  import pyspark_upsert_kafka.connector.writing",
            {"connector.writing"},
        ),
        (
            "try: pass\nexcept E: pass\nelse:\n  import pyspark_upsert_kafka.connector.writing",
            {"connector.writing"},
        ),
        (
            "try: pass\nfinally:\n  import pyspark_upsert_kafka.connector.writing",
            {"connector.writing"},
        ),
        (
            "match x:\n  case 1:\n    import pyspark_upsert_kafka.connector.writing",
            {"connector.writing"},
        ),
        ("import pyspark_upsert_kafka_other, pyspark", set()),
    ],
)
def test_no_import_is_overlooked(tmp_path, source, seen):
    """These tests see an import in each of its forms, in functions too."""
    file = tmp_path / "module.py"
    file.write_text(source)

    assert imported_parts(file) == seen


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("import ssl", {"ssl"}),
        ("from http.client import HTTPException", {"http"}),
        ("from urllib import request", {"urllib.request"}),
        ("def f():\n    import urllib.request as web", {"urllib.request"}),
        ("from urllib.parse import quote\nimport httpserver", set()),
    ],
)
def test_no_network_is_overlooked(tmp_path, source, seen):
    """Likewise a module for network connections, and only such a one."""
    file = tmp_path / "module.py"
    file.write_text(source)

    assert network_modules(file) == seen
