from abc import abstractmethod

from pydantic import Field

from forcopt.declaration import Declared, Numbers


class Figure(Declared):
    """A shape."""

    @property
    @abstractmethod
    def area(self) -> float: ...


class Disc(Figure):
    radius: float = Field(default=1.0, gt=0)

    @property
    def area(self) -> float:
        return 3.14 * self.radius**2


class Union(Figure):
    parts: tuple[Figure, ...] = Field(min_length=1)

    @property
    def area(self) -> float:
        return sum(part.area for part in self.parts)


class Ink(Declared):
    name: str = "black"


class Drawing(Declared):
    """Figures in a colour.

    More about it.
    """

    figures: dict[str, Figure]
    ink: Ink = Ink()
    frame: Numbers | None = None
    parent: "Drawing | None" = None


def test_a_schema_has_a_branch_for_each_subclass_that_can_be_made():
    schema = Drawing.file_schema()
    assert schema["required"] == ["type", "figures"] and schema["properties"]["type"] == {"const": "Drawing"}
    assert schema["description"] == "Figures in a colour."
    assert schema["properties"]["figures"]["additionalProperties"] == {"$ref": "#/$defs/Figure"}
    assert set(schema["$defs"]) == {"Figure", "Ink", "Drawing"}
    disc, union = schema["$defs"]["Figure"]["anyOf"]
    assert disc["properties"]["type"] == {"const": "Disc"} and disc["required"] == ["type"]
    assert disc["properties"]["radius"]["exclusiveMinimum"] == 0
    assert union["required"] == ["type", "parts"]
    assert union["properties"]["parts"]["items"] == {"$ref": "#/$defs/Figure"}
    assert union["properties"]["parts"]["minItems"] == 1


def test_a_class_without_subclasses_needs_no_name_within_another():
    definitions = Drawing.file_schema()["$defs"]
    assert "required" not in definitions["Ink"]
    assert definitions["Ink"]["properties"]["type"] == {"const": "Ink"}
    assert {"$ref": "#/$defs/Drawing"} in definitions["Drawing"]["properties"]["parent"]["anyOf"]


def test_what_is_written_fits_the_schema():
    drawing = Drawing(figures={"a": Union(parts=(Disc(2.0), Disc()))}, parent=Drawing(figures={}))
    plain, schema = drawing.to_dict(), Drawing.file_schema()
    assert set(plain) == set(schema["properties"])
    branches = {b["properties"]["type"]["const"]: b for b in schema["$defs"]["Figure"]["anyOf"]}
    assert set(plain["figures"]["a"]) == set(branches["Union"]["properties"])
    assert Drawing.from_dict(plain) == drawing


def test_classes_of_one_name_with_different_bases_do_not_hide_each_other():
    from forcopt.models.districting.side_constraints import Fixed, SideConstraint

    class Cloth(Declared):
        """Another base."""

    type("Fixed", (Cloth,), {"__module__": __name__})  # defined later than the side constraint
    assert SideConstraint.from_dict(Fixed(3, 1).to_dict()) == Fixed(3, 1)
