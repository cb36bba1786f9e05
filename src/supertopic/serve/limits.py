"""What one request may ask for, and how it is refused."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds of requests. Whatever is larger is refused before any work."""

    body: int = 8 * 2**20  # bytes
    texts: int = 1000  # of a request
    letters: int = 200_000  # of a text
    seconds: float = 30.0  # for a request, waiting included
    waiting: int = 512  # requests at a time; further ones get 503
    depth: int = 8  # of nested JSON
    values: int = 500_000  # of a JSON body: numbers of features are most of them


class Refused(Exception):
    """A request that is not answered; the message says what was given, what was expected, and what to do."""

    def __init__(self, status: int, message: str, retry: int | None = None):
        super().__init__(message)
        self.status, self.message, self.retry = status, message, retry

    def body(self) -> dict[str, object]:
        return {"error": {"status": self.status, "message": self.message}}
