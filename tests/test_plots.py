"""Figures go to files of a known format, in a folder that exists."""

import pickle
import re

import numpy as np
import pytest

import forcopt as fo
from forcopt.problem.drawing import Sketch, sketch_of


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


@pytest.mark.parametrize("value", [np.eye(3), np.arange(4.0), np.arange(50.0), {"a": 1.0, "b": 2.0}])
def test_no_axis_has_the_name_of_a_type_and_counts_have_whole_ticks(value):
    figure = sketch_of(value).plot()
    figure.canvas.draw()
    for axes in figure.axes:
        said = " ".join((axes.get_title(), axes.get_xlabel(), axes.get_ylabel()))
        assert not re.search("ndarray|dict|list|float", said), said
    ticks = figure.axes[0].get_yticks() if np.size(value) < 40 else figure.axes[0].get_xticks()
    assert (ticks == np.round(ticks)).all()


def test_a_sentence_is_a_picture_and_a_long_one_has_lines():
    figure = Sketch("No plan is better than this one. " * 5).plot()
    assert figure.axes[0].get_title(loc="left").count("\n") == 2
    with pytest.raises(fo.DeclarationError, match="a str holds no numbers to draw"):
        sketch_of("plan")


def test_a_sample_is_drawn_with_its_numbers():
    figure = fo.load("allocation/establishments").solve().plot()
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert figure.axes[0].get_xscale() == "linear" and all(" of " in text for text in texts) and texts
