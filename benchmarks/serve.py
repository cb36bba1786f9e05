"""A server under load: `python -m benchmarks.serve [load] [alone] [growth] [malformed] [reload]`.

A model with V = 20,000, K = 20 and 4 chains is fitted in short, since only its size counts here. `supertopic serve`
runs in a process of its own. A second process on the same machine sends requests over loopback, a text of 100 tokens
each. Each figure is taken several times, because other programs may use the processors, too: serve.json has all
trials, beside the processor time of a request, which hardly depends on others.
"""

import argparse
import asyncio
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from urllib.request import urlopen

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from benchmarks import corpora, history
from supertopic import SLDAClassifier, save
from supertopic.datasets import make_corpus

RESULTS = history.place("serve")
N_WORDS, N_TOPICS, N_CHAINS, LENGTH = 20_000, 20, 4, 100
CONNECTIONS, SECONDS, TRIALS = 32, 5.0, 5
GROWTH, MALFORMED, AT_ONCE = 50_000, 10_000, 50


def make_model(path: Path, seed: int = 0) -> list[str]:
    """Fit a model of that size and save it; returns texts of 100 tokens."""
    corpus = make_corpus(3000, N_WORDS, N_TOPICS, LENGTH, beta=0.02, random_state=0)
    names, rng = np.array([f"w{i:05d}" for i in range(N_WORDS)]), np.random.default_rng(0)
    rows = [corpus.X[[i]] for i in range(corpus.X.shape[0])]
    texts = [" ".join(rng.permutation(names[row.indices.repeat(row.data)])) for row in rows]
    vectorizer = CountVectorizer(vocabulary=names)
    model = SLDAClassifier(N_TOPICS, n_chains=N_CHAINS, burn_in=5, vectorizer=vectorizer, n_jobs=2, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        save(model.fit(texts, corpus.y), path)
    return [text for text in texts if len(text.split()) == LENGTH][:500] or texts[:500]


class Connection(asyncio.Protocol):
    """One HTTP connection that is kept open: a request, its answer, the next one."""

    def __init__(self):
        self.data, self.answer = b"", None

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.data += data
        head, found, rest = self.data.partition(b"\r\n\r\n")
        if found:
            length = int(re.search(rb"content-length: (\d+)", head)[1])
            if len(rest) >= length and not self.answer.done():
                status, self.data = int(head[9:12]), rest[length:]
                self.answer.set_result((status, rest[:length]))

    def connection_lost(self, error):
        if self.answer and not self.answer.done():
            self.answer.set_exception(ConnectionError("the connection was closed"))

    def ask(self, request: bytes) -> asyncio.Future:
        self.answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self.answer


def request_of(text: str, path: str = "/predict") -> bytes:
    body = json.dumps({"text": text}).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def connect(port: int) -> Connection:
    return (await asyncio.get_running_loop().create_connection(Connection, "127.0.0.1", port))[1]


async def as_fast_as_possible(port: int, requests: list[bytes], seconds: float) -> tuple[list[float], int]:
    """Every connection asks as soon as it has its answer: seconds of each, and errors."""
    taken, errors, end = [], 0, time.perf_counter() + seconds

    async def one(place: int) -> None:
        nonlocal errors
        connection, i = await connect(port), place
        while time.perf_counter() < end:
            began = time.perf_counter()
            status, _ = await connection.ask(requests[i % len(requests)])
            taken.append(time.perf_counter() - began)
            errors += status != 200
            i += CONNECTIONS
        connection.transport.close()

    await asyncio.gather(*(one(i) for i in range(CONNECTIONS)))
    return taken, errors


async def at_a_rate(port: int, requests: list[bytes], rate: float, seconds: float) -> tuple[list[float], int]:
    """Requests come at random times, whether the server keeps up or not; time counts from when each should begin."""
    free: asyncio.Queue = asyncio.Queue()
    for _ in range(4 * CONNECTIONS):
        free.put_nowait(await connect(port))
    taken, errors, rng, tasks = [], 0, random.Random(0), set()
    when = time.perf_counter()

    async def one(due: float, i: int) -> None:
        nonlocal errors
        connection = await free.get()
        status, _ = await connection.ask(requests[i % len(requests)])
        taken.append(time.perf_counter() - due)
        errors += status != 200
        free.put_nowait(connection)

    for i in range(int(rate * seconds)):
        when += rng.expovariate(rate)
        if when > time.perf_counter():
            await asyncio.sleep(when - time.perf_counter())
        task = asyncio.create_task(one(when, i))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)
    return taken, errors


