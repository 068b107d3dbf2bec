import copy
import inspect
import pickle
import re
from abc import abstractmethod
from functools import cached_property

import numpy as np
import pandas as pd
import pytest
from pydantic import Field, model_validator

import forcopt as fo
from forcopt.declaration import Declared, Integers, Numbers
from forcopt.problem.registry import problem_classes


class Point(Declared):
    x: float = Field(ge=0)
    y: float = 0.0


class Cloud(Declared):
    points: tuple[Point, ...] = ()
    centre: Point = Point(0)
    weights: Numbers = np.zeros(0)
    counts: Integers = np.zeros(0, dtype=int)
    names: dict[str, float] = Field(default_factory=dict)
    size: int | None = None

    @model_validator(mode="after")
    def _count(self):
        if self.size is None:
            self.__dict__["size"] = len(self.points)
        return self

    @cached_property
    def total(self):
        return sum(p.x for p in self.points)


COPIES = {
    "replace": lambda c, **f: c.replace(**f),
    "__replace__": lambda c, **f: c.__replace__(**f),
    "model_copy": lambda c, **f: c.model_copy(update=f),
    "deep model_copy": lambda c, **f: c.model_copy(update=f, deep=True),
    "copy": lambda c, **f: c.copy(update=f),
}


@pytest.mark.parametrize("way", COPIES)
def test_a_copy_has_no_cache_of_the_original(way):
    cloud = Cloud(points=(Point(1), Point(2)))
    cloud.__dict__["_by_hand"] = cloud.total
    changed = COPIES[way](cloud, points=(Point(5),))
    assert changed.total == 5
    assert "_by_hand" not in changed.__dict__
    same = COPIES[way](cloud)
    assert same == cloud
    assert same is not cloud
    assert not {"total", "_by_hand"} & set(same.__dict__)


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))])
def test_copies_and_pickles_carry_the_fields_kinds(way):
    cloud = Cloud(points=(Point(1), Point(2)), weights=[1, 2.5])
    hash(cloud)
    assert cloud.total == 3
    made = way(cloud)
    assert made == cloud
    assert set(made.__dict__) == set(Cloud.model_fields)
    assert made.model_fields_set == {"points", "weights"}
    assert made.replace(points=()).size == 0


def test_a_deep_copy_shares_nothing_and_keeps_cycles():
    cloud = Cloud(names={"a": 1.0})
    first, second = copy.deepcopy([cloud, cloud])
    assert first is second
    assert first.names is not cloud.names


def test_a_replaced_field_is_validated():
    with pytest.raises(fo.DeclarationError, match="Point: x is -1"):
        Point(1).replace(x=-1)
    with pytest.raises(fo.DeclarationError, match="Point: x is -1"):
        Point(1).model_copy(update={"x": -1})
    with pytest.raises(ValueError, match="unknown field 'z' of Point"):
        Point(1).replace(z=1)


def test_a_field_cannot_be_assigned():
    with pytest.raises(fo.DeclarationError, match=r"Point is frozen: x cannot be set; replace\(x=...\)"):
        Point(1).x = 2


def test_numpy_scalars_are_plain_numbers_and_texts():
    made = Cloud(size=np.int64(3), centre=Point(np.float32(1.5)))
    assert type(made.size) is int and type(made.centre.x) is float


def test_labels_in_two_orders_are_refused():
    rates, weights = pd.Series([0.1, 0.2], ["a", "b"]), pd.Series([5.0, 6.0], ["b", "a"])
    with pytest.raises(fo.DeclarationError, match="weights has the labels of counts in another order"):
        Cloud(counts=rates * 10, weights=weights)
    by_label = Cloud(counts=rates * 10, weights=weights.loc[rates.index])
    assert by_label.weights.tolist() == [6, 5]
    assert Cloud(counts=rates * 10, weights=weights.to_numpy()).weights.tolist() == [5, 6]
    assert Cloud(counts=rates * 10, weights=weights.reset_index(drop=True)).weights.tolist() == [5, 6]


def test_a_derived_field_is_derived_anew():
    cloud = Cloud(points=(Point(1), Point(2)))
    assert cloud.size == 2
    assert cloud.replace(points=(Point(1),)).size == 1
    assert Cloud(points=(), size=7).replace(points=(Point(1),)).size == 7


def test_a_name_with_dots_is_a_field_of_a_field():
    cloud = Cloud(centre=Point(1, 2))
    assert cloud.replace(**{"centre.x": 5}).centre == Point(5, 2)
    assert cloud.replace(**{"centre.x": 5, "centre.y": 6}).centre == Point(5, 6)
    assert cloud.replace(**{"centre": Point(3, 3), "centre.x": 5}).centre == Point(5, 3)
    with pytest.raises(fo.DeclarationError, match=r"size.x: size is 0, which has no fields"):
        cloud.replace(**{"size.x": 5})
    with pytest.raises(ValueError, match="unknown field 'z' of Point"):
        cloud.replace(**{"centre.z": 5})


