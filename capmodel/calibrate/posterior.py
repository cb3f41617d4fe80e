"""The fit: a few log factors under normal priors, by bounded least squares, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

from ..errors import ConvergenceError
from .adjustment import PARAMETERS, Adjustment
from .forward import Forward
from .observation import QUANTITIES, Observation, scaled

FloatArray = npt.NDArray[np.float64]

BOUND_SIGMAS = 4.0
STEP = 0.02
NORMAL_95 = 1.6448536269514722


@cache
def prior_table() -> dict[str, Any]:
    """Return the priors of the factors and the noise of measured figures."""
    text = (Path(__file__).parent / "data" / "priors.yaml").read_text(encoding="utf-8")
    table: dict[str, Any] = yaml.safe_load(text)
    return table


def prior_sigma(name: str) -> float:
    """Standard deviation of a factor's logarithm before any point [1]."""
    return float(prior_table()["priors"][name]["sigma"])


def noise_sigma(quantity: str, rate_noise: float | None = None) -> float:
    """Standard deviation of a measured figure: relative, or absolute for shares [1]."""
    kind = QUANTITIES[quantity]
    if kind == "rate" and rate_noise is not None:
        return rate_noise
    return float(prior_table()["noise"][kind]["sigma"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Posterior:
    """Log factors after the points.

    Parameters
    ----------
    names : tuple of str
        Fitted factors.
    mode : ndarray, shape (k,)
        Logarithms at the maximum [1].
    covariance : ndarray, shape (k, k)
        Of the logarithms, wider where the points scatter more than their noise [1].
    jacobian : ndarray, shape (n, k)
        Of the scaled residuals [1].
    residuals : ndarray, shape (n,)
        Measured less fitted over noise [1].
    labels : tuple of (int, str)
        Concurrency and quantity of each residual.
    sigmas : ndarray, shape (n,)
        Noise of each figure [1].
    inflation : float
        Factor on the noise of all figures, at least one [1].
    """

    names: tuple[str, ...]
    mode: FloatArray
    covariance: FloatArray
    jacobian: FloatArray
    residuals: FloatArray
    labels: tuple[tuple[int, str], ...]
    sigmas: FloatArray
    inflation: float

    @property
    def adjustment(self) -> Adjustment:
        """Factors at the maximum."""
        return Adjustment(**dict(zip(self.names, np.exp(self.mode).tolist(), strict=True)))

    @property
    def deviations(self) -> FloatArray:
        """Standard deviations of the logarithms [1]."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    def interval(self, name: str) -> tuple[float, float, float]:
        """Value and 90% interval of a factor [1]."""
        at = self.names.index(name)
        middle, half = float(self.mode[at]), NORMAL_95 * float(self.deviations[at])
        low, value, high = np.exp([middle - half, middle, middle + half])
        return float(value), float(low), float(high)

    @property
    def leave_one_out(self) -> FloatArray:
        """Error of each figure when predicted from the others, in its noise's unit [1].

        Notes
        -----
        ``r_i / (1 - h_i)`` with the leverage h of the linearised fit, priors included: exact
        where the model is linear in the logarithms.
        """
        prior = np.diag([prior_sigma(name) ** -2 for name in self.names])
        inverse = np.linalg.inv(self.jacobian.T @ self.jacobian + prior)
        leverage = np.einsum("ij,jk,ik->i", self.jacobian, inverse, self.jacobian)
        return np.asarray(self.residuals / np.maximum(1.0 - leverage, 1e-6) * self.sigmas)


def fit(
    forward: Forward,
    points: Sequence[Observation],
    *,
    names: Sequence[str] = PARAMETERS,
    rate_noise: float | None = None,
) -> Posterior:
    """Return the factors that explain the points best, within what was known before.

    Parameters
    ----------
    forward : callable
        Quantities at an adjustment and a concurrency.
    points : sequence of Observation
        Measured figures.
    names : sequence of str
        Factors to fit; the others stay at one.
    rate_noise : float, optional
        Relative standard deviation of measured rates in place of the table's [1].

    Raises
    ------
    ConvergenceError
        If the least squares do not settle.

    Notes
    -----
    Maximises ``-|r(x)|^2/2 - |x/s|^2/2``, x the log factors, s their prior deviations, r the
    residuals over noise; the posterior is normal with the curvature there (Laplace).
    Exact for: a model linear in x. Where the reduced chi square exceeds one, the noise is taken
    larger by its root, so that points which scatter more than stated widen the answer.
    """
    from scipy.optimize import least_squares

    kept = tuple(names)
    rows = [(p.concurrency, name, value) for p in points for name, value in p.measured.items()]
    sigmas = np.array([noise_sigma(name, rate_noise) for _, name, _ in rows])
    priors = np.array([prior_sigma(name) for name in kept])
    target = np.array([scaled(name, value) for _, name, value in rows])

    def predicted(logs: FloatArray) -> FloatArray:
        factors = Adjustment(**dict(zip(kept, np.exp(logs).tolist(), strict=True)))
        return np.array([scaled(name, forward(factors, c)[name]) for c, name, _ in rows])

    def residuals(logs: FloatArray) -> FloatArray:
        return np.concatenate([(predicted(logs) - target) / sigmas, logs / priors])

    def jacobian(logs: FloatArray) -> FloatArray:
        here = residuals(logs)
        steps = STEP * np.eye(len(kept))
        return np.stack([(residuals(logs + step) - here) / STEP for step in steps], axis=1)

    bound = BOUND_SIGMAS * priors
    solved = least_squares(
        residuals, np.zeros(len(kept)), jac=jacobian, bounds=(-bound, bound), x_scale=priors,
        max_nfev=30, xtol=1e-4, ftol=1e-4,
    )  # fmt: skip
    if not solved.success and solved.status != 0:
        raise ConvergenceError(
            "the fit did not settle.", residual=float(solved.cost), iterations=30
        )
    slopes, left = solved.jac[: len(rows)], solved.fun
    # The maximum has zero gradient, so the sum over data and priors has n degrees of freedom.
    inflation = max(1.0, float(np.sqrt(np.sum(left**2) / len(rows))))
    curvature = slopes.T @ slopes / inflation**2 + np.diag(priors**-2.0)
    return Posterior(
        names=kept,
        mode=np.asarray(solved.x),
        covariance=np.linalg.inv(curvature),
        jacobian=slopes,
        residuals=-left[: len(rows)],
        labels=tuple((c, name) for c, name, _ in rows),
        sigmas=sigmas,
        inflation=inflation,
    )
