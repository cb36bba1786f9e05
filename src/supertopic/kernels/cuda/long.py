"""The topic sampler for long documents on a GPU: a warp has a document, and each lane one of its next 32 tokens.

A token has to wait for the one before it, which may move. But most tokens stay in their topics. So all lanes draw at
once, as if no token before theirs moved. This is right for the first token that moves, and for all before it. This
token is moved, and the lanes behind it draw again, with the same uniforms, until all have their topics. The result is
that of one token after the other, several times as fast.
"""

import functools
import math

from numba import float32, float64, int32, uint16, uint32, uint64

from supertopic.kernels import draws
from supertopic.kernels.cuda.device import cuda, exp2, here, load4, load4_constant, log2, sync_lanes
from supertopic.kernels.cuda.layout import Shape
from supertopic.kernels.cuda.sweep import HUGE, TINY
from supertopic.kernels.cuda.warp import LANES, all_lanes, first_lane, of_lane

derive, uniform32 = here(draws.derive), here(draws.uniform32)

LOG2E = math.log2(math.e)


@functools.cache
def make_long_sweep(shape: Shape):
    """The kernel for a shape; weights are those of `make_sweep`."""
    K, R, T = shape.n_topics, shape.n_columns, LANES
    G, W, C, FOURS, MANY = shape.group, shape.width, shape.columns, -(-shape.n_topics // 4), shape.n_columns > 1
    FIXED, SLOPES, CURVES = W, 2 * W, 2 * W + C  # the document's counts come first
    MEMORY = 2 * W + (2 * C if MANY else 0)
    half, one, zero, log2e = float32(0.5), float32(1.0), float32(0.0), float32(LOG2E)

    @cuda.jit(device=True)
    def exponents(memory, response, k, j, slope):
        """What topics k to k + 3 add to the logarithm of a weight, for a token that was in topic j."""
        f0, f1, f2, f3 = load4(memory, uint64(FIXED + k))
        if R == 1:
            e0, e1, e2, e3 = load4_constant(response.lanes, uint64(k))
            f0, f1, f2, f3 = f0 + e0 * slope, f1 + e1 * slope, f2 + e2 * slope, f3 + e3 * slope
        if MANY:
            for c in range(0, C, 4):
                s0, s1, s2, s3 = load4(memory, uint64(SLOPES + c))
                b0, b1, b2, b3 = load4(memory, uint64(CURVES + c))
                o0, o1, o2, o3 = load4_constant(response.rows, uint64(j * C + c))
                s0, s1, s2, s3 = s0 + b0 * o0, s1 + b1 * o1, s2 + b2 * o2, s3 + b3 * o3
                e0, e1, e2, e3 = load4_constant(response.rows, uint64(k * C + c))
                f0 += e0 * s0 + e1 * s1 + e2 * s2 + e3 * s3
                e0, e1, e2, e3 = load4_constant(response.rows, uint64((k + 1) * C + c))
                f1 += e0 * s0 + e1 * s1 + e2 * s2 + e3 * s3
                e0, e1, e2, e3 = load4_constant(response.rows, uint64((k + 2) * C + c))
                f2 += e0 * s0 + e1 * s1 + e2 * s2 + e3 * s3
                e0, e1, e2, e3 = load4_constant(response.rows, uint64((k + 3) * C + c))
                f3 += e0 * s0 + e1 * s1 + e2 * s2 + e3 * s3
        return f0, f1, f2, f3

    @cuda.jit(device=True)
    def weights(memory, tables, response, like, k, j, slope, shift):
        """The weights of topics k to k + 3 for a token; that of its own topic j is 0."""
        x0, x1, x2, x3 = exponents(memory, response, k, j, slope)
        if R > 0:
            x0, x1, x2, x3 = exp2(x0 - shift), exp2(x1 - shift), exp2(x2 - shift), exp2(x3 - shift)
        n0, n1, n2, n3 = load4(memory, uint64(k))
        a0, a1, a2, a3 = load4_constant(tables.alpha, uint64(k))
        l0, l1, l2, l3 = load4_constant(tables.table, like + uint64(k))
        beta = tables.prior[0]
        x0, x1 = (n0 + a0) * (l0 + beta) * x0, (n1 + a1) * (l1 + beta) * x1
        x2, x3 = (n2 + a2) * (l2 + beta) * x2, (n3 + a3) * (l3 + beta) * x3
        x0, x1 = (zero if k == j else x0), (zero if k + 1 == j else x1)
        x2, x3 = (zero if k + 2 == j else x2), (zero if k + 3 == j else x3)
        return x0, x1, x2, x3

    @cuda.jit(device=True)
    def largest(memory, tables, response, like, j, slope):
        """The logarithm of the largest weight of another topic than j."""
        top = float32(-1e30)
        for k in range(0, 4 * FOURS, 4):
            x0, x1, x2, x3 = exponents(memory, response, k, j, slope)
            for c in range(4):
                x = x0 if c == 0 else x1 if c == 1 else x2 if c == 2 else x3
                mass = (memory[k + c] + tables.alpha[k + c]) * (tables.table[like + uint64(k + c)] + tables.prior[0])
                if k + c != j:
                    top = max(top, x + log2(mass))
        return top

    @cuda.jit
    def sweep(docs, tables, response, key, n_sweeps, burn_in, apart, summed, first_row):
        """Draw every z anew, n_sweeps times; counts after burn_in are added to `summed`, each `apart` numbers on."""
        t = cuda.threadIdx.x
        row = first_row + cuda.blockIdx.x
        memory = cuda.shared.array(MEMORY, float32)
        length, start, place = docs.length[row], uint64(docs.base[row // G] + row % G), uint64(row) * uint64(W)
        inverse = one / max(float32(length), one)
        for k in range(t, W, T):
            memory[k] = docs.n[place + uint64(k)]
        sync_lanes()
        slope = square = zero
        if R == 1:
            known = omega = zero
            for p in range(response.covariates.shape[1]):
                known += float32(response.exact[0, K + p] * response.covariates[row, p])
            for k in range(t, W, T):
                omega += response.lanes[k] * memory[k]
            square = float32(response.lam[row, 0]) * inverse * inverse * log2e
            slope = (float32(response.kappa[row, 0]) - float32(response.lam[row, 0]) * known) * inverse * log2e
            slope -= square * all_lanes(omega)
        if MANY:
            for r in range(t, C, T):
                a = b = omega = zero
                if r < R:
                    known = zero
                    for p in range(response.covariates.shape[1]):
                        known += float32(response.exact[r, K + p] * response.covariates[row, p])
                    b = float32(response.lam[row, r]) * inverse * inverse * log2e
                    a = (float32(response.kappa[row, r]) - float32(response.lam[row, r]) * known) * inverse * log2e
                for k in range(K):
                    omega += memory[k] * response.rows[uint32(k * C + r)]
                memory[SLOPES + r], memory[CURVES + r] = a - b * omega, b
            sync_lanes()
        for k in range(t, W, T):
            x = tables.inverse[k]
            if R > 0:
                x = log2(x)
            if R == 1:
                x -= half * square * response.lanes[k] * response.lanes[k]
            if MANY:
                for c in range(C):
                    e = response.rows[uint32(k * C + c)]
                    x -= half * memory[CURVES + c] * e * e
            memory[FIXED + k] = x
        sync_lanes()

        stream, shift = derive(key[0], docs.number[row]), zero
        for sweep_number in range(n_sweeps):
            for first in range(0, length, T):
                i = first + t
                at, live = start + uint64(min(i, length - 1) * G), i < length
                word, j = docs.word[at], int32(docs.z[at])
                like = uint64(word) * uint64(W)
                u = uniform32(stream, sweep_number * length + i)
                like_own = (tables.table[like + uint64(j)] - tables.prior[1] + tables.prior[0]) * tables.inverse_own[j]
                alpha_j, done = tables.alpha[j], int32(0)
                while done < T:
                    slope_j, stay_score = slope, zero
                    if R == 1:
                        e = response.lanes[j]
                        slope_j += square * e
                        stay_score = e * (slope_j - half * square * e)
                    if MANY:
                        for c in range(C):
                            e, b = response.rows[uint32(j * C + c)], memory[CURVES + c]
                            stay_score += e * (memory[SLOPES + c] + half * b * e)
                    stay = total = zero
                    tried = R == 0
                    while True:
                        stay, total = (memory[j] - one + alpha_j) * like_own, zero
                        if R > 0:
                            stay *= exp2(stay_score - shift)
                        for k in range(0, 4 * FOURS, 4):
                            x0, x1, x2, x3 = weights(memory, tables, response, like, k, j, slope_j, shift)
                            total += x0 + x1 + x2 + x3
                        if tried or TINY < total + stay < HUGE:
                            break
                        # what does not fit is taken again, relative to the largest weight
                        tried, mass = True, (memory[j] - one + alpha_j) * like_own
                        shift = max(stay_score + log2(mass), largest(memory, tables, response, like, j, slope_j))
                    goal = u * (total + stay) - stay
                    lane = first_lane(live and t >= done and zero <= goal < total)
                    if lane < 0:
                        break
                    found = int32(j)
                    if t == lane:
                        below = zero
                        for k in range(0, 4 * FOURS, 4):
                            x0, x1, x2, x3 = weights(memory, tables, response, like, k, j, slope_j, shift)
                            x1 += x0
                            x2 += x1
                            x3 += x2
                            rest = goal - below
                            if rest < x3:
                                found = int32(k + (rest >= x0) + (rest >= x1) + (rest >= x2))
                                break
                            below += x3
                        if found != j:
                            memory[j] -= one
                            memory[found] += one
                            docs.z[at] = uint16(found)
                            if len(tables.count) > 0:
                                cuda.atomic.add(tables.count, like + uint64(j), -1)
                                cuda.atomic.add(tables.count, like + uint64(found), 1)
                    moved, old = of_lane(found, lane), of_lane(j, lane)
                    if R == 1:
                        slope -= square * (response.lanes[moved] - response.lanes[old])
                    if MANY:
                        for c in range(t, C, T):
                            change = response.rows[uint32(moved * C + c)] - response.rows[uint32(old * C + c)]
                            memory[SLOPES + c] -= memory[CURVES + c] * change
                    sync_lanes()
                    done = lane + int32(1)
            if sweep_number >= burn_in:
                to = uint64(sweep_number - burn_in) * uint64(apart) + place
                for k in range(t, W, T):
                    summed[to + uint64(k)] += memory[k]

        for k in range(t, W, T):
            docs.n[place + uint64(k)] = memory[k]
        for r in range(R):
            value = float64(0.0)
            for k in range(t, K, T):
                value += response.exact[r, k] * float64(memory[k])
            value = all_lanes(value)
            if t == 0:
                value /= float64(max(length, 1))
                for p in range(response.covariates.shape[1]):
                    value += response.exact[r, K + p] * response.covariates[row, p]
                response.omega[row, r] = value + response.offset[row, r]

    return sweep
