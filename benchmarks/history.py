"""Results of benchmarks: every run stays, the newest last."""

import json
import os
import platform
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("supertopic", "tomotopy", "topica", "gensim", "numba", "numpy", "scikit-learn")


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
    return {"date": str(date.today()), "cpu": cpu, "python": platform.python_version(), "versions": versions}


def read(path: Path) -> list[dict[str, Any]]:
    """The runs of a file, oldest first."""
    return json.loads(path.read_text()) if path.exists() else []


def append(path: Path, run: dict[str, Any]) -> None:
    """Add a run to a file."""
    path.write_text(json.dumps([*read(path), about() | run], indent=1) + "\n")
