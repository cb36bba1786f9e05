"""Subtle errors, and the tests that should notice them: `python -m tests.mutants [NAME ...]`.

Each is a change that a good programmer could make and that no plot would show. The runner applies one after the other to
a copy of the project, runs the tests named beside it until one fails, and prints a table. `--jobs N` runs some at a
time, `--sample N` every so-many-th only. Names are files such as `kernels/sweep`, or parts of what was changed.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Mutant(NamedTuple):
    file: str  # below src/supertopic, without .py
    what: str
    old: str
    new: str
    tests: str  # files, without test_ and .py; `file:words` are pytest's -k


def m(file: str, what: str, old: str, new: str, tests: str) -> Mutant:
    return Mutant(file, what, old, new, tests)


KERNELS = [
    m("kernels/draws", "a bit less of the golden ratio", "uint64(i + 1) * GOLDEN", "uint64(i) * GOLDEN", "draws sweep"),
    m("kernels/draws", "keys that commute", "return mix(uint64(key) ^ mix(uint64(index) + GOLDEN))",
      "return mix(uint64(key) ^ (uint64(index) + GOLDEN))", "streams draws"),
    m("kernels/draws", "one uniform for radius and angle", "math.log(uniform(key, 2 * i))) *",
      "math.log(uniform(key, 2 * i + 1))) *", "draws"),
    m("kernels/draws", "squeeze too wide", "1.0 - 0.0331 * square", "1.0 - 0.0031 * square", "draws"),
    m("kernels/draws", "gamma below 1 without its factor", "math.log(uniform(key, 0)) / shape", "math.log(uniform(key, 0))",
      "draws gibbs"),
    m("kernels/draws", "one term of the sum fewer", "n = 2 + int(z", "n = 1 + int(z", "draws"),
    m("kernels/draws", "the rest begins too early", "z >= (11.0 if many else 14.0)", "z >= (9.0 if many else 10.0)", "draws"),
    m("kernels/draws", "columns of lambda from one stream", "lam[d, r] = polya_gamma(c * h[d, r], z[d, r], derive(stream, r))",
      "lam[d, r] = polya_gamma(c * h[d, r], z[d, r], derive(stream, 0))", "streams"),
    m("kernels/draws", "columns of the hinge from one stream", "a[d, r], shape[d, r], derive(stream, r)",
      "a[d, r], shape[d, r], stream", "streams"),
    m("kernels/draws", "documents numbered from 0 in every shard", "        stream = derive(key, first + d)\n        for r in range(z.shape[1])",
      "        stream = derive(key, d)\n        for r in range(z.shape[1])", "streams threads"),
    m("kernels/draws", "sweeps of documents numbered from 0", "streams[d] = derive(key, first_doc + d)",
      "streams[d] = derive(key, d)", "contract threads draws"),
    m("kernels/draws", "the larger root", "<= shape:\n        return x", ">= shape:\n        return x", "draws"),
    m("kernels/draws", "the variance's series", "1.0 / 24.0 - square / 120.0", "1.0 / 24.0 - square / 100.0", "draws"),
    m("kernels/draws", "normals of all columns alike", "        stream = derive(key, i)\n        for j in range(shape[1])",
      "        stream = derive(key, 0)\n        for j in range(shape[1])", "streams gibbs"),
    m("kernels/draws", "streams that forget the words", "np.uint64(tokens.word[i]) + np.uint64(1))", "np.uint64(1))",
      "draws estimators"),
    m("kernels/sweep", "the token's own count stays in its word", "- ONE + beta) * (inverse[j] / (ONE - inverse[j]))",
      "+ beta) * (inverse[j] / (ONE - inverse[j]))", "sweep"),
    m("kernels/sweep", "the token's own count stays in its topic", "* (inverse[j] / (ONE - inverse[j]))", "* inverse[j]",
      "sweep"),
    m("kernels/sweep", "careful: own token in the topic's mass", "weight[j] /= 1.0 - topics.inverse[j]", "weight[j] /= 1.0",
      "sweep"),
    m("kernels/sweep", "careful: own token in the document", "factor *= state[k] - own + np.float64(topics.alpha[k])",
      "factor *= state[k] + np.float64(topics.alpha[k])", "sweep"),
    m("kernels/sweep", "careful: alpha forgotten", "state[k] - own + np.float64(topics.alpha[k])",
      "max(state[k] - own, 1e-9)", "sweep"),
    m("kernels/sweep", "the same uniforms in every sweep", "uniform32(streams[d], s * n_tokens + i - start)",
      "uniform32(streams[d], i - start)", "streams"),
    m("kernels/sweep", "draws after the burn-in all in one place", "place = (s - burn_in) * apart + d * width",
      "place = d * width", "honesty definitions"),
    m("kernels/sweep", "the first sweep is kept, too", "if s >= burn_in:", "if s >= burn_in - 1:", "contract honesty:one_word definitions:two_words calibration"),
    m("kernels/sweep", "a live topic keeps its old inverse", "splat(np.float32(1.0 / mass[t]))",
      "splat(np.float32(1.0 / (mass[t] - change)))", "sweep"),
    m("kernels/sparse", "own count not taken out of the word", "(count - ONE + beta) * inverse_without[j]",
      "(count + beta) * inverse_without[j]", "sweep"),
    m("kernels/sparse", "own count not taken out of the topic", "(1.0 / (topics.mass - 1.0))", "(1.0 / topics.mass)", "sweep"),
    m("kernels/sparse", "beta left out of the smoothing", "(load(topics.word_topic, word * width + b) + beta)",
      "load(topics.word_topic, word * width + b)", "sweep"),
    m("kernels/sparse", "beta left out of the present", "(np.float32(topics.word_topic[first + k]) + beta)",
      "np.float32(topics.word_topic[first + k])", "sweep"),
    m("kernels/sparse", "a moved token scaled by the old mass", "present.scaled[there] = present.n[there] * inverse[k]",
      "present.scaled[there] = present.n[there] * inverse[j]", "sweep"),
    m("kernels/sparse", "own topic not taken out of the smooth part", "- alpha[j] * liking, ZERO)", "- ZERO, ZERO)", "sweep"),
    m("kernels/sparse", "accepted as if the change were at the start", "omega_n[r] + 0.5 * (eta[k, r] - eta[j, r])",
      "omega_n[r]", "sweep"),
    m("kernels/sparse", "omega does not follow", "omega_n[r] += eta[k, r] - eta[j, r]", "omega_n[r] += 0.0", "sweep"),
    m("kernels/sparse", "one uniform for proposal and acceptance", "3 * (i - start) + 2) >", "3 * (i - start)) >", "sweep"),
    m("kernels/counts", "shares of one topic", "word_topic[w, k] * share[k]", "word_topic[w, k] * share[0]", "contract:replicas"),
    m("kernels/counts", "short cut for tiny gammas too often", "> -100.0 * beta", "> -10.0 * beta", "gibbs definitions"),
    m("kernels/counts", "words of a topic from one stream", "        stream = derive(key, w)\n", "        stream = derive(key, 0)\n",
      "gibbs"),
    m("kernels/counts", "own tokens left in the private topics", "max(word_topic[w, k] / n_draws - own[k], 0.0)",
      "max(word_topic[w, k] / n_draws, 0.0)", "calibration contract"),
    m("kernels/counts", "own tokens left in the private mass", "rest[z[i]] -= 1.0", "rest[z[i]] -= 0.0", "calibration contract"),
    m("kernels/counts", "private topics of one draw", "word_topic[w, k] / n_draws - own[k]", "word_topic[w, k] - own[k]",
      "calibration contract"),
    m("kernels/counts", "z starts in few topics", "* n_topics)", "* (n_topics - 1))", "contract definitions streams"),
    m("kernels/counts", "log joint of documents without its length", "- math.lgamma(concentration + n_tokens)", "- 0.0",
      "contract estimators:log_joint"),
    m("kernels/counts", "Minka's sum from one", "sums[k] += 1.0 / (alpha[k] + count[k])",
      "sums[k] += 1.0 / (alpha[k] + count[k] + 1.0)", "contract"),
    m("kernels/counts", "moves lose their word's block", "word[i] // BLOCK % n_parts + 1", "word[i] % n_parts + 1",
      "contract threads"),
    m("kernels/moments", "lambda of the first column for all", "precision[place, r] += product * lam[d, r]",
      "precision[place, r] += product * lam[d, 0]", "contract posterior"),
    m("kernels/moments", "covariates without their own products", "for b in range(a + 1):\n            k = seen[b]",
      "for b in range(a):\n            k = seen[b]", "contract gibbs"),
    m("kernels/moments", "pairs of draws out of step", "here, there = i % len(counts), i % len(eta)",
      "here, there = i % len(counts), 0", "definitions honesty"),
    m("kernels/moments", "shares of the wrong length", "share = counts[here, d, k] / lengths[d]",
      "share = counts[here, d, k] / lengths[0]", "honesty definitions estimators"),
]  # fmt: skip

SAMPLING = [
    m("sampling/counts", "tokens of others forgotten", "np.sum([self.tokens, *(move.tokens for move in others)], axis=0)", "self.tokens", "contract:replicas"),
    m("sampling/counts", "a change that nobody adds", "self.add([move for move in moves if move.change.size])", "pass", "contract:replicas"),
    m("sampling/counts", "taken by the first shard alone", "tuple(taken.tolist())", "moves[0].taken", "contract:replicas"),
    m("sampling/threads", "only the moves of others", "[*self.moves, *changes]", "[*changes]", "contract:replicas"),
    m("sampling/threads", "neighbours that are none", "level, place = level + 1, place // 2", "level, place = level + 1, place", "contract:pairs"),
    m("sampling/threads", "shards of the first part", "group.start - self.first, group.stop - self.first", "group.start - group.start, group.stop - group.start", "contract"),
    m("corpus/spool", "documents in between", "mask[own] = True", "mask[own[0] : own[-1] + 1] = True", "files:vocabulary"),
    m("corpus/spool", "a word in too many documents", "(documents <= high)", "(documents <= n_docs)", "files:vocabulary"),
    m("sampling/threads", "a shard of another document", "read_file(folder / str(shard.first_doc), ", "read_file(folder / min(path.name for path in folder.iterdir()), ", "checkpoint:every_shard"),
    m("model/responses", "kappa without the weight", "self.c * target.weight * (target.y - 0.5), 0.0",
      "self.c * (target.y - 0.5), 0.0", "contract posterior estimators"),
    m("model/responses", "lambda of c = 1", "return polya_gammas(self.c, target.weight, omega, key, first_doc)",
      "return polya_gammas(1.0, target.weight, omega, key, first_doc)", "posterior contract"),
    m("model/responses", "the hinge's shape is c", "inverse_gaussians(c * np.abs(self.margin - sign * omega), c * c,",
      "inverse_gaussians(c * np.abs(self.margin - sign * omega), c,", "posterior responses"),
    m("model/responses", "the hinge's margin on one side", "return sign * self.c * target.weight, sign * self.margin",
      "return sign * self.c * target.weight, self.margin", "posterior"),
    m("model/responses", "the hinge plain with its margin", "return Hinge(1.0, 1.0)", "return Hinge(1.0, self.margin)",
      "definitions"),
    m("model/responses", "the hinge shown as it is", "return Logistic(1.0)  #", "return self.plain()  #", "honesty"),
    m("model/responses", "the hinge's score not normalised",
      " - np.logaddexp(self.log_density(0.0, omega), self.log_density(1.0, omega))", "", "honesty"),
    m("model/responses", "the Gaussian plain with its c", "return replace(self, c=1.0, drawn=not self.given)\n\n    def draw_scale(self, sums, key):\n        if not self.drawn:\n            return self\n        n,",
      "return replace(self, drawn=not self.given)\n\n    def draw_scale(self, sums, key):\n        if not self.drawn:\n            return self\n        n,", "definitions"),
    m("model/responses", "sigma2 without c", "n, squares = 0.5 * self.c * sums", "n, squares = 0.5 * sums", "posterior responses contract"),
    m("model/responses", "sigma2's rate without its prior", "(self.rate + squares) / gammas", "(squares + 1e-9) / gammas",
      "definitions posterior"),
    m("model/responses", "sigma2's prior density", "- (a + 1.0) * np.log(s) - b / s", "- a * np.log(s) - b / s",
      "definitions posterior"),
    m("model/responses", "the Gaussian's score is the mixture's",
      "return self.with_scale(np.mean(scales, axis=0)).log_density(y, np.mean(omegas, axis=0))",
      "return self.log_predictive(y, omegas, scales)", "honesty"),
    m("model/responses", "counts without log r", "omega - np.log(self.r), key, first_doc)", "omega, key, first_doc)",
      "posterior responses"),
    m("model/responses", "the dispersion's prior a hundred times as narrow",
      "- self.rate * n.r for n in new]", "- 100.0 * self.rate * n.r for n in new]", "definitions posterior"),
    m("model/responses", "the dispersion's prior without the log's slope", "[self.shape * np.log(n.r)",
      "[(self.shape - 1.0) * np.log(n.r)", "definitions posterior"),
    m("model/responses", "a slice without its height", "here + np.log(uniforms(len(x), make_key(key, 0)))", "here",
      "definitions posterior responses"),
    m("model/responses", "classes are not exclusive", "if not self.exclusive:\n            return super().log_predictive",
      "if True:\n            return super().log_predictive", "honesty"),
    m("sampling/threads", "lambda with the sweep's key", "lam_key, next_response = make_key(key, LAMBDA), response",
      "lam_key, next_response = make_key(key, SWEEP), response", "streams contract"),
    m("sampling/threads", "topics with the sweep's key", "make_key(key, TOPICS))", "make_key(key, SWEEP))", "streams contract"),
    m("sampling/gibbs", "the mean in place of a draw", "dtrtrs(U, half + noise[r], lower=False)", "dtrtrs(U, half, lower=False)",
      "gibbs posterior"),
    m("sampling/gibbs", "noise of the wrong triangle", "eta[r], _ = dtrtrs(U, half + noise[r], lower=False)",
      "eta[r] = dtrtrs(U, half, lower=False)[0] + noise[r] / np.sqrt(A.diagonal())", "gibbs"),
    m("sampling/gibbs", "the prior's precision is its variance", "+= 1.0 / nu2 +", "+= nu2 +", "gibbs posterior calibration"),
    m("sampling/gibbs", "eta's density without its scale", "math.log(2 * math.pi * nu2)", "math.log(2 * math.pi)",
      "estimators:log_joint"),
    m("sampling/gibbs", "sigma2 drawn with eta's key", "response.draw_scale(engine, make_key(key, SCALE))\n    return",
      "response.draw_scale(engine, make_key(key, ETA))\n    return", "streams"),
    m("sampling/gibbs", "beta's fixed point without V", "np.array([grown, n_words * np.sum(", "np.array([grown, np.sum(", "calibration:priors"),
    m("sampling/chain", "all chains from one stream", "make_key(self.plan.seed, self.index, self.iteration)",
      "make_key(self.plan.seed, 0, self.iteration)", "streams"),
    m("sampling/chain", "chains that start alike", "self.engine.start(make_key(plan.seed, index, 0))",
      "self.engine.start(make_key(plan.seed, 0, 0))", "streams"),
    m("sampling/chain", "priors learned after the burn-in, too", "        elif self.plan.learn and", "        if self.plan.learn and",
      "definitions"),
    m("sampling/chain", "the loss with c", "[replace(self.response, c=1.0)]).sum()", "[self.response]).sum()", "definitions"),
    m("sampling/chain", "shown weights with the key of others", "make_key(seed, self.index, SHOWN)",
      "make_key(seed, self.index, PREDICTING)", "streams"),
    m("sampling/chain", "shown weights of the training response", "response, drawn = self.plan.response.shown(), []",
      "response, drawn = self.plan.response, []", "honesty"),
    m("sampling/chain", "weights for predictions with c", "self.engine, self.plan.response.plain(), NU2,",
      "self.engine, self.plan.response, NU2,", "calibration honesty definitions"),
    m("sampling/chain", "one draw too few is kept", "kept, key = self.iteration > self.plan.burn_in,",
      "kept, key = self.iteration > self.plan.burn_in + 1,", "estimators definitions honesty"),
    m("inference/calibration", "no burn-in", "if i >= thin * BURN_IN and", "if i >= 0 and", "calibration honesty estimators"),
    m("inference/calibration", "the prior of eta instead", "draw_eta(add(statistics, known), nu2,", "draw_eta(add(statistics, known), 1.0,", "calibration"),
    m("inference/calibration", "the response's parameter is not drawn",
      "response = response.draw_scale(engine, make_key(key, i, SCALE))", "pass", "definitions responses honesty"),
    m("inference/shrinkage", "no doubt", "doubt[0] = NOTHING", "doubt[0] = 1e-9", "honesty"),
    m("inference/shrinkage", "the offset is scaled, too", "known = offset + between(*words, a) if words else offset",
      "known = offset + between(*words, a) if words else a * offset", "honesty"),
    m("inference/shrinkage", "weights forgotten", "surfaces[place] + np.sum(weight * logs, axis=1)",
      "surfaces[place] + np.sum(logs, axis=1)", "honesty"),
    m("inference/shrinkage", "judged by what found it", "without = found[0][:, None, :] - weight * logs", "without = found[0][:, None, :] - 0.0 * logs",
      "honesty"),
    m("inference/shrinkage", "the spread of the mixture for the mean", "of_mean=place < 2", "of_mean=True", "honesty"),
    m("inference/shrinkage", "a question learns from itself", "others = found.sum(axis=1, keepdims=True) - found",
      "others = found.sum(axis=1, keepdims=True) + 0.0 * found", "honesty"),
    m("inference/shrinkage", "draws that follow the posterior's order", "rng.permutation(n) + 0.5", "np.arange(n) + 0.5",
      "honesty streams"),
    m("inference/shrinkage", "covariates out of the base", "base = np.array([log_p(none, at[1], v * one) for v in SCALES])",
      "base = np.array([log_p(none, none, v * one) for v in SCALES])", "honesty"),
    m("sampling/shard", "an offset in the sweep forgotten", "            omega += self.target.offset", "            omega += 0.0",
      "contract posterior"),
    m("sampling/shard", "covariates in the sweep forgotten", "kappa=quadratic.kappa - quadratic.lam * beside",
      "kappa=quadratic.kappa", "contract posterior"),
    m("sampling/shard", "the offset's sign", "slope - self.target.offset", "slope + self.target.offset", "contract posterior"),
    m("sampling/shard", "shares divided by all sweeps", "np.maximum(np.diff(self.tokens.doc_start), 1) * float(n_sweeps - n_sweeps // 2)",
      "np.maximum(np.diff(self.tokens.doc_start), 1) * float(n_sweeps)", "contract calibration"),
    m("sampling/counts", "smooth without beta", "(smooth * unit + priors.beta * share.sum())", "(smooth * unit)", "contract"),
    m("sampling/counts", "share with the sum of alpha", "share = priors.alpha / mass", "share = priors.alpha.sum() / mass",
      "contract"),
    m("sampling/counts", "mass without beta", "mass, alpha = self.tokens + self.plan.n_words * priors.beta,",
      "mass, alpha = self.tokens + priors.beta,", "contract posterior"),
    m("model/responses", "a slice that is too high", "height = here + np.log(uniforms(len(x), make_key(key, 0)))",
      "height = here - 0.5", "responses definitions"),
    m("model/responses", "the start of the hinge without its margin", "self.c * target.weight / np.maximum(np.abs(zeta), 1e-6)",
      "self.c * target.weight", "responses"),
    m("model/responses", "the start without c", "return mean_polya_gamma(self.c * target.weight, omega)",
      "return mean_polya_gamma(target.weight, omega)", "responses"),
    m("model/responses", "the slope of classes that are not exclusive", "target.weight * (np.exp(logs) - target.y)",
      "target.weight * (expit(omega) - target.y)", "words"),
    m("model/responses", "the slope at 0", "constant + (slope - omega) * self.mean_lam", "constant - omega * self.mean_lam", "words levels"),
    m("model/responses", "words learn classes that are not exclusive", "if not self.exclusive:\n            return super().cost",
      "if True:\n            return super().cost", "words"),
    m("model/responses", "the squared hinge's slope", "-2.0 * target.weight * sign * zeta", "-target.weight * sign * zeta", "words"),
    m("sampling/counts", "proposals are counted while draws are kept, too", "        if not keep:  # after",
      "        if True:  # after", "contract threads"),
    m("sampling/counts", "a loud response is never looked at", "self.dense = DENSE if plan.n_columns else 0", "self.dense = 0", "contract threads"),
    m("sampling/counts", "rejected proposals do not matter", "DENSE if accepted < ACCEPTED * proposed else", "DENSE if accepted < 0 else",
      "contract threads"),
    m("inference/words", "idf without its 1", "(1.0 + n_docs[word])) + 1.0)", "(1.0 + n_docs[word])))", "words"),
    m("inference/words", "rows that are not of length 1", "x.data /= np.repeat(length", "x.data /= np.repeat(length**2", "words"),
    m("inference/words", "counts are not damped", "(1.0 + np.log(x.data))", "x.data", "words"),
    m("inference/words", "the prior's slope", "rows.transposed @ slope + pull", "rows.transposed @ slope + 2.0 * pull", "words"),
    m("inference/words", "judged by the documents that taught it", "response.cost(other, offset[held] + x[held] @ theta)[0]",
      "response.cost(part, offset[seen] + x[seen] @ theta)[0]", "words"),
    m("inference/words", "words learn what topics say, too", "offset = target.offset + a * told", "offset = target.offset + 0.0 * told", "words"),
    m("inference/words", "all copies weigh alike", "weigh_at_random(target, [*seed, 3, i])", "weigh_at_random(target, [*seed, 3])", "words"),
    m("inference/shrinkage", "interpolated the wrong way", "values[low, :, columns] * (1.0 - share)", "values[low, :, columns] * share", "words"),
    m("inference/shrinkage", "evidence without its prior", "+ np.log(doubt / doubt.sum() + 1e-300)[:, None]", "", "honesty"),
    m("model/state", "topics of the sum of the draws", "counts = word_topic / n_draws + priors.beta",
      "counts = word_topic + priors.beta", "definitions"),
]  # fmt: skip

ABOVE = [
    m("corpus/tokens", "duplicates are not summed", "X.sum_duplicates()", "X.sort_indices()", "definitions estimators"),
    m("corpus/tokens", "the first document of a pick twice", "np.cumsum(lengths[docs])", "np.cumsum(np.sort(lengths[docs]))", "honesty threads definitions"),
    m("estimators/base", "alpha not divided", "alpha = np.full(self.n_topics, alpha / self.n_topics)",
      "alpha = np.full(self.n_topics, alpha)", "definitions estimators"),
    m("estimators/fitting", "the worst chain", "int(np.argmax(means))", "int(np.argmin(means))", "estimators"),
    m("estimators/fitting", "the chains' counts of the first one", "word_topic = np.stack([chain.word_topic for chain in chains])",
      "word_topic = np.stack([chains[0].word_topic for chain in chains])", "streams"),
    m("estimators/base", "predictions of all chains from one stream", "block * len(self._eta) + chain, PREDICT)",
      "block * len(self._eta), PREDICT)", "streams definitions"),
    m("estimators/supervised", "covariates are not scaled", "return (Z - self.covariate_mean_) / self.covariate_scale_\n\n    def _foretell",
      "return Z - self.covariate_mean_\n\n    def _foretell", "definitions"),
    m("estimators/supervised", "weights of covariates in other units", "self._shown[..., self._n_features_out :] / self.covariate_scale_",
      "self._shown[..., self._n_features_out :]", "responses"),
    m("estimators/supervised", "an empty document has the base rate", "offset = (self.empty_intercept_ - centre) / unit",
      "offset = (self.intercept_ - centre) / unit", "honesty"),
    m("estimators/supervised", "the exposure is forgotten", "offset = offset + log_exposure(exposure, len(lengths))", "pass",
      "definitions responses"),
    m("estimators/trusting", "hidden ones are the first of the order", "(np.arange(n) + rng.random()) * (len(known) / n)",
      "(np.arange(n) + rng.random())", "honesty"),
    m("estimators/trusting", "unknown ones may be hidden", "return np.any(target.weight > 0, axis=1)",
      "return np.ones(len(target.weight), bool)", "honesty"),
    m("estimators/trusting", "the factor of topics for covariates", "eta[..., n_topics:] * beside[..., None]",
      "eta[..., n_topics:] * topics[..., None]", "honesty"),
    m("estimators/trusting", "a guard that is silent", "lost = np.flatnonzero(~better | (mass[0] > 0.5))",
      "lost = np.flatnonzero(mass[0] > 1.5)", "honesty"),
    m("estimators/supervised", "shown weights are those that predict", "return self._shown[..., : self._n_features_out]",
      "return self._calibrated[0][..., : self._n_features_out]", "honesty estimators"),
    m("estimators/supervised", "empties without their mean", "+ few * mean) /", "+ few * 0.0) /", "honesty"),
    m("estimators/classifiers", "sigmoids in place of the softmax", "return softmax(omega, axis=1)",
      "return expit(omega) / expit(omega).sum(axis=1, keepdims=True)", "definitions"),
    m("estimators/classifiers", "a stick too many", "np.cumprod(expit(-omega), axis=1)", "np.cumprod(expit(-omega) ** 2, axis=1)",
      "definitions responses"),
    m("estimators/classifiers", "sticks beyond the class", "(index[:, None] >= stick)", "(index[:, None] >= 0 * stick)", "definitions"),
    m("estimators/classifiers", "balanced on one side only", "n / np.maximum(2 * (n - yes), 1))", "1.0)", "definitions"),
    m("estimators/classifiers", "the probability of the mean omega", "average(list(map(self._probabilities, omegas)))",
      "self._probabilities(average(omegas))", "definitions"),
    m("model/responses", "log-odds where classes exclude each other", "return log_expit(offset) if self.exclusive else offset",
      "return offset", "levels"),
    m("estimators/classifiers", "tiny classes may be hidden", "size[place.ravel()] >= LEAST_OF_A_CLASS", "size[place.ravel()] >= 0", "honesty"),
    m("estimators/regressors", "weights ignored in the intercept", "np.average(y, axis=0, weights=weight)\n", "np.average(y, axis=0)\n",
      "definitions"),
    m("estimators/regressors", "the spread of omega left out", "np.sqrt(spread + inside)",
      "np.sqrt(0.0 * spread + inside)", "definitions"),
    m("estimators/regressors", "sigma2 in standard units", "self._calibrated[1] * self.unit_ * self.unit_", "self._calibrated[1] * self.unit_",
      "corners responses"),
    m("estimators/regressors", "the median of a lognormal", "average(np.exp(np.minimum(omegas, MOST_LOG)))", "np.exp(average(omegas))", "definitions"),
    m("model/responses", "quantiles of one draw", "enough = average([drawn.cdf(middle, omega) for drawn, omega in draws]) >= q",
      "enough = draws[0][0].cdf(middle, draws[0][1]) >= q", "definitions"),
    m("estimators/supervised", "half a count more", "half, few = 0.5 * largest", "half, few = 5.0 * largest", "definitions"),
    m("estimators/storage", "a fact that is not saved", '"hidden_": dict, ', "", "definitions storage"),
    m("estimators/storage", "an array that is not saved", '"empty_intercept_", "unit_"', '"unit_"', "definitions storage"),
    m("estimators/storage", "alpha is not checked", '"alpha_": (n_chains, n_topics), ', "", "definitions"),
    m("estimators/storage", "columns are not checked", 'shown[::2] == eta.shape[::2]', "True", "definitions"),
    m("estimators/storage", "negative counts pass", "counts.min() >= 0 and ", "", "definitions"),
    m("inference/checkpoint", "priors not in the identity", "itertools.chain(source.arrays(), of_topics, of_weights)", "source.arrays()", "definitions"),
    m("corpus/source", "offsets not in the identity", "return *self.tokens, *self.target", "return *self.tokens, *self.target[:2], *self.target[3:]",
      "definitions"),
    m("inference/checkpoint", "shapes not in the identity", 'digest.update(f"{array.shape} {array.dtype.str}".encode())', "pass", "checkpoint definitions"),
    m("report/diagnostics", "other quantiles", 'axis=0, method="weibull"', "axis=0", "definitions"),
    m("report/diagnostics", "one-sided", "[(1 - level) / 2, (1 + level) / 2]", "[(1 - level), level]", "definitions"),
    m("report/diagnostics", "R-hat without the tail", "(rank_normalise(halves), rank_normalise(np.abs(halves - np.median(halves))))",
      "(rank_normalise(halves),)", "definitions"),
    m("report/diagnostics", "variance by n", "z.var(axis=1, ddof=1).mean(), n *", "z.var(axis=1).mean(), n *", "diagnostics"),
    m("report/summary", "perplexity with alpha's sum for each", "(zbar * lengths + self.alpha_[chain])", "(zbar * lengths + self.alpha_[chain].sum())",
      "definitions"),
    m("report/summary", "exclusivity by the maximum", "share = topics / topics.sum(axis=0)", "share = topics / topics.max(axis=0)", "definitions"),
    m("report/summary", "the sign turned round", '(draws > 0).mean(axis=0)', '(draws < 0).mean(axis=0)', "definitions"),
    m("report/summary", "the largest of many is clear", "ndtri(0.05 / len(model.coef_)) /", "ndtri(0.05) /", "honesty"),
    m("report/page", "Wilson's middle", "p + z * z / (2 * n)", "p + z * z / n", "diagnostics:wilsons"),
    m("sampling/counts", "pseudo-counts are forgotten by the topics' sizes", "np.sum([self.pseudo_tokens, *(move.tokens", "np.sum([0 * self.pseudo_tokens, *(move.tokens",
      "priors:machines"),
    m("sampling/counts", "every machine adds pseudo-counts", "if pseudo_counts is not None and shards[0].first_doc == 0:", "if pseudo_counts is not None:", "priors:machines"),
    m("sampling/counts", "pseudo-counts are words that were seen", "value -= self.log_counts(self.pseudo_counts, self.pseudo_tokens, beta)", "pass",
      "priors:joint"),
    m("sampling/counts", "smooth topics from tokens alone", "== len(self.plan.slices) and self.pseudo_counts is None:", "== len(self.plan.slices):", "priors:smooth"),
    m("sampling/gibbs", "what is known of eta is not used", "        statistics = add(statistics, known)", "        pass", "posterior:exact"),
    m("sampling/gibbs", "beta is learned from pseudo-counts", "if pseudo is not None:  # the step", "if False:  # the step", "priors:uphill"),
    m("sampling/gibbs", "half a determinant", "np.log(U.diagonal()).sum() - 0.5", "0.5 * np.log(U.diagonal()).sum() - 0.5", "priors:joint"),
    m("inference/calibration", "yesterday's weights are not used", "draw_eta(add(statistics, known), nu2", "draw_eta(statistics, nu2",
      "calibration"),
    m("inference/words", "a word's precision as its weight", "past.precision[theirs] / ratio**2", "past.precision[theirs] / ratio", "priors:carried"),
    m("inference/words", "what these documents lack is forgotten", "thetas, precision, said = before_all.theta, before_all.precision.copy()",
      "thetas, precision, said = 0 * before_all.theta, 0 * before_all.precision", "priors:lacks"),
    m("inference/shrinkage", "hidden documents of before are not heard", "surfaces = before or [", "surfaces = [", "priors:trust"),
    m("estimators/beliefs", "always rounded down", "* mean + rng.random(len(mean)))", "* mean)", "priors:average"),
    m("estimators/beliefs", "weights keep the old constant", "moved[place, r] += whole[:, :n_theirs].sum(axis=1) * shift[r]", "pass", "priors:weights"),
    m("estimators/beliefs", "weights keep the old unit", "scale, shift = old_unit / unit,", "scale, shift = np.ones_like(unit),", "priors:weights"),
    m("estimators/beliefs", "seeds fade", "None if seeds is None or not going_on else seeds", "None", "priors:fade"),
    m("estimators/base", "seeds are part of what was seen", "- n_draws * imagined.reshape(len(word_topic), -1)", "", "priors:pseudo"),
    m("estimators/choosing", "the standard error of all", "more = losses[row[\"n_topics\"]] - losses[self.best]",
      "more = losses[row[\"n_topics\"]] - losses[self.best].mean()", "priors:standard"),
    m("command/show", "the base rate of the test documents", 'base = np.mean(known.astype(float) if labels else known[:, None] == model.classes_, axis=0)',
      'base = np.mean(truth, axis=0)', "cli"),
    m("baselines/disclda", "no class prior", "self._log_prior = np.log(np.bincount(index) / len(index))",
      "self._log_prior = np.zeros(len(np.bincount(index)))", "baselines"),
    m("baselines/variational", "C without the margin", "C=self.c / self.margin", "C=self.c", "baselines"),
    m("baselines/variational", "the dual without the margin", "self._dual[svm.support_, r] = self.margin * np.abs",
      "self._dual[svm.support_, r] = np.abs", "baselines"),
    m("baselines/__init__", "another alpha", "(5.6, 30, 10)", "(1.0, 30, 10)", "definitions"),
    m("baselines/__init__", "calibrated", "\"calibrate\": False", "\"calibrate\": True", "definitions"),
    m("inference/words", "another copy than the draw's", "* n_draws + pairs).ravel()", "* len(pairs) + pairs).ravel()", "words"),
    m("estimators/trusting", "words that are always believed", "expit(learned.trust.evidence - alone.evidence)) / COPIES",
      "1.0) / COPIES", "words"),
    m("estimators/trusting", "words learn what covariates say, too", "seen._replace(offset=seen.offset + by_covariates)", "seen", "words"),
    m("estimators/supervised", "theta in other units", "for theta in self._theta]) * constants(self)[1]", "for theta in self._theta])", "words"),
    m("datasets", "labels from the shares' prior", "probability = expit(doc_topic @ eta.T)", "probability = expit(doc_topic @ (0.5 * eta.T))",
      "definitions"),
]  # fmt: skip
LEVELS = [  # offsets, levels, what batches carry over
    m(
        "model/responses",
        "the information of coins without their curve",
        "self.c * target.weight * p * (1.0 - p)\n\n    def log_density",
        "self.c * target.weight * p\n\n    def log_density",
        "levels",
    ),
    m(
        "model/responses",
        "the information of counts without y",
        "(target.y + self.r) * s * (1.0 - s)",
        "self.r * s * (1.0 - s)",
        "levels",
    ),
    m(
        "model/responses",
        "the curvature of classes that exclude each other",
        "p = softmax(omega, axis=1)\n        return target.weight",
        "p = expit(omega)\n        return target.weight",
        "levels",
    ),
    m(
        "model/responses",
        "a prior of r from one draw",
        ", 0.5 * n_docs)\n",
        ", 5e9 * n_docs)\n",
        "priors:parameter corners:single",
    ),
    m(
        "model/responses",
        "the quantile of counts one too high",
        "return high\n\n    def link",
        "return high + 1.0\n\n    def link",
        "levels:quantiles",
    ),
    m(
        "sampling/shard",
        "Newton's kappa without the offset",
        "lam * (omega - self.target.offset)\n        self.quadratic",
        "lam * omega\n        self.quadratic",
        "levels",
    ),
    m(
        "inference/calibration",
        "a proposal that is always taken",
        "np.log(uniforms(len(eta), make_key(key, 1))) < gain",
        "gain == gain",
        "levels",
    ),
    m(
        "inference/calibration",
        "the way back is not weighed",
        "gain = there.log_density + log_normal(there.factors, eta)",
        "gain = there.log_density + log_normal(here.factors, eta)",
        "levels",
    ),
    m(
        "inference/calibration",
        "lam where the curvature belongs",
        "engine.linearise(response)\n    precision",
        "precision",
        "levels",
    ),
    m(
        "inference/calibration",
        "the prior counted twice with each batch",
        "lower @ eta + np.tril(lower, -1).T @ eta + eta / nu2",
        "lower @ eta + np.tril(lower, -1).T @ eta",
        "levels calibration",
    ),
    m(
        "sampling/chain",
        "reported weights from those that predict",
        "if known.reported.precision.any():",
        "if False:",
        "levels:hides",
    ),
    m("inference/level", "the wrong side", "shift += step", "shift -= step", "levels"),
    m(
        "inference/level",
        "deviations of any document",
        "omega += hidden[rng.integers(0, len(hidden), doc.shape), doc] - centre[doc]",
        "omega += (hidden - centre)[rng.integers(0, len(hidden), doc.shape), rng.permuted(doc, axis=1)]",
        "levels:spread",
    ),
    m(
        "estimators/supervised",
        "regressions begin at log p",
        "offset = target.offset + np.where(empty[:, None], links[1], links[0])",
        "offset = target.offset + response.predictive_offset(np.where(empty[:, None], links[1], links[0]))",
        "levels",
    ),
    m(
        "estimators/supervised",
        "the batch's level for all batches",
        'self._learned["sums"] = sums',
        'self._learned["sums"] = batch',
        "levels priors",
    ),
    m(
        "estimators/supervised",
        "predictions without their level",
        "np.where(empty[:, None], 0.0, self.calibrated_intercept_)",
        "np.where(empty[:, None], 0.0, self.intercept_)",
        "levels:rare definitions:enumeration",
    ),
    m(
        "estimators/trusting",
        "a batch is judged at the level of all",
        "shift = np.where(empty[:, None], 0.0, self._batch_shift)",
        "shift = np.zeros((len(empty), 1))",
        "levels:moves",
    ),
    m(
        "estimators/trusting",
        "levels of batches before are forgotten",
        "away, weight = float(self.discount) * away, float(self.discount) * weight",
        "away, weight = 0.0 * away, 0.0 * weight",
        "levels priors",
    ),
    m(
        "estimators/regressors",
        "the first batch's mean for ever",
        "self.intercept_ = self.intercept_ + self.unit_ * away",
        "pass",
        "levels:moves",
    ),
    m(
        "inference/words",
        "what was forgotten is the centre",
        "discount * past.shift[theirs] / ratio,",
        "past.shift[theirs] / ratio,",
        "priors:carried levels:forgotten",
    ),
    m(
        "report/explain",
        "the largest omega is predicted",
        "int(np.argmax(self.mean))",
        "int(np.argmax(self.omega))",
        "corners:sticks",
    ),
    m(
        "estimators/base",
        "an update in place",
        "new.__dict__ = dict(self.__dict__)",
        "new.__dict__ = self.__dict__",
        "corners",
    ),
    m(
        "estimators/fitting",
        "the seed is read too late",
        "self._seed() if stored is None else stored",
        "self._seed()",
        "corners:prior",
    ),
]
CARD = [  # noticed in Numba's simulator
    m("kernels/cuda/sweep", "the token stays in its document", "memory[at_j] - one, tables.alpha", "memory[at_j], tables.alpha", "gpu:lanes"),
    m("kernels/cuda/sweep", "the token stays in its word", "(own - taken + beta)", "(own + beta)", "gpu:lanes"),
    m("kernels/cuda/sweep", "its topic's other tokens weigh, too", "memory[at_j] = -alpha_j", "memory[at_j] = left", "gpu:lanes"),
    m("kernels/cuda/sweep", "a curve half as steep", "log2(fixed[m]) - half * square * e * e", "log2(fixed[m]) - half * half * square * e * e", "gpu:lanes"),
    m("kernels/cuda/sweep", "the same with many columns", "fixed[m] -= half * (b0", "fixed[m] -= half * half * (b0", "gpu:lanes"),
    m("kernels/cuda/sweep", "a move leaves the slope", "slope -= square * response.rows[uint32(k * C)]", "slope -= square * response.rows[uint32(j * C)]", "gpu:lanes"),
    m("kernels/cuda/sweep", "what overflows is not taken again", "if R == 0 or not any_lane(off):", "if True:", "gpu:lanes"),
    m("kernels/cuda/sweep", "covariates forgotten at first", "a = (float32(response.kappa[row, r]) - float32(response.lam[row, r]) * known)", "a = float32(response.kappa[row, r])", "contract:device_sweep"),
    m("kernels/cuda/sweep", "omega without its offset", "response.omega[row, r] = value + response.offset[row, r]", "response.omega[row, r] = value", "contract:device_sweep"),
    m("kernels/cuda/sweep", "all tokens of a row from one number", "uniform32(stream, sweep_number * length + i + t)", "uniform32(stream, t)", "gpu:lanes"),
    m("kernels/cuda/counts", "columns of lambda from one stream", "omega[d, r], derive(derive(key[0], number[d]), r)", "omega[d, r], derive(key[0], number[d])", "contract:device_augment"),
    m("kernels/cuda/counts", "kappa of omega, offset and all", "log_own[r], y) - target[2][d, r]", "log_own[r], y)", "contract:device_augment"),
    m("kernels/cuda/counts", "own tokens left in the private topics", "like[here + docs.z[place + i * group]] -= 1.0", "like[here + docs.z[place + i * group]] -= 0.0", "contract:device_private"),
    m("kernels/cuda/counts", "a topic's mass with the token", "1.0 / max(mass - 1.0, whole)", "1.0 / mass", "gpu:lanes"),
    m("kernels/cuda/counts", "words of a topic from one stream", "cell = derive(derive(key[0], w), k)", "cell = derive(key[0], k)", "contract:device_sweep_drawn"),
    m("kernels/cuda/moments", "covariates shifted", "feature - n_topics] if beside", "0] * 0.5 if beside", "contract:device_augment"),
    m("kernels/cuda/moments", "the last chunk alone", "total += partial[uint64(chunk)", "total = partial[uint64(chunk)", "contract:device_augment"),
    m("kernels/cuda/moments", "a shift of lambda", "linear[i] = kappa[d, r]", "linear[i] = lam[d, r]", "contract:device_augment"),
    m("kernels/responses", "a hinge without its margin", "return (2.0 * y - 1.0) * own", "return 2.0 * y - 1.0", "responses:scalar contract:device_augment"),
    m("kernels/responses", "counts without log r", "        return log_own\n", "        return 0.0\n", "responses:scalar contract:device_augment"),
    m("sampling/cuda_documents", "neighbours' numbers", "rows.hash(key)", "rows.number(0)", "contract:device_new"),
]  # fmt: skip
MUTANTS = KERNELS + SAMPLING + ABOVE + LEVELS + CARD


def arguments(tests: str) -> list[list[str]]:
    """pytest's arguments for each of the tests that should notice, in their order."""
    found = []
    for name in tests.split():
        file, _, words = name.partition(":")
        found.append([f"tests/test_{file}.py", *(["-k", words.replace("_", " and ")] if words else [])])
    return found


