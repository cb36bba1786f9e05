"""The rooms of the house: a file imports only rooms above its own, and what few need is imported in one place."""

import ast
from pathlib import Path

import pytest

import supertopic

SOURCE = Path(supertopic.__file__).parent
# from the top down; a name with a dot is a file of its own, and files of one room are in the order of their lists
ROOMS = [
    "warn", "corpus", "datasets", "kernels", "model", "storage.container", "sampling", "storage", "inference", "report",
    "estimators", "command", "baselines", "__main__",
]  # fmt: skip
INSIDE = {
    "corpus": ["tokens", "source", "tables", "spool"],
    "kernels": [
        "compiled", "lanes", "draws", "responses", "sweep", "sparse", "counts", "shard_sweep", "moments", "cuda.device",
        "cuda.layout", "cuda.sweep", "cuda.counts", "cuda.moments",
    ],
    "model": ["state", "responses"],
    "sampling": [
        "plan", "cuda_documents", "cuda_moments", "new_documents", "shard", "pool", "counts", "cuda", "cuda_counts",
        "engine", "threads", "ray_engine", "ray", "gibbs", "chain",
    ],
    "storage": ["container"],
    "inference": ["calibration", "shrinkage", "words", "level", "checkpoint"],
    "report": ["diagnostics", "explain", "summary", "page", "plots"],
    "estimators": [
        "docs", "progress", "validation", "beliefs", "fitting", "from_files", "base", "trusting", "looking",
        "supervised", "classifiers", "regressors", "choosing", "storage",
    ],
    "command": ["cells", "options", "show", "steps", "texts", "pages", "growing", "cli"],
    "baselines": ["meanfield", "variational", "disclda", "__init__"],
}  # fmt: skip
FILES = sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


def place(module: str) -> tuple[int, int]:
    """Where a module is on the way down."""
    room, _, file = module.partition(".")
    files = INSIDE.get(room, [""])
    inside = files.index(file or ("__init__" if "__init__" in files else files[0]))
    return ROOMS.index(module if module in ROOMS else room), inside


def name_of(path: Path) -> str:
    """The name of a file's module below the package."""
    return path.relative_to(SOURCE).with_suffix("").as_posix().replace("/", ".")


def imports(path: Path) -> list[str]:
    """The modules that a file imports, anywhere in it."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            submodules = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [
                name if (SOURCE.parent / (name.replace(".", "/") + ".py")).exists() else node.module
                for name in submodules
            ]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_file_imports_only_rooms_above_its_own(path):
    own = name_of(path).removesuffix(".__init__")
    if path.name == "__init__.py" and own != "baselines":
        assert not imports(path)
        return
    for name in imports(path):
        if name.startswith("supertopic."):
            assert place(name.removeprefix("supertopic.")) < place(own), f"{own} imports {name}"


def test_every_file_has_a_room():
    for room, files in INSIDE.items():
        found = [name_of(path).removeprefix(f"{room}.") for path in (SOURCE / room).rglob("*.py")]
        assert sorted(files) == sorted(name for name in found if not name.endswith("__init__") or name in files)


def test_an_upward_import_is_noticed():
    assert place("kernels.sweep") < place("sampling.shard") < place("estimators.base") < place("command.cli")
    assert not place("command.show") < place("report.summary")
    assert place("sampling.gibbs") < place("sampling.chain")


@pytest.mark.parametrize(
    ("package", "only"),
    [
        ("numba", "kernels"),
        ("llvmlite", "kernels"),
        ("safetensors", "storage"),
        ("pyarrow", "corpus"),
        ("ray", "sampling"),
        ("jinja2", "report"),
        ("matplotlib", "report"),
        ("typer", "command"),
    ],
)
def test_a_package_is_imported_in_one_room(package, only):
    users = {
        path.relative_to(SOURCE).parts[0] for path in FILES if any(n.split(".")[0] == package for n in imports(path))
    }
    assert users <= {only, "baselines"} and only in users


def test_a_cluster_has_one_door():
    """Ray is imported in two files, the engine and its pool, which are imported inside functions only elsewhere."""
    doors = {"sampling.ray", "sampling.ray_engine"}
    assert {name_of(path) for path in FILES if "ray" in {name.split(".")[0] for name in imports(path)}} == doors
    for path in FILES:
        top = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)]
        used = {node.module.removeprefix("supertopic.") for node in top if node.module}
        assert name_of(path) in doors or not used & doors, path


def test_a_card_has_one_door():
    """CUDA is imported in one file. Files with "cuda" in their names import it; others only inside of functions."""
    users = {
        name_of(path) for path in FILES if "numba.cuda" in imports(path) or "cuda" in imported_names(path, "numba")
    }
    assert users == {"kernels.cuda.device"}
    for path in FILES:
        top = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)]
        if "cuda" not in name_of(path):
            assert not [node.module for node in top if node.module and "cuda" in node.module], path


def imported_names(path: Path, module: str) -> set[str]:
    """What a file imports from a module."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    found = (node for node in nodes if isinstance(node, ast.ImportFrom) and node.module == module)
    return {alias.name for node in found for alias in node.names}
