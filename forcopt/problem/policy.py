"""A decision that can be served: from the columns of a person to the probability of each label."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from forcopt.arrays import Array, check_label_order, columns_of, entries_of, is_missing
from forcopt.errors import DeclarationError, require
from forcopt.fairness.rates import ERROR, FALSE_POSITIVE, SELECTION, TRUE_POSITIVE, Rate
from forcopt.fairness.records import as_texts, read_groups
from forcopt.fairness.report import GroupReport
from forcopt.learning.files import PolicyFile
from forcopt.learning.policy import chosen_classes
from forcopt.learning.tables import Schema, as_frame, row_numbers

if TYPE_CHECKING:
    from forcopt.problem.solution import Solution

Crossing = tuple[str | None, ...]
"""The values of a record in its sensitive columns as text, None where missing."""


def column_names(table: Any) -> list[str]:
    """The names of the columns of a frame, or of a series; ``column 0``, ... of an array."""
    if hasattr(table, "columns"):
        names = list(map(str, table.columns))
        if len(set(names)) < len(names):
            raise DeclarationError(f"sensitive_features has the columns {names}; each must have its own name")
        return names
    if np.ndim(table) < 2:
        return [str(getattr(table, "name", None) or "column 0")]
    return [f"column {j}" for j in range(np.shape(table)[1])]


def crossings(table: Any) -> list[Crossing]:
    """The values of each record in several sensitive columns as text, None where missing."""
    plain = [[None if is_missing(v) else v for v in column] for column in columns_of(table)]
    known = [[v for v in column if v is not None] for column in plain]
    texts = [dict(zip(values, as_texts(values, "sensitive_features"), strict=True)) for values in known]
    return list(zip(*([t.get(v) for v in c] for c, t in zip(plain, texts, strict=True)), strict=True))


def crossing_title(names: Sequence[str], row: Crossing) -> str:
    """The name of a crossing, such as ``sex=f & race=u``; of a single column its value."""
    if len(row) == 1 and row[0] is not None:
        return row[0]
    return " & ".join(f"{name}={'?' if v is None else v}" for name, v in zip(names, row, strict=True))


def crossing_of(names: Sequence[str], title: str) -> Crossing:
    """The values of the crossing that has this name; the inverse of `crossing_title`.

    Raises
    ------
    DeclarationError
        If no crossing of these columns has the name.

    Examples
    --------
    >>> crossing_of(["sex", "race"], "sex=f & race=u")
    ('f', 'u')
    """
    if len(names) == 1:
        return (title,)
    found = re.fullmatch(" & ".join(f"{re.escape(name)}=(.*)" for name in names), title, re.DOTALL)
    rule = f"be as {crossing_title(names, ('...',) * len(names))!r} for these columns"
    require(found is not None, "names: the group", title, rule)
    return found.groups()  # type: ignore[union-attr]


@dataclass(frozen=True)
class Vocabulary:
    """The groups that a policy knows, and what an unknown one gets.

    Attributes
    ----------
    columns : tuple[str, ...]
        The names of the sensitive columns.
    known : tuple
        Pairs of the values of a group in these columns, None where missing, and the mass of its records.
    unknown : Literal["refuse", "mixture"], default "refuse"
        Whether a group that training lacks is refused, or gets the mixture of the laws of the known groups
        that share the most values with it, by their mass.
    """

    columns: tuple[str, ...]
    known: tuple[tuple[Crossing, float], ...]
    unknown: Literal["refuse", "mixture"] = "refuse"

    @classmethod
    def of(
        cls, given: Any, weights: Array | None = None, unknown: Literal["refuse", "mixture"] = "refuse",
        names: Sequence[str] | None = None,
    ) -> Self:  # fmt: skip
        """The groups of one sensitive column, or of a table of several, and how much each weighs."""
        rows = crossings(given if np.ndim(given) == 2 else np.array(entries_of(given), dtype=object)[:, None])
        mass: dict[Crossing, float] = {}
        for row, weight in zip(rows, np.ones(len(rows)) if weights is None else weights, strict=True):
            mass[row] = mass.get(row, 0.0) + float(weight)
        return cls(tuple(names or column_names(given)), tuple(mass.items()), unknown)

    @property
    def levels(self) -> dict[str, tuple[str | None, ...]]:
        """The values that the known groups have in each column."""
        return dict(zip(self.columns, zip(*(row for row, _ in self.known), strict=True), strict=True))

    def laws(self, given: Any) -> tuple[Array, list[dict[str, float]]]:
        """The distinct groups that occur, and the known groups whose laws each of them gets.

        Parameters
        ----------
        given : Any
            One sensitive column, or a table of several, which is aligned by name.

        Returns
        -------
        tuple[Array, list[dict[str, float]]]
            The number of each record's group, shape ``(n,)``, and for each number the shares of the known
            groups by their names.
        """
        found: list[Crossing] = []
        unknown: Any = object()  # unlike None, which is the missing value, it is equal to no known one
        for (name, known), values in zip(self.levels.items(), self._aligned(given), strict=True):
            spelt = tuple(dict.fromkeys(v for v in known if v is not None))
            place: dict[Any, Any] = {None: None}
            for value in dict.fromkeys(v for v in values if v is not None):
                try:
                    place[value] = spelt[read_groups([value], spelt)[0][0]]
                except DeclarationError as error:
                    if self.unknown == "refuse":
                        raise DeclarationError(f"sensitive_features: column {name!r}: {error}") from None
                    told = f"sensitive_features: column {name!r}: {error}; {value!r} gets their mixture"
                    warnings.warn(told, stacklevel=4)
            found.append(tuple(place.get(v, unknown) for v in values))
        rows: list[Crossing] = list(zip(*found, strict=True))
        number = {row: i for i, row in enumerate(dict.fromkeys(rows))}
        return np.array([number[row] for row in rows], dtype=np.int64), [self._law(row) for row in number]

    def _law(self, row: Crossing) -> dict[str, float]:
        mass = dict(self.known)
        if row in mass:
            return {crossing_title(self.columns, row): 1.0}
        if self.unknown == "refuse":
            title = crossing_title(self.columns, row)
            names = ", ".join(crossing_title(self.columns, other) for other in mass)
            missing = "a record misses its group" if len(row) == 1 else f"groups holds {title!r}"
            raise DeclarationError(f"sensitive_features: {missing}; the groups are {names}")
        shared = {other: sum(a == b for a, b in zip(row, other, strict=True)) for other in mass}
        near = {other: mass[other] for other, count in shared.items() if count == max(shared.values())}
        return {crossing_title(self.columns, other): m / sum(near.values()) for other, m in near.items()}

    def _aligned(self, given: Any) -> list[tuple[str | None, ...]]:
        """The columns as text, in the order of `columns`."""
        if np.ndim(given) < 2:
            given = np.array(entries_of(given), dtype=object)[:, None]
        asked = column_names(given) if np.shape(given)[1] > 1 or hasattr(given, "columns") else ["one column"]
        unnamed = list(self.columns) == column_names(np.empty((0, len(self.columns))))
        by_name = hasattr(given, "columns") and not unnamed
        if np.shape(given)[1] != len(self.columns) or (by_name and set(asked) != set(self.columns)):
            own = ", ".join(self.columns)
            raise DeclarationError(f"sensitive_features has {', '.join(asked)}; the thresholds know {own}")
        if by_name:
            given = given.iloc[:, [asked.index(name) for name in self.columns]]
        return list(zip(*crossings(given), strict=True))


@dataclass(frozen=True, eq=False)
class Policy(PolicyFile):
    """A decision to deploy: it takes the features of people as they come, and answers with labels.

    The answer for a person depends on the person's row alone: not on the batch, the order of the columns of a
    frame, or the process. What it cannot place, it refuses.

    Attributes
    ----------
    front : Any
        The rule on features: a mixture of classifiers, a score, a linear model. None if the only feature is
        the score itself.
    schema : Schema
        The names and kinds of the features, in order.
    labels : tuple, optional
        The labels, of two the better one last (`pos_label`); empty if the answer is a number.
    law : Any, optional
        The law of the label given the group and the answer of `front`, such as `RandomizedThresholds`.
    groups : Vocabulary, optional
        The groups that `law` knows.
    raw : bool, default False
        Whether `front` takes a frame, as its learner did; else an array of numbers.
    salt : int, default 0
        The lottery draws from the features, the group and this number.
    promise : dict[str, Any], optional
        The constraint; the status of the solution; the error, the disparities (`gap`) and the violations of
        the probabilities on the training records. Fresh records have others, see `tested`.

    Examples
    --------
    >>> import pandas as pd
    >>> from forcopt.fairness import DemographicParity
    >>> from forcopt.models.fair_classification import FairClassifier
    >>> people = pd.DataFrame({"age": [20, 30, 40, 50] * 10, "debt": [1.0, 0.0, 1.0, 2.0] * 10})
    >>> granted = ["no", "no", "yes", "yes"] * 10
    >>> fair = FairClassifier(DemographicParity(0.1)).fit(people, granted, sensitive_features=["a", "b"] * 20)
    >>> policy = fair.policy_
    >>> policy.predict({"debt": 0.0, "age": 60}).tolist(), policy.pos_label
    (['yes'], 'yes')
    """

    front: Any
    schema: Schema
    labels: tuple[Any, ...] = ()
    law: Any = None
    groups: Vocabulary | None = None
    raw: bool = False
    salt: int = 0
    promise: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, solution: Solution, **fields: Any) -> Self:
        """The policy of a solved problem.

        Parameters
        ----------
        solution : Solution
            Of a problem of fair learning or post-processing, or of robust classification, with a decision.
        **fields : Any
            Fields of the policy that the problem does not know, such as `labels`, or `schema` with the name
            of the score column: ``Schema(("score",), ("number",))``.

        Examples
        --------
        >>> import forcopt as fo
        >>> policy = fo.Policy.of(fo.load("lexifair/three-models").solve(), labels=("no", "yes"))
        Traceback (most recent call last):
        ...
        forcopt.errors.DeclarationError: rows of a table predict no other records, so they cannot be served
        """
        decision, problem = solution.decision, solution.problem
        if decision is None:
            raise DeclarationError(f"the solution is {solution.status} and has no decision to serve")
        law = decision if hasattr(decision, "uses_groups") else None
        given: dict[str, Any] = {"front": None if law else decision, "law": law}
        if law is not None:
            given["schema"] = Schema((), ("text" if hasattr(decision, "classes") else "number",))
            given["groups"] = Vocabulary(("column 0",), tuple(((name,), 1.0) for name in law.groups))
        elif "schema" not in fields:
            names: Any = getattr(decision, "features", ())
            names = names if isinstance(names, tuple) else getattr(decision, "feature_names", ())
            holders = (problem, getattr(problem, "hypotheses", None))
            tables = (getattr(part, "features", None) for part in holders)
            table: Any = next((t for t in tables if t is not None), None)
            given["raw"] = hasattr(table, "iloc")
            if not names and table is None:
                raise DeclarationError("rows of a table predict no other records, so they cannot be served")
            width = len(names) or np.shape(table)[1]
            kinds = Schema.of(table).kinds if given["raw"] else ("number",) * width
            given["schema"] = Schema(tuple(names), kinds)
        classes = getattr(decision, "classes", 2)
        if not (hasattr(decision, "coefficients") or hasattr(decision, "estimators")):  # these give numbers
            given["labels"] = classes if isinstance(classes, tuple) else tuple(range(classes))
        return cls(**{**given, "promise": promise_of(solution), **fields})

    @property
    def pos_label(self) -> Any:
        """The better of two labels; None if there are more, or none."""
        return self.labels[1] if len(self.labels) == 2 else None

    @property
    def needs_groups(self) -> bool:
        """Whether groups differ in their law: else no sensitive column is asked for."""
        return self.law is not None and self.groups is not None and bool(self.law.uses_groups)

    def locate(self, groups: Any) -> tuple[Array, list[dict[str, float]]] | None:
        """The place of each record's group, see `Vocabulary.laws`; None if groups do not matter."""
        if not self.needs_groups:
            return None
        if groups is None:
            raise DeclarationError("sensitive_features is None; the thresholds differ by group")
        assert self.groups is not None
        return self.groups.laws(groups)

    def answer(self, table: Any, places: tuple[Array, list[dict[str, float]]] | None) -> Array:
        """The probability of the second label, shape ``(n,)``, or of each, ``(n, C)``; or the number.

        Parameters
        ----------
        table : Any
            Features that `Schema.read` gave.
        places : tuple or None
            Of the groups, from `locate`.
        """
        plain = table.to_numpy(dtype=float) if hasattr(table, "iloc") and not self.raw else table
        if self.front is None:
            found = np.asarray(plain[:, 0])
        else:
            ask = self.front.probability if hasattr(self.front, "probability") else self.front.predict
            found = np.asarray(ask(plain))
        if self.law is None:
            return found
        if places is None:
            return self._lawful(found, [self.law.groups[0]] * len(found))
        numbers, laws = places
        if len(numbers) != len(found):
            raise DeclarationError(f"sensitive_features has {len(numbers)} entries for {len(found)} records")
        rows = np.repeat(np.arange(len(found)), np.array([len(law) for law in laws], dtype=int)[numbers])
        known = [pair for k in numbers.tolist() for pair in laws[k].items()]
        part = self._lawful(found[rows], [name for name, _ in known])
        chance = np.zeros((len(found), *part.shape[1:]))
        np.add.at(chance, rows, (np.array([share for _, share in known]) * part.T).T)
        return chance

    def _lawful(self, found: Array, names: Any) -> Array:
        channel = getattr(self.law, "channel", None)
        return np.asarray(self.law.probability(found, channel.observe(names) if channel else names))

    def numbers(self, table: Any, places: tuple[Array, list[dict[str, float]]] | None) -> Array:
        """The number in [0, 1) of each record, from its entries in a table, and its group if that matters."""
        found = row_numbers(table, self.salt)
        if places is None:
            return found
        order = {name: float(k) for k, name in enumerate(self.law.groups)}
        codes = [order[next(iter(law))] if len(law) == 1 else -1.0 for law in places[1]]
        return row_numbers(np.column_stack([found, np.array(codes)[places[0]]]), self.salt)

    def _read(self, X: Any, groups: Any) -> tuple[Any, Any]:
        """The features and the groups, which may be columns of X that are no features."""
        X, groups = as_frame(X), as_frame(groups)
        columns = () if self.groups is None else self.groups.columns
        check_label_order("Policy", {"X": X, "sensitive_features": groups})
        if self.needs_groups and groups is None and hasattr(X, "columns") and set(columns) <= set(X.columns):
            groups = X[list(columns)]
        extra = [name for name in columns if name not in self.schema.names]
        if isinstance(X, Mapping):
            if self.needs_groups and groups is None and set(columns) <= set(X):
                groups = np.array([[X[name] for name in columns]], dtype=object)
            X = {name: value for name, value in X.items() if name not in extra}
        if hasattr(X, "columns"):
            X = X.drop(columns=[name for name in extra if name in X.columns])
            if not self.schema.names and len(self.schema.kinds) == X.shape[1] == 1:
                X = X.to_numpy()
        return self.schema.read(X), groups

    def predict_proba(self, X: Any, sensitive_features: Any = None) -> Array:
        """The probability of each label for each row, shape ``(n, C)``.

        Parameters
        ----------
        X : Any
            A frame, aligned by name, or a mapping with one record, if the policy was learnt from a frame;
            else an array.
        sensitive_features : Any, optional
            The group of each record, or a frame of several sensitive columns. Needed only if groups differ
            in their law and X has no columns of their names.

        Raises
        ------
        DeclarationError
            For a column that is missing, unknown or of another kind, for a group that is unknown, and for
            an array in place of a frame.
        """
        if not self.labels:
            raise DeclarationError("the policy predicts numbers, so it has no probabilities; use predict")
        table, groups = self._read(X, sensitive_features)
        chance = self.answer(table, self.locate(groups))
        return chance if chance.ndim == 2 else np.column_stack([1.0 - chance, chance])

    def predict(self, X: Any, sensitive_features: Any = None) -> Array:
        """The label of each row; the lottery draws from the row and the salt, so that it repeats itself.

        Takes and refuses the same as `predict_proba`. The answer is a number if there are no labels.
        """
        table, groups = self._read(X, sensitive_features)
        places = self.locate(groups)
        found = self.answer(table, places)
        if not self.labels:
            return found
        return np.array(self.labels)[chosen_classes(found, self.numbers(table, places))]

    def tested(
        self,
        X: Any,
        y: Any,
        sensitive_features: Any,
        *,
        metrics: tuple[Rate, ...] = (SELECTION, FALSE_POSITIVE, TRUE_POSITIVE, ERROR),
        confidence: float = 0.95,
    ) -> Self:
        """The same policy, whose `promise` holds the result of a test on fresh records, also in its file.

        Parameters
        ----------
        X, y : array_like
            Records that the fit has not seen; two labels.
        sensitive_features : array_like
            The group of each record, or a frame of several sensitive columns, which are crossed.
        metrics : tuple of Rate
            Whose differences between groups to test.
        confidence : float, default 0.95
            The probability that all intervals hold together.

        Returns
        -------
        Policy
            With ``promise["fresh"]``: the confidence, the number of records, and for each rate the largest
            difference between two groups and the ends of its interval in the population, by Clopper and
            Pearson (1934) for the labels that `predict` gives.

        Examples
        --------
        >>> from forcopt.learning import Threshold
        >>> policy = Policy(Threshold(0, 0.5, True), Schema((), ("number",)), (0, 1))
        >>> tested = policy.tested([[0.0], [1.0]] * 50, [0, 1] * 50, ["a"] * 50 + ["b"] * 50)
        >>> [round(v, 3) for v in tested.promise["fresh"]["gap"]["selection rate"]]
        [0.0, 0.0, 0.389]
        """
        drawn = self.predict(X, sensitive_features if self.needs_groups else None)
        report = GroupReport.from_predictions(
            drawn, sensitive_features, y, metrics=metrics, positive=self.pos_label, confidence=confidence
        )
        table = report.summary().set_index("metric")[["difference", "difference_low", "difference_high"]]
        gap = {name: [float(v) for v in row] for name, row in table.T.to_dict("list").items()}
        fresh = {"confidence": confidence, "records": len(drawn), "gap": gap}
        return replace(self, promise={**self.promise, "fresh": fresh})

    def plot(self, *where: Any, **options: Any) -> Any:
        """Draw the law of the groups, or else the rule on features."""
        return (self.law if self.law is not None else self.front).plot(*where, **options)

    def to_dict(self) -> dict[str, Any]:
        """The whole policy as plain data; what has no plain form is a pickle in it, with a warning."""
        groups = self.groups
        return {
            "front": _part(self.front),
            "schema": {"names": list(self.schema.names), "kinds": _lists(self.schema.kinds)},
            "labels": list(self.labels),
            "law": _part(self.law),
            "groups": None if groups is None
            else {"columns": list(groups.columns), "known": _lists(groups.known), "unknown": groups.unknown},
            "raw": self.raw,
            "salt": self.salt,
            "promise": self.promise,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The policy of plain data."""
        schema, groups = data["schema"], data["groups"]
        kinds = tuple(tuple(k) if isinstance(k, list) else k for k in schema["kinds"])
        known = groups and tuple((tuple(row), mass) for row, mass in groups["known"])
        return cls(
            _part_from(data["front"]),
            Schema(tuple(schema["names"]), kinds),
            tuple(data["labels"]),
            _part_from(data["law"]),
            groups and Vocabulary(tuple(groups["columns"]), known, groups["unknown"]),
            data["raw"],
            data["salt"],
            data["promise"],
        )

    def __repr__(self) -> str:
        names = self.schema.names or [f"{len(self.schema.kinds)} columns"]
        lines = [f"policy from {', '.join(names)} to {', '.join(map(str, self.labels)) or 'a number'}"]
        if self.needs_groups and self.groups is not None:
            lines.append(f"by {', '.join(self.groups.columns)}; an unknown group: {self.groups.unknown}")
        if "gap" in self.promise:
            gap = ", ".join(f"{name} {value:.4g}" for name, value in self.promise["gap"].items())
            lines.append(f"{self.promise['constraint']}; on the training records {gap or 'unknown'}")
        for name, (found, low, high) in self.promise.get("fresh", {"gap": {}})["gap"].items():
            lines.append(f"{name}: {found:.4g} on fresh records, {low:.4g} to {high:.4g} among all people")
        return "\n".join([*lines, *(repr(part) for part in (self.front, self.law) if part is not None)])


def promise_of(solution: Solution) -> dict[str, Any]:
    """The constraint, and what the decision keeps of it on the training records; see `Policy`."""
    assessed = None if solution.private else solution.evaluation
    return {
        "constraint": repr(getattr(solution.problem, "constraint", None)),
        "status": str(solution.status),
        "error": None if assessed is None else float(assessed.objective),
        "gap": {} if assessed is None
        else {k: float(v) for k, v in assessed.metrics.items() if " of " not in k and np.isfinite(v)},
        "violations": {} if assessed is None else {k: float(v) for k, v in assessed.violations.items()},
    }  # fmt: skip


def _lists(value: Any) -> Any:
    return [_lists(v) for v in value] if isinstance(value, tuple | list) else value


def _part(part: Any) -> dict[str, Any] | None:
    """A part of a policy as plain data, with its class: its package below `forcopt`, and its name."""
    if part is None:
        return None
    if not hasattr(part, "to_dict"):
        raise DeclarationError(f"a {type(part).__name__} has no plain form, so it has no file")
    package = type(part).__module__.rpartition(".")[0].partition(".")[2]
    return {"kind": f"{package}.{type(part).__name__}", **part.to_dict()}


def _part_from(data: dict[str, Any] | None) -> Any:
    if data is None:
        return None
    kind = str(data["kind"])
    room, _, name = kind.rpartition(".")
    made = re.fullmatch(r"(models\.)?\w+", room) and getattr(import_module(f"forcopt.{room}"), name, None)
    if not (isinstance(made, type) and hasattr(made, "from_dict")):
        raise DeclarationError(f"a part has kind {kind!r}, which is no class of policies")
    return made.from_dict({name: value for name, value in data.items() if name != "kind"})
