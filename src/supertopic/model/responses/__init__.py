"""The responses: each file holds one, and this one registers them."""

from supertopic.model.responses.base import Response
from supertopic.model.responses.counts import NegativeBinomial
from supertopic.model.responses.crowd import CrowdLogistic
from supertopic.model.responses.crowd_numbers import CrowdGaussian
from supertopic.model.responses.gaussian import Gaussian
from supertopic.model.responses.hazards import PeriodHazards, SharedHazards
from supertopic.model.responses.hinge import Hinge
from supertopic.model.responses.logistic import Logistic
from supertopic.model.responses.none import NoResponse
from supertopic.model.responses.ordinal import Ordinal

__all__ = [
    "CrowdGaussian",
    "CrowdLogistic",
    "Gaussian",
    "Hinge",
    "Logistic",
    "NegativeBinomial",
    "NoResponse",
    "Ordinal",
    "PeriodHazards",
    "Response",
    "SharedHazards",
]
