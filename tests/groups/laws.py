"""The laws that every group obeys, against dense NumPy: stated once, run on every group."""

import numpy as np
import pytest
from scipy.linalg import expm

from esgroup.groups import Conjugate, Group
from esgroup.groups.hooks import Hooks
from tests.groups import oracle
from tests.groups.elements import covariance, element, frozen, local
from tests.kernels.naive_search import orthogonalized

Rng = np.random.Generator


def close(actual: object, expected: object, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


class GroupLaws:
    """Each law takes a group and a random number generator; test_laws.py runs all of them on every group."""

    def the_matrix_is_that_of_the_definition(self, group: Group, rng: Rng) -> None:
        """Of any packed vector, invertible or not; also that of a local vector, and of a matrix packed again."""
        a, m = frozen(rng.standard_normal(group.size)), local(group, rng)
        dense = group.dense(a)
        close(dense, oracle.matrix(group, a), 1e-13)
        close(group.dense(group.from_dense(dense)), dense, 1e-13)
        close(group.dense_local(m), oracle.matrix(group, m, local=True), 1e-13)
        assert dense.flags.c_contiguous and dense.flags.writeable

    def the_identity_is_the_identity(self, group: Group, rng: Rng) -> None:
        close(group.dense(group.identity()), np.eye(group.dim))

    def a_product_is_the_matrix_product(self, group: Group, rng: Rng) -> None:
        a, b = element(group, rng), element(group, rng)
        close(group.dense(group.product(a, b)), group.dense(a) @ group.dense(b))

    def apply_and_solve_and_their_transposes_act_as_matrices(self, group: Group, rng: Rng) -> None:
        a = element(group, rng)
        dense = group.dense(a)
        for x in (frozen(rng.standard_normal((3, group.dim))), frozen(rng.standard_normal(group.dim))):
            close(group.apply(a, x), x @ dense.T)
            close(group.apply_transposed(a, x), x @ dense)
            close(group.solve(a, x) @ dense.T, x)
            close(group.solve_transposed(a, x) @ dense, x)
            for act in (group.apply, group.apply_transposed, group.solve, group.solve_transposed):
                assert act(a, x).flags.c_contiguous and not np.shares_memory(act(a, x), x)

    def no_points_give_no_points(self, group: Group, rng: Rng) -> None:
        a, none = element(group, rng), np.zeros((0, group.dim))
        for act in (group.apply, group.apply_transposed, group.solve, group.solve_transposed):
            assert act(a, none).shape == (0, group.dim)

    def the_inverse_undoes_the_element(self, group: Group, rng: Rng) -> None:
        a = element(group, rng)
        close(group.dense(group.inverse(a)) @ group.dense(a), np.eye(group.dim))
        close(group.dense(group.product(a, group.inverse(a))), np.eye(group.dim))

    def log_abs_det_and_squared_norm_are_those_of_the_matrix(self, group: Group, rng: Rng) -> None:
        a = element(group, rng)
        dense = group.dense(a)
        close(group.log_abs_det(a), np.linalg.slogdet(dense)[1])
        close(group.squared_norm(a), (dense**2).sum())

    def the_transpose_lies_in_the_transposed_group(self, group: Group, rng: Rng) -> None:
        a = element(group, rng)
        transposed = group.transpose(a)
        close(group.transposed.dense(transposed), group.dense(a).T)
        assert group.transposed.transposed == group
        close(group.transposed.transpose(transposed), a)

    def scaling_multiplies_the_matrix(self, group: Group, rng: Rng) -> None:
        a = element(group, rng)
        close(group.dense(group.scale(a, 2.5)), 2.5 * group.dense(a))

    def elements_have_the_structure_and_no_more(self, group: Group, rng: Rng) -> None:
        """Products and inverses stay in the group, which from_dense checks."""
        a, b = element(group, rng), element(group, rng)
        for dense in (group.dense(a) @ group.dense(b), np.linalg.inv(group.dense(a))):
            close(group.dense(group.from_dense(dense)), dense)
        if group.dof < group.dim * (group.dim + 1) // 2:
            with pytest.raises(ValueError, match="matrix must have the structure of"):
                group.from_dense(rng.standard_normal((group.dim, group.dim)))

    def the_local_space_has_dof_dimensions(self, group: Group, rng: Rng) -> None:
        assert group.dof == len(oracle.local_basis(group))

    def projections_lie_in_the_local_space(self, group: Group, rng: Rng) -> None:
        basis = np.array([b.ravel() for b in oracle.local_basis(group)]).T
        m = group.dense_local(local(group, rng)).ravel()
        close(basis @ np.linalg.lstsq(basis, m, rcond=None)[0], m)

    def project_solves_the_fisher_system(self, group: Group, rng: Rng) -> None:
        z, weights, shift = rng.standard_normal((4, group.dim)), rng.standard_normal(4), rng.standard_normal()
        g = frozen((z.T * weights) @ z - shift * np.eye(group.dim))
        expected = oracle.natural_gradient(group, g)
        close(group.dense_local(group.project(frozen(z), frozen(weights), shift)), expected)
        close(group.dense_local(group.project_dense(g)), expected)

    def projecting_pairs_is_projecting_their_symmetric_sum(self, group: Group, rng: Rng) -> None:
        x, y = frozen(rng.standard_normal((3, group.dim))), frozen(rng.standard_normal((3, group.dim)))
        w = frozen(rng.standard_normal(3))
        g = (x.T * w) @ y
        close(group.project_pairs(x, y, w, 0.3), group.project_dense((g + g.T) / 2 - 0.3 * np.eye(group.dim)))

    def the_identity_projects_to_half_of_itself(self, group: Group, rng: Rng) -> None:
        """From the dense matrix, and from a shift without samples."""
        close(group.dense_local(group.project_dense(np.eye(group.dim))), np.eye(group.dim) / 2)
        none = group.project(np.zeros((0, group.dim)), np.zeros(0), 0.8)
        close(group.dense_local(none), -0.4 * np.eye(group.dim))

    def h_is_the_second_order_polynomial(self, group: Group, rng: Rng) -> None:
        m = local(group, rng)
        dense = group.dense_local(m)
        if not oracle.has_kronecker(group):
            close(group.dense(group.h(m)), np.eye(group.dim) + dense + dense @ dense / 2)
        # to first order this holds factor by factor too
        tiny = 1e-6
        close(group.dense(group.h(tiny * m)), np.eye(group.dim) + tiny * dense, 10 * group.dim * tiny**2)

    def h_lies_in_the_group_with_positive_determinant(self, group: Group, rng: Rng) -> None:
        """The paper's lemmas on h, for steps of any size."""
        for size in (0.1, 1.0, 3.0):
            h = group.dense(group.h(local(group, rng, size)))
            assert np.linalg.slogdet(h)[0] > 0
            group.from_dense(h)

    def exp_is_the_matrix_exponential(self, group: Group, rng: Rng) -> None:
        m = local(group, rng)
        close(group.dense(group.exp(m)), expm(group.dense_local(m)))

    def h_agrees_with_exp_to_second_order(self, group: Group, rng: Rng) -> None:
        m = 1e-3 * local(group, rng)
        close(group.dense(group.h(m)), group.dense(group.exp(m)), 1e-9 * group.dim**2)

    def fused_products_equal_the_separate_ones(self, group: Group, rng: Rng) -> None:
        a = element(group, rng)
        z, weights = frozen(rng.standard_normal((5, group.dim))), frozen(0.1 * rng.standard_normal(5))
        m = group.project(z, weights, 0.2)
        expected = group.product(a, group.h(m))
        close(group.product_h(a, m), expected)
        close(group.product_h_samples(a, z, weights, 0.2), expected)
        close(group.product_h_samples(a, z, weights, 0.2, images=group.apply(a, z)), expected)
        own = a.copy()
        assert group.product_h_samples(own, z, weights, 0.2, out=own) is own
        close(own, expected)

    def images_may_be_written_to_an_array_of_the_callers(self, group: Group, rng: Rng) -> None:
        a, x = element(group, rng), frozen(rng.standard_normal((4, group.dim)))
        out = np.full(x.shape, np.nan)
        group._apply_into(a, x, out)
        close(out, x @ group.dense(a).T)
        offset = frozen(rng.standard_normal(group.dim))
        group._affine(a, x, offset, out)
        close(out, x @ group.dense(a).T + offset)

    def points_and_images_are_placed_by_the_matrix(self, group: Group, rng: Rng) -> None:
        """With one more row of images than of points, that of the path; samples may be made orthogonal."""
        a, given = element(group, rng), rng.standard_normal((4, group.dim))
        path = frozen(rng.standard_normal(group.dim))
        mean, scale = frozen(rng.standard_normal(group.dim)), frozen(rng.uniform(0.5, 2.0, group.dim))
        for orthogonal in (0, 3):
            z, y, x = given.copy(), np.full((4, group.dim), np.nan), np.full((3, group.dim), np.nan)
            group._place(orthogonal, a, path, mean, np.array([0.7]), scale, z, y, x)
            close(z, np.vstack([orthogonalized(given[:3]) if orthogonal else given[:3], path]), 1e-8)
            images = z @ group.dense(a).T
            close(y, images)
            close(x, mean + 0.7 * scale * images[:3])

    def norms_of_rows_and_columns_are_those_of_the_matrix(self, group: Group, rng: Rng) -> None:
        """By the group's own method, by that of the rotated group, and by the default for groups without one."""
        rotation = np.linalg.qr(rng.standard_normal((group.dim, group.dim)))[0]
        for any_group in (group, Conjugate(group, rotation)):
            a = element(any_group, rng)
            dense = any_group.dense(a)
            close(any_group._squared_row_norms(a), np.diagonal(dense @ dense.T))
            close(Hooks._squared_row_norms(any_group, a), np.diagonal(dense @ dense.T))
            close(any_group._squared_column_norms(a), np.diagonal(dense.T @ dense))

    def the_norm_of_a_local_vector_is_that_of_its_matrix(self, group: Group, rng: Rng) -> None:
        m = group.project(rng.standard_normal((3, group.dim)), rng.standard_normal(3))
        close(group._squared_local_norm(m), (group.dense_local(m) ** 2).sum())

    def the_local_identity_stands_for_the_identity(self, group: Group, rng: Rng) -> None:
        close(group.dense_local(group._local_identity()), np.eye(group.dim))

    def a_carried_inverse_follows_the_step_of_the_element(self, group: Group, rng: Rng) -> None:
        """h(M)^-1 A^-1 in place, from fewer samples than coordinates and from more."""
        for n in (1, group.dim, 2 * group.dim + 3):
            a, z = element(group, rng), frozen(rng.standard_normal((n, group.dim)))
            weights = frozen(0.4 * rng.standard_normal(n) / np.sqrt(n))
            moved, carried = a.copy(), group.inverse(a)
            pulled, images = frozen(group.solve_transposed(a, z)), frozen(group.apply(a, z))
            if not group.carries_inverse:
                with pytest.raises(NotImplementedError, match="does not update its inverse"):
                    group._step_with_inverse(moved, carried, z, images, pulled, weights, 0.3)
                return
            group._step_with_inverse(moved, carried, z, images, pulled, weights, 0.3)
            close(group.dense(moved), group.dense(group.product_h_samples(a, z, weights, 0.3)))
            close(group.dense(carried), np.linalg.inv(group.dense(moved)), 1e-8)

    def from_covariance_recovers_a_covariance_of_the_family(self, group: Group, rng: Rng) -> None:
        dense = group.dense(element(group, rng))
        found = group.dense(group.from_covariance(dense @ dense.T))
        close(found @ found.T, dense @ dense.T)

    def from_covariance_is_the_minimum_of_the_divergence(self, group: Group, rng: Rng) -> None:
        """No gradient is left, and the divergence is larger at elements nearby."""
        sigma = covariance(group.dim, rng)
        best = group.from_covariance(sigma)
        inverse = np.linalg.inv(group.dense(best))
        left = oracle.natural_gradient(group, inverse @ sigma @ inverse.T - np.eye(group.dim))
        close(left, np.zeros_like(left), 1e-10)
        assert best.flags.writeable and not np.shares_memory(best, sigma)

        def divergence(a: np.ndarray) -> float:
            inverse = np.linalg.inv(group.dense(a))
            return 0.5 * float(np.trace(inverse @ sigma @ inverse.T)) + group.log_abs_det(a)

        for _ in range(5):
            away = group.product_h(best, 1e-3 * local(group, rng, 1.0))
            assert divergence(away) > divergence(best) - 1e-12

    def the_hub_reaches_every_other_column(self, group: Group, rng: Rng) -> None:
        """T e_j is a combination of e_j and the hub's columns, for T in the group or in its transpose."""
        for dense in (group.dense(element(group, rng)), group.dense(element(group, rng)).T):
            for j in sorted(set(range(group.dim)) - set(group.hub.tolist())):
                span = np.column_stack([np.eye(group.dim)[:, j], dense[:, group.hub]])
                close(span @ np.linalg.lstsq(span, dense[:, j], rcond=None)[0], dense[:, j])

    def results_share_no_memory_with_arguments(self, group: Group, rng: Rng) -> None:
        a, m = element(group, rng), local(group, rng)
        results = [act(a) for act in (group.transpose, group.inverse, group.dense)]
        results += [group.h(m), group.exp(m), group.product_h(a, m), group.dense_local(m)]
        results += [group.product(a, group.identity()), group.scale(a, 1), group.from_dense(group.dense(a))]
        assert not any(np.shares_memory(result, argument) for result in results for argument in (a, m))
        assert all(result.flags.writeable and result.flags.c_contiguous for result in results)


LAWS = [name for name in vars(GroupLaws) if not name.startswith("_")]
