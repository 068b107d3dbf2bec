import pytest

from forcopt.errors import DeclarationError
from forcopt.models import Apportionment
from forcopt.models.fair_decisions import rounded_seat_probabilities
from forcopt.privacy import Laplace


def test_seats_need_a_mechanism_and_not_its_noise():
    with pytest.raises(DeclarationError, match=r"mechanism is Laplace\(scale=10.0\); it must be an Add"):
        rounded_seat_probabilities(Apportionment([5, 3], seats=3), Laplace(epsilon=0.1))


def test_populations_by_name_are_no_list():
    with pytest.raises(DeclarationError, match=r"populations.*in order, not a mapping"):
        Apportionment({"a": 5, "b": 3}, seats=3)