class Server:
    """`supertopic serve` in a process of its own."""

    def __init__(self, model: Path, *options: str):
        command = [sys.executable, "-m", "supertopic", "serve", str(model), "--port", "0", *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | {"COLUMNS": "500"})
        line = self.process.stderr.readline()
        threading.Thread(target=self.process.stderr.read, daemon=True).start()  # a full pipe would stop the server
        self.port = int(re.search(r"127\.0\.0\.1:(\d+)", line)[1])
        self.get("/health")

    def get(self, path: str) -> str:
        with urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=60) as answer:
            return answer.read().decode()

    def memory(self) -> float:
        """MB."""
        return float(re.search(r"^supertopic_memory_bytes (\d+)", self.get("/metrics"), re.M)[1]) / 2**20

    def cpu(self) -> float:
        """Seconds of processor time so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> int:
        self.process.terminate()
        return self.process.wait(60)


def percentile(taken: list[float], q: float) -> float:
    return round(1e3 * float(np.percentile(taken, q)), 2)


def load(server: Server, requests: list[bytes]) -> dict:
    """Requests a second, and latency at half of what is asked for and at half of what it reaches."""
    found: dict = {"requests_a_second": [], "at_400": [], "at_half": []}
    asyncio.run(as_fast_as_possible(server.port, requests, 2.0))
    for _ in range(TRIALS):
        before, own = server.cpu(), time.process_time()
        taken, errors = asyncio.run(as_fast_as_possible(server.port, requests, SECONDS))
        rate, cpu = len(taken) / SECONDS, 1e3 / len(taken)
        found["requests_a_second"].append({
            "rate": round(rate), "p50_ms": percentile(taken, 50), "p99_ms": percentile(taken, 99), "errors": errors,
            "cpu_ms_of_server": round(cpu * (server.cpu() - before), 3),
            "cpu_ms_of_sender": round(cpu * (time.process_time() - own), 3),
        })  # fmt: skip
        for name, half in (("at_400", 400.0), ("at_half", rate / 2)):
            taken, errors = asyncio.run(at_a_rate(server.port, requests, half, SECONDS))
            found[name].append({"rate": round(half), "p50_ms": percentile(taken, 50), "p99_ms": percentile(taken, 99),
                                "errors": errors})  # fmt: skip
    batch = re.findall(r"supertopic_batch_texts_(sum|count) ([\d.]+)", server.get("/metrics"))
    found["texts_a_batch"] = round(float(batch[0][1]) / float(batch[1][1]), 2)
    return found


def growth(server: Server, requests: list[bytes]) -> dict:
    """Memory over many requests."""
    memory, done = [round(server.memory(), 1)], 0
    while done < GROWTH:
        taken, _ = asyncio.run(as_fast_as_possible(server.port, requests, 5.0))
        done += len(taken)
        memory.append(round(server.memory(), 1))
    return {"requests": done, "memory_mb": memory}


def malformed_bodies(rng: random.Random, text: str) -> bytes:
    """A request that is wrong somewhere; some are right by chance."""
    body = json.dumps({"text": text, "set": 0.9}).encode()
    kind = rng.randrange(8)
    if kind == 0:
        body = bytes(rng.randrange(256) for _ in range(rng.randrange(200)))
    elif kind == 1:
        body = body[: rng.randrange(len(body))]
    elif kind == 2:
        place = rng.randrange(len(body))
        body = body[:place] + bytes([rng.randrange(256)]) + body[place + 1 :]
    elif kind == 3:
        body = b"[" * rng.randrange(1, 50_000)
    elif kind == 4:
        wrong = rng.choice([None, 1, [], {}, [text], 1e308, -1, True, "\ud800", "\0", "x" * 300_000])
        body = json.dumps({rng.choice(["text", "texts", "documents", "set", "interval", "x"]): wrong}).encode()
    elif kind == 5:
        body = (
            b'{"text": "a", "set": ' + rng.choice([b"NaN", b"1e999", b"-0", b"1" * 5000, b'"0.9"', b"0.99999"]) + b"}"
        )
    path, method = (
        rng.choice(["/predict", "/explain", "/topics", "/", "/%00", "/../x"]),
        rng.choice(["POST", "GET", "PUT"]),
    )
    headers = [f"Content-Length: {len(body)}", "Content-Type: application/json", "Host: localhost"]
    if kind == 6:
        headers[rng.randrange(3)] = rng.choice(
            ["Content-Length: -1", "Content-Type: text/plain", "Host: a.b", "X: \x01", ":"]
        )
    if kind == 7:
        return bytes(rng.randrange(1, 256) for _ in range(rng.randrange(1, 300))) + b"\r\n\r\n"
    return (
        f"{method} {path} HTTP/1.1\r\n".encode()
        + "\r\n".join(headers).encode()
        + b"\r\nConnection: close\r\n\r\n"
        + body
    )


async def send_raw(port: int, data: bytes) -> int:
    """The status of the answer; 0 where the connection is closed without one, -1 where nothing comes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        line = await asyncio.wait_for(reader.readline(), 10.0)
        return int(line.split()[1]) if line else 0
    except TimeoutError:
        return -1
    except ConnectionError:
        return 0
    finally:
        writer.close()


