"""The declaration of the inverse problem: the cheapest sample that is precise enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from pydantic import Field, model_validator

from forcopt.arrays import Array, as_numbers
from forcopt.declaration import Numbers
from forcopt.errors import DeclarationError
from forcopt.models.allocation.problem import Allocation, Strata
from forcopt.problem import FEASIBILITY_TOLERANCE, Evaluation


class PrecisionAllocation(Strata):
    """Choose how many records of each stratum to sample, at the least cost for given precisions.

    Attributes
    ----------
    targets : Numbers, optional
        The largest variance of each variable's estimated mean, above 0; shape ``(V,)``, a number if there
        is one variable.
    costs : Numbers, optional
        Of sampling one record of each stratum, above 0, shape ``(k,)``; 1 by default, so that the objective
        is the size of the sample.

    Raises
    ------
    DeclarationError
        For targets or costs that are not positive, or do not fit.

    References
    ----------
    Bethel (1989).

    Notes
    -----
    The other fields are as in `Strata`. A census has variance 0, so that there is an allocation unless
    `maximum` forbids it. In every method whole sizes meet a target if their variance is at most 1e-6 above
    it, relative to it.

    Examples
    --------
    >>> from forcopt.models import PrecisionAllocation
    >>> p = PrecisionAllocation(sizes=[100, 50, 50], deviations=[1, 4, 2], targets=0.0725)
    >>> s = p.solve()
    >>> s.decision.sizes.tolist(), s.objective
    ([10.0, 20.0, 10.0], 40.0)
    """

    targets: Numbers = Field(default=...)
    costs: Numbers | None = None

    @model_validator(mode="before")
    @classmethod
    def _one_target(cls, fields: Any) -> Any:
        if isinstance(fields, dict) and "targets" in fields and np.ndim(fields["targets"]) == 0:
            fields = {**fields, "targets": [fields["targets"]]}
        return fields

    @model_validator(mode="after")
    def _targets_fit(self) -> Self:
        k, variables = self.coefficients.shape
        if self.targets.shape != (variables,) or (self.targets <= 0).any():
            raise DeclarationError(f"targets must be {variables} numbers above 0, one for each variable")
        if self.costs is not None and (self.costs.shape != (k,) or (self.costs <= 0).any()):
            raise DeclarationError(f"costs must be {k} numbers above 0, one for each stratum")
        if not self.integer:
            raise DeclarationError("integer is False; precise allocation has whole sizes only")
        return self

    @classmethod
    def for_domains(
        cls, sizes: Any, deviations: Any, domains: Sequence[Any], targets: Mapping[Any, float], **fields: Any
    ) -> Self:
        """Declare the cheapest sample in which the mean of each domain is precise enough.

        Parameters
        ----------
        sizes, deviations : array_like
            Of the strata and the variable in them, shape ``(k,)``.
        domains : sequence
            The domain of each stratum, length k.
        targets : mapping
            The largest variance of the estimated mean of each domain; the key ``"all"`` is the whole
            population.
        fields : Any
            Other fields.

        Returns
        -------
        PrecisionAllocation
            With one variable for each target, in their order.

        Raises
        ------
        DeclarationError
            For a target of a domain without strata, or lengths that differ.

        Notes
        -----
        The mean of a domain D is a variable of the whole population with the deviations ``S N / N_D`` in the
        strata of D and 0 elsewhere.

        Examples
        --------
        >>> from forcopt.models import PrecisionAllocation
        >>> p = PrecisionAllocation.for_domains(
        ...     [100, 50, 50], [1, 4, 2], ["north", "south", "south"], {"north": 0.1, "south": 0.3})
        >>> s = p.solve()
        >>> s.objective, bool((s.decision.variances <= [0.1, 0.3]).all())
        (33.0, True)
        """
        n, s, where = as_numbers(sizes, "sizes"), as_numbers(deviations, "deviations"), np.array(domains)
        if not n.shape == s.shape == where.shape or n.ndim != 1:
            raise DeclarationError("sizes, deviations and domains must be lists of the same length")
        columns = []
        for domain in targets:
            member = np.ones(len(n), dtype=bool) if domain == "all" else where == domain
            if not member.any():
                raise DeclarationError(f"targets: no stratum is in the domain {domain!r}")
            columns.append(np.where(member, s * n.sum() / n[member].sum(), 0.0))
        allowed = np.array(list(targets.values()), dtype=float)
        return cls(sizes=n, deviations=np.stack(columns, axis=1), targets=allowed, **fields)

    @property
    def unit_costs(self) -> Array:
        """`costs`, or ones."""
        return np.ones(len(self.sizes)) if self.costs is None else self.costs

    @property
    def allowed(self) -> Array:
        """The variances up to which every method counts the targets as met, shape ``(V,)``.

        They are the largest that `evaluate` accepts, so that all methods agree which sizes are precise
        enough.
        """
        return self.targets * (1 + FEASIBILITY_TOLERANCE)

    def infeasibility_reason(self) -> str:
        """Name a target that the largest samples miss, with their variance; empty if they meet all."""
        least = self.variances(self.caps)
        missed = np.flatnonzero(least > self.allowed)
        if not missed.size:
            return ""
        v = int(missed[0])
        left = f"the largest samples leave variable {v} a variance of {least[v]:g}"
        return f"{left}; its target is {self.targets[v]:g}"

    def evaluate(self, decision: Allocation | Any) -> Evaluation:
        """Evaluate the cost and the variances of an allocation.

        Parameters
        ----------
        decision : Allocation or Any
            An allocation, or its sizes.

        Returns
        -------
        Evaluation
            The cost; violations ``"minimum"``, ``"stratum"``, ``"maximum"``, ``"whole sizes"`` and, for each
            variable whose variance is above its target, ``"variance v"`` relative to the target; as metrics
            the size of the sample and the variances.
        """
        chosen = self.allocation(decision)
        violations = self._violations(chosen.sizes)
        metrics = {"sample size": chosen.size}
        for v, (variance, target) in enumerate(zip(chosen.variances, self.targets, strict=True)):
            metrics[f"variance {v}"] = float(variance)
            if variance > target * (1 + FEASIBILITY_TOLERANCE):
                violations[f"variance {v}"] = float(variance / target - 1)
        return Evaluation(float(self.unit_costs @ chosen.sizes), violations, metrics)
