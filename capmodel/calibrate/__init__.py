"""Calibrate: a deployment's own points in, factors with intervals out. Call it."""

from ..callable_package import answer_calls

answer_calls(__name__, "capmodel.calibrate.calibration", "calibrate")
