"""Random affine expressions, each beside the array of its coefficients computed by numpy alone."""

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

import forcopt as fo

SHAPES = [(), (1,), (3,), (2, 3), (3, 2), (2, 1, 3), (0,), (2, 0)]
NUMBERS = st.integers(-3, 3).map(float)


@dataclass
class Affine:
    """An expression and its reference: a last axis with a coefficient for each column, then the constant."""

    expression: fo.Expression
    reference: np.ndarray = field(repr=False)

    @property
    def shape(self):
        return self.reference.shape[:-1]


def blank_model():
    """A model with one variable of each shape."""
    m = fo.Model("trees")
    return m, [m.variable(f"v{i}", shape) for i, shape in enumerate(SHAPES)]


def leaf(variable):
    """A variable; column `start + i` has coefficient 1 in its element i."""
    width = variable.model.column_count + 1
    reference = np.zeros((variable.size, width))
    reference[np.arange(variable.size), variable.start + np.arange(variable.size)] = 1
    return Affine(variable, reference.reshape(*variable.shape, width))


@st.composite
def arrays(draw, shape):
    size = int(np.prod(shape))
    return np.array(draw(st.lists(NUMBERS, min_size=size, max_size=size))).reshape(shape)


@st.composite
def broadcastable(draw, shape):
    """The shape of an operand that numpy broadcasts with `shape`."""
    kept = shape[draw(st.integers(0, len(shape))) :]
    out = tuple(1 if draw(st.booleans()) and n != 1 else n for n in kept)
    if len(out) == len(shape) and draw(st.integers(0, 4)) == 0:
        out = (2, *out)
    return out


@st.composite
def indices(draw, shape):
    """A numpy index: integers, slices, None, Ellipsis, arrays of integers or of booleans."""
    if draw(st.integers(0, 5)) == 0:
        return (
            np.array(
                draw(st.lists(st.booleans(), min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
            )
            .reshape(shape)
            .astype(bool)
        )
    key, advanced = [], False
    for n in shape[: draw(st.integers(0, len(shape)))]:
        kind = draw(st.sampled_from(["slice", "int", "none", "array", "mask", "list"]))
        if kind == "none":
            key.append(None)
        if kind == "int" and n:
            key.append(draw(st.integers(-n, n - 1)))
        elif kind in ("array", "list") and n and not advanced:
            picked = draw(st.lists(st.integers(-n, n - 1), max_size=4))
            key.append(np.array(picked, dtype=int) if kind == "array" else picked or slice(None))
            advanced = True
        elif kind == "mask" and not advanced:
            key.append(np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)), dtype=bool))
            advanced = True
        else:
            ends = st.none() | st.integers(-n - 1, n + 1)
            key.append(slice(draw(ends), draw(ends), draw(st.sampled_from([None, 1, 2, -1, -2]))))
    if draw(st.booleans()):
        key.insert(0 if draw(st.booleans()) and not advanced else len(key), Ellipsis)
    return key[0] if len(key) == 1 and draw(st.booleans()) else tuple(key)


def with_constant(affine, values):
    """Add numbers to the constants of a reference."""
    shape = np.broadcast_shapes(affine.shape, np.shape(values))
    out = np.array(np.broadcast_to(affine.reference, (*shape, affine.reference.shape[-1])))
    out[..., -1] += values
    return out


def add(draw, a, leaves):
    values = draw(arrays(draw(broadcastable(a.shape))))
    forms = [values, values.astype(np.float32), values.astype(int)]
    given = draw(st.sampled_from([*forms, values.tolist()] if values.size else forms))
    if draw(st.booleans()):
        return Affine(a.expression + given, with_constant(a, values))
    return Affine(given - a.expression, with_constant(Affine(None, -a.reference), values))


def scale(draw, a, leaves):
    values = draw(arrays(draw(broadcastable(a.shape))))
    e = a.expression
    if draw(st.booleans()) and values.ndim == 2:
        return Affine(sp.coo_array(values) * e, a.reference * values[..., None])
    if (values != 0).all() and draw(st.booleans()):
        return Affine(e / values, a.reference / values[..., None])
    return Affine(values * e if draw(st.booleans()) else e * values, a.reference * values[..., None])


def combine(draw, a, leaves):
    wanted = draw(broadcastable(a.shape))
    others = [b for b in leaves if b.shape == wanted] or [b for b in leaves if b.shape == ()]
    b = draw(st.sampled_from(others))
    if draw(st.booleans()):
        return Affine(a.expression + 2 * b.expression, a.reference + 2 * b.reference)
    return Affine(b.expression - a.expression, b.reference - a.reference)


def again(draw, a, leaves):
    """Columns that occur twice, some of them with opposite signs."""
    values = draw(arrays(a.shape))
    return Affine(a.expression * values - a.expression, a.reference * (values[..., None] - 1))


