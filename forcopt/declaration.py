"""Frozen, validated declarations that know how to go to a file and come back.

Problems, fairness notions, privacy mechanisms and side constraints are all `Declared`: arguments by keyword
or position, checked at the door by pydantic, immutable afterwards, equal if their fields are.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import isabstract
from typing import Annotated, Any, ClassVar, Self, dataclass_transform

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PlainSerializer,
    PlainValidator,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import GenerateJsonSchema

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError, unknown

__all__ = ["Declared", "Integers", "Numbers"]


def _numbers(value: Any) -> Array:
    out = as_numbers(value, "the array")
    out.flags.writeable = False
    return out


def _integers(value: Any) -> Array:
    numbers = as_numbers(value, "the array")
    if numbers.size and (numbers != np.round(numbers)).any():
        at = int(np.argmax(numbers != np.round(numbers)))
        entry = [int(i) for i in np.unravel_index(at, numbers.shape)]
        raise DeclarationError(f"the array{entry} is {numbers.flat[at]:g}; it must be an integer")
    out = numbers.astype(np.int64)
    out.flags.writeable = False
    return out


def _plain(values: Array) -> Any:
    return values.tolist()


_ARRAY_SCHEMA = {"type": "array", "items": {}, "description": "numbers, nested by axis"}

Numbers = Annotated[
    np.ndarray[Any, np.dtype[np.float64]],
    PlainValidator(_numbers),
    PlainSerializer(_plain),
    WithJsonSchema(_ARRAY_SCHEMA),
]
"""A field of finite floats of any shape, read-only; anything numpy reads is accepted."""

Integers = Annotated[
    np.ndarray[Any, np.dtype[np.int64]],
    PlainValidator(_integers),
    PlainSerializer(_plain),
    WithJsonSchema(_ARRAY_SCHEMA),
]
"""A field of integers of any shape, read-only; floats are accepted if they are whole."""


@dataclass_transform(field_specifiers=(Field,))  # for type checkers: arguments also go by position
class Declared(BaseModel):
    """The base of everything that is declared.

    Subclasses state their fields; a file names the class under the key `tag`.

    Raises
    ------
    DeclarationError
        On construction, naming the field, the value and the rule.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    tag: ClassVar[str] = "type"
    _classes: ClassVar[list[type[Declared]]] = []

    def __init__(self, *args: Any, **fields: Any) -> None:
        names = list(type(self).model_fields)
        if len(args) > len(names):
            raise DeclarationError(
                f"{type(self).__name__} takes at most {len(names)} arguments: {', '.join(names)}"
            )
        for name, value in zip(names, args, strict=False):
            if name in fields:
                raise DeclarationError(f"{type(self).__name__}: {name} is given twice")
            fields[name] = value
        unknown_names = [name for name in fields if name not in names]
        if unknown_names:
            raise unknown(f"field of {type(self).__name__}", unknown_names[0], names)
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise DeclarationError(_explain(type(self).__name__, error)) from None

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        Declared._classes.append(cls)

    @model_validator(mode="wrap")
    @classmethod
    def _from_plain(cls, value: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        """Let a field of a base class be given as a dict that names the subclass, as in a file."""
        if isinstance(value, Mapping) and (cls.tag in value or isabstract(cls)):
            return cls.from_dict(value)
        return validate(value)

    @classmethod
    def _kinds(cls) -> list[type[Declared]]:
        """The classes that may stand where this one is asked for. Names need not differ between bases."""
        return [c for c in Declared._classes if issubclass(c, cls) and not isabstract(c)]

    @staticmethod
    def _named(name: str) -> type[Declared] | None:
        """The last class of this name."""
        return next((c for c in reversed(Declared._classes) if c.__name__ == name), None)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Make a declaration from plain data whose key `tag` names the class.

        Raises
        ------
        UnknownNameError
            For a class that does not exist or is not one of these.
        """
        known = {c.__name__: c for c in cls._kinds()}
        if cls.tag not in data and isabstract(cls):
            raise DeclarationError(f"the key {cls.tag!r} is missing; it must name one of {', '.join(known)}")
        name = str(data.get(cls.tag, cls.__name__))
        if name not in known:
            raise unknown(cls.tag, name, list(known))
        made = known[name](**{k: v for k, v in data.items() if k != cls.tag})
        assert isinstance(made, cls)
        return made

    @classmethod
    def file_schema(cls) -> dict[str, Any]:
        """The JSON schema of a file that declares this class; a subclass may stand wherever its base may."""
        top, todo = cls._own_schema()
        definitions: dict[str, Any] = {}
        while todo:
            name = todo.pop()
            if name in definitions:
                continue
            base = cls._named(name)
            assert base is not None
            kinds = base._kinds()
            schemas = [c._own_schema() for c in kinds]
            todo = todo.union(*(needed for _, needed in schemas))
            if kinds == [base]:
                definitions[name] = schemas[0][0]
            else:  # then a file has to say which
                own = [{**s, "required": [base.tag, *s.get("required", [])]} for s, _ in schemas]
                definitions[name] = {"anyOf": own}
        top["required"] = [cls.tag, *top.get("required", [])]
        return {**top, "$defs": {**top.get("$defs", {}), **definitions}} if definitions else top

    @classmethod
    def _own_schema(cls) -> tuple[dict[str, Any], set[str]]:
        """The schema of this class alone, and the declared classes that it refers to by name."""
        schema = cls.model_json_schema(schema_generator=_OneClass)
        named = {f"#/$defs/{name}": item for name, item in schema.pop("$defs", {}).items()}
        if "$ref" in schema:  # a class that refers to itself
            own = schema["$ref"]
            schema, named[own] = named[own], {"$declared": cls.__name__}
        needed: set[str] = set()

        def link(node: Any) -> Any:
            if isinstance(node, list):
                return [link(item) for item in node]
            if not isinstance(node, dict):
                return node
            name = node.get("$declared") or named.get(node.get("$ref", ""), {}).get("$declared")
            if name is None:
                return {key: link(item) for key, item in node.items()}
            needed.add(name)
            return {**{k: v for k, v in node.items() if k != "$declared"}, "$ref": f"#/$defs/{name}"}

        out = link(schema)
        out["properties"] = {cls.tag: {"const": cls.__name__}, **out.get("properties", {})}
        if "description" in out:
            out["description"] = " ".join(out["description"].partition("\n\n")[0].split())
        others = {k.rpartition("/")[2]: link(v) for k, v in named.items() if "$declared" not in v}
        return out | ({"$defs": others} if others else {}), needed

    def to_dict(self) -> dict[str, Any]:
        """Give the declaration as plain data, ready for JSON."""
        nested = {n: v for n in type(self).model_fields if _holds_declared(v := getattr(self, n))}
        flat = self.model_dump(mode="json", exclude=set(nested))
        fields = {n: _nested(nested[n]) if n in nested else flat[n] for n in type(self).model_fields}
        return {self.tag: type(self).__name__, **fields}

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Declared) and self.to_dict() == other.to_dict()

    __hash__ = object.__hash__


class _OneClass(GenerateJsonSchema):
    """Writes the schema of one class, and a mark in place of each declared class within it."""

    inside = False

    def model_schema(self, schema: Any) -> dict[str, Any]:
        if self.inside and issubclass(schema["cls"], Declared):
            return {"$declared": schema["cls"].__name__}
        self.inside = True
        return super().model_schema(schema)


def _holds_declared(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_holds_declared, value.values()))
    return isinstance(value, Declared) or (
        isinstance(value, tuple | list) and any(map(_holds_declared, value))
    )


def _nested(value: Any) -> Any:
    if isinstance(value, Declared):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {key: _nested(item) for key, item in value.items()}
    return [_nested(item) for item in value] if isinstance(value, tuple | list) else value


def _explain(name: str, error: ValidationError) -> str:
    """Say which field has which value and which rule it breaks."""
    lines = []
    for item in error.errors():
        field = ".".join(str(part) for part in item["loc"] if not str(part).startswith("function-"))
        message = item["msg"].removeprefix("Value error, ")
        if item["type"] == "model_type" and (base := Declared._named(item["ctx"]["class_name"])):
            message = f"it must be one of {', '.join(kind.__name__ for kind in base._kinds())}"
        given = item["input"]
        if item["type"] == "missing":
            lines.append(f"{name}: {field} is missing")
        elif isinstance(given, np.ndarray | dict | list) or not field:
            lines.append(f"{name}: {field + ': ' if field else ''}{message}")
        else:
            lines.append(f"{name}: {field} is {_short(given)}; {message[:1].lower()}{message[1:]}")
    return "; ".join(lines)


def _short(value: Any) -> str:
    """The value, or what it is if that takes several lines, as a frame of pandas does."""
    text = repr(value)
    if "\n" not in text:
        return text
    shape = getattr(value, "shape", None)
    return f"a {type(value).__name__}" + ("" if shape is None else f" of shape {shape}")
