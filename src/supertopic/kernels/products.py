"""Products of sparse rows with weights: omega of documents, and the same with rows and columns exchanged."""

from supertopic.kernels.compiled import kernel


@kernel
def multiply(indptr, indices, data, weights, out, first, last):
    """Rows first to last of x @ weights, for x in CSR and weights (n_columns, R): out (n_rows, R).

    A row is summed in the order of its columns, so that threads and batches do not change its bits.
    """
    n = weights.shape[1]
    for i in range(first, last):
        for r in range(n):
            out[i, r] = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            j, x = indices[p], data[p]
            for r in range(n):
                out[i, r] += x * weights[j, r]
