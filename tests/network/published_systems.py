"""The three published systems of the solver tests, with the simulated figures to agree with.

The systems themselves are those of the shipped grid; the figures are the simulator columns of the
published tests.
"""

from __future__ import annotations

from dataclasses import dataclass

from capmodel.service.step_law import StepLaw
from capmodel.spec.workload import Workload
from capmodel.validate.network_grid import systems


@dataclass(frozen=True, kw_only=True)
class Case:
    law: StepLaw
    kv_tokens: float
    workload: Workload
    requests_per_s: dict[int, float]
    hit_rate: dict[int, float]
    peak: int


_SYSTEMS = {system.name: system for system in systems()}


def _case(
    name: str, requests_per_s: dict[int, float], hit_rate: dict[int, float], peak: int
) -> Case:
    system = _SYSTEMS[name]
    return Case(
        law=system.case.step_law,
        kv_tokens=system.case.kv_tokens,
        workload=system.workload,
        requests_per_s=requests_per_s,
        hit_rate=hit_rate,
        peak=peak,
    )


CASES = {
    "kimi-k3-8xB300": _case(
        "k3",
        {
            2: 0.1062,
            4: 0.2085,
            8: 0.398,
            10: 0.4862,
            12: 0.5631,
            13: 0.5893,
            14: 0.5973,
            15: 0.5955,
            16: 0.4929,
            18: 0.354,
            20: 0.2042,
            24: 0.0965,
            32: 0.0625,
        },
        {4: 0.983, 12: 0.983, 14: 0.978, 16: 0.955, 18: 0.909, 20: 0.796, 24: 0.466, 32: 0.103},
        14,
    ),
    "llama-3.1-70b-8xH100": _case(
        "llama",
        {
            4: 0.3787,
            8: 0.7323,
            16: 1.357,
            20: 1.6189,
            24: 1.848,
            26: 1.9386,
            27: 1.9601,
            28: 1.9638,
            29: 1.9489,
            30: 1.8936,
            32: 1.6541,
            36: 1.1895,
            40: 0.8414,
            48: 0.7098,
        },
        {4: 0.961, 28: 0.943, 30: 0.913, 32: 0.84, 36: 0.624, 40: 0.332, 48: 0.136},
        28,
    ),
    "deepseek-v3-8xH200": _case(
        "deepseek",
        {
            2: 0.2753,
            4: 0.5159,
            6: 0.72,
            7: 0.8069,
            8: 0.8666,
            9: 0.8854,
            10: 0.8431,
            11: 0.7633,
            12: 0.6594,
            14: 0.4877,
            16: 0.4101,
            20: 0.3724,
        },
        {
            2: 0.976,
            8: 0.966,
            9: 0.945,
            10: 0.9,
            11: 0.828,
            12: 0.723,
            14: 0.457,
            16: 0.244,
            20: 0.097,
        },
        9,
    ),
}
