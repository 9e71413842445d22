"""Kernels of the sparse groups.

A matrix is packed in CSR order: row i holds the columns `indices[indptr[i] : indptr[i + 1]]`, sorted. The pattern is
reflexive and transitive, and its coordinates form classes that reach each other. All rows of a class have the same
columns, so the entries of the dense block of row i, `inside[inside_ptr[i] : inside_ptr[i + 1]]` (places in the packed
vector), lie at the same offsets in each of them. Samples are taken four at a time: four numbers fit in the registers,
and an index is read once for all of them. If fewer samples are left, the last one is repeated.
"""
# mypy: disable-error-code="no-untyped-def"

import numpy as np

from esgroup.kernels.jit import kernel


@kernel("in1, idx1, idx1, in2, out2")
def apply(a, indptr, indices, x, out):
    """out_i = A x_i."""
    n, dim = x.shape
    for i in range(0, n, 4):
        i1, i2, i3 = min(i + 1, n - 1), min(i + 2, n - 1), min(i + 3, n - 1)
        x0, x1, x2, x3 = x[i], x[i1], x[i2], x[i3]
        for r in range(dim):
            s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
            for t in range(indptr[r], indptr[r + 1]):
                c = indices[t]
                s0 += a[t] * x0[c]
                s1 += a[t] * x1[c]
                s2 += a[t] * x2[c]
                s3 += a[t] * x3[c]
            out[i, r], out[i1, r], out[i2, r], out[i3, r] = s0, s1, s2, s3


@kernel("in2, in2, in1, float, idx1, idx1, in1, out1")
def project(left, right, weights, shift, indptr, indices, coefficient, out):
    """out = coefficient (.) (sum_i weights_i left_i right_i^T - shift I), on the pattern only."""
    n, dim = left.shape
    for r in range(dim):
        for t in range(indptr[r], indptr[r + 1]):
            out[t] = -shift if indices[t] == r else 0.0
    for i in range(0, n, 4):
        i1, i2, i3 = min(i + 1, n - 1), min(i + 2, n - 1), min(i + 3, n - 1)
        w0, w1 = weights[i], weights[i1] if i + 1 < n else 0.0  # a repeated sample counts once
        w2, w3 = weights[i2] if i + 2 < n else 0.0, weights[i3] if i + 3 < n else 0.0
        y0, y1, y2, y3 = right[i], right[i1], right[i2], right[i3]
        for r in range(dim):
            f0, f1, f2, f3 = w0 * left[i, r], w1 * left[i1, r], w2 * left[i2, r], w3 * left[i3, r]
            for t in range(indptr[r], indptr[r + 1]):
                c = indices[t]
                out[t] += f0 * y0[c] + f1 * y1[c] + f2 * y2[c] + f3 * y3[c]
    out *= coefficient


@kernel("in1, in1, idx1, idx1, out1")
def product(a, b, indptr, indices, out):
    """out = A B, row by row (Gustavson 1978); entries outside a transitive pattern are zero."""
    dim = indptr.shape[0] - 1
    row = np.zeros(dim)
    for r in range(dim):
        for t in range(indptr[r], indptr[r + 1]):
            j, factor = indices[t], a[t]
            for u in range(indptr[j], indptr[j + 1]):
                row[indices[u]] += factor * b[u]
        for t in range(indptr[r], indptr[r + 1]):
            out[t] = row[indices[t]]
            row[indices[t]] = 0.0


