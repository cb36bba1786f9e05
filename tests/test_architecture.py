"""The rooms of the house: a file imports only rooms above its own, and what few need is imported in one place."""

import ast
from pathlib import Path

import pytest

import supertopic

SOURCE = Path(supertopic.__file__).parent
# from the top down; a name with a dot is a file of its own, and files of one room are in the order of their lists
ROOMS = [
    "warn",
    "corpus",
    "datasets",
    "kernels",
    "sampling",
    "files",
    "report",
    "estimators",
    "command",
    "baselines",
    "__main__",
]
INSIDE = {
    "kernels": [
        "compiled", "lanes", "draws", "laws", "sweep", "sparse", "counts", "passes", "moments", "gpu", "gpu_sweep",
        "gpu_counts", "gpu_moments",
    ],
    "sampling": [
        "state", "responses", "plan", "card", "card_moments", "inference", "shard", "crew", "topics", "gpu", "engines",
        "cluster", "gibbs", "calibration", "trust", "words", "level", "chain",
    ],
    "files": ["container", "checkpoint", "tables", "spool"],
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
    return ROOMS.index(room), files.index(file or ("__init__" if "__init__" in files else files[0]))


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
    own = path.relative_to(SOURCE).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    if path.name == "__init__.py" and own != "baselines":
        assert not imports(path)
        return
    for name in imports(path):
        if name.startswith("supertopic."):
            assert place(name.removeprefix("supertopic.")) < place(own), f"{own} imports {name}"


def test_every_file_has_a_room():
    for room, files in INSIDE.items():
        assert sorted(files) == sorted(
            path.stem for path in (SOURCE / room).glob("*.py") if path.stem != "__init__" or "__init__" in files
        )


def test_an_upward_import_is_noticed():
    assert place("kernels.sweep") < place("sampling.shard") < place("estimators.base") < place("command.cli")
    assert not place("command.show") < place("report.summary")
    assert place("sampling.gibbs") < place("sampling.chain")


@pytest.mark.parametrize(
    ("package", "only"),
    [
        ("numba", "kernels"),
        ("llvmlite", "kernels"),
        ("safetensors", "files"),
        ("pyarrow", "files"),
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
    """Ray is imported in one file, which is imported inside functions only."""
    assert {path.stem for path in FILES if "ray" in {name.split(".")[0] for name in imports(path)}} == {"cluster"}
    for path in FILES:
        top = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)]
        assert "supertopic.sampling.ray" not in {node.module for node in top}, path


def test_a_card_has_one_door():
    """CUDA is imported in one file, which is imported by the card's own files, and inside functions only elsewhere."""
    users = {path.stem for path in FILES if "numba.cuda" in imports(path) or "cuda" in imported_names(path, "numba")}
    assert users == {"gpu"}
    for path in FILES:
        top = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)]
        if not path.stem.startswith("gpu") and not path.stem.startswith("card"):
            assert not [node.module for node in top if node.module and ".gpu" in node.module], path


def imported_names(path: Path, module: str) -> set[str]:
    """What a file imports from a module."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    found = (node for node in nodes if isinstance(node, ast.ImportFrom) and node.module == module)
    return {alias.name for node in found for alias in node.names}
