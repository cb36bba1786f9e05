"""Products of sparse rows with weights on a GPU: a thread for each row and column of the response."""

from supertopic.kernels.cuda.device import cuda


@cuda.jit
def multiply(indptr, indices, data, weights, squared, out):
    """x @ weights, or x**2 @ weights, for x in CSR and weights (n_columns, R): out (n_rows, R).

    Threads of a row are neighbours, so that they read neighbours of weights.
    """
    at, n = cuda.grid(1), weights.shape[1]
    i, r = at // n, at % n
    if i < out.shape[0]:
        total = out[i, r] * 0
        for p in range(indptr[i], indptr[i + 1]):
            x = data[p]
            if squared:
                x *= x
            total += x * weights[indices[p], r]
        out[i, r] = total
