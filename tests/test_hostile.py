"""Files that were made to do harm: each is refused with a reason, in little time and memory."""

import hashlib
import json
import os
import random
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from supertopic import LDA, SLDAClassifier, load, save
from supertopic.corpus import json_text
from supertopic.corpus.json_text import measure_json
from supertopic.corpus.tables import column, read_table
from supertopic.storage import text as text_file
from supertopic.storage.container import NO_SUM, read_file, write_file

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes with names")


def sealed(path, header, rest=b""):
    """A file of a header as it is, with the right sum."""
    data = len(header).to_bytes(8, "little") + header + rest
    path.write_bytes(data.replace(NO_SUM, hashlib.sha256(data).hexdigest().encode()))
    return path


def with_sum(metadata):
    return b'{"__metadata__":{"sha256":"' + NO_SUM + b'",' + metadata + b"}}"


def peak_mib(code, *arguments):
    """What a process of its own takes beyond its imports, in MiB."""
    program = (
        "import resource, sys\nfrom supertopic.corpus.tables import read_table\nimport supertopic\nfrom pathlib import "
        "Path\nsupertopic.load\nbefore = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\ntry:\n    "
        + code
        + "\nexcept ValueError:\n    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.parametrize(
    "header",
    [
        with_sum(b'"supertopic":"' + b"[" * 10**6 + b'"'),
        with_sum(b'"supertopic":"[' + b"{}," * 10**6 + b'{}]"'),
        with_sum(b'"supertopic":' + b'{\\"a\\":'.replace(b"\\", b"") * 10**6),
        with_sum(b'"supertopic":7'),
        with_sum(b'"supertopic":"[]"'),
        with_sum(b'"other":"{}"'),
        b"[" + b'"sha256":"' + NO_SUM + b'"]',
    ],
)
def test_headers(tmp_path, header):
    began = time.perf_counter()
    with pytest.raises(ValueError, match="is not a thing"):
        read_file(sealed(tmp_path / "m", header), "thing")
    with pytest.raises(ValueError, match=r"is not a thing|no SHA-256"):
        read_file(sealed(tmp_path / "m", header.replace(b"sha256", b"sha257")), "thing")
    assert time.perf_counter() - began < 10


def test_a_large_header_is_not_read(tmp_path):
    path = tmp_path / "big"
    path.write_bytes((2**24 + 1).to_bytes(8, "little") + b"{" * (2**24 + 1))
    with pytest.raises(ValueError, match="its header has 16,777,217 bytes"):
        read_file(path, "thing")
    with pytest.raises(ValueError, match=r"The header of .* would have .*at most"):
        write_file(tmp_path / "m", {"words": ["word"] * 2**21}, {"a": np.zeros(1)})


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux for its peak")
def test_what_is_refused_takes_little_memory(tmp_path):
    """Braces in a header took 45 times their size before the sum was checked, a million columns 7.3 GB."""
    braces = b"{" * (2**24 - 200)
    sealed(tmp_path / "m", with_sum(b'"supertopic":"' + braces + b'"'))
    assert peak_mib("supertopic.load(sys.argv[1])", str(tmp_path / "m")) < 250
    (tmp_path / "t.csv").write_text(",".join(f"c{i}" for i in range(10**6)) + "\n")
    assert peak_mib("read_table(Path(sys.argv[1]))", str(tmp_path / "t.csv")) < 250


def test_names_are_bounded_before_they_are_parsed(tmp_path, monkeypatch):
    texts = ["goal match", "vote law"] * 6
    path = tmp_path / "m"
    model = LDA(2, burn_in=2, n_draws=2, random_state=0).fit(texts)
    save(model, path)
    header, tensors = read_file(path, "model")
    for name, text in (
        ("vocabulary", b"[" * 5000 + b"]" * 5000),
        ("vocabulary", b"[[],[],[],[]]"),
        ("vocabulary", b'{"a":1}'),
        ("vocabulary", b'["goal","goal","match","vote"]'),
        ("vocabulary", b"[1,2,3,4]"),
        ("vocabulary", b'"goal"'),
    ):
        write_file(path, header, tensors | {name: np.frombuffer(text, np.uint8)})
        with pytest.raises(ValueError, match="not a valid"):
            load(path)
    monkeypatch.setattr(text_file, "MOST_NAMES", 2)
    write_file(path, header, tensors)
    with pytest.raises(ValueError, match="vocabulary"):
        load(path)
    with pytest.raises(ValueError, match=r"can keep 2 words; .* has 4. Raise min_df"):
        save(model, path)
    monkeypatch.undo()
    monkeypatch.setattr(text_file, "MOST_LETTERS", 10)
    with pytest.raises(ValueError, match="the length of"):
        text_file.unpack_text({"json": {"a": "U"}}, {"a": np.frombuffer(b'["a","b","cccc"]', np.uint8)})


