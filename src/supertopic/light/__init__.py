"""Predictions with NumPy and SciPy alone: nothing is compiled, and neither Numba nor scikit-learn is imported.

`load_predictor` reads a model file that `supertopic.save` wrote. Its predictions are those of the estimator to 1e-6. A
document takes a hundred times as long, but the first one comes within a second of the start of Python: for small
services, functions that run now and then, and machines on which Numba cannot be installed.
"""

from supertopic.light.predictor import Predictor, load_predictor

__all__ = ["Predictor", "load_predictor"]
