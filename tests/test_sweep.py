"""The kernel against the slow truth, on the same random numbers."""

import numpy as np
import pytest

import naive
from small import flat
from supertopic.kernels.counts import NOWHERE
from supertopic.kernels.draws import document_streams, make_key
from supertopic.kernels.lanes import pad
from supertopic.kernels.sparse import sweep_sparse
from supertopic.kernels.sweep import sweep
from supertopic.model.state import NO_PHI, Quadratic, fixed_topics, make_weights

N_WORDS, BETA = 30, 0.01


def random_problem(n_topics, n_columns, c, rng):
    lengths = [1, 12, 0, 40, 3, 25, 1, 80]
    docs = [list(rng.integers(0, N_WORDS, n)) for n in lengths]
    z = [list(map(int, rng.integers(0, n_topics, n))) for n in lengths]
    eta = 3 * rng.normal(size=(n_columns, n_topics))
    kappa = c * rng.choice([-0.5, 0.5], size=(len(docs), n_columns))
    lam = c * rng.random((len(docs), n_columns)) / 4
    kappa[5], lam[5] = 0, 0  # an unknown label
    return docs, z, eta, kappa, lam, rng.random(n_topics) / n_topics + 0.01


@pytest.mark.parametrize("c", [1.0, 25.0, 256.0, 4000.0])  # the last is beyond STEEP: most tokens are weighed carefully
@pytest.mark.parametrize(("n_topics", "n_columns"), [(1, 1), (2, 1), (5, 0), (16, 1), (20, 3), (37, 1), (70, 2)])
@pytest.mark.parametrize("kind", ["live", "delayed", "fixed"])
def test_kernel_draws_what_the_definition_says(kind, n_topics, n_columns, c):
    rng = np.random.default_rng([n_topics, n_columns, int(c)])
    docs, z, eta, kappa, lam, alpha = random_problem(n_topics, n_columns, c, rng)
    tokens, flat_z = flat(docs, z)
    count = np.zeros((N_WORDS, n_topics), np.int32)
    np.add.at(count, (tokens.word, flat_z), 1)
    phi = rng.dirichlet(np.full(N_WORDS, 0.3), n_topics).T + 1e-6
    streams = document_streams(make_key(n_topics, 7), 0, len(docs))

    wide = pad(count)
    before = wide.copy()
    mass = count.sum(axis=0) + N_WORDS * BETA
    inverse = pad((1 / mass).astype(np.float32))
    if kind == "fixed":
        topics = fixed_topics(phi, alpha)
    else:
        topics = fixed_topics(np.zeros((0, n_topics)), alpha)
        topics = topics._replace(
            word_topic=wide.reshape(-1), mass=mass, inverse=inverse, beta=BETA, live=kind == "live"
        )
    omega = np.zeros((len(docs), n_columns))
    kept = np.zeros(len(docs) * wide.shape[1], np.float32)
    sweep(tokens, flat_z, topics, make_weights(eta), Quadratic(kappa, lam), streams, 1, 0, kept, omega)

    seen = None if kind == "fixed" else count.copy()
    fixed = phi if kind == "fixed" else None
    expected = naive.sweep(docs, z, seen, fixed, eta, kappa, lam, alpha, BETA, streams, kind == "live")
    assert flat_z.tolist() == [k for topics in expected for k in topics]

    after = np.zeros((N_WORDS, n_topics), np.int32)
    np.add.at(after, (tokens.word, flat_z), 1)
    assert (wide == (pad(after) if kind == "live" else before)).all()
    if kind == "live":
        np.testing.assert_allclose(topics.mass, after.sum(axis=0) + N_WORDS * BETA)
        np.testing.assert_allclose(topics.inverse[:n_topics], 1 / topics.mass, rtol=1e-6)
    zbar = naive.zbars(expected, n_topics)
    np.testing.assert_allclose(omega, zbar @ eta.T, atol=1e-12)
    n = kept.reshape(len(docs), -1)[:, :n_topics]
    np.testing.assert_allclose(n, zbar * np.array([[max(len(words), 1)] for words in docs]))


