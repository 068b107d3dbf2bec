"""Figures go to files of a known format, in a folder that exists."""

import pickle

import numpy as np
import pytest

import forcopt as fo
from forcopt.problem.drawing import Sketch


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


@pytest.mark.parametrize(
    "value", [np.eye(3), np.arange(4.0), np.arange(90.0), np.ones((30, 9)), [-1e-9, 2.0]]
)
def test_a_sketch_has_whole_ticks_for_what_is_numbered_and_no_dust(value):
    figure = Sketch("Two of three agree", value, "row of the table", "column of the table", "share").plot()
    figure.canvas.draw()
    axes = figure.axes[0]
    if np.ndim(value) > 1 or len(value) > 60:
        assert axes.get_xlabel() in ("row of the table", "column of the table")
        assert (axes.get_xticks() == np.round(axes.get_xticks())).all()
    else:
        assert [bar.get_width() for bar in axes.patches] == np.round(value, 6).tolist()
    if np.ndim(value) > 1:
        assert (axes.get_yticks() == np.round(axes.get_yticks())).all()
        assert len(axes.texts) == (np.size(value) if np.size(value) <= 100 else 0) or len(figure.axes) == 2


def test_a_sentence_is_a_picture_and_a_long_one_has_lines():
    figure = Sketch("No plan is better than this one. " * 5).plot()
    assert figure.axes[0].get_title(loc="left").count("\n") == 2


def test_a_sample_is_drawn_with_its_numbers():
    figure = fo.load("allocation/establishments").solve().plot()
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert figure.axes[0].get_xscale() == "linear" and all(" of " in text for text in texts) and texts
