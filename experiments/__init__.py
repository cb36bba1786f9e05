"""The paper's experiments, a script a result: `python -m experiments NAME|all [--quick]`."""
