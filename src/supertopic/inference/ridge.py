"""Ridge regression of any response on blocks of columns, in the span of a few directions.

The most probable weights are theta = centre + S x' a, where S are prior variances and a is a number for each document
and column of the response. The regression is solved in the span of directions d of a: a new one is the slope at the
best point so far, and costs two products with x. Their omegas k = x S x' d are kept, so that searching in their span,
for one prior variance after the other, needs no further product. Of plain quadratics this is the method of conjugate
gradients. About ten directions are enough where L-BFGS needs thirty evaluations.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from supertopic.corpus.source import Target
from supertopic.inference.blocks import Block
from supertopic.model.responses.base import Response

DIRECTIONS = 24  # largest number of directions of a block
STEPS, HALVINGS = 4, 12  # most Newton steps after each new direction; most halvings of a step that raises the cost
SPENT = 1e-6  # a direction is dropped if less than this part of it is independent of the others: it is rounding


class Solution(NamedTuple):
    """The best point of a regression in the span of its directions."""

    cost: float  # with the penalty
    omega: np.ndarray  # (n_docs, R)
    slope: np.ndarray  # (n_docs, R): the slope of the cost in omega
    coordinates: list[np.ndarray]  # the coordinates in the span of each block, (n_directions, R)


class Span:
    """Directions of one block, orthonormal for each column of the response in the metric of x S x'."""

    def __init__(self, block: Block, variance: np.ndarray | None, n_columns: int):
        n_docs = block.shape[0]
        self.block, self.variance, self.size = block, variance, 0
        self.a = np.zeros((n_columns, 0, n_docs), np.float32)  # directions
        self.omega = np.zeros((n_columns, 0, n_docs), np.float32)

    def add(self, direction: np.ndarray) -> None:
        """One more direction, (n_docs, R)."""
        weights = self.weights(direction)
        omega = self.block.omega(weights).T.astype(float)
        a = direction.T.astype(float)
        before = np.einsum("rn,rn->r", a, omega)
        for _ in range(2):  # twice is enough
            done = np.matmul(self.a[:, : self.size], omega[:, :, None])  # (R, size, 1)
            a = a - np.matmul(done.swapaxes(1, 2), self.a[:, : self.size])[:, 0]
            omega = omega - np.matmul(done.swapaxes(1, 2), self.omega[:, : self.size])[:, 0]
        left = np.einsum("rn,rn->r", a, omega)
        good = left > np.maximum(SPENT**2 * before, 1e-30)
        scale = np.where(good, 1.0 / np.sqrt(np.where(good, left, 1.0)), 0.0)[:, None]
        if self.size == self.a.shape[1]:
            room = np.zeros((self.a.shape[0], 8, self.a.shape[2]), np.float32)
            self.a, self.omega = (np.concatenate([array, room], axis=1) for array in (self.a, self.omega))
        self.a[:, self.size], self.omega[:, self.size] = a * scale, omega * scale
        self.size += 1

    def weights(self, a: np.ndarray) -> np.ndarray:
        """S x' a, (n_columns of x, R)."""
        gathered = self.block.gather(a)
        return gathered if self.variance is None else gathered * self.variance

    def at(self, coordinates: np.ndarray) -> np.ndarray:
        """a at coordinates (n, R) of the first n directions: (n_docs, R)."""
        return np.matmul(coordinates.T[:, None], self.a[:, : len(coordinates)])[:, 0].T


