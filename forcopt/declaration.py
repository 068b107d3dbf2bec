"""Frozen, validated declarations that can be written to a file and read back.

Problems, fairness notions, privacy mechanisms and side constraints are all `Declared`. They take arguments by
keyword or position, pydantic validates these, and the object is immutable afterwards. Two declarations are
equal if their class and their fields are equal; then their hashes are equal too.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import reduce
from inspect import isabstract
from operator import or_
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    Union,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
)

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ModelWrapValidatorHandler,
    PlainSerializer,
    PlainValidator,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import CoreSchema
from pydantic_core.core_schema import no_info_before_validator_function

from forcopt.arrays import Array, as_numbers, check_label_order, describe_entry, is_missing, refuse_entry
from forcopt.errors import DeclarationError, check_known

_LARGEST = 2**53
"""Larger whole numbers are not told apart by floats."""


def _numbers(value: Any) -> Array:
    out = as_numbers(value, "the array")
    out.flags.writeable = False
    return out


def _integers(value: Any) -> Array:
    numbers = as_numbers(value, "the array")
    if numbers.size and (numbers != np.round(numbers)).any():
        at = int(np.argmax(numbers != np.round(numbers)))
        entry = describe_entry(numbers.shape, at)
        raise DeclarationError(f"the array{entry} is {numbers.flat[at]:g}; it must be an integer")
    if numbers.size and np.abs(numbers).max() > _LARGEST:
        at = int(np.abs(numbers).argmax())
        refuse_entry(numbers.shape, at, numbers.flat[at], "the array", f"at most {_LARGEST:g} in size")
    out = numbers.astype(np.int64)
    out.flags.writeable = False
    return out


def _pairs(values: Array) -> Array:
    if values.size and (values.ndim != 2 or values.shape[1] != 2):
        raise DeclarationError(f"the shape is {values.shape}; it must be (edges, 2)")
    return values.reshape(-1, 2)


def _name(value: Any) -> str:
    if is_missing(value):
        raise DeclarationError("a name is missing; missing values must be dropped or filled before")
    return str(value)


def _a_number(value: Any) -> Any:
    if isinstance(value, str | bytes | bytearray):
        raise DeclarationError("it must be a number, not text")
    if isinstance(value, float) and value != value:
        raise DeclarationError("it must be a number")
    return value


def _a_whole_number(value: Any) -> Any:
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise DeclarationError(f"it must be at most {_LARGEST:g} in size")
    return _a_number(value)


def _check_numbers(schema: Any) -> Any:
    """Refuse text and NaN wherever a core schema reads a number; pydantic would convert ``"0.1"``."""
    if type(schema) in (list, tuple):
        return type(schema)(map(_check_numbers, schema))
    if not isinstance(schema, dict):
        return schema
    check = {"int": _a_whole_number, "float": _a_number}.get(str(schema.get("type")))
    if check is not None:
        return no_info_before_validator_function(check, cast("CoreSchema", schema))
    return {key: _check_numbers(part) for key, part in schema.items()}


def _plain(values: Array) -> Any:
    return values.tolist()


_ARRAY_SCHEMA = {"type": ["array", "number"], "items": {}, "description": "numbers, nested by axis"}

Numbers = Annotated[
    np.ndarray[Any, np.dtype[np.float64]],
    PlainValidator(_numbers),
    PlainSerializer(_plain),
    WithJsonSchema(_ARRAY_SCHEMA),
]
"""A field of finite floats of any shape, read-only; it accepts whatever numpy reads as numbers."""

Integers = Annotated[
    np.ndarray[Any, np.dtype[np.int64]],
    PlainValidator(_integers),
    PlainSerializer(_plain),
    WithJsonSchema(_ARRAY_SCHEMA),
]
"""A field of integers of any shape, read-only; it accepts floats with integer values."""

Pairs = Annotated[Integers, AfterValidator(_pairs)]
"""A field of pairs of integers, shape ``(edges, 2)``."""

Name = Annotated[str, BeforeValidator(_name)]
"""A field of text that accepts other values, such as numbers, but no missing ones."""


if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)


class _Named(ModelMetaclass):
    """Leaves pydantic's own names out of `dir`, so that tab completion and `help` show ours."""

    def __dir__(cls) -> list[str]:
        return [n for n in super().__dir__() if _is_ours(cls, n) and _home(cls, n) is not BaseModel]


def _home(cls: type, name: str) -> type | None:
    """The class that defines a name."""
    return next((c for c in cls.__mro__ if name in vars(c)), None)


def _is_ours(cls: type, name: str) -> bool:
    """Whether a class of ours defines a name, or Python itself gives it to every object."""
    if hasattr(object, name):
        return True
    home = _home(cls, name)
    return home is None or not (home.__module__.startswith("pydantic") or name.startswith(_PYDANTIC))


