"""The rooms of the package: what may import what, who may look inside whom, and how long things may be."""

import ast
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import supertopic
from mutants import MUTANTS

SOURCE = Path(supertopic.__file__).parent
ROOMS = [  # a file imports only rooms above its own, and files of its own room
    "warn", "corpus", "datasets", "kernels", "model", "storage", "light", "sampling", "inference", "report",
    "estimators", "serve", "command", "baselines", "__main__",
]  # fmt: skip
FILES = sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")
LINES, FUNCTION_LINES = 400, 60
NAMEDTUPLE = {"_replace", "_asdict", "_fields", "_make"}  # public in spite of their names
ALLOWED = {("warn", "_getframe")}


def module_of(path: Path) -> str:
    return path.relative_to(SOURCE).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")


MODULES = {module_of(path): path for path in FILES}


def name_of(path: Path) -> str:
    return str(path.relative_to(SOURCE))


@cache
def tree_of(path: Path) -> ast.Module:
    """The tree of a file, which no test changes."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path: Path) -> list[str]:
    """The modules that a file imports, anywhere in it."""
    found = []
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                found.append(name if name.removeprefix("supertopic.") in MODULES else node.module)
    return found


def own_imports(path: Path) -> list[str]:
    return [name.removeprefix("supertopic.") for name in imports(path) if name.startswith("supertopic.")]


def place(module: str) -> int:
    return ROOMS.index(module.partition(".")[0])


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_file_imports_only_rooms_above_its_own(path):
    own = module_of(path)
    for name in own_imports(path):
        assert place(name) <= place(own), f"{own} imports {name}"


def test_no_room_has_a_cycle():
    graph = {module_of(path): {name for name in own_imports(path) if name != module_of(path)} for path in FILES}
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"Files import each other: {' -> '.join(error.args[1])}")


def test_an_upward_import_is_noticed():
    assert place("kernels.sweep") < place("sampling.shard") < place("estimators.base") < place("command.cli")
    assert place("model.posterior") < place("inference.fit") < place("report.page")


def private_reads(tree: ast.AST) -> list[str]:
    """Names with an underscore that are read from an object other than self, cls and super()."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.endswith("__"):
            owner = node.value
            own = isinstance(owner, ast.Name) and owner.id in ("self", "cls")
            inherited = isinstance(owner, ast.Call) and isinstance(owner.func, ast.Name) and owner.func.id == "super"
            of_base = isinstance(owner, ast.Name) and owner.id[0].isupper()  # a class's own constant, as Base._numbers
            if not own and not inherited and not of_base and node.attr not in NAMEDTUPLE:
                found.append(node.attr)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr"):
            name = node.args[1]
            if (
                isinstance(name, ast.Constant)
                and str(name.value).startswith("_")
                and not str(name.value).endswith("__")
            ):
                found.append(str(name.value))
    return found


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_nobody_reads_private_names_of_another_object(path):
    found = private_reads(tree_of(path))
    assert [name for name in found if (module_of(path), name) not in ALLOWED] == []


def test_a_private_read_is_noticed():
    assert private_reads(ast.parse("model._word_topic")) == ["_word_topic"]
    assert private_reads(ast.parse("getattr(model, '_eta', None)")) == ["_eta"]
    assert not private_reads(ast.parse("self._own; super()._own(); plan._replace(seed=1); model.__dict__"))


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_files_and_functions_are_short(path):
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= LINES
    if module_of(path).startswith("kernels"):
        return
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef):
            code = [
                part for part in node.body if not isinstance(part, ast.Expr) or not isinstance(part.value, ast.Constant)
            ]
            documented = len(node.body) - len(code)
            doc = node.body[0].end_lineno - node.body[0].lineno + 1 if documented and node.body else 0
            assert node.end_lineno - node.lineno + 1 - doc <= FUNCTION_LINES, f"{node.name} is too long"


def test_estimators_are_at_most_four_deep():
    from supertopic import LDA, MedLDAClassifier, SLDAClassifier, SLDACountRegressor, SLDARegressor

    for kind in (LDA, SLDAClassifier, MedLDAClassifier, SLDARegressor, SLDACountRegressor):
        assert sum(base.__module__.startswith("supertopic") for base in kind.__mro__) <= 4


@pytest.mark.parametrize(
    ("package", "only"),
    [
        ("numba", {"kernels"}),
        ("llvmlite", {"kernels"}),
        ("safetensors", {"storage"}),
        ("pyarrow", {"corpus"}),
        ("narwhals", {"corpus"}),
        ("arviz", {"report"}),
        ("formulaic", {"model"}),
        ("ray", {"sampling"}),
        ("jinja2", {"report"}),
        ("matplotlib", {"report"}),
        ("typer", {"command"}),
    ],
)
def test_a_package_is_imported_in_one_room(package, only):
    users = {
        path.relative_to(SOURCE).parts[0] for path in FILES if any(n.split(".")[0] == package for n in imports(path))
    }
    assert only <= users <= only | {"baselines"}


@pytest.mark.parametrize(
    ("package", "only"),
    [
        ("narwhals", "corpus.frames"),
        ("formulaic", "model.formula"),
        ("python_calamine", "corpus.spreadsheets"),
        ("matplotlib", "report.style"),
        ("starlette", "serve.http"),
        ("uvicorn", "serve.http"),
    ],
)
def test_a_package_is_imported_in_one_file(package, only):
    assert {module_of(path) for path in FILES if any(n.split(".")[0] == package for n in imports(path))} == {only}


def top_level_imports(path: Path) -> set[str | None]:
    body = tree_of(path).body
    return {node.module for node in body if isinstance(node, ast.ImportFrom)}


def test_ray_is_imported_only_where_it_is_used():
    """Files of the Ray engine import Ray; others import these files inside functions only."""
    users = {path for path in FILES if "ray" in {name.split(".")[0] for name in imports(path)}}
    assert {path.stem for path in users} <= {"ray", "ray_engine"}
    for path in set(FILES) - users:
        assert not top_level_imports(path) & {f"supertopic.{module_of(user)}" for user in users}, path


def test_cuda_is_imported_only_where_it_is_used():
    """numba.cuda is imported in one file, which only files of the GPU import at their top."""
    users = {path for path in FILES if "numba.cuda" in imports(path) or "cuda" in imported_names(path, "numba")}
    assert {module_of(path) for path in users} == {"kernels.cuda.device"}
    for path in FILES:
        if "cuda" not in module_of(path):
            assert not [name for name in top_level_imports(path) if name and "cuda" in name], path


def imported_names(path: Path, module: str) -> set[str]:
    """What a file imports from a module."""
    nodes = ast.walk(tree_of(path))
    found = (node for node in nodes if isinstance(node, ast.ImportFrom) and node.module == module)
    return {alias.name for node in found for alias in node.names}


def test_every_mutant_can_be_made():
    """The text that a mutant changes is in its file, once."""
    times = {(x.file, x.what): (SOURCE / f"{x.file}.py").read_text(encoding="utf-8").count(x.old) for x in MUTANTS}
    assert {mutant: n for mutant, n in times.items() if n != 1} == {}
