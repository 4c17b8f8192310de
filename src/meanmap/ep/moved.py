"""What became of classes that files of earlier versions name."""

from types import MappingProxyType

__all__ = ["MOVED"]

MOVED = MappingProxyType(
    {
        "meanmap.ep.learned.pupil.Pupil": "meanmap.ep.learned.factor_learner.FactorLearner",
        "meanmap.ep.learned.pupil.Rules": "meanmap.ep.learned.factor_learner.Rules",
        "meanmap.ep.conjugate.PoissonRate": "meanmap.ep.factors.conjugate.PoissonRate",
        "meanmap.ep.host.FunctionOracle": "meanmap.ep.oracles.host.FunctionOracle",
        "meanmap.ep.laplace.AroundMode": "meanmap.ep.oracles.laplace.AroundMode",
        "meanmap.ep.pace.Pace": "meanmap.ep.inference.pace.Pace",
        "meanmap.ep.plan.Plan": "meanmap.ep.sweeps.plan.Plan",
        "meanmap.ep.plan.Port": "meanmap.ep.sweeps.plan.Port",
        "meanmap.ep.plan.State": "meanmap.ep.sweeps.plan.State",
        "meanmap.ep.record.Record": "meanmap.ep.inference.record.Record",
        "meanmap.ep.run.Run": "meanmap.ep.inference.run.Run",
        "meanmap.ep.sweep.Happened": "meanmap.ep.sweeps.sweep.Happened",
    }
)
