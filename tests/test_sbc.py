"""Simulation-based calibration (Talts and others, 2018): slow, so only `pytest -m slow` runs it.

Corpora are drawn from the prior, and the truth must have a uniform rank among posterior draws. All quantities are
independent of how topics are numbered: omega of a document, the log joint, the sorted eta.
"""

import numpy as np
import pytest
from scipy import stats

import naive
from small import ALARM, put
from supertopic.corpus.source import Arrays, make_target
from supertopic.corpus.tokens import Tokens
from supertopic.model.responses import Gaussian, Logistic, NegativeBinomial
from supertopic.model.state import Priors
from supertopic.sampling.chain import Chain
from supertopic.sampling.gibbs import log_joint
from supertopic.sampling.plan import make_plan
from supertopic.sampling.threads import ThreadEngine

N_TOPICS, N_WORDS, LENGTHS, BETA, NU2 = 3, 8, [6, 9, 1, 12, 7, 5, 8, 10], 0.3, 2.0
ALPHA = np.array([0.5, 0.5, 0.5])
N_REPLICATES, N_DRAWS, THIN, BURN_IN = 400, 19, 25, 400

RESPONSES = {
    "logistic": (Logistic(1.0), lambda rng, omega: (rng.random(omega.shape) < 1 / (1 + np.exp(-omega))).astype(float)),
    "Gaussian": (
        Gaussian(1.0, np.full(1, 0.5), False),
        lambda rng, omega: omega + rng.normal(size=omega.shape) * np.sqrt(0.5),
    ),
    "negative binomial": (
        NegativeBinomial(1.0, np.full(1, 1.5), False),
        lambda rng, omega: rng.negative_binomial(1.5, 1.5 / (1.5 + np.exp(omega))).astype(float),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["collapsed", "drawn"])
@pytest.mark.parametrize("kind", RESPONSES)
def test_ranks_are_uniform(kind, sampler):
    response, new_y = RESPONSES[kind]
    priors = Priors(ALPHA, BETA, NU2)
    ranks = []
    for replicate in range(N_REPLICATES):
        rng = np.random.default_rng(replicate)
        eta = rng.normal(0, np.sqrt(NU2), (1, N_TOPICS))
        phi = rng.dirichlet(np.full(N_WORDS, BETA), N_TOPICS)
        z = [rng.choice(N_TOPICS, n, p=rng.dirichlet(ALPHA)) for n in LENGTHS]
        word = np.concatenate([[rng.choice(N_WORDS, p=phi[k]) for k in topics] for topics in z]).astype(np.int32)
        omega = naive.zbars(z, N_TOPICS) @ eta.T
        target = make_target(new_y(rng, omega), np.ones_like(omega))
        tokens = Tokens(word, np.cumsum([0, *LENGTHS]).astype(np.int64))
        source = Arrays(tokens, target)
        plan = make_plan(source, N_WORDS, response, priors, False, sampler, replicate, 10**9)
        with Chain(plan, 0, ThreadEngine(plan, source, 1), None) as chain:

            def quantities(eta, chain=chain):
                (shard,) = chain.engine.shards
                joint = log_joint(chain.engine, eta, response, priors, None)
                return np.concatenate([shard.omega[:4, 0], [joint], np.sort(eta[0])])

            fresh, lam = chain.engine.shards[0].state()["z"], np.ones_like(omega)
            put(chain.engine, plan, source, np.concatenate(z), response, lam, eta)
            truth = quantities(eta)
            put(chain.engine, plan, source, fresh, response, response.start_lam(target), np.zeros_like(eta))
            draws = []
            for i in range(BURN_IN + N_DRAWS * THIN):
                chain.step()
                if i >= BURN_IN and (i - BURN_IN) % THIN == 0:
                    draws.append(quantities(chain.last_eta))
        draws = np.array(draws)
        ties = rng.random(draws.shape) < 0.5
        ranks.append(((draws < truth) | ((draws == truth) & ties)).sum(axis=0))
    for quantity in np.array(ranks).T:
        assert stats.chisquare(np.bincount(quantity, minlength=N_DRAWS + 1)).pvalue > ALARM
