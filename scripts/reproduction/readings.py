"""One sentence on every claim: what its full run has shown, for readers of the page.

Verdicts are computed, sentences are written by hand, each for one kind of verdict. If another run comes to a verdict of
another kind, the sentence does not fit any more and the page does without it (`reading`).
"""

from __future__ import annotations

from reproduction.experiment import FAILS, HOLDS, UNDECIDED, WHEN, Verdict

CONDITIONAL = "holds, under conditions"

#: Sentences by experiment and claim, each with the kind of verdict that it is for.
READINGS: dict[str, dict[str, tuple[str, str]]] = {
    "structures": {
        "The structures of figure 3 are groups: closed under products and inverses.": (
            HOLDS,
            "Products and inverses stay in all twelve structures, to rounding.",
        ),
        "h(M) = I + M + M²/2 of a local M lies in the group.": (
            CONDITIONAL,
            "In a Kronecker group h must be taken factor by factor; h of the whole matrix leaves the group.",
        ),
        "Sparse Cholesky factors (sparse triangular matrices) form a group.": (
            CONDITIONAL,
            "The pattern of zeros must be transitive; a band, for example, is not closed under products.",
        ),
        "The Fisher matrix in local coordinates is not singular, also for circulant groups.": (
            CONDITIONAL,
            "M must be restricted to the local space: for circulant groups to symmetric matrices.",
        ),
        "Block triangular A with k = 2: A A^T has rank 2 plus a diagonal (lower), or its inverse has (upper).": (
            HOLDS,
            "Exactly so, to rounding.",
        ),
    },
    "singular": {
        "Example 1: for p = 2 the Fisher matrix in (v, d) is singular.": (
            HOLDS,
            "Four parameters describe three numbers, and the rank is 3.",
        ),
        "Example 2: at v = (1, 0, 0), d = (1, 1, 1) it is the printed matrix, with two equal columns, and singular.": (
            HOLDS,
            "The matrix is the printed one, entry by entry.",
        ),
        "The Fisher matrix in (v, d) is singular, also in higher dimensions.": (
            CONDITIONAL,
            "From p = 3 on it is singular only where v has at most two entries that are not zero.",
        ),
        "In the local coordinates of the block triangular group (2p - 1 parameters) it is never singular.": (
            HOLDS,
            "It has full rank for all p that were tried, and is as well conditioned in large p as in small ones.",
        ),
        "One number d for all (v v^T + d^2 I, p >= 2) avoids the singularity.": (
            CONDITIONAL,
            "It does, except at v = 0.",
        ),
    },
    "fig1": {
        "With Exp our NGD is the same in covariance and precision form, and as standard NGD in log σ or log σ².": (
            HOLDS,
            "The iterates agree to rounding, for every start and step.",
        ),
        "NGD is invariant to the parameterisation, whichever it is.": (
            CONDITIONAL,
            "Only in the limit of small steps, or where the parameter is a logarithm of the scale; in others it may "
            "leave its domain.",
        ),
        "In practice there is no difference between the maps h and Exp.": (
            CONDITIONAL,
            "None with small steps; with large ones from a wide start one of them may not arrive.",
        ),
        "GD is not invariant: its performance depends on the parameterisation.": (
            HOLDS,
            "The same step in another scale may take ten times as many iterations.",
        ),
        "NGD converges much faster than GD, which ignores the geometry.": (
            CONDITIONAL,
            "With the best step for each it needs fewer iterations than GD in log σ or log σ² from two of three "
            "starts; GD in another scale may need still fewer.",
        ),
    },
    "nearness": {
        "At the mean our update is RGD up to O(step³) in one iteration.": (
            HOLDS,
            "The difference falls with the third power of the step, as stated.",
        ),
        "our-mean performs like RGD.": (
            HOLDS,
            "Both need the same number of iterations on every seed, and fail together on one.",
        ),
        "Ours and RGD converge faster than the trivialisation with Adam.": (
            CONDITIONAL,
            "With the two smaller steps on all seeds; at the step that tuning chose they fail on some seeds.",
        ),
        "The trivialisation is trapped in a local mode.": (
            CONDITIONAL,
            "It stalls with large steps and arrives with a smaller one: the problem has no other stationary point.",
        ),
        "our-rep (reparameterised gradients, B and b) finds a solution near the optimum.": (
            HOLDS,
            "It does on every seed.",
        ),
        "Updating B and b together is better than updating B only.": (
            CONDITIONAL,
            "It is for small fixed n; with a very large n the update of B alone is as good in the end.",
        ),
    },
    "mixture": {
        "A structured precision is better than a diagonal one, by ELBO.": (
            UNDECIDED,
            "The structures are ahead in three of four cases so far, but the fits still improve.",
        ),
        "An upper structure is better than a lower one: Tri-up, Tri-low, by ELBO.": (
            UNDECIDED,
            "The upper one is ahead in narrow targets, the lower one in wide ones; the fits still improve.",
        ),
        "The same of Hs-up and Hs-low.": (UNDECIDED, "The two are close; the fits still improve."),
        "By its marginals Tri-up is better than Tri-low.": (
            UNDECIDED,
            "So far the distances of Tri-up are as large or larger.",
        ),
        "By its marginals Tri-up is better than the diagonal.": (
            UNDECIDED,
            "It is a little ahead in 20 variables and behind in 80; the fits still improve.",
        ),
        "Tri-up performs comparably to the full precision, by its marginals.": (
            UNDECIDED,
            "In 20 variables the full precision is ahead so far.",
        ),
        "The same by ELBO.": (UNDECIDED, "In 20 variables the full precision is ahead by about six nats so far."),
        "Tri-up costs less than the full precision.": (
            CONDITIONAL,
            "A sixth of the time with Hessians; with gradients alone both take the same.",
        ),
    },
    "newton": {
        "Hs-low converges faster than BFGS: fewer iterations.": (
            CONDITIONAL,
            "From nine of fourteen starts; Rosenbrock from zeros, (-1.2, 1, ...) and N(0, 1) it does not solve at all.",
        ),
        "The same in CPU time.": (CONDITIONAL, "In half of the fourteen cases."),
        "The same in evaluations of f, g, products and diagonals.": (
            CONDITIONAL,
            "Only where BFGS fails: each of its iterations takes eleven evaluations.",
        ),
        "Hs-low converges faster than Adam: fewer iterations.": (
            CONDITIONAL,
            "Wherever it solves the problem at all.",
        ),
        "Against Adam the same in CPU time.": (CONDITIONAL, "In two of the fourteen cases."),
        "A lower structure is better than an upper one: Hs-low, Hs-up.": (
            CONDITIONAL,
            "From one start; from nearly all others both take the same number of iterations.",
        ),
        "The same of Tri-low and Tri-up.": (FAILS, "They take the same number of iterations from every start."),
        "The Heisenberg structure helps: fewer iterations than the diagonal.": (
            CONDITIONAL,
            "On Rosenbrock by far, where it succeeds; on Dixon-Price the diagonal is nearly as good from most starts.",
        ),
    },
    "cnn": {
        "Our updates have a higher test accuracy than Adam.": (UNDECIDED, "They cannot be told apart on five seeds."),
        "Our goal: by 0.5 points for k = 4 and 16, by 1 for dense factors.": (
            UNDECIDED,
            "No gain is seen, but for k = 4 the interval is too wide to exclude it.",
        ),
        "An iteration costs what Adam's does: at most 1.5 times as much.": (
            HOLDS,
            "A whole training step takes 11 to 13 % longer.",
        ),
        "The cost of a step is linear in the number of weights.": (
            HOLDS,
            "It grows less than linearly over the sizes tried, except with dense factors.",
        ),
        "Our goal: dense factors reach Adam's last validation loss in 0.67 of its epochs.": (
            FAILS,
            "On three of five seeds they never reach it.",
        ),
        "Our goal: dense factors reach Adam's last validation loss in 0.8 of its seconds.": (
            FAILS,
            "On three of five seeds they never reach it.",
        ),
        "Our goal: a test accuracy at most 0.3 points below SOAP's.": (
            UNDECIDED,
            "They cannot be told apart, and the intervals include -0.3.",
        ),
        "Our goal: k = 4 and 16 end at most 0.01 above the validation loss of dense factors.": (
            UNDECIDED,
            "They end above it, by an interval that includes 0.01.",
        ),
        "Our goal: predictions with 16 samples of the weights have a test NLL no higher than "
        "the weights at the mean.": (
            HOLDS,
            "Samples make it lower on average, and the whole interval agrees.",
        ),
        "Our goal: predictions with 16 samples of the weights have a test NLL no higher than Adam.": (
            UNDECIDED,
            "It is lower on average, but the interval includes 0.",
        ),
        "Our goal: their expected calibration error is at most 0.02.": (
            UNDECIDED,
            "It is 0.020, so that the interval lies on both sides.",
        ),
    },
}


def kind(verdict: Verdict) -> str:
    """Return the verdict in a few words, without the conditions under which a claim holds."""
    return CONDITIONAL if verdict.word.startswith(WHEN) else verdict.word


def reading(name: str, verdict: Verdict) -> str:
    """Return the sentence on a claim of the experiment `name`; empty if there is none for a verdict of this kind."""
    for_kind, sentence = READINGS.get(name, {}).get(verdict.claim, ("", ""))
    return sentence if for_kind == kind(verdict) else ""