def try_out(mutant: Mutant) -> tuple[str, float]:
    """By what a mutant is noticed, and after how many seconds."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        folder = Path(name)
        kernels = mutant.file.startswith("kernels/")  # then nothing that was compiled can be trusted
        for part in ("src", "tests", "benchmarks"):
            shutil.copytree(
                ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__") if kernels else None
            )
        shutil.copy(ROOT / "pyproject.toml", folder)
        path = folder / "src" / "supertopic" / f"{mutant.file}.py"
        text = path.read_text(encoding="utf-8")
        if text.count(mutant.old) != 1:
            return f"the text is there {text.count(mutant.old)} times", 0.0
        path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        environment = os.environ | ({"NUMBA_ENABLE_CUDASIM": "1"} if mutant in CARD else {})
        for argument in arguments(mutant.tests):
            code = "import sys; sys.path[:0] = ['src', 'tests']; import pytest; sys.exit(pytest.main(sys.argv[1:]))"
            command = [sys.executable, "-c", code, "-q", "-x", "-n0", "-p", "no:cacheprovider", *argument]
            try:
                run = subprocess.run(
                    command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900, check=False
                )
            except subprocess.TimeoutExpired:
                return "a hang", time.perf_counter() - began
            if run.returncode == 1 or run.returncode < 0:
                failed = [line for line in run.stdout.splitlines() if line.startswith("FAILED")]
                return (failed[0].split("::")[-1].split(" - ")[0] if failed else "a crash"), time.perf_counter() - began
            if run.returncode:
                return f"pytest says {run.returncode}", time.perf_counter() - began
    return "SURVIVED", time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="files, or parts of what was changed")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--sample", type=int, default=1, help="every so-many-th only")
    options = parser.parse_args()
    chosen = [x for x in MUTANTS if not options.names or any(n in x.file or n in x.what for n in options.names)]
    chosen = chosen[:: options.sample]
    print("| file | what was changed | noticed by | s |\n| --- | --- | --- | --- |", flush=True)
    alive = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for mutant, (by, seconds) in zip(chosen, pool.map(try_out, chosen), strict=True):
            alive += by == "SURVIVED" or by.startswith(("pytest says", "the text"))
            print(f"| {mutant.file} | {mutant.what} | {by} | {seconds:.0f} |", flush=True)
    print(f"\n{len(chosen) - alive} of {len(chosen)} were noticed.")
    sys.exit(alive > 0)


if __name__ == "__main__":
    main()
