"""A progress bar on stderr, if it is wanted."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(total: int, title: str, show: bool) -> Iterator[Callable[..., None]]:
    """Yield `advance(note, steps=1)`, to be called for `total` steps; it does nothing unless the bar is shown."""
    if not show:
        yield lambda note, steps=1: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.fields[note]}"), console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=total, note="")
        yield lambda note, steps=1: bar.update(task, advance=steps, note=note)
