"""Requests that wait are predicted together: while one batch is worked on, the next one gathers.

A document gets the same answer alone and in any batch, so that nobody notices. A large request is cut into parts,
between which others get their turn.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from supertopic.serve.asked import Asked, Document, Options
from supertopic.serve.limits import Limits, Refused
from supertopic.serve.model import Row, ServedModel

MOST_TEXTS, MOST_LETTERS = 64, 200_000  # of a batch, and of what one request puts into it


class Job:
    """A request that waits for its answer."""

    def __init__(self, model: ServedModel, asked: Asked, loop: asyncio.AbstractEventLoop, deadline: float):
        self.model, self.asked, self.loop, self.deadline = model, asked, loop, deadline
        self.rows: list[Row] = []
        self.answer: asyncio.Future[list[Row]] = loop.create_future()

    @property
    def options(self) -> Options:
        return self.asked.options

    def next_part(self, room: int) -> list[Document]:
        """The next documents that are not yet predicted, as many as there is room for; at least one."""
        first, letters = len(self.rows), 0
        for i in range(first, min(len(self.asked.documents), first + room)):
            letters += len(self.asked.documents[i].text)
            if letters > MOST_LETTERS and i > first:
                return self.asked.documents[first:i]
        return self.asked.documents[first : first + room]

    @property
    def done(self) -> bool:
        return len(self.rows) == len(self.asked.documents)


class Batches:
    """Threads that predict what waits."""

    def __init__(
        self, limits: Limits, n_threads: int = 1, seen: Callable[[int, float], None] = lambda n, seconds: None
    ):
        self.limits, self.seen = limits, seen
        self.waiting: deque[Job] = deque()
        self.n_open, self.closed, self.ready = 0, False, threading.Condition()
        self.threads = [
            threading.Thread(target=self.work, name=f"predict-{i}", daemon=True) for i in range(max(1, n_threads))
        ]
        for thread in self.threads:
            thread.start()

    async def predict(self, model: ServedModel, asked: Asked) -> list[Row]:
        """The answer of a request, which ends on the model that it began with."""
        if self.n_open >= self.limits.waiting:
            raise Refused(503, f"{self.n_open:,} requests are waiting already. Try again in a second.", retry=1)
        job = Job(model, asked, asyncio.get_running_loop(), time.monotonic() + self.limits.seconds)
        if job.done:
            return []
        self.n_open += 1
        try:
            with self.ready:
                self.waiting.append(job)
                self.ready.notify()
            async with asyncio.timeout(self.limits.seconds):
                return await job.answer
        except TimeoutError:
            raise too_long(self.limits) from None
        finally:
            self.n_open -= 1

    def work(self) -> None:
        """Predict batch after batch."""
        while True:
            with self.ready:
                while not self.waiting and not self.closed:
                    self.ready.wait()
                if not self.waiting:
                    return
                batch = self.gather()
            try:
                answered = predict_batch(batch, self.seen)
            except BaseException as error:  # the thread has to live on
                answered = [(job, error) for job, _ in batch]
            with self.ready:
                self.waiting.extend(job for job, _ in batch if job not in {job for job, _ in answered})
            hand_out(answered)

    def gather(self) -> list[tuple[Job, list[Document]]]:
        """Jobs for the same model and with the same options, in the order in which they came."""
        batch: list[tuple[Job, list[Document]]] = []
        others: deque[Job] = deque()
        room, first, now = MOST_TEXTS, self.waiting[0], time.monotonic()
        while self.waiting and room > 0:
            job = self.waiting.popleft()
            if job.answer.cancelled() or now > job.deadline:
                continue  # nobody waits for it any more
            if job.model is not first.model or job.options != first.options:
                others.append(job)
                continue
            part = job.next_part(room)
            room -= len(part)
            batch.append((job, part))
        self.waiting.extendleft(reversed(others))
        return batch

    def close(self) -> None:
        """Answer what waits, then end the threads."""
        with self.ready:
            self.closed = True
            self.ready.notify_all()
        for thread in self.threads:
            thread.join(self.limits.seconds)


def too_long(limits: Limits) -> Refused:
    return Refused(
        503,
        f"The answer took more than {limits.seconds:g} seconds. Send fewer or shorter texts, or try again.",
        retry=1,
    )


def predict_batch(
    batch: list[tuple[Job, list[Document]]], seen: Callable[[int, float], None]
) -> list[tuple[Job, BaseException | None]]:
    """Predict all documents of a batch together; returns the jobs that are done, with their errors.

    If that fails, each job is predicted by itself: what one request has wrong is not the others' fault.
    """
    if not batch:
        return []
    model, options = batch[0][0].model, batch[0][0].options
    began, documents = time.perf_counter(), [document for _, part in batch for document in part]
    try:
        rows = model.predict(documents, options)
    except Exception as error:
        if len(batch) == 1:
            return [(batch[0][0], error)]
        return [found for one in batch for found in predict_batch([one], seen)]
    seen(len(documents), time.perf_counter() - began)
    for job, part in batch:
        job.rows += rows[: len(part)]
        rows = rows[len(part) :]
    return [(job, None) for job, _ in batch if job.done]


def hand_out(answered: list[tuple[Job, BaseException | None]]) -> None:
    """Give answers to the event loop, all at once: waking it up costs as much as some documents."""
    if not answered:
        return

    def deliver() -> None:
        for job, error in answered:
            if job.answer.done():
                continue
            if error is None:
                job.answer.set_result(job.rows)
            else:
                job.answer.set_exception(error)

    loop: Any = answered[0][0].loop
    if not loop.is_closed():
        loop.call_soon_threadsafe(deliver)
