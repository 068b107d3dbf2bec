import highspy
import pytest

import forcopt as fo
from forcopt.backends.highs import _check_run

ERROR, OK = highspy.HighsStatus.kError, highspy.HighsStatus.kOk


class Stumbling:
    """Fails so many times, as HiGHS now and then does when it continues from a nearly singular basis."""

    def __init__(self, failures):
        self.failures, self.cleared = failures, 0

    def run(self):
        self.failures -= 1
        return ERROR if self.failures >= 0 else OK

    def getModelStatus(self):
        return highspy.HighsModelStatus.kNotset if self.failures >= 0 else highspy.HighsModelStatus.kOptimal

    def clearSolver(self):
        self.cleared += 1

    def modelStatusToString(self, status):
        return status.name


def test_a_run_that_stumbles_starts_once_more_without_the_basis():
    solver = Stumbling(1)
    _check_run(solver)
    assert solver.cleared == 1
    fine = Stumbling(0)
    _check_run(fine)
    assert fine.cleared == 0


def test_a_run_that_fails_twice_is_an_error_in_its_own_words():
    with pytest.raises(fo.BackendError, match="HiGHS: kNotset"):
        _check_run(Stumbling(2))
