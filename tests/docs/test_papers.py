"""The page of papers: no item is without a line, and no citation names an item that there is not."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs" / "hooks"))


@pytest.fixture(scope="module")
def known():
    pytest.importorskip("mkdocs")
    import papers

    return papers.papers()


def test_every_item_has_a_place_and_a_test_or_says_why_not(known):
    import papers

    assert len(known) == 17
    faults = []
    for paper in known:
        for item in paper.items.values():
            if not papers.where(item) or not papers.repeated(item):
                faults.append(
                    f"{paper.title}, {item.name}: nothing states or repeats it; say why in papers.toml"
                )
            if item.why and (item.tests or item.tables):
                faults.append(f"{paper.title}, {item.name}: it is repeated, so its `why` is out of date")
    assert faults == []


def test_the_page_has_a_line_of_five_full_cells_for_every_item(known):
    import papers

    rows = [line for line in papers.page().splitlines() if line.startswith("| ") and line[2:6] != "item"]
    assert len(rows) == sum(len(paper.items) for paper in known)
    assert all([cell.strip() != "" for cell in row.split("|")[1:-1]] == [True] * 5 for row in rows)


def test_what_the_list_names_exists(known):
    import papers

    from forcopt.problem import problem_classes

    classes = problem_classes()
    labels = {label for _, _, label in papers.sources()}
    missing = []
    for paper in known:
        for item in paper.items.values():
            for name in item.at:
                cls, _, method = name.partition(": ")
                if name not in labels and method not in getattr(classes.get(cls), "methods", ()):
                    missing.append(f"{item.name}: {name}")
            missing += [f"{item.name}: {name}" for name in item.tests + item.tables if name not in labels]
    assert missing == []


def test_citations_name_items_that_there_are(known):
    """Of all sources, and of the `cites` of all methods, whose names may be put together when they run."""
    import papers

    from forcopt.problem import problem_classes

    methods = [
        ("", method.cites, f"{name}: {method.name}")
        for name, cls in problem_classes().items()
        for method in cls.methods.values()
    ]
    wrong = [
        f"{label}: {paper.title} has no {item}"
        for path, text, label in [*papers.sources(), *methods]
        for paper, item in papers.named(text, path, known)
        if item not in paper.items
    ]
    assert wrong == []
    cited = [cites for _, cites, _ in methods]
    for paper in known:
        assert any(paper.names(text) and str(paper.year) in text for text in cited), paper.title


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Talwar (2022), Theorems 13 to 15; Li (2014), Lemma 8", ["Theorem 13", "Theorem 14", "Theorem 15"]),
        ("Jagielski et al. (2019), LP (5) and (6); Hardt (2016), Lemma 4", ["LP 5", "LP 6"]),
        ("test_theorems_7_and_8(sizes)", ["Theorem 7", "Theorem 8"]),
        ("Cohen et al. (2021), Algorithms 1 and 3; Cohen (1960), Table 1", ["Algorithm 1", "Algorithm 3"]),
        ("Theorem 2. Li (2014), Theorem 3, and Theorem 6", ["Theorem 2"]),
        ("Figure 1c of Pujol et al. (2020)", []),
    ],
)
def test_names_in_a_text(known, text, found):
    import papers

    folder = "models/amplification/" if "heorem" in text[:13] else ""
    assert [name for _, name in papers.named(text, folder, known)] == found


def test_a_text_without_a_citation_is_about_the_paper_of_its_folder(known):
    import papers

    ((paper, name),) = papers.named("Figure 1c: a program", "models/fair_decisions/coverage.py", known)
    assert name == "Figure 1" and "Pujol" in paper.authors
    assert papers.named("Figure 1", "forcopt/loops/solve.py", known) == []
    both = papers.named("Table 1, after Mozannar", "models/fair_classification/games.py", known)
    assert [re.match(r"\w+", p.authors)[0] for p, _ in both] == ["Mozannar"]