def malformed(server: Server, texts: list[str]) -> dict:
    """How malformed requests are answered."""

    async def all_of_them() -> dict[int, int]:
        rng, counts = random.Random(0), {}
        for _ in range(MALFORMED // AT_ONCE):
            requests = [malformed_bodies(rng, rng.choice(texts)) for _ in range(AT_ONCE)]
            for status in await asyncio.gather(*(send_raw(server.port, data) for data in requests)):
                counts[status] = counts.get(status, 0) + 1
        return counts

    counts = asyncio.run(all_of_them())
    alive = json.loads(server.get("/health"))["status"]
    return {"sent": sum(counts.values()), "statuses": {str(k): v for k, v in sorted(counts.items())},
            "server_errors": sum(n for status, n in counts.items() if status >= 500), "health": alive}  # fmt: skip


def reload(model: Path, requests: list[bytes]) -> dict:
    """The file is replaced, and damaged, under load; a process of two is killed while it loads."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        path, other = Path(folder) / "served.model", Path(folder) / "other.model"
        shutil.copy(model, path)
        make_model(other, seed=1)
        server = Server(path)

        async def replace_often() -> tuple[list[float], int]:
            async def replace() -> None:
                for i in range(6):
                    await asyncio.sleep(1.2)
                    if i % 3 == 2:
                        path.write_bytes(other.read_bytes()[: 10_000 + i])
                    else:
                        fresh = path.with_suffix(".new")
                        shutil.copy(other if i % 2 else model, fresh)
                        os.replace(fresh, path)

            (taken, errors), _ = await asyncio.gather(as_fast_as_possible(server.port, requests, 9.0), replace())
            return taken, errors

        taken, errors = asyncio.run(replace_often())
        health = json.loads(server.get("/health"))
        found["replaced"] = {"requests": len(taken), "not_answered": errors, "loads": health["loads"],
                             "last_was_damaged": health["failed"] is not None,
                             "p99_ms": percentile(taken, 99)}  # fmt: skip
        found["ended_with"] = server.close()
    return found


def alone() -> dict:
    """Milliseconds of `predict_proba` of one document of 20 Newsgroups: K = 40, 8 chains, 20 classes with words."""
    corpus, rng = corpora.newsgroups(), np.random.default_rng(0)
    rows = np.sort(rng.choice(corpus.X.shape[0], 2500, replace=False))
    model = SLDAClassifier(40, n_chains=8, burn_in=5, n_jobs=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(corpus.X[rows], corpus.y[rows]).n_jobs = None
    documents = [corpus.X_test[[i]] for i in rng.choice(corpus.X_test.shape[0], 100, replace=False)]
    tokens, medians = float(np.median([document.sum() for document in documents])), []
    for _ in range(TRIALS + 1):  # topics are frozen in the first
        taken = []
        for document in documents:
            began = time.perf_counter()
            model.predict_proba(document)
            taken.append(time.perf_counter() - began)
        medians.append(percentile(taken, 50))
    return {"words": corpus.X.shape[1], "median_tokens": tokens, "median_ms": medians[1:]}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", default=["load", "alone", "growth", "malformed", "reload"])
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--model", type=Path, help="where the model is kept between runs")
    given = parser.parse_args()
    found = json.loads(given.out.read_text()) if given.out.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        path = given.model or Path(folder) / "bench.model"
        texts_file = path.with_suffix(".json")
        if not texts_file.exists():
            texts_file.write_text(json.dumps(make_model(path)))
        texts = json.loads(texts_file.read_text())
        requests = [request_of(text) for text in texts]
        found["what"] = {"words": N_WORDS, "topics": N_TOPICS, "chains": N_CHAINS, "tokens": LENGTH,
                         "connections": CONNECTIONS, "cores": os.cpu_count()}  # fmt: skip
        for part in given.parts:
            if part == "alone":
                found[part] = alone()
            elif part == "reload":
                found[part] = reload(path, requests)
            else:
                server = Server(path, *(["--timeout", "2"] if part == "malformed" else []))
                if part == "malformed":
                    found[part] = malformed(server, texts)
                else:
                    found[part] = {"load": load, "growth": growth}[part](server, requests)
                found[part]["ended_with"] = server.close()
            print(part, json.dumps(found[part], indent=1), flush=True)
            given.out.write_text(json.dumps(history.about() | found, indent=1) + "\n")


if __name__ == "__main__":
    main()