@kernel("in1, idx1, idx1, idx1, idx1, out1, out1, out1")
def invert_blocks(a, indptr, indices, inside_ptr, inside, out, log_dets, rconds):
    """out = the inverse of each class's dense block, at the places of the block.

    log_dets and rconds receive log|det| and the reciprocal condition number (infinity norm) of the block at the first
    coordinate of its class; their other entries are not changed. Gauss-Jordan elimination in place, with row pivots.
    """
    for r in range(indptr.shape[0] - 1):
        at, size = inside_ptr[r], inside_ptr[r + 1] - inside_ptr[r]
        if indices[inside[at]] != r:
            continue
        if size == 1:
            entry = a[inside[at]]
            rconds[r] = 0.0 if entry == 0.0 else 1.0
            log_dets[r] = np.log(np.abs(entry)) if entry != 0.0 else -np.inf
            out[inside[at]] = 1.0 / entry if entry != 0.0 else 0.0
            continue
        block, swaps = np.empty((size, size)), np.empty(size, np.int64)
        norm, inverse_norm, log_det = 0.0, 0.0, 0.0
        for i in range(size):
            start = inside_ptr[indices[inside[at + i]]]
            for j in range(size):
                block[i, j] = a[inside[start + j]]
            norm = max(norm, np.abs(block[i]).sum())
        for k in range(size):
            p = k + np.argmax(np.abs(block[k:, k]))
            swaps[k] = p
            pivot = block[p, k]
            if pivot == 0.0:
                log_det = -np.inf
                break
            log_det += np.log(np.abs(pivot))
            for j in range(size):
                kept = block[k, j]
                block[k, j] = block[p, j] / pivot
                if p != k:
                    block[p, j] = kept
            block[k, k] = 1.0 / pivot
            for i in range(size):
                if i != k:
                    factor = block[i, k]
                    block[i, k] = 0.0
                    for j in range(size):
                        block[i, j] -= factor * block[k, j]
        log_dets[r] = log_det
        rconds[r] = 0.0
        if log_det == -np.inf:
            continue
        for k in range(size - 1, -1, -1):  # rows swapped before the inversion are columns swapped after it
            for i in range(size):
                block[i, k], block[i, swaps[k]] = block[i, swaps[k]], block[i, k]
        for i in range(size):
            start = inside_ptr[indices[inside[at + i]]]
            for j in range(size):
                out[inside[start + j]] = block[i, j]
            inverse_norm = max(inverse_norm, np.abs(block[i]).sum())
        rconds[r] = 1.0 / (norm * inverse_norm)


@kernel("in1, in1, idx1, idx1, idx1, idx1, idx1, in2, out2")
def solve(a, blocks, indptr, indices, inside_ptr, inside, order, x, out):
    """Solve A out_i = x_i by substitution, class by class; `blocks` holds the inverses of the classes' blocks."""
    n, dim = x.shape
    rest = np.empty((np.diff(inside_ptr).max(), 4))  # x minus the contribution of earlier classes
    for i in range(0, n, 4):
        i1, i2, i3 = min(i + 1, n - 1), min(i + 2, n - 1), min(i + 3, n - 1)
        y0, y1, y2, y3 = out[i], out[i1], out[i2], out[i3]
        start = 0
        while start < dim:
            stop = start + inside_ptr[order[start] + 1] - inside_ptr[order[start]]
            for p in range(start, stop):
                r = order[p]  # zero, so that the sum over a whole row leaves out its own class
                y0[r], y1[r], y2[r], y3[r] = 0.0, 0.0, 0.0, 0.0
            for p in range(start, stop):
                r = order[p]
                s0, s1, s2, s3 = x[i, r], x[i1, r], x[i2, r], x[i3, r]
                for t in range(indptr[r], indptr[r + 1]):
                    c = indices[t]
                    s0 -= a[t] * y0[c]
                    s1 -= a[t] * y1[c]
                    s2 -= a[t] * y2[c]
                    s3 -= a[t] * y3[c]
                k = p - start
                rest[k, 0], rest[k, 1], rest[k, 2], rest[k, 3] = s0, s1, s2, s3
            for p in range(start, stop):
                r = order[p]
                s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
                for k in range(stop - start):
                    factor = blocks[inside[inside_ptr[r] + k]]
                    s0 += factor * rest[k, 0]
                    s1 += factor * rest[k, 1]
                    s2 += factor * rest[k, 2]
                    s3 += factor * rest[k, 3]
                y0[r], y1[r], y2[r], y3[r] = s0, s1, s2, s3
            start = stop


@kernel("in1, in1, idx1, idx1, idx1, idx1, idx1, out1")
def inverse(a, blocks, indptr, indices, inside_ptr, inside, order, out):
    """out = A^-1: rows K of the block's inverse beside -K A_cS (A^-1)_SS, S the coordinates before the class c."""
    dim = indptr.shape[0] - 1
    row = np.zeros(dim)
    for p in range(dim):
        r = order[p]
        own, end = inside_ptr[r], inside_ptr[r + 1]
        for t in range(indptr[r], indptr[r + 1]):
            if own < end and inside[own] == t:
                row[indices[t]] = blocks[t]
                own += 1
                continue
            factor = 0.0  # entry t of K A, with the same offset in all rows of the class
            for u in range(inside_ptr[r], end):
                k = indices[inside[u]]
                factor += blocks[inside[u]] * a[t - indptr[r] + indptr[k]]
            j = indices[t]
            for u in range(indptr[j], indptr[j + 1]):
                row[indices[u]] -= factor * out[u]
        for t in range(indptr[r], indptr[r + 1]):
            out[t] = row[indices[t]]
            row[indices[t]] = 0.0
