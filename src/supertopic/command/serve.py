"""The command `serve`: a model that answers over HTTP."""

from importlib.util import find_spec
from pathlib import Path

from rich.markup import escape

from supertopic.command import options as opt
from supertopic.command.steps import Table, note, row_names
from supertopic.serve.examples import Example
from supertopic.serve.limits import Limits
from supertopic.serve.server import Settings, read_token
from supertopic.serve.server import serve as start_server

NEEDED = ("starlette", "uvicorn", "httptools")
USUAL = Limits()


def serve(
    model: opt.Model, host: opt.Host = "127.0.0.1", port: opt.Port = 8000, reload: opt.Reload = True,
    no_token: opt.NoToken = False, names: opt.AllowedHost = None, workers: opt.Workers = 1, threads: opt.Threads = 1,
    mmap: opt.Mmap = False, documents: opt.Documents = None, text: opt.DocumentText = None, id: opt.Id = None,
    max_body: opt.MaxBody = USUAL.body, max_texts: opt.MaxTexts = USUAL.texts,
    max_letters: opt.MaxLetters = USUAL.letters, timeout: opt.Timeout = USUAL.seconds, queue: opt.Queue = USUAL.waiting,
) -> None:  # fmt: skip
    """Serve a model over HTTP: predictions, explanations and topics as JSON, and a web page at /.

    By default it accepts requests of this machine only. With --host, other machines need a token, which you set in the
    environment variable SUPERTOPIC_TOKEN. If the model file changes, the new version is loaded while the old one is in
    use.
    """
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise ImportError(f"serve needs {', '.join(missing)}: pip install 'supertopic[serve]'.")
    if not model.is_file():
        raise FileNotFoundError(f"There is no model {model}.")
    shown = read_documents(documents, text, id)
    limits = Limits(max_body, max_texts, max_letters, timeout, queue)
    settings = Settings(
        model, host, port, read_token(host, no_token), reload, n_threads=threads, workers=workers,
        mmap=mmap, names=tuple(names or ()), documents=shown, limits=limits,
    )  # fmt: skip
    start_server(settings, lambda address: note(f"{escape(str(model))} answers at {escape(address)} Ctrl-C ends it."))


def read_documents(path: Path | None, text: str | None, id: str | None) -> tuple[Example, ...]:
    """The documents of a table that are shown beside texts."""
    if path is None:
        if text is not None or id is not None:
            raise ValueError("--text and --id name columns of --documents, which is not given.")
        return ()
    if text is None:
        raise ValueError("--documents needs --text, the column with the texts.")
    table = Table(path)
    return tuple(map(Example, row_names(table, id), table.texts(text).tolist()))