@pytest.mark.parametrize("c", [1.0, 25.0])
@pytest.mark.parametrize(("n_topics", "n_columns"), [(1, 1), (2, 0), (20, 3), (110, 1), (130, 2)])
@pytest.mark.parametrize("kind", ["delayed", "fixed"])
def test_the_sampler_for_many_topics_does_what_its_definition_says(kind, n_topics, n_columns, c):
    """beta and alpha are large enough for each part of the proposal to be taken by some tokens."""
    rng = np.random.default_rng([n_topics, n_columns, int(c)])
    docs, z, eta, kappa, lam, _ = random_problem(n_topics, n_columns, c, rng)
    docs = [sorted(words) for words in docs]
    alpha, beta = rng.random(n_topics) * 20 / n_topics + 0.01, 0.3
    tokens, flat_z = flat(docs, z)
    count = np.zeros((N_WORDS, n_topics), np.int32)
    np.add.at(count, (tokens.word, flat_z), 1)
    phi = rng.dirichlet(np.full(N_WORDS, 0.3), n_topics).T + 1e-6
    mass = count.sum(axis=0) + N_WORDS * beta
    if kind == "fixed":
        topics = fixed_topics(phi, alpha)._replace(smooth=(phi @ alpha).astype(np.float32), mass=np.full(n_topics, 9.0))
    else:
        topics = fixed_topics(np.zeros((0, n_topics)), alpha)
        topics = topics._replace(
            word_topic=pad(count).reshape(-1), mass=mass, inverse=pad((1 / mass).astype(np.float32)), beta=beta,
            smooth=(((count + beta) / mass) @ alpha).astype(np.float32),
        )  # fmt: skip
    streams = document_streams(make_key(n_topics, 8), 0, len(docs))
    omega = np.zeros((len(docs), n_columns))
    kept = np.zeros(len(docs) * len(topics.alpha), np.float32)
    tallies = []
    for s in range(3):  # the state of one sweep is the next one's start
        fixed = phi if kind == "fixed" else None
        expected, tally = naive.sweep_sparse(
            docs, z, count, fixed, eta, kappa, lam, alpha, beta, streams + np.uint64(s)
        )
        omega[:], kept[:] = 0.0, 0.0
        sweep_sparse(
            tokens, flat_z, topics, make_weights(eta), Quadratic(kappa, lam), streams + np.uint64(s), kept, omega,
            NOWHERE,
        )  # fmt: skip
        assert flat_z.tolist() == [k for topics in expected for k in topics]
        z = expected
        if kind == "delayed":
            count[:] = 0
            np.add.at(count, (tokens.word, flat_z), 1)
            mass[:] = count.sum(axis=0) + N_WORDS * beta
            topics = topics._replace(
                word_topic=pad(count).reshape(-1), inverse=pad((1 / mass).astype(np.float32)),
                smooth=(((count + beta) / mass) @ alpha).astype(np.float32),
            )  # fmt: skip
        tallies.append(list(tally.values()))
    stays, present, smooth, refused = np.sum(tallies, axis=0)
    assert stays > 10 and (n_topics == 1 or min(present, smooth) > 10)
    assert (refused > 3) == (n_columns > 0 and n_topics > 1)
    zbar = naive.zbars(z, n_topics)
    np.testing.assert_allclose(omega, zbar @ eta.T, atol=1e-12)
    np.testing.assert_allclose(
        kept.reshape(len(docs), -1)[:, :n_topics], zbar * np.array([[max(len(w), 1)] for w in docs])
    )


def test_a_topic_that_wins_by_far_does_not_overflow():
    """One word, c in the millions: scores beyond what float32 can raise e to."""
    eta = np.array([[50.0, -50.0, 49.0]])
    tokens, z = flat([[0], [0]], [[1], [1]])
    phi = np.full((1, 3), 1.0)
    topics = fixed_topics(phi, np.full(3, 0.1))
    quadratic = Quadratic(np.array([[1e6], [-1e6]]), np.array([[1e3], [1e3]]))
    streams = document_streams(make_key(1), 0, 2)
    sweep(tokens, z, topics, make_weights(eta), quadratic, streams, 1, 1, NO_PHI, np.zeros((2, 1)))
    assert z.tolist() == [0, 1]


def test_a_steep_document_takes_its_own_count_out():
    """Two topics that the response likes alike, far above the third: 400 words seen once decide between them evenly."""
    n_docs, eta = 400, np.array([[30.0, 30.0, -30.0]])
    tokens, z = flat([[d] for d in range(n_docs)], [[0]] * n_docs)
    counts = pad(np.tile(np.array([1, 0, 0], np.int32), (n_docs, 1)))
    mass = counts.sum(axis=0)[:3] + n_docs * BETA
    mass[1] = mass[0] - 1
    topics = fixed_topics(np.zeros((0, 3)), np.full(3, 0.1))
    topics = topics._replace(
        word_topic=counts.reshape(-1), mass=mass, inverse=pad((1 / mass).astype(np.float32)), beta=BETA
    )
    quadratic = Quadratic(np.full((n_docs, 1), 20.0), np.full((n_docs, 1), 1.0))
    streams = document_streams(make_key(1), 0, n_docs)
    omega = np.zeros((n_docs, 1))
    sweep(tokens, z, topics, make_weights(eta), quadratic, streams, 1, 1, NO_PHI, omega)
    assert abs((z == 1).sum() - n_docs / 2) < 5 * np.sqrt(n_docs) / 2


@pytest.mark.parametrize("n_topics", [1, 2, 16, 17])
def test_every_topic_stays_in_range(n_topics):
    rng = np.random.default_rng(0)
    docs = [list(rng.integers(0, N_WORDS, 5000))]
    tokens, z = flat(docs, [[0] * 5000])
    phi = rng.dirichlet(np.full(N_WORDS, 0.05), n_topics).T.clip(1e-37)
    topics, none = fixed_topics(phi, np.full(n_topics, 1e-6)), np.zeros((1, 0))
    streams, eta = document_streams(make_key(1), 0, 1), np.zeros((0, n_topics))
    sweep(tokens, z, topics, make_weights(eta), Quadratic(none, none), streams, 20, 20, NO_PHI, none)
    assert z.max() < n_topics
