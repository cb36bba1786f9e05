"""The topic sampler on a GPU: the same model as `kernels.sweep`, arranged for warps of 32 lanes.

- A document is a chain: each token waits for the one before. So many documents run at once, T lanes of a warp for each;
  each lane has every T-th four of the topics. Documents are sorted by length, the longest first, and the tokens of the
  32 / T documents of a warp are interleaved.
- The documents read the topics from a table that does not change during the sweep. Counts are updated by atomic
  additions of whole numbers, whose order does not matter: the same seed gives the same model.
- Memory has a long latency: the row of the next token is loaded before the topic of this token is drawn, and the words
  of the tokens after it before that.
"""

import functools
import math

from numba import float32, float64, int32, uint16, uint32, uint64

from supertopic.kernels import draws
from supertopic.kernels.cuda.device import (
    EVERYONE,
    WARP,
    any_lane,
    cuda,
    exp2,
    here,
    jit_within,
    load4,
    load4_constant,
    log2,
    sync_lanes,
)
from supertopic.kernels.cuda.layout import Shape, row_width

derive, uniform32 = here(draws.derive), here(draws.uniform32)

MOST_PLACES = 2**32  # largest number of places of a table or of the tokens: addresses have 32 bits
LOG2E = math.log2(math.e)
TINY, HUGE = float32(1e-30), float32(1e30)  # a total weight outside is computed again


def check_places(n_words: int, n_topics: int, n_tokens: int, longest: int) -> None:
    """Refuse topics and documents that the kernel cannot address."""
    table, tokens = n_words * row_width(n_topics), n_tokens + WARP * longest
    if max(table, tokens) >= MOST_PLACES:
        raise ValueError(
            f"device='cuda' takes tables of less than {MOST_PLACES:,} numbers, got {table:,} ({n_words:,} words, "
            f"n_topics={n_topics:,}, rounded up), and less than {MOST_PLACES:,} tokens, got {n_tokens:,}. A smaller "
            "vocabulary (min_df) or fewer topics take less; device='cpu' takes them all."
        )


