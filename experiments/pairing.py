"""Who meets whom in a round: the circle of a round robin, and Swiss pairings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

LOOK_AHEAD = 12  # Swiss: up to so many pairs are matched so that the rounds to come need no rematch either

Pairing = list[tuple[str, str | None]]  # of a round; None: the pair has a bye


def circle(names: Sequence[str], number: int) -> Pairing:
    """Round `number` (from 0) of a round robin, by the circle method; later rounds begin it again."""
    ring: list[str | None] = [*names, *([None] if len(names) % 2 else [])]
    turn = number % (len(ring) - 1)
    ring = [ring[0], *ring[len(ring) - turn :], *ring[1 : len(ring) - turn]]
    met = [(ring[i], ring[-1 - i]) for i in range(len(ring) // 2)]
    return _ordered([(a, b) if a is not None else (b, a) for a, b in met])


def swiss(ranked: Sequence[str], points: Mapping[str, int], met: Mapping[frozenset[str], int], left: int) -> Pairing:
    """The next Swiss round: no rematch while one can be avoided, then neighbours in the standings meet.

    A bye is like a meeting with nobody: it is nobody's twice while that can be avoided, and goes to the lowest. For
    larger fields the best pairing is found by Edmonds' algorithm (networkx). Up to 12 pairs all pairings are tried, the
    best first, until one leaves the rounds to come without a rematch too: seven rounds of eight pairs never need one.

    Args:
        ranked: names of those who play, the best first.
        points: match points of each.
        met: how often two met; of one name alone: how many byes it had.
        left: rounds still to be played, this one included.
    Returns:
        in order of the ranks.
    """
    players: list[str | None] = [*ranked, *([None] if len(ranked) % 2 else [])]
    count = len(players)
    scores = [points[name] for name in ranked] + [min(points[name] for name in ranked)]
    times = {}
    cost = {}
    for i in range(count):
        for j in range(i + 1, count):
            times[i, j] = met.get(frozenset(name for name in (players[i], players[j]) if name is not None), 0)
            # Three numbers in one, the first decides: rematches, then points apart, then ranks apart.
            wide = count**3
            apart = (scores[i] - scores[j]) ** 2 * wide + (i - j) ** 2
            cost[i, j] = times[i, j] * wide**3 * (max(scores) + 1) ** 2 + apart
    if count <= LOOK_AHEAD:
        options = sorted(_pairings(range(count)), key=lambda option: sum(cost[edge] for edge in option))
        unmet = {edge for edge, number in times.items() if not number}
        more = min(left, count - 1) - 1
        good = (option for option in options if unmet.issuperset(option) and _fills(unmet - set(option), count, more))
        best = next(good, options[0])
    else:
        best = _matching(cost)
    return _ordered([(players[i], players[j]) for i, j in best], ranked)


def _ordered(met: Sequence[tuple[str | None, str | None]], ranked: Sequence[str] = ()) -> Pairing:
    """Matches first, in order of rank, then the bye."""
    pairing = [(a, b) for a, b in met if a is not None]
    place = {name: i for i, name in enumerate(ranked)}
    return sorted(pairing, key=lambda one: (one[1] is None, place.get(one[0], 0)))


def _pairings(players: Sequence[int]) -> Iterator[list[tuple[int, int]]]:
    """All ways to make pairs of an even number of players."""
    if not players:
        yield []
        return
    first, *rest = players
    for i, other in enumerate(rest):
        for more in _pairings(rest[:i] + rest[i + 1 :]):
            yield [(first, other), *more]


def _fills(unmet: set[tuple[int, int]], count: int, rounds: int) -> bool:
    """Whether so many rounds can still be played in which only pairs meet that have not met."""
    if rounds <= 0:
        return True
    degree = [sum(i in edge for edge in unmet) for i in range(count)]
    if min(degree) < rounds:
        return False
    if min(degree) - rounds + 1 >= count / 2:  # Dirac: there is a cycle through all, and so a round, each time
        return True
    return any(_fills(unmet - set(one), count, rounds - 1) for one in _within(unmet, list(range(count))))


def _within(edges: set[tuple[int, int]], players: list[int]) -> Iterator[list[tuple[int, int]]]:
    """All ways to make pairs of these players along the edges."""
    if not players:
        yield []
        return
    # Who has the fewest choices chooses first: dead ends are found at once.
    partners = {i: [j for j in players if (min(i, j), max(i, j)) in edges] for i in players}
    first = min(players, key=lambda i: len(partners[i]))
    for other in partners[first]:
        for more in _within(edges, [i for i in players if i not in (first, other)]):
            yield [(min(first, other), max(first, other)), *more]


def _matching(cost: Mapping[tuple[int, int], int]) -> list[tuple[int, int]]:
    """The perfect matching of least cost."""
    import networkx

    graph = networkx.Graph()
    graph.add_weighted_edges_from((i, j, -price) for (i, j), price in cost.items())
    found = networkx.max_weight_matching(graph, maxcardinality=True)
    return sorted((min(edge), max(edge)) for edge in found)
