"""What became of classes that files of earlier versions name."""

from types import MappingProxyType

__all__ = ["MOVED"]

MOVED = MappingProxyType(
    {
        "meanmap.ep.learned.pupil.Pupil": "meanmap.ep.learned.factor_learner.FactorLearner",
        "meanmap.ep.learned.pupil.Rules": "meanmap.ep.learned.factor_learner.Rules",
    }
)