@functools.cache
def make_sweep(shape: Shape):
    """The kernel for a shape; every loop over a constant is unrolled, so that small arrays are registers."""
    K, R, T, B = shape[:4]
    F, G, W, C, LOG = shape.fours, shape.group, shape.width, shape.columns, shape.n_lanes.bit_length() - 1
    M, CT, C4 = 4 * F, C // T, C // 4
    MANY, LANES = R > 1, (1 << T) - 1
    STATE = M * B  # topics of the block's documents; then their slopes, then their curvatures
    MEMORY = STATE + (2 * C * (B // T) if MANY else 0)
    half, one, zero, log2e = float32(0.5), float32(1.0), float32(0.0), float32(LOG2E)

    @jit_within(shape.registers)
    def sweep(docs, tables, response, key, begin, end, burn_in, apart, summed, first_group, n_groups):
        """Draw every z anew in some sweeps; counts after burn_in are added to `summed`, each `apart` numbers on."""
        tid = cuda.threadIdx.x
        t, slot = tid & (T - 1), (tid & (WARP - 1)) // T
        group = (cuda.blockIdx.x * B + tid) // WARP
        if tid >= B or group >= n_groups:
            return
        group += first_group
        row = group * G + slot
        memory = cuda.shared.array(MEMORY, float32)
        weight = cuda.local.array(M, float32)
        like = cuda.local.array(M, float32)
        fixed = cuda.local.array(M, float32)
        length, longest, leader, place_in = docs.length[row], int32(0), docs.leader[row], docs.first[row]
        for other in range(G):
            longest = max(longest, docs.length[group * G + other])
        whole = docs.whole[leader]
        start, mine = uint32(docs.base[group] + slot), tid - t
        inverse = one / max(float32(whole), one)
        place = uint64(row) * uint64(W)  # of the document's counts
        slopes = STATE + (tid // T) * C
        curves = slopes + C * (B // T)
        in_memory, in_row, at_slopes, at_curves = uint64(4 * tid), uint64(4 * t), uint64(slopes), uint64(curves)
        beta, taken = tables.prior[0], tables.prior[1]
        for f in range(F):
            first = (f * T + t) * 4
            fixed[4 * f], fixed[4 * f + 1], fixed[4 * f + 2], fixed[4 * f + 3] = load4_constant(
                tables.inverse, uint64(first)
            )
            for c in range(4):
                memory[uint32((f * B + tid) * 4 + c)] = docs.n[place + uint64(first + c)]
        if T > 1:
            sync_lanes()

        # A weight is (n + alpha) (table + beta) 2**(sum_r eta_rk slope_r + fixed_k): slope_r changes with every move,
        # and fixed_k, of the document, holds the topic's mass, -sum_r curve_r eta_rk**2 / 2, and a shift that keeps
        # the exponent near 0. Without a response it is the factor itself.
        slope = square = zero
        if R == 1:
            known = zero
            for p in range(response.covariates.shape[1]):
                known += float32(response.exact[0, K + p] * response.covariates[leader, p])
            square = float32(response.lam[leader, 0]) * inverse * inverse * log2e
            slope = (float32(response.kappa[leader, 0]) - float32(response.lam[leader, 0]) * known) * inverse * log2e
            omega = zero
            for m in range(M):
                e = response.lanes[uint32(((m // 4) * T + t) * 4 + m % 4)]
                omega += e * memory[uint32(((m // 4) * B + tid) * 4 + m % 4)]
                fixed[m] = log2(fixed[m]) - half * square * e * e
            for s in range(LOG):
                omega += cuda.shfl_xor_sync(EVERYONE, omega, 1 << s)
            slope -= square * omega
        if MANY:
            for i in range(CT):
                r = i * T + t
                b = a = zero
                if r < R:
                    known = zero
                    for p in range(response.covariates.shape[1]):
                        known += float32(response.exact[r, K + p] * response.covariates[leader, p])
                    lam = float32(response.lam[leader, r])
                    b, a = lam * inverse * inverse * log2e, float32(response.kappa[leader, r]) - lam * known
                    a *= inverse * log2e
                omega = zero
                for k in range(K):
                    at_k = ((k >> (2 + LOG)) * B + mine + ((k >> 2) & (T - 1))) * 4 + (k & 3)
                    omega += memory[uint32(at_k)] * response.rows[uint32(k * C + r)]
                memory[uint32(slopes + r)], memory[uint32(curves + r)] = a - b * omega, b
            if T > 1:
                sync_lanes()
            for m in range(M):
                fixed[m] = log2(fixed[m])
            for c in range(C4):
                b0, b1, b2, b3 = load4(memory, at_curves + uint64(4 * c))
                for m in range(M):
                    e0, e1, e2, e3 = load4_constant(response.lanes, in_row + uint64(4 * (c * M + m) * T))
                    fixed[m] -= half * (b0 * e0 * e0 + b1 * e1 * e1 + b2 * e2 * e2 + b3 * e3 * e3)
        shift = zero

        stream = derive(key[0], docs.number[leader])
        u = zero
        for sweep_number in range(begin, end):
            # words and topics are asked for three tokens ahead, rows of the table one
            p = start
            word, j = uint32(uint32(docs.word[p]) * uint32(W)), int32(docs.z[p])
            ahead = uint32(start + uint32(G)) if longest > 1 else start
            word_1, j_1 = docs.word[ahead], int32(docs.z[ahead])
            ahead = uint32(start + uint32(2 * G)) if longest > 2 else start
            word_2, j_2 = docs.word[ahead], int32(docs.z[ahead])
            for f in range(F):
                like[4 * f], like[4 * f + 1], like[4 * f + 2], like[4 * f + 3] = load4_constant(
                    tables.table, uint64(word) + in_row + uint64(4 * f * T)
                )
            own = tables.table[uint32(word + uint32(j))]
            for i in range(longest):
                live = i < length
                like_own = (own - taken + beta) * tables.inverse_own[uint32(j)]
                ahead = uint32(p + uint32(3 * G)) if i + 3 < longest else start
                word_3, j_3 = docs.word[ahead], int32(docs.z[ahead])
                if i & (T - 1) == 0:  # each lane makes one, for one of the next T tokens
                    u = uniform32(stream, sweep_number * whole + place_in + i + t)
                chance = u
                if T > 1:
                    chance = cuda.shfl_sync(EVERYONE, u, slot * T + (i & (T - 1)))

                # the token out of its topic, which is weighed apart from the others
                owner = (j >> 2) & (T - 1)
                at_j = uint32(((j >> (2 + LOG)) * B + mine + owner) * 4 + (j & 3))
                left, alpha_j = memory[at_j] - one, tables.alpha[uint32(j)]
                if T > 1:
                    sync_lanes()
                if owner == t:
                    memory[at_j] = -alpha_j
                stay_score = zero
                if R == 1:
                    eta_j = response.rows[uint32(j * C)]
                    slope += square * eta_j
                    stay_score = eta_j * (slope - half * square * eta_j)
                if MANY:
                    part = zero
                    for c in range(CT):
                        r = c * T + t
                        e, b = response.rows[uint32(j * C + r)], memory[uint32(curves + r)]
                        slope_r = memory[uint32(slopes + r)] + b * e
                        memory[uint32(slopes + r)] = slope_r
                        part += e * (slope_r - half * b * e)
                    for s in range(LOG):
                        part += cuda.shfl_xor_sync(EVERYONE, part, 1 << s)
                    stay_score += part
                if T > 1:
                    sync_lanes()
                tried = False
                while True:
                    stay = (left + alpha_j) * like_own
                    if R > 0:
                        stay *= exp2(stay_score - shift)
                    if MANY:
                        for m in range(M):
                            weight[m] = fixed[m]
                        for c in range(C4):
                            l0, l1, l2, l3 = load4(memory, at_slopes + uint64(4 * c))
                            for m in range(M):
                                e0, e1, e2, e3 = load4_constant(response.lanes, in_row + uint64(4 * (c * M + m) * T))
                                weight[m] += l0 * e0 + l1 * e1 + l2 * e2 + l3 * e3
                    total = zero
                    for f in range(F):  # sums of four, then of fours: a short chain
                        n0, n1, n2, n3 = load4(memory, in_memory + uint64(4 * f * B))
                        a0, a1, a2, a3 = load4(tables.alpha, in_row + uint64(4 * f * T))
                        m = 4 * f
                        x0, x1 = (n0 + a0) * (like[m] + beta), (n1 + a1) * (like[m + 1] + beta)
                        x2, x3 = (n2 + a2) * (like[m + 2] + beta), (n3 + a3) * (like[m + 3] + beta)
                        if R == 0:
                            x0, x1, x2, x3 = x0 * fixed[m], x1 * fixed[m + 1], x2 * fixed[m + 2], x3 * fixed[m + 3]
                        if R == 1:
                            e0, e1, e2, e3 = load4(response.lanes, in_row + uint64(4 * f * T))
                            x0, x1 = x0 * exp2(e0 * slope + fixed[m]), x1 * exp2(e1 * slope + fixed[m + 1])
                            x2, x3 = x2 * exp2(e2 * slope + fixed[m + 2]), x3 * exp2(e3 * slope + fixed[m + 3])
                        if MANY:
                            x0 *= exp2(weight[m])
                            x1 *= exp2(weight[m + 1])
                            x2 *= exp2(weight[m + 2])
                            x3 *= exp2(weight[m + 3])
                        x1 += x0
                        x2 += x1
                        x3 += x2
                        weight[m], weight[m + 1], weight[m + 2] = total + x0, total + x1, total + x2
                        total += x3
                        weight[m + 3] = total
                    up_to = total
                    for s in range(LOG):
                        below = cuda.shfl_up_sync(EVERYONE, up_to, 1 << s)
                        if t >= (1 << s):
                            up_to += below
                    others = up_to
                    if T > 1:
                        others = cuda.shfl_sync(EVERYONE, up_to, slot * T + T - 1)
                    off = live and not tried and not TINY < others + stay < HUGE
                    if R == 0 or not any_lane(off):
                        break
                    # what does not fit is taken again, relative to the largest weight
                    tried = True
                    top = stay_score - shift + log2((left + alpha_j) * like_own)
                    for f in range(F):
                        n0, n1, n2, n3 = load4(memory, in_memory + uint64(4 * f * B))
                        a0, a1, a2, a3 = load4(tables.alpha, in_row + uint64(4 * f * T))
                        m = 4 * f
                        weight[m], weight[m + 1] = log2(n0 + a0), log2(n1 + a1)
                        weight[m + 2], weight[m + 3] = log2(n2 + a2), log2(n3 + a3)
                    for m in range(M):
                        score = fixed[m]
                        if R == 1:
                            score += response.lanes[uint32(((m // 4) * T + t) * 4 + m % 4)] * slope
                        if MANY:
                            for c in range(C4):
                                l0, l1, l2, l3 = load4(memory, at_slopes + uint64(4 * c))
                                e0, e1, e2, e3 = load4_constant(response.lanes, in_row + uint64(4 * (c * M + m) * T))
                                score += l0 * e0 + l1 * e1 + l2 * e2 + l3 * e3
                        top = max(top, score + weight[m] + log2(like[m] + beta))
                    for s in range(LOG):
                        top = max(top, cuda.shfl_xor_sync(EVERYONE, top, 1 << s))
                    if off:
                        shift += top
                        for m in range(M):
                            fixed[m] -= top

                next_word = uint32(uint32(word_1) * uint32(W))
                for f in range(F):
                    like[4 * f], like[4 * f + 1], like[4 * f + 2], like[4 * f + 3] = load4_constant(
                        tables.table, uint64(next_word) + in_row + uint64(4 * f * T)
                    )
                own = tables.table[uint32(next_word + uint32(j_1))]
                goal = chance * (others + stay) - stay
                m_found, t_found = int32(0), 0
                rest = goal - (up_to - total)
                for m in range(M):
                    m_found += int32(1) if weight[m] <= rest else int32(0)
                m_found = min(m_found, int32(M - 1))
                if T > 1:
                    reached = uint32(cuda.ballot_sync(EVERYONE, goal < up_to)) >> uint32(slot * T) & uint32(LANES)
                    t_found = max(cuda.ffs(reached) - 1, 0)
                    m_found = cuda.shfl_sync(EVERYONE, m_found, slot * T + t_found)
                k = ((m_found >> 2) * T + t_found) * 4 + (m_found & 3)
                if goal < zero or k >= K or not live:
                    k = j

                if owner == t:
                    memory[at_j] = left
                if R == 1:
                    slope -= square * response.rows[uint32(k * C)]
                if MANY:
                    for c in range(CT):
                        r = c * T + t
                        memory[uint32(slopes + r)] -= memory[uint32(curves + r)] * response.rows[uint32(k * C + r)]
                if T > 1:
                    sync_lanes()
                if ((k >> 2) & (T - 1)) == t:
                    memory[uint32(((k >> (2 + LOG)) * B + tid) * 4 + (k & 3))] += one
                if k != j:
                    if t == 0:
                        docs.z[p] = uint16(k)
                    if len(tables.count) > 0:
                        if T == 1:
                            cuda.atomic.add(tables.count, uint32(word + uint32(j)), -1)
                            cuda.atomic.add(tables.count, uint32(word + uint32(k)), 1)
                        elif t < 2:
                            cuda.atomic.add(
                                tables.count, uint32(word + uint32(j if t == 0 else k)), -1 if t == 0 else 1
                            )
                if T > 1:
                    sync_lanes()
                p = uint32(p + uint32(G))
                word, j, word_1, j_1, word_2, j_2 = next_word, j_1, word_2, j_2, word_3, j_3
            if sweep_number >= burn_in:
                to = uint64(sweep_number - burn_in) * uint64(apart) + place
                for m in range(M):
                    summed[to + uint64(((m // 4) * T + t) * 4 + m % 4)] += memory[
                        uint32(((m // 4) * B + tid) * 4 + m % 4)
                    ]

        for m in range(M):
            docs.n[place + uint64(((m // 4) * T + t) * 4 + m % 4)] = memory[uint32(((m // 4) * B + tid) * 4 + m % 4)]
        for r in range(R):
            value = float64(0.0)
            for m in range(M):
                topic = ((m // 4) * T + t) * 4 + m % 4
                if topic < K:
                    value += response.exact[r, topic] * float64(memory[uint32(((m // 4) * B + tid) * 4 + m % 4)])
            for s in range(LOG):
                value += cuda.shfl_xor_sync(EVERYONE, value, 1 << s)
            if t == 0:
                value /= float64(max(whole, 1))
                for p in range(response.covariates.shape[1]):
                    value += response.exact[r, K + p] * response.covariates[row, p]
                response.omega[row, r] = value + response.offset[row, r]

    return sweep
