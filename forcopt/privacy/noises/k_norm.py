"""The k-norm mechanism: joint noise of many counts, the best under pure privacy in the maximum norm."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from forcopt.arrays import Array
from forcopt.declaration import Declared
from forcopt.errors import DeclarationError
from forcopt.privacy.profile import Profile
from forcopt.privacy.randomness import Randomness, Secure

__all__ = ["KNorm"]


class KNorm(Declared):
    """Joint noise of several numbers with density in proportion to ``exp(-max_i |x_i| / scale)``.

    Parameters
    ----------
    scale : float
        Above 0; ``1 / epsilon`` is epsilon-private for numbers each of which a person changes by at most 1.

    Notes
    -----
    The largest ``|x_i|`` of k has the law Gamma(k) times the scale; given it, the point is uniform on the
    surface of the cube.

    References
    ----------
    Hardt and Talwar (2010), On the geometry of differential privacy, section 4.

    Examples
    --------
    >>> KNorm(scale=2.0).expected_max(10), KNorm(scale=2.0).expected_abs(10)
    (20.0, 11.0)
    """

    scale: float = Field(gt=0.0, allow_inf_nan=False)

    def expected_max(self, count: int) -> float:
        """The mean of the largest ``|x_i|`` of `count`: ``count * scale``."""
        return count * self.scale

    def expected_abs(self, count: int) -> float:
        """The mean of one ``|x_i|`` of `count`: one coordinate is on the surface, the others are uniform."""
        return (count + 1) / 2 * self.scale

    def profile(self, shift: float = 1.0) -> Profile:
        """The privacy profile of numbers each of which one person moves by at most `shift`: pure."""
        return Profile.pure(shift / self.scale)

    def sample(self, size: tuple[int, int], rng: Randomness | None = None) -> Array:
        """Draw rows of `size` ``(rows, numbers)``.

        Raises
        ------
        DeclarationError
            Without a seed: floating-point draws are not private.
        """
        rng = Secure() if rng is None else rng
        if not rng.simulated:
            raise DeclarationError(
                "KNorm is real noise, whose floating-point draws are not private: simulate"
            )
        generator = rng.generator()
        rows, count = size
        reach = generator.standard_gamma(count + 1, (rows, 1)) * self.scale
        return np.asarray(reach * generator.uniform(-1, 1, (rows, count)))
