"""The sampler for many topics on a GPU: its time for a token depends on the topics of the document, not on K.

The method is that of `kernels.sparse`: a topic is drawn from LDA's conditional, and another one than before is accepted
with the response's factor. (n_k + alpha_k) phi_wk is a sum over the topics that the document has, and one over all
topics, `smooth`, which is known for each word and for each block of LINE topics, so that a topic is found by looking at
the blocks and then at one of them.

A warp has a document: each lane weighs every T-th topic of the document's list, and the sums of the lanes are searched.
The first topic of each lane stays in registers, with the number that the next token's word has in it, which is loaded
before this token is drawn; most documents have no more topics than that.
"""

import functools
import math

from numba import float32, float64, int32, uint16, uint32, uint64

from supertopic.kernels import draws
from supertopic.kernels.cuda.device import LINE, WARP, cuda, exp2, here, jit_within, sync_lanes
from supertopic.kernels.cuda.layout import SPARSE_REGISTERS, Shape
from supertopic.kernels.cuda.warp import LANES, LAST, all_lanes, first_lane, of_lane, up_to

derive, uniform32 = here(draws.derive), here(draws.uniform32)

LOG2E = math.log2(math.e)


@cuda.jit
def list_topics(docs, group, width):
    """The topics of each document in the order in which they come, and their tokens, also as a row of all topics.

    Rows are 0 before.
    """
    d = cuda.grid(1)
    if d < len(docs.length):
        start, row, size = docs.base[d // group] + d % group, uint64(d) * uint64(width), 0
        for i in range(docs.length[d]):
            k = uint64(docs.z[start + i * group])
            if docs.n[row + k] == 0.0:
                docs.topic[start + size * group] = k
                size += 1
            docs.n[row + k] += 1.0
        for m in range(size):
            docs.tokens[start + m * group] = docs.n[row + uint64(docs.topic[start + m * group])]
        docs.size[d] = size


@cuda.jit
def add_smooth(table, prior, inverse, alpha, smooth, blocks):
    """sum alpha_k phi_wk of each word, (V,), and over each LINE topics, (V, width / LINE), flat; a warp has a word."""
    w, t = cuda.grid(1) // LANES, cuda.threadIdx.x % LANES
    if w < len(smooth):
        n_blocks, whole, beta = len(alpha) // LINE, float32(0.0), prior[0]
        row, block = uint64(w) * uint64(len(alpha)), uint64(w) * uint64(n_blocks)
        for b in range(n_blocks):
            total = float32(0.0)
            for m in range(b * LINE + t, (b + 1) * LINE, LANES):
                total += alpha[uint64(m)] * inverse[uint64(m)] * (table[row + uint64(m)] + beta)
            total = all_lanes(total)
            whole += total
            if t == 0:
                blocks[block + uint64(b)] = total
        if t == 0:
            smooth[w] = whole


@functools.cache
def make_sparse_sweep(shape: Shape):
    """The kernel for a shape, whose documents have a whole warp each. Its lanes go the same ways."""
    K, R, T, B = shape.n_topics, shape.n_columns, LANES, shape.block
    G, W, C = shape.group, shape.width, shape.columns
    CT, BLOCKS = C // T if R > 1 else 1, shape.width // LINE
    half, one, zero, log2e = float32(0.5), float32(1.0), float32(0.0), float32(LOG2E)

    @cuda.jit(device=True)
    def find_smooth(tables, word, j, goal, t):
        """The topic but j at which the sum of alpha_k phi_wk passes the goal; j if rounding leaves none."""
        at, like = uint64(word) * uint64(BLOCKS), uint64(word) * uint64(W)
        own = tables.alpha[j] * (tables.table[like + uint64(j)] + tables.prior[0]) * tables.inverse[j]
        block, below = int32(-1), zero
        for first in range(0, BLOCKS, T):
            b, x = first + t, zero
            if b < BLOCKS:
                x = tables.blocks[at + uint64(b)]
                if b == j // LINE:
                    x = max(x - own, zero)
            total = up_to(x, t)
            lane = first_lane(goal < below + total)
            if lane >= 0:
                block = int32(first + lane)
                below += of_lane(total - x, lane)
                break
            below += of_lane(total, LAST)
        found = int32(j)
        if block >= 0:
            for first in range(0, LINE, T):
                k, x = block * LINE + first + t, zero
                if k != j and first + t < LINE:
                    x = tables.alpha[k] * (tables.table[like + uint64(k)] + tables.prior[0]) * tables.inverse[k]
                total = up_to(x, t)
                lane = first_lane(goal < below + total)
                if lane >= 0:
                    found = int32(block * LINE + first + lane)
                    break
                below += of_lane(total, LAST)
        return found

    @jit_within(SPARSE_REGISTERS)
    def sweep(docs, tables, response, key, begin, end, burn_in, apart, summed, tally, first_group, n_groups):
        """Draw every z anew in some sweeps; counts after burn_in are added to `summed`, each `apart` numbers on.

        tally[0] counts the proposals, tally[1] those that were accepted.
        """
        tid = cuda.threadIdx.x
        t, slot = tid & (T - 1), (tid & (WARP - 1)) // T
        group = (cuda.blockIdx.x * B + tid) // WARP
        if tid >= B or group >= n_groups:
            return
        group += first_group
        row = group * G + slot
        length, start, place = docs.length[row], uint64(docs.base[group] + slot), uint64(row) * uint64(W)
        beta, taken = tables.prior[0], tables.prior[1]

        # The document's topics in the order in which they come, so that a restored chain has the same list. Lane t has
        # places t, t + T ...: the first one in registers, with its tokens.
        topic, n, size, j_t = int32(-1), zero, int32(0), int32(0)
        for i in range(length):
            if i & (T - 1) == 0:
                j_t = int32(docs.z[start + uint64(min(i + t, length - 1) * G)])
            j = of_lane(j_t, i & (T - 1))
            at_j = int32(t) if topic == j else int32(-1)
            for m in range(T + t, size, T):
                if int32(docs.topic[start + uint64(m * G)]) == j:
                    at_j = int32(m)
            new = first_lane(at_j >= 0) < 0
            if new and size & (T - 1) == t:
                at_j = size
            if new:
                size += 1
            if at_j == t:
                topic, n = j, n + one
            elif at_j >= T:
                here_j = start + uint64(at_j * G)
                docs.topic[here_j], docs.tokens[here_j] = uint16(j), (zero if new else docs.tokens[here_j]) + one
        if topic >= 0:
            docs.topic[start + uint64(t * G)], docs.tokens[start + uint64(t * G)] = uint16(topic), n
        for m in range(t, size, T):
            docs.n[place + uint64(docs.topic[start + uint64(m * G)])] = 0.0

        # the factor of a move that changes eta zbar by delta / N is 2**(delta (slope - curve delta / 2))
        slope, curve = cuda.local.array(CT, float32), cuda.local.array(CT, float32)
        inverse_n = one / max(float32(length), one)
        for c in range(CT):
            slope[c] = curve[c] = zero
            for lane in range(1 if R <= 1 else T):
                r = c * T + lane
                if r < R:
                    omega = known = zero
                    for m in range(t, size, T):
                        at_m = start + uint64(m * G)
                        omega += docs.tokens[at_m] * float32(response.exact[r, docs.topic[at_m]])
                    omega = all_lanes(omega)
                    for p in range(response.covariates.shape[1]):
                        known += float32(response.exact[r, K + p] * response.covariates[row, p])
                    if R == 1 or lane == t:
                        lam, kappa = float32(response.lam[row, r]), float32(response.kappa[row, r])
                        curve[c] = lam * inverse_n * inverse_n * log2e
                        slope[c] = (kappa - lam * known) * inverse_n * log2e - curve[c] * omega

        # the tokens of the lane's first topic over its mass, and what the token's word and the next one have in it
        scaled, raw, raw_soon = zero, zero, zero
        if topic >= 0:
            scaled = n * tables.inverse[topic]
        stream = derive(key[0], docs.number[row])
        proposed = accepted = 0
        word_t, u_t, own_t, alpha_t, rare_t = int32(0), zero, zero, zero, zero
        for sweep_number in range(begin, end):
            for i in range(length):
                now = i & (T - 1)
                if now == 0:  # each lane looks at one of the next T tokens
                    ahead = min(i + t, length - 1)
                    at = start + uint64(ahead * G)
                    word_t, j_t = docs.word[at], int32(docs.z[at])
                    u_t = uniform32(stream, 3 * (sweep_number * length + ahead))
                    mine, alpha_t = tables.table[uint64(word_t) * uint64(W) + uint64(j_t)], tables.alpha[j_t]
                    own_t = (mine - taken + beta) * tables.inverse_own[j_t]
                    rare_t = max(tables.smooth[word_t] - alpha_t * (mine + beta) * tables.inverse[j_t], zero)
                word, j = of_lane(word_t, now), of_lane(j_t, now)
                like = uint64(word) * uint64(W)
                if now == 0 and topic >= 0:
                    raw = tables.table[like + uint64(topic)]

                # n_k phi_wk of the document's topics but j
                first, n_j, at_j = scaled * (raw + beta), zero, int32(-1)
                if topic == j:
                    first, at_j, n_j = zero, int32(t), n
                mine = first
                for m in range(T + t, size, T):
                    k, n_m = int32(docs.topic[start + uint64(m * G)]), docs.tokens[start + uint64(m * G)]
                    if k == j:
                        at_j, n_j = int32(m), n_m
                    else:
                        mine += n_m * (tables.table[like + uint64(k)] + beta) * tables.inverse[k]
                soon, prefetched = uint64(0), now < T - 1 and i + 1 < length
                if T > 1:
                    soon = uint64(of_lane(word_t, min(now + 1, LAST))) * uint64(W)
                    if prefetched and topic >= 0:
                        raw_soon = tables.table[soon + uint64(topic)]
                lane = max(first_lane(at_j >= 0), int32(0))
                at_j, n_j = of_lane(at_j, lane), of_lane(n_j, lane)
                sums = up_to(mine, t)
                others, rare = of_lane(sums, LAST), of_lane(rare_t, now)
                stays = (n_j - one + of_lane(alpha_t, now)) * of_lane(own_t, now)
                goal = of_lane(u_t, now) * (stays + others + rare) - stays
                number = 3 * (sweep_number * length + i)
                k, at_k = int32(j), int32(-1)
                if goal >= others:
                    k = find_smooth(tables, word, j, uniform32(stream, number + 1) * rare, t)
                elif goal >= zero:
                    lane = max(first_lane(goal < sums), int32(0))
                    rest = goal - (sums - mine) - first
                    if topic != j:
                        k, at_k = topic, int32(t)
                    if t == lane and rest >= zero:
                        for m in range(T + t, size, T):
                            other = int32(docs.topic[start + uint64(m * G)])
                            if other != j:
                                x = docs.tokens[start + uint64(m * G)] * tables.inverse[other]
                                rest -= x * (tables.table[like + uint64(other)] + beta)
                                k, at_k = other, int32(m)
                                if rest < zero:
                                    break
                    k, at_k = of_lane(k, lane), of_lane(at_k, lane)
                if k != j:
                    proposed += 1
                    exponent = zero
                    if R == 1:
                        delta = float32(response.exact[0, k]) - float32(response.exact[0, j])
                        exponent = delta * (slope[0] - half * curve[0] * delta)
                    if R > 1:
                        for c in range(CT):
                            r = uint32(c * T + t)
                            delta = response.rows[uint32(k * C) + r] - response.rows[uint32(j * C) + r]
                            exponent += delta * (slope[c] - half * curve[c] * delta)
                        exponent = all_lanes(exponent)
                    if exponent < zero and uniform32(stream, number + 2) > exp2(exponent):
                        k = int32(j)
                if k != j:
                    accepted += 1
                    if R == 1:
                        slope[0] -= curve[0] * (float32(response.exact[0, k]) - float32(response.exact[0, j]))
                    if R > 1:
                        for c in range(CT):
                            r = uint32(c * T + t)
                            slope[c] -= curve[c] * (response.rows[uint32(k * C) + r] - response.rows[uint32(j * C) + r])
                    if at_k < 0:  # does the document have it?
                        if topic == k:
                            at_k = int32(t)
                        for m in range(T + t, size, T):
                            if int32(docs.topic[start + uint64(m * G)]) == k:
                                at_k = int32(m)
                        at_k = of_lane(at_k, max(first_lane(at_k >= 0), int32(0)))
                    here_j, emptied, last, n_last = start + uint64(at_j * G), n_j == one, int32(-1), n_j - one
                    if emptied:  # the last topic takes the place of the one that has none left
                        size -= 1
                        if size < T:
                            last, n_last = of_lane(topic, size), of_lane(n, size)
                        else:
                            here_last = start + uint64(size * G)
                            last, n_last = int32(docs.topic[here_last]), docs.tokens[here_last]
                        if at_k == size:
                            at_k = at_j
                    new = at_k < 0
                    if new:
                        at_k = int32(size)
                    if T > 1:
                        sync_lanes()
                    before, changed = topic, False
                    if t == at_j:
                        n, changed = n_last, True
                        if emptied:
                            topic = last
                    if emptied and t == size:
                        topic, n, scaled, changed = int32(-1), zero, zero, False
                    if t == at_k:
                        topic, n, changed = k, (zero if new else n) + one, True
                    if changed:
                        scaled = n * tables.inverse[topic]
                        if prefetched and topic != before:
                            raw_soon = tables.table[soon + uint64(topic)]
                    if t == 0:
                        here_k = start + uint64(at_k * G)
                        if at_j >= T:
                            docs.tokens[here_j] = n_last
                            if emptied:
                                docs.topic[here_j] = uint16(last)
                        if at_k >= T:
                            docs.tokens[here_k] = (zero if new else docs.tokens[here_k]) + one
                            docs.topic[here_k] = uint16(k)
                        docs.z[start + uint64(i * G)] = uint16(k)
                    if new:
                        size += 1
                    if T > 1:
                        sync_lanes()
                    if len(tables.count) > 0:
                        if T == 1:
                            cuda.atomic.add(tables.count, like + uint64(j), -1)
                            cuda.atomic.add(tables.count, like + uint64(k), 1)
                        elif t < 2:
                            cuda.atomic.add(tables.count, like + uint64(j if t == 0 else k), -1 if t == 0 else 1)
                raw = raw_soon
            if sweep_number >= burn_in:
                to = uint64(sweep_number - burn_in) * uint64(apart) + place
                if topic >= 0:
                    summed[to + uint64(topic)] += n
                for m in range(T + t, size, T):
                    summed[to + uint64(docs.topic[start + uint64(m * G)])] += docs.tokens[start + uint64(m * G)]

        if topic >= 0:
            docs.topic[start + uint64(t * G)], docs.tokens[start + uint64(t * G)] = uint16(topic), n
        for m in range(t, size, T):
            docs.n[place + uint64(docs.topic[start + uint64(m * G)])] = docs.tokens[start + uint64(m * G)]
        for r in range(R):
            value = float64(0.0)
            for m in range(t, size, T):
                k = docs.topic[start + uint64(m * G)]
                value += response.exact[r, k] * float64(docs.tokens[start + uint64(m * G)])
            value = all_lanes(value)
            if t == 0:
                value /= float64(max(length, 1))
                for p in range(response.covariates.shape[1]):
                    value += response.exact[r, K + p] * response.covariates[row, p]
                response.omega[row, r] = value + response.offset[row, r]
        if t == 0:
            docs.size[row] = size
            cuda.atomic.add(tally, 0, proposed)
            cuda.atomic.add(tally, 1, accepted)

    return sweep