def test_equal_declarations_have_equal_hashes():
    def make(sign):
        names = {"a": 1.0, "b": sign * 0.0} if sign > 0 else {"b": -0.0, "a": 1.0}
        return Cloud((Point(1), Point(2.0)), weights=[sign * 0.0, 1], counts=[1.0, 2], names=names)

    assert make(1) == make(-1)
    assert hash(make(1)) == hash(make(-1))
    assert len({make(1), make(-1), make(1).replace(counts=[1, 3])}) == 2
    assert hash(Point(1)) != hash(Cloud())


class Shape(Declared):
    @abstractmethod
    def area(self): ...


class Square(Shape):
    side: float = 1.0

    def area(self):
        return self.side**2


# A second hierarchy with the same bare names, defined later.
Other = type("Shape", (Declared,), {"__module__": __name__, "area": abstractmethod(lambda self: 0)})
Triangle = type("Triangle", (Other,), {"__module__": __name__, "area": lambda self: 0})


class Room(Declared):
    floor: Shape


class House(Declared):
    plot: Shape
    roof: Other


def test_classes_of_one_name_are_told_apart_in_messages():
    with pytest.raises(fo.DeclarationError, match=r"Room: floor is 3; it must be one of Square$"):
        Room(3)
    with pytest.raises(fo.DeclarationError, match=r"House: roof is Square.*; it must be one of Triangle$"):
        House(plot=Square(), roof=Square())


def test_classes_of_one_name_are_told_apart_in_schemas():
    def kinds(schema, field):
        name = schema["properties"][field]["$ref"].removeprefix("#/$defs/")
        found = schema["$defs"][name]
        return [k["properties"]["type"]["const"] for k in found.get("anyOf", [found])]

    assert kinds(Room.file_schema(), "floor") == ["Square"]
    assert kinds(House.file_schema(), "plot") == ["Square"]
    assert kinds(House.file_schema(), "roof") == ["Triangle"]
    assert Room.from_dict({"type": "Room", "floor": {"type": "Square", "side": 2}}).floor == Square(2)
    with pytest.raises(fo.DeclarationError, match="unknown type 'Triangle'; known: Square"):
        Room.from_dict({"floor": {"type": "Triangle"}})


def test_arguments_are_named_in_errors():
    with pytest.raises(fo.DeclarationError, match="Point takes at most 2 arguments: x, y"):
        Point(1, 2, 3)
    with pytest.raises(fo.DeclarationError, match="Point: x is given twice"):
        Point(1, x=2)
    with pytest.raises(fo.DeclarationError, match="Point: x is missing"):
        Point()
    with pytest.raises(fo.DeclarationError, match=r"the array\[1\] is 0.5; it must be an integer"):
        Cloud(counts=[1, 0.5])
    with pytest.raises(fo.UnknownNameError, match="did you mean 'centre'"):
        Cloud(center=Point(1))


def test_arrays_are_read_kinds():
    with pytest.raises(ValueError, match="read-only"):
        Cloud(weights=[1, 2]).weights[0] = 3


def test_labels_in_another_order_than_the_names_are_refused():
    class Named(Declared):
        values: Numbers
        names: tuple[str, ...] = ()

    values = pd.Series([1.0, 2.0], ["a", "b"])
    assert Named(values, names=("a", "b")).values.tolist() == [1, 2]
    with pytest.raises(fo.DeclarationError, match=r"Named: values has the labels 'a', ... in another order"):
        Named(values, names=("b", "a"))
    assert Named(values.to_numpy(), names=("b", "a")).values.tolist() == [1, 2]
    assert Named(values, names=("north", "south")).names == ("north", "south")


def test_series_within_a_mapping_are_compared_by_their_labels():
    class Columns(Declared):
        values: Numbers
        others: dict[str, Numbers]

    values, other = pd.Series([1.0, 2.0], ["a", "b"]), pd.Series([3.0, 4.0], ["b", "a"])
    with pytest.raises(fo.DeclarationError, match=r"others\.x has the labels of values in another order"):
        Columns(values, {"x": other})
    assert Columns(values, {"x": other.loc[values.index]}).others["x"].tolist() == [4, 3]


def test_messages_name_public_classes_as_they_are_spelled():
    from forcopt.models import FairRanking
    from forcopt.models.fair_auctions import OrderedValueStability

    with pytest.raises(fo.DeclarationError, match=r"f is 0; PowerStability: ell is 0"):
        OrderedValueStability(0)
    with pytest.raises(fo.DeclarationError, match="must be one of RankingNotion, ExposureParity") as error:
        FairRanking([1.0, 2.0], positions=1, constraint="parity")
    assert "_OfGroups" not in str(error.value)


def test_signatures_have_plain_types():
    for name, cls in problem_classes().items():
        text = str(inspect.signature(cls))
        assert not re.search("Validator|FieldInfo|Annotated", text), (name, text)
    districting = inspect.signature(problem_classes()["Districting"])
    assert list(districting.parameters)[:2] == ["graph", "districts"]
    assert districting.parameters["tolerance"].default is None
    assert districting.parameters["rules"].kind is inspect.Parameter.KEYWORD_ONLY
