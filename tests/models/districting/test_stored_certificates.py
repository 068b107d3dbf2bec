"""The certificates that come with forcopt are of the real graphs; `benchmarks/districting` proves them."""

import pytest

from forcopt.data import load_graph
from forcopt.models import Districting
from forcopt.models.districting import BoundCertificate


@pytest.mark.parametrize("name", list(BoundCertificate.stored()))
def test_a_stored_certificate_is_of_its_graph(name, shared_data):
    proof = BoundCertificate.stored()[name]
    graph = load_graph(shared_data / "us" / f"{name}.json")
    p = Districting(graph, graph.graph["districts"], tolerance=0.005)
    found = proof.check(p, time_limit=0)
    assert found.feasible and found.objective == proof.bound and proof.name == name
    assert found.bound is None and "the time limit of 0 s passed" in found.how