class Ridge:
    """A regression on one or more blocks: theta of block b has the prior variance penalty_b times S_b."""

    def __init__(
        self, blocks: Sequence[Block], variances: Sequence[np.ndarray | None], response: Response, target: Target,
        offset: np.ndarray,
    ):  # fmt: skip
        self.response, self.target = response, target
        self.offset = np.broadcast_to(offset, target.weight.shape)
        self.spans = [
            Span(block, variance, target.weight.shape[1]) for block, variance in zip(blocks, variances, strict=True)
        ]

    def solve(self, penalties: Sequence[float], start: Solution | None, exact: float) -> Solution:
        """The best point for these prior variances; a block with 0 stays out. `exact`: a gain that ends the search."""
        best = self.search(penalties, [] if start is None else start.coordinates)
        used = [b for b, penalty in enumerate(penalties) if penalty > 0]
        for _ in range(DIRECTIONS):
            grown = [b for b in used if self.spans[b].size < DIRECTIONS]
            if not grown:
                break
            for b in grown:
                a = self.spans[b].at(best.coordinates[b]) if self.spans[b].size else 0.0
                self.spans[b].add(best.slope + a / penalties[b])
            before = best.cost
            best = self.search(penalties, best.coordinates)
            if not before - best.cost > exact * abs(best.cost):
                break
        return best

    def search(self, penalties: Sequence[float], start: Sequence[np.ndarray]) -> Solution:
        """Newton's method in the span of the directions so far, each column of the response by itself."""
        used = [b for b, penalty in enumerate(penalties) if penalty > 0 and self.spans[b].size]
        sizes = [self.spans[b].size for b in used]
        n_columns = self.target.weight.shape[1]
        c = np.zeros((n_columns, sum(sizes)))
        ends = np.cumsum([0, *sizes])
        for b, first in zip(used, ends[:-1], strict=True):
            if b < len(start):
                c[:, first : first + len(start[b])] = start[b].T
        precision = np.repeat([1.0 / penalties[b] for b in used], sizes)
        found = self.newton(c, [self.spans[b].omega[:, : self.spans[b].size] for b in used], precision)
        coordinates = [np.zeros((span.size, n_columns)) for span in self.spans]
        for b, first, last in zip(used, ends[:-1], ends[1:], strict=True):
            coordinates[b] = found[0][:, first:last].T
        return Solution(found[1], found[2], found[3], coordinates)

    def newton(
        self, c: np.ndarray, parts: list[np.ndarray], precision: np.ndarray
    ) -> tuple[np.ndarray, float, np.ndarray, np.ndarray]:
        """Coordinates (R, m), the cost, omega and the slope at the end."""
        n_docs, n_columns = self.target.weight.shape
        none = np.zeros((n_columns, 0, n_docs), np.float32)
        k = parts[0] if len(parts) == 1 else np.concatenate([none, *parts], axis=1)  # (R, m, n_docs)

        def cost(c: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
            omega = self.offset + np.matmul(c[:, None], k)[:, 0].T
            value, slope = self.response.cost(self.target, omega)
            return value + 0.5 * float((precision * c * c).sum()), omega, slope

        value, omega, slope = cost(c)
        for _ in range(STEPS if k.size else 0):
            gradient = np.matmul(k, slope.T[:, :, None])[:, :, 0] + precision * c
            curvature = self.response.curvature(self.target, omega)
            step = -np.array([
                np.linalg.solve((own * w) @ own.T + np.diag(precision), g)
                for own, w, g in zip(k, curvature.T.astype(np.float32), gradient, strict=True)
            ])  # fmt: skip
            down, size = float((gradient * step).sum()), 1.0
            if not -down > 1e-7 * abs(value):
                break
            for _ in range(HALVINGS):
                there = cost(c + size * step)
                if there[0] <= value + 1e-4 * size * down:
                    break
                size *= 0.5
            else:
                break
            c = c + size * step
            value, omega, slope = there
        return c, value, omega, slope

    def theta(self, solution: Solution) -> list[np.ndarray]:
        """The weights of each block, (n_columns, R) float32, without their centres."""
        found = []
        for span, coordinates in zip(self.spans, solution.coordinates, strict=True):
            if coordinates.any():
                found.append(span.weights(span.at(coordinates)))
            else:
                found.append(np.zeros((span.block.shape[1], coordinates.shape[1]), np.float32))
        return found