def pick(draw, a, leaves):
    index = draw(indices(a.shape))
    key = index if isinstance(index, tuple) else (index,)
    full = (*key, slice(None)) if any(k is Ellipsis for k in key) else (*key, Ellipsis, slice(None))
    return Affine(a.expression[index], a.reference[full])


def transpose(draw, a, leaves):
    n = len(a.shape)
    axes = draw(st.permutations(range(n)))
    if draw(st.booleans()):
        return Affine(a.expression.T, a.reference.transpose(*range(n)[::-1], n))
    return Affine(a.expression.transpose(*axes), a.reference.transpose(*axes, n))


def reshape(draw, a, leaves):
    shape = draw(st.sampled_from([(-1,), (a.expression.size,), (1, *a.shape), (*a.shape[::-1],), (1, -1, 1)]))
    if -1 in shape and a.expression.size == 0:
        shape = (0, 2)
    full = np.empty(a.shape).reshape(shape).shape
    return Affine(a.expression.reshape(*shape), a.reference.reshape(*full, a.reference.shape[-1]))


def total(draw, a, leaves):
    n = len(a.shape)
    axes = (
        draw(st.none() | st.lists(st.integers(-n, n - 1), unique_by=lambda k: k % n, max_size=n).map(tuple))
        if n
        else None
    )
    keepdims = draw(st.booleans())
    positive = tuple(range(n)) if axes is None else tuple(k % n for k in axes)
    return Affine(
        a.expression.sum(axes, keepdims=keepdims), a.reference.sum(axis=positive, keepdims=keepdims)
    )


def mean(draw, a, leaves):
    n = len(a.shape)
    axis = draw(st.integers(-n, n - 1)) if n else None
    count = a.shape[axis] if n else 1
    if count == 0:
        return a
    return Affine(a.expression.mean(axis), a.reference.sum(axis=axis % n) / count if n else a.reference)


def multiply(draw, a, leaves):
    """A matrix or vector, dense or sparse, from either side."""
    if len(a.shape) not in (1, 2):
        return a
    left = draw(st.booleans())
    inner = a.shape[0] if left else a.shape[-1]
    if draw(st.integers(0, 3)) == 0:
        matrix = draw(arrays((inner,)))
    else:
        outer = draw(st.integers(1, 3))
        matrix = draw(arrays((outer, inner) if left else (inner, outer)))
    made = st.sampled_from(
        [np.asarray, sp.csr_array, sp.coo_array, sp.csc_matrix] if matrix.ndim == 2 else [np.asarray, list]
    )
    given = draw(made)(matrix)
    if left:
        return Affine(given @ a.expression, np.tensordot(matrix, a.reference, axes=(-1, 0)))
    out = np.tensordot(a.reference, matrix, axes=(len(a.shape) - 1, 0))
    return Affine(a.expression @ given, np.moveaxis(out, len(a.shape) - 1, -1))


def join(draw, a, leaves):
    axis = draw(st.integers(-len(a.shape) - 1, len(a.shape)))
    values = draw(arrays(a.shape))
    constant = with_constant(Affine(None, np.zeros_like(a.reference)), values)
    twice = Affine(2 * a.expression, 2 * a.reference)
    parts = draw(
        st.sampled_from([[a, twice], [a, Affine(values, constant)], [Affine(values, constant), twice, a]])
    )
    at = axis % (len(a.shape) + 1)
    if a.shape and at < len(a.shape) and draw(st.booleans()):
        joined = fo.concatenate([p.expression for p in parts], axis=at)
        return Affine(joined, np.concatenate([p.reference for p in parts], axis=at))
    return Affine(
        fo.stack([p.expression for p in parts], axis=axis), np.stack([p.reference for p in parts], axis=at)
    )


def spread(draw, a, leaves):
    shape = (2, *(draw(st.integers(1, 2)) if n == 1 else n for n in a.shape))
    return Affine(
        a.expression.broadcast_to(shape), np.broadcast_to(a.reference, (*shape, a.reference.shape[-1]))
    )


OPERATIONS = [add, scale, combine, again, pick, transpose, reshape, total, mean, multiply, join, spread]


@st.composite
def trees(draw, most=6):
    """A random expression of a fresh model, of at most a few hundred elements."""
    model, variables = blank_model()
    return draw(grown(model, [leaf(v) for v in variables], most))


@st.composite
def grown(draw, model, leaves, most=6):
    """A random expression over the leaves."""
    a = draw(st.sampled_from(leaves))
    for operation in draw(st.lists(st.sampled_from(OPERATIONS), max_size=most)):
        if a.expression.size <= 40 and len(a.shape) <= 4:
            a = operation(draw, a, leaves)
    return a
