"""Results of benchmarks: where they are, and when, where and with what each run was made. The newest run is last."""

import json
import os
import platform
import subprocess
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("supertopic", "tomotopy", "topica", "gensim", "numba", "numpy", "scikit-learn")


def place(name: str) -> Path:
    """The file of results of a benchmark: beside this file, or in the folder that SUPERTOPIC_BENCHMARKS names."""
    return Path(os.environ.get("SUPERTOPIC_BENCHMARKS", Path(__file__).parent)) / f"{name}.json"


def commit() -> str:
    """The commit of this checkout, "+" behind it if files differ from it; "" outside of a checkout."""
    git = ["git", "-C", str(Path(__file__).parent)]
    try:
        found = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True)
        changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", "../src"], capture_output=True)
    except FileNotFoundError:
        return ""
    return found.stdout.strip() + "+" * (changed.returncode == 1) if found.returncode == 0 else ""


def about() -> dict[str, Any]:
    """When, where and with what a run was made."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":")[1].strip() for line in lines if "model name" in line]
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    cpu = f"{names[0] if names else platform.processor()}, {os.cpu_count()} cores"
    made = {"date": str(date.today()), "cpu": cpu, "commit": commit()}
    return made | {"python": platform.python_version(), "versions": versions}


def read(path: Path) -> list[dict[str, Any]]:
    """The runs of a file, oldest first."""
    return json.loads(path.read_text()) if path.exists() else []


def append(path: Path, run: dict[str, Any]) -> None:
    """Add a run to a file."""
    path.write_text(json.dumps([*read(path), about() | run], indent=1) + "\n")
