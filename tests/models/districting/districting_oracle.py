"""A brute-force oracle: every plan, by growing the part of the first free node in every way."""

from collections import Counter


def all_plans(problem):
    """Every plan as a list of sets of positions: the part of the first free node is grown in every way."""
    g, (low, high) = problem.arrays, problem.population_bounds
    near = [set(a) for a in g.neighbours]

    def grow(part, ruled_out, free):
        yield part
        border = sorted(set().union(*(near[v] for v in part)) & free - part - ruled_out)
        for i, v in enumerate(border):
            yield from grow(part | {v}, ruled_out | set(border[:i]), free)

    def cover(free, left):
        if not free or not left:
            if not free and not left:
                yield []
            return
        for part in grow({min(free)}, set(), free):
            if low <= sum(int(g.weights[v]) for v in part) <= high:
                for rest in cover(free - part, left - 1):
                    yield [part, *rest]

    for parts in cover(set(range(g.size)), problem.districts):
        if all(
            sum(bool(set(group) & part) for part in parts) == 1 for group in problem.must_link
        ) and not any({a, b} <= part for a, b in problem.cannot_link for part in parts):
            yield parts


def label_of(problem, parts):
    label = {problem.nodes[v]: d for d, part in enumerate(parts) for v in part}
    return {node: label[node] for node in problem.nodes}


def brute_histogram(problem):
    """The number of plans of each cost."""
    costs = Counter(
        int(problem.arrays.cut_cost(problem.labels(label_of(problem, parts)))) for parts in all_plans(problem)
    )
    return dict(sorted(costs.items()))
