"""A few hundred cases of the fuzzer; `python -m tests.fuzz` runs as many as one likes."""

from tests.fuzz import fuzz_files, fuzz_tables


def test_changed_model_files():
    found = fuzz_files(250, seed=1)
    assert found["refused"] > 100 and found["works"] > 5


def test_odd_tables():
    found = fuzz_tables(250, seed=1)
    assert found["refused"] > 30 and found["works"] > 30
