"""Kernels of the block triangular Toeplitz groups.

`columns` is the first block column of a block lower triangular Toeplitz matrix, transposed: (block, dim). The matrix's
column c = i * block + s is then columns[s] moved down by i blocks, so that every inner loop runs along two rows.
"""
# mypy: disable-error-code="no-untyped-def"

from esgroup.kernels.jit import kernel


@kernel("in2, in2, int, out2")
def convolve(columns, x, block, out):
    """out_k = A x_k, column by column of A."""
    n, dim = x.shape
    out[:] = 0.0
    for k in range(n):
        for c in range(dim):
            s = c % block
            factor = x[k, c]
            column = columns[s, : dim - (c - s)]
            target = out[k, c - s :]
            for t in range(column.shape[0]):
                target[t] += factor * column[t]


@kernel("in2, int, int, int, out2")
def substitute(columns, block, start, stop, y):
    """Forward substitution in place: A y_k = x_k for the coordinates start to stop, where y holds x at first.

    `start` is the first coordinate of a block. T_0 must be lower triangular (entries above its diagonal are not read):
    then the whole matrix is.
    """
    n = y.shape[0]
    for k in range(n):
        for c in range(start, stop):
            s = c % block
            factor = y[k, c] / columns[s, s]
            y[k, c] = factor
            column = columns[s, s + 1 : stop - (c - s)]
            target = y[k, c + 1 : stop]
            for t in range(column.shape[0]):
                target[t] -= factor * column[t]


@kernel("in2, in2, in1, int, out2")
def correlate(left, right, weights, block, out):
    """out = `columns` of the blocks C_j = sum_k weights_k sum_i left_k[i + j] right_k[i]^T, i and j counting blocks."""
    n, dim = left.shape
    out[:] = 0.0
    for k in range(n):
        for c in range(dim):
            s = c % block
            factor = weights[k] * right[k, c]
            source = left[k, c - s :]
            target = out[s, : dim - (c - s)]
            for t in range(source.shape[0]):
                target[t] += factor * source[t]
