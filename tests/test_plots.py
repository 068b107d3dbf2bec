"""Figures go to files of a known format, in a folder that exists."""

import pickle

import pytest

import forcopt as fo


@pytest.mark.parametrize("name", ["auctions/three-users", "decisions/four-states", "districting/grid-3x7"])
def test_a_file_that_cannot_be_written_is_refused_by_name(name, tmp_path):
    s = fo.load(name).solve()
    for path in (tmp_path / "a.xyz", tmp_path / "a"):
        with pytest.raises(fo.DeclarationError, match=rf"cannot write .*{path.name}: the name must end in"):
            s.plot(path)
    with pytest.raises(fo.DeclarationError, match=r"cannot write .*: there is no folder"):
        s.plot(tmp_path / "none" / "a.png")
    s.plot(tmp_path / "a.SVG")
    assert (tmp_path / "a.SVG").stat().st_size


@pytest.mark.parametrize(
    "name", ["districting/grid-3x7", "postprocessing/compas", "auctions/three-users", "queries/nine-queries"]
)
def test_a_figure_is_a_picture_in_a_notebook_without_pyplot(name):
    figure = fo.load(name).solve().plot()
    for shown in (figure, pickle.loads(pickle.dumps(figure))):
        assert shown._repr_png_().startswith(b"\x89PNG")