_PYDANTIC = ("model_", "__pydantic_", "__class_vars__", "__private_attributes__", "__signature__", "_abc_")


def _signature(fields: Mapping[str, FieldInfo]) -> inspect.Signature:
    """The arguments of a declaration with plain types, without their validators."""
    found = []
    for name, field in fields.items():
        kind = inspect.Parameter.KEYWORD_ONLY if field.kw_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        default = (
            inspect.Parameter.empty if field.is_required() else field.get_default(call_default_factory=True)
        )
        found.append(inspect.Parameter(name, kind, default=default, annotation=_plain_type(field.annotation)))
    ordered = sorted(found, key=lambda parameter: parameter.kind)
    try:
        return inspect.Signature(ordered)
    except ValueError:  # a required field follows an optional one
        return inspect.Signature([p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in ordered])


def _plain_type(kind: Any) -> Any:
    """A type without what `Annotated` adds to it and its parts."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _plain_type(parts[0])
    if origin is None or origin is Literal or origin is np.ndarray:
        return np.ndarray if origin is np.ndarray else kind
    plain = tuple(_plain_type(part) for part in parts)
    return reduce(or_, plain) if origin in (Union, UnionType) else origin[plain]


@dataclass_transform(field_specifiers=(Field,))  # for type checkers: arguments also go by position
class Declared(BaseModel, metaclass=_Named):
    """The base of everything that is declared.

    Subclasses state their fields. A file names the class under the key `tag`.

    Raises
    ------
    DeclarationError
        On construction, naming the field, the value and the rule.

    Notes
    -----
    A declaration never changes, so its properties may be cached in its ``__dict__``
    (`functools.cached_property`). Every copy starts without caches: `replace`, `model_copy`, `copy.copy`,
    `copy.deepcopy`, `copy.replace` (Python 3.13) and pickle carry the fields only.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    tag: ClassVar[str] = "type"
    _classes: ClassVar[list[type[Declared]]] = []

    def __init__(self, *args: Any, **fields: Any) -> None:
        """Validate the fields, given by position or by name."""
        names = list(type(self).model_fields)
        placed = [name for name, field in type(self).model_fields.items() if not field.kw_only]
        if len(args) > len(placed):
            raise DeclarationError(
                f"{type(self).__name__} takes at most {len(placed)} arguments: {', '.join(placed)}"
            )
        for name, value in zip(placed, args, strict=False):
            if name in fields:
                raise DeclarationError(f"{type(self).__name__}: {name} is given twice")
            fields[name] = value
        for name in fields:
            check_known(f"field of {type(self).__name__}", name, names)
        check_label_order(type(self).__name__, fields)
        plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in fields.items()}
        try:
            super().__init__(**plain)
        except ValidationError as error:
            raise DeclarationError(_explain(type(self), error)) from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name in type(self).model_fields:
            raise DeclarationError(
                f"{type(self).__name__} is frozen: {name} cannot be set; replace({name}=...) makes another"
            )
        super().__setattr__(name, value)

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        Declared._classes.append(cls)
        if cls.__init__ is Declared.__init__:
            cls.__signature__ = _signature(cls.model_fields)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return cast("CoreSchema", _check_numbers(handler(source)))

    @model_validator(mode="wrap")
    @classmethod
    def _from_plain(cls, value: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        """Read a field of a base class from a dict that names the subclass, as in a file."""
        if isinstance(value, Mapping) and (cls.tag in value or isabstract(cls)):
            return cls.from_dict(value)
        return validate(value)

    @classmethod
    def _kinds(cls) -> list[type[Declared]]:
        """Give the classes that may stand where this one is asked for.

        Two bases may have subclasses of one name; of subclasses of one base with one name the last counts.
        """
        kinds = {c.__name__: c for c in Declared._classes if issubclass(c, cls) and not isabstract(c)}
        return list(kinds.values())

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Make a declaration from plain data whose key `tag` names the class.

        Parameters
        ----------
        data : Mapping[str, Any]
            The fields, as `to_dict` gives them. The key `tag` may be missing if this class is meant.

        Returns
        -------
        Self
            An object of the named class.

        Raises
        ------
        UnknownNameError
            If the name is not one of this class and its subclasses.
        DeclarationError
            If the key `tag` is missing and this class is abstract, or for a malformed field.
        """
        known = {c.__name__: c for c in cls._kinds()}
        if cls.tag not in data and isabstract(cls):
            raise DeclarationError(f"the key {cls.tag!r} is missing; it must name one of {', '.join(known)}")
        name = str(data.get(cls.tag, cls.__name__))
        check_known(cls.tag, name, known)
        made = known[name](**{k: v for k, v in data.items() if k != cls.tag})
        assert isinstance(made, cls)
        return made

    @classmethod
    def file_schema(cls) -> dict[str, Any]:
        """Give the JSON schema of a file that declares this class.

        Returns
        -------
        dict[str, Any]
            The schema. Where a class is asked for, its subclasses are accepted too.
        """
        names = _DefinitionNames()
        top, todo = cls._own_schema(names)
        definitions: dict[str, Any] = {}
        while todo:
            base = todo.pop()
            name = names[base]
            if name in definitions:
                continue
            kinds = base._kinds()
            schemas = [c._own_schema(names) for c in kinds]
            todo = todo.union(*(needed for _, needed in schemas))
            if kinds == [base]:
                definitions[name] = schemas[0][0]
            else:  # then a file has to name the class
                own = [{**s, "required": [base.tag, *s.get("required", [])]} for s, _ in schemas]
                definitions[name] = {"anyOf": own}
        top["required"] = [cls.tag, *top.get("required", [])]
        return {**top, "$defs": {**top.get("$defs", {}), **definitions}} if definitions else top

    @classmethod
    def _own_schema(cls, names: _DefinitionNames) -> tuple[dict[str, Any], set[type[Declared]]]:
        """Give the schema of this class alone, and the declared classes that it refers to."""
        schema = cls.model_json_schema(schema_generator=_OneClass)
        named = {f"#/$defs/{name}": item for name, item in schema.pop("$defs", {}).items()}
        if "$ref" in schema:  # a class that refers to itself
            own = schema["$ref"]
            schema, named[own] = named[own], {"$declared": Declared._classes.index(cls)}
        needed: set[type[Declared]] = set()

        def link(node: Any) -> Any:
            if isinstance(node, list):
                return [link(item) for item in node]
            if not isinstance(node, dict):
                return node
            index = node.get("$declared", named.get(node.get("$ref", ""), {}).get("$declared"))
            if index is None:
                return {key: link(item) for key, item in node.items()}
            needed.add(Declared._classes[index])
            reference = f"#/$defs/{names[Declared._classes[index]]}"
            return {**{k: v for k, v in node.items() if k != "$declared"}, "$ref": reference}

        out = link(schema)
        out["properties"] = {cls.tag: {"const": cls.__name__}, **out.get("properties", {})}
        if "description" in out:
            out["description"] = " ".join(out["description"].partition("\n\n")[0].split())
        others = {k.rpartition("/")[2]: link(v) for k, v in named.items() if "$declared" not in v}
        return out | ({"$defs": others} if others else {}), needed

    def to_dict(self) -> dict[str, Any]:
        """Give the declaration as plain data, ready for JSON.

        Returns
        -------
        dict[str, Any]
            The name of the class under the key `tag`, and the fields; `from_dict` reads it.
        """
        nested = {n: v for n in type(self).model_fields if _holds_declared(v := getattr(self, n))}
        flat = self.model_dump(mode="json", exclude=set(nested))
        fields = {n: _nested(nested[n]) if n in nested else flat[n] for n in type(self).model_fields}
        return {self.tag: type(self).__name__, **fields}

    # -- copies ----------------------------------------------------------------------------------------------

    def replace(self, /, **fields: Any) -> Self:
        """Rebuild the declaration with other values of some fields.

        The constructor validates the result. A field that was not given when this object was made gets its
        default again, also one that a validator derived from other fields.

        Parameters
        ----------
        fields : Any
            New values by field. A name with dots is a field of a field's declaration: it goes by
            ``**{"constraint.tolerance": 0.1}``.

        Returns
        -------
        Self
            A new object, without any cached value of this one.

        Raises
        ------
        UnknownNameError
            For a name that is not a field.
        DeclarationError
            For a value that the constructor refuses.

        Examples
        --------
        >>> from forcopt.fairness import EqualizedOdds
        >>> from forcopt.models import FairPostprocessing
        >>> counts = [[[36, 4], [9, 5]], [[4, 16], [6, 20]]]
        >>> p = FairPostprocessing(counts=counts, constraint=EqualizedOdds(0.1))
        >>> p.replace(constraint=EqualizedOdds(0.3)).constraint
        EqualizedOdds(tolerance=0.3)
        >>> p.replace(**{"constraint.tolerance": 0.2}).constraint
        EqualizedOdds(tolerance=0.2)
        """
        known = list(type(self).model_fields)
        values = {name: getattr(self, name) for name in known if name in self.model_fields_set}
        nested: dict[str, dict[str, Any]] = {}
        for path, value in fields.items():
            name, dot, rest = path.partition(".")
            check_known(f"field of {type(self).__name__}", name, known)
            if dot:
                nested.setdefault(name, {})[rest] = value
            else:
                values[name] = value
        for name, changes in nested.items():
            holder = values.get(name, getattr(self, name))
            if not isinstance(holder, Declared):
                raise DeclarationError(
                    f"{name}.{next(iter(changes))}: {name} is {_short(holder)}, which has no fields"
                )
            values[name] = holder.replace(**changes)
        return type(self)(**values)

    def __replace__(self, /, **fields: Any) -> Self:
        return self.replace(**fields)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy the declaration: see `replace`, which validates too.

        Parameters
        ----------
        update : Mapping[str, Any], optional
            New values by field.
        deep : bool, default False
            Whether to copy the values of the fields too.
        """
        made = self.replace(**update) if update else self
        return deepcopy(made) if deep else made.__copy__()

    def copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:  # type: ignore[override]
        """Copy the declaration: see `model_copy`."""
        return self.model_copy(update=update, deep=deep)

    def __dir__(self) -> list[str]:
        return [n for n in super().__dir__() if _is_ours(type(self), n)]

    def __getstate__(self) -> dict[Any, Any]:
        fields = {name: self.__dict__[name] for name in type(self).model_fields if name in self.__dict__}
        return {**super().__getstate__(), "__dict__": fields}

    def __copy__(self) -> Self:
        made = type(self).__new__(type(self))
        made.__setstate__(self.__getstate__())
        return made

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        made = type(self).__new__(type(self))
        memo = {} if memo is None else memo
        memo[id(self)] = made
        made.__setstate__(deepcopy(self.__getstate__(), memo))
        return made

    # -- equality --------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return type(other) is type(self) and isinstance(other, Declared) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        found = self.__dict__.get("_hash")
        if found is None:
            found = self.__dict__["_hash"] = hash((type(self), _hashable(self.to_dict())))
        return int(found)


class _DefinitionNames(dict[type[Declared], str]):
    """The names of classes in one schema: the bare name, or with the module if that is taken."""

    def __missing__(self, cls: type[Declared]) -> str:
        taken = cls.__name__ in self.values()
        self[cls] = f"{cls.__module__}.{cls.__qualname__}" if taken else cls.__name__
        return self[cls]


class _OneClass(GenerateJsonSchema):
    """Writes the schema of one class, with a mark in place of each declared class within it.

    The mark holds the position of the class in `Declared._classes`, since two classes may have one name.
    """

    inside = False

    def model_schema(self, schema: Any) -> dict[str, Any]:
        if self.inside and issubclass(schema["cls"], Declared):
            return {"$declared": Declared._classes.index(schema["cls"])}
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


def _hashable(value: Any) -> Any:
    """Give plain data in a form that can be hashed; equal data give equal forms."""
    if isinstance(value, Mapping):
        return frozenset((key, _hashable(item)) for key, item in value.items())
    return tuple(map(_hashable, value)) if isinstance(value, tuple | list) else value


def _declared_in(annotation: Any) -> Iterator[type[Declared]]:
    """Give the declared classes that an annotation names."""
    if isinstance(annotation, type) and issubclass(annotation, Declared):
        yield annotation
    for part in get_args(annotation):
        yield from _declared_in(part)


def _explain(cls: type[Declared], error: ValidationError) -> str:
    """Name each malformed field with its value and the violated rule."""
    lines = []
    for item in error.errors():
        field = ".".join(str(part) for part in item["loc"] if not str(part).startswith("function-"))
        message = item["msg"].removeprefix("Value error, ")
        if item["type"] == "model_type":
            asked = [
                c
                for c in _declared_in(cls.model_fields[str(item["loc"][0])].annotation)
                if c.__name__ == item["ctx"]["class_name"]
            ]
            if asked:
                names = [kind.__name__ for kind in asked[0]._kinds()]
                message = f"it must be one of {', '.join(k for k in names if not k.startswith('_'))}"
        given = item["input"]
        if item["type"] == "missing":
            lines.append(f"{cls.__name__}: {field} is missing")
        elif isinstance(given, np.ndarray | dict | list) or not field:
            lines.append(f"{cls.__name__}: " + (f"{field}: {_lower(message)}" if field else message))
        else:
            lines.append(f"{cls.__name__}: {field} is {_short(given)}; {_lower(message)}")
    return "; ".join(lines)


def _lower(message: str) -> str:
    """A sentence for the middle of another one; a name such as ``PowerStability`` at its begin is kept."""
    first = message.partition(" ")[0]
    return message if first[1:] != first[1:].lower() else message[:1].lower() + message[1:]


def _short(value: Any) -> str:
    """Give a value as text, or its type and shape if the text has several lines or an address."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    text = repr(value)
    if "\n" not in text and " object at 0x" not in text:
        return text
    shape = getattr(value, "shape", None)
    return f"a {type(value).__name__}" + ("" if shape is None else f" of shape {shape}")
