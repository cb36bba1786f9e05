"""Check what a folder with a wheel and an sdist holds: `python .ci/contents.py FOLDER`."""

import sys
import tarfile
import zipfile
from pathlib import Path

FILES = "__init__.py", "py.typed", "report/templates/page.html", "serve/page.html"  # of the package


def check(folder: Path) -> None:
    """A wheel holds the package alone, with its types and its page; an sdist also what is needed to test it."""
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    version = wheel.name.split("-")[1]
    with zipfile.ZipFile(wheel) as file:
        inside = set(file.namelist())
    others = {name for name in inside if not name.startswith(("supertopic/", f"supertopic-{version}.dist-info/"))}
    missing = {f"supertopic/{name}" for name in FILES} - inside
    if others or missing:
        sys.exit(f"{wheel.name} holds {sorted(others)} beside the package, and lacks {sorted(missing)}")
    with tarfile.open(sdist) as file:
        source = {name.partition("/")[2] for name in file.getnames()}
    needed = {"pyproject.toml", "README.md", "LICENSE", "CITATION.cff", "CHANGELOG.md", "docs/guide.md"}
    needed |= {"docs/releasing.md", "tests/conftest.py", "tests/test_posterior.py", "tests/files/version-0.1.model"}
    built = {name for name in source if name.endswith((".pyc", ".nbi", ".nbc", ".whl")) or name.startswith(".venv")}
    if needed - source or built:
        sys.exit(f"{sdist.name} lacks {sorted(needed - source)}, and holds what was built: {sorted(built)}")
    print(f"{wheel.name}: {len(inside)} files; {sdist.name}: {len(source)} files")


if __name__ == "__main__":
    check(Path(sys.argv[1]))
