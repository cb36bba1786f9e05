"""Figures of a running server, as Prometheus reads them: a dozen lines of text, for which no library is needed."""

import threading
import time
from bisect import bisect_left
from collections import Counter
from pathlib import Path

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
SIZES = (1, 2, 4, 8, 16, 32, 64)
PAGE = 4096  # bytes


class Histogram:
    """How many values are up to each of some bounds."""

    def __init__(self, bounds: tuple[float, ...]):
        self.bounds, self.counts, self.total = bounds, [0] * (len(bounds) + 1), 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str, labels: str = "") -> list[str]:
        found, upto, more = [], 0, f"{labels}," if labels else ""
        for bound, count in zip([*map(str, self.bounds), "+Inf"], self.counts, strict=True):
            upto += count
            found.append(f'{name}_bucket{{{more}le="{bound}"}} {upto}')
        own = f"{{{labels}}}" if labels else ""
        return [*found, f"{name}_sum{own} {self.total:.6f}", f"{name}_count{own} {upto}"]


class Metrics:
    """What happened since the server started."""

    def __init__(self) -> None:
        self.lock, self.started = threading.Lock(), time.time()
        self.requests: Counter[tuple[str, int]] = Counter()
        self.seconds: dict[str, Histogram] = {}
        self.batches, self.texts, self.batch_seconds = Histogram(SIZES), 0, Histogram(SECONDS)
        self.loads = {True: 0, False: 0}

    def answered(self, route: str, status: int, seconds: float) -> None:
        """One request; `route` is one of the server's own paths, not what somebody has typed."""
        with self.lock:
            self.requests[route, status] += 1
            self.seconds.setdefault(route, Histogram(SECONDS)).add(seconds)

    def predicted(self, n_texts: int, seconds: float) -> None:
        """One batch."""
        with self.lock:
            self.batches.add(n_texts)
            self.batch_seconds.add(seconds)
            self.texts += n_texts

    def loaded(self, sound: bool) -> None:
        """A new version of the model file."""
        with self.lock:
            self.loads[sound] += 1

    def text(self, waiting: int, model_loaded: float) -> str:
        """All figures in the text format of Prometheus."""
        with self.lock:
            parts = [
                ("requests_total", "counter", "Requests by path and status.",
                 [f'supertopic_requests_total{{path="{path}",status="{status}"}} {n}'
                  for (path, status), n in sorted(self.requests.items())]),
                ("request_seconds", "histogram", "Time from a request to its answer.",
                 [line for path, own in sorted(self.seconds.items())
                  for line in own.lines("supertopic_request_seconds", f'path="{path}"')]),
                ("batch_texts", "histogram", "Texts that were predicted together.",
                 self.batches.lines("supertopic_batch_texts")),
                ("batch_seconds", "histogram", "Time of a batch.",
                 self.batch_seconds.lines("supertopic_batch_seconds")),
                ("texts_total", "counter", "Texts that were predicted.", [f"supertopic_texts_total {self.texts}"]),
                ("model_loads_total", "counter", "New versions of the model file.",
                 [f'supertopic_model_loads_total{{result="{"loaded" if sound else "refused"}"}} {n}'
                  for sound, n in self.loads.items()]),
                ("waiting_requests", "gauge", "Requests without an answer yet.",
                 [f"supertopic_waiting_requests {waiting}"]),
                ("model_loaded_seconds", "gauge", "When the model was loaded.",
                 [f"supertopic_model_loaded_seconds {model_loaded:.3f}"]),
                ("start_seconds", "gauge", "When the server was started.",
                 [f"supertopic_start_seconds {self.started:.3f}"]),
                ("memory_bytes", "gauge", "Memory of the process.", [f"supertopic_memory_bytes {memory_bytes()}"]),
            ]  # fmt: skip
        lines = []
        for name, kind, what, values in parts:
            lines += [f"# HELP supertopic_{name} {what}", f"# TYPE supertopic_{name} {kind}", *values]
        return "\n".join(lines) + "\n"


def memory_bytes() -> int:
    """The memory of this process; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE
    except OSError:
        return 0
