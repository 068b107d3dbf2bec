"""Profiles beside the events of dp-accounting and the maps of OpenDP."""

import numpy as np
import pytest

from forcopt import DeclarationError
from forcopt.privacy import (
    AdditiveMechanism,
    ApproximateDP,
    BoundedNoise,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Ledger,
    PoissonSample,
    Profile,
    dp_event,
    from_opendp,
    to_opendp,
)


@pytest.mark.parametrize(
    "profile",
    [
        Gaussian(scale=3.0).profile(1) ** 20,
        Laplace(scale=5.0).profile(2),
        DiscreteLaplace(scale=4.0).profile(3) ** 5,
        Profile.pure(0.3) ** 7,
        PoissonSample(rate=0.02).amplify(AdditiveMechanism(Gaussian(scale=1.5)).profile()) ** 50,
        PoissonSample(rate=0.1).amplify(AdditiveMechanism(Laplace(scale=2.0)).profile())
        @ Gaussian(scale=4.0).profile(1),
    ],
)
def test_events_have_the_epsilon_of_their_profile(profile):
    """dp-accounting rounds losses up to 1e-4, and takes randomized response for substitutions only."""
    accounting = pytest.importorskip("dp_accounting")
    pld = pytest.importorskip("dp_accounting.pld.pld_privacy_accountant")
    both = accounting.NeighboringRelation
    relation = both.REPLACE_ONE if profile.largest_loss == pytest.approx(2.1) else both.ADD_OR_REMOVE_ONE
    account = pld.PLDAccountant(relation).compose(dp_event(profile))
    assert account.get_epsilon(1e-4) == pytest.approx(profile.epsilon(1e-4), abs=2e-3)


def test_a_ledger_as_events():
    accounting = pytest.importorskip("dp_accounting")
    rdp = pytest.importorskip("dp_accounting.rdp")
    account = Ledger(ApproximateDP(5.0, 1e-6))
    account.spend(AdditiveMechanism(Gaussian(scale=4.0)))
    account.spend(Profile.concentrated(0.02))
    event = dp_event(account.profile())
    assert event == accounting.dp_event.ZCDpEvent(0.02 + 1 / 32)
    theirs = rdp.RdpAccountant(np.linspace(1.5, 200, 400)).compose(event).get_epsilon(1e-6)
    assert account.profile().epsilon(1e-6) == pytest.approx(theirs, rel=0.02)
    with pytest.raises(DeclarationError, match="no event for"):
        dp_event(BoundedNoise(power=2.0, radius=4.0).profile(1))


@pytest.mark.parametrize("change", [1, 3])
def test_maps_of_opendp_are_the_profiles(change):
    """OpenDP rounds its maps up; its discrete noises have the law of ours."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    kinds = {float: (Laplace, Gaussian), int: (DiscreteLaplace, DiscreteGaussian)}
    for number, (laplace, gaussian) in kinds.items():
        domain = dp.atom_domain(T=number, nan=False) if number is float else dp.atom_domain(T=number)
        metric = dp.absolute_distance(T=number)
        pure, rho = (make(domain, metric, scale=2.5) for make in (dp.m.make_laplace, dp.m.make_gaussian))
        most = number(change)
        for noise, theirs in ((laplace(scale=2.5), pure), (gaussian(scale=2.5), rho)):
            made = to_opendp(AdditiveMechanism(noise, sensitivity=change))
            assert made.map(most) == theirs.map(most) and len(made([number(3)] * 4)) == 4
            here, back = noise.profile(change), from_opendp(made, most)
            one, other = (p.largest_loss if theirs is pure else p.rho for p in (here, back))
            assert one == pytest.approx(other, rel=1e-9)
        curves = dp.c.make_zCDP_to_approxDP(rho)
        theirs = curves.map(most).epsilon(1e-6)
        fixed = from_opendp(dp.c.make_fix_delta(curves, 1e-6), most)
        assert here.epsilon(1e-6) <= theirs * (1 + 1e-9) and fixed.epsilon(1e-6) == pytest.approx(theirs)
        assert Profile.concentrated(here.rho).epsilon(1e-6) == pytest.approx(theirs, rel=1e-3)
        with pytest.raises(DeclarationError, match="measure is SmoothedMaxDivergence"):
            from_opendp(curves, most)
    with pytest.raises(DeclarationError, match="BoundedNoise is noise that OpenDP does not"):
        to_opendp(AdditiveMechanism(BoundedNoise(power=2.0, radius=4.0)))
    with pytest.raises(DeclarationError, match="norm is 'linf'; OpenDP's is 'l1'"):
        to_opendp(AdditiveMechanism(Laplace(scale=1.0), norm="linf", dimension=2))
