"""Loops of the triangular group: conversion between the packed form and the square form for BLAS."""
# mypy: disable-error-code="no-untyped-def"

from esgroup.kernels.jit import kernel


@kernel("in1, out2")
def unpack(packed, out):
    """Write the rows of a packed lower triangle to a square matrix, with zeros above the diagonal."""
    at = 0
    for i in range(out.shape[0]):
        for j in range(i + 1):
            out[i, j] = packed[at + j]
        out[i, i + 1 :] = 0.0
        at += i + 1


@kernel("in2, int, out1")
def pack(rows, first, out):
    """Write rows of the lower triangle, starting with row `first` of the matrix, to their places in packed form."""
    at = first * (first + 1) // 2
    for i in range(rows.shape[0]):
        for j in range(first + i + 1):
            out[at + j] = rows[i, j]
        at += first + i + 1