@posix
def test_pipes_and_devices_are_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    os.mkfifo(tmp_path / "pipe.csv")
    for path in (tmp_path / "pipe", "/dev/zero", tmp_path):
        with pytest.raises(ValueError, match="a folder, a device or a pipe"):
            load(path)
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "pipe.csv")


@pytest.mark.parametrize("name, value", {"predict_sweeps": 10**9, "n_draws": 10**7, "burn_in": 10**8}.items())
def test_numbers_are_bounded(name, value):
    with pytest.raises(ValueError, match=f"{name} must be at most"):
        SLDAClassifier(2, **{name: value}).fit(np.eye(4, dtype=int), [0, 1] * 2)


def tree(rng, depth):
    """Random JSON."""
    kind = rng.random()
    if depth == 0 or kind < 0.3:
        return rng.choice([1, "a[", "\\", '"', "]}{", "", None, '\\"[', "é\n"])
    if kind < 0.6:
        return [tree(rng, depth - 1) for _ in range(rng.randint(0, 3))]
    return {rng.choice('a[]{"\\') * i: tree(rng, depth - 1) for i in range(rng.randint(0, 3))}


def depth_of(value):
    if not isinstance(value, list | dict):
        return 0
    return 1 + max(map(depth_of, value.values() if isinstance(value, dict) else value), default=0)


def values_of(value):
    if not isinstance(value, list | dict):
        return 1
    return 1 + sum(map(values_of, value.values() if isinstance(value, dict) else value))


@pytest.mark.parametrize("chunk", [1, 2, 7, 2**22])
def test_json_is_measured_as_a_parser_reads_it(monkeypatch, chunk):
    monkeypatch.setattr(json_text, "CHUNK", chunk)
    rng = random.Random(chunk)
    for _ in range(300):
        value = tree(rng, 6)
        found = measure_json(json.dumps(value, indent=rng.choice([None, 1])).encode())
        assert found.depth == depth_of(value) and found.values >= values_of(value) - depth_of(value)
    assert measure_json(b"]" * 9 + b"\n" + b"[" * 9).depth == 9  # a parser of blocks may begin there
    assert measure_json(b'"not closed\n[[[').depth == 3


def test_json_lines(tmp_path, monkeypatch):
    """The reader itself ends the interpreter at such a line."""
    path = tmp_path / "t.jsonl"
    deep = b'{"a":' + b"[" * 20_000 + b"]" * 20_000 + b"}\n"
    for text, message in (
        (b'{"a":' * 20_000, "nested 20,000 deep"),
        (b'{"a":1}\n' + deep, "nested 20,001 deep"),
        (b'{"a":"\xff"}\n', r"line 1: the byte 0xFF is not UTF-8"),
        (b'{"a":1}\n{"a":"\xe9"}\n', r"line 2: the byte 0xE9"),
        (json.dumps({f"c{i}": 1 for i in range(10_001)}).encode(), "10,001 columns"),
        (b'{"a":1}\n{"a"', "Cannot read"),
    ):
        path.write_bytes(text)
        with pytest.raises(ValueError, match=message):
            read_table(path)
    path.write_bytes(b'{"text": "[[[ \\" [", "label": ["a", "b"]}\n' * 100)
    assert read_table(path).num_rows == 100
    monkeypatch.setattr("supertopic.corpus.tables.MOST_LINE", 10)
    with pytest.raises(ValueError, match="a line of 41 bytes; a document may have 10"):
        read_table(path)


def test_wide_and_undecodable_tables(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b'"a\nb",' + b",".join(b"c%d" % i for i in range(10_000)) + b"\n")
    with pytest.raises(ValueError, match="10,001 columns; at most 10,000"):
        read_table(path)
    pq.write_table(pa.table({f"c{i}": [1] for i in range(10_001)}), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="10,001 columns"):
        read_table(tmp_path / "t.parquet")
    path.write_bytes(b"a,b\n1,2\n3,\x81\n")
    with pytest.raises(ValueError, match=r"t\.csv, line 3: the byte 0x81 is not UTF-8, nor Windows-1252"):
        read_table(path)
    path.write_bytes(b'"a;;;b",c\n1,2\n')
    assert read_table(path).column_names == ["a;;;b", "c"]
    broken = pa.array([b"\xff"]).view(pa.string())
    with pytest.raises(ValueError, match="holds a byte that is not UTF-8"):
        column(pa.table({"a": broken}), path, "a")
