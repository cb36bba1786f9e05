"""Products of sparse rows with weights: omega of documents, and the same with rows and columns exchanged.

Numbers have the type of the result. A sum is made in one order, so that threads and batches do not change its bits.
"""

from supertopic.kernels.compiled import kernel


@kernel
def multiply(indptr, indices, data, docs, weights, out, first, last):
    """x @ weights, for the rows docs[first:last] of x in CSR and weights (n_columns, R): out (len(docs), R).

    A row is summed in the order of its columns.
    """
    n = weights.shape[1]
    for i in range(first, last):
        for r in range(n):
            out[i, r] = 0.0
        for p in range(indptr[docs[i]], indptr[docs[i] + 1]):
            j, x = indices[p], out.dtype.type(data[p])
            for r in range(n):
                out[i, r] += x * weights[j, r]


@kernel
def gather(indptr, indices, data, docs, slope, squared, out, first, last):
    """Columns first to last of x.T @ slope, or (x**2).T @ slope, for the rows docs of x: out (n_columns, R).

    A column is summed in the order of docs. A row is sorted by columns, unless all columns are asked for.
    """
    n = slope.shape[1]
    for j in range(first, last):
        for r in range(n):
            out[j, r] = 0.0
    for i in range(len(docs)):
        p, end = indptr[docs[i]], indptr[docs[i] + 1]
        if first > 0:  # the first entry that is asked for
            high = end
            while p < high:
                middle = (p + high) // 2
                if indices[middle] < first:
                    p = middle + 1
                else:
                    high = middle
        while p < end and indices[p] < last:
            j, x = indices[p], out.dtype.type(data[p])
            if squared:
                x = x * x
            for r in range(n):
                out[j, r] += x * slope[i, r]
            p += 1
