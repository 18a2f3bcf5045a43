"""Exact figures of small games, by walking every deal and every move: values, best responses, equilibria.

A `Tree` holds all deals of a game led by one seat (K4: deals that differ in what is left over alone are one) and all
ways they can go, level by level, as arrays. Seats count as places, the leader's is 0: as the lead rotates (S2), a seat
is in each place alike often, and an agent plays every place, so that means over places are what a seat of the game
wins. Where the lowest tile leads (B2), places are seats.

What is worked out, in points a deal:
* the value of each place where an agent plays all of them;
* the best response of one seat, all others as they are (its partner too): exact, by backward induction over what the
  seat knows, weighed by how likely chance and the others get there. What each seat wins by it, summed, is NashConv
  (Lanctot et al. 2017, arXiv 1711.00832); its mean over seats is what OpenSpiel calls exploitability;
* the best response of a pair. Two partners who know different things are no one player, and the best joint answer is
  hard to find (NP-hard: Koller and Megiddo 1992). Two bounds: above, the pair that shares its hands; below, partners
  who answer in turn, each best to what the other plays now, until neither gains;
* of two seats, an equilibrium, by linear programming over sequences (Koller, Megiddo and von Stengel 1996).

`domino exploit RUN` prints them for games that are small enough (`is_small`); for others it trains an opponent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import comb, prod
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from agents.base import Agent, decide, make_agent, need_probabilities, one_hot
from agents.tabular import Tabular
from domino_env.engine import make_engine
from domino_env.line import LineEngine
from domino_env.rules import Rules, get_rules
from domino_env.tiles import NUM_ACTIONS, NUM_TILES, mask_of
from domino_env.tree import information_key

MOST_DEALS = 200_000
MOST_TILES = 8  # dealt out; the ways a deal can go grow about fourfold with each
_BLOCK = 1 << 14  # decisions that an agent is asked at once

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Strategy = list[Floats]  # of each level, the probability of each entry


def count_deals(rules: Rules) -> int:
    """Deals there are, leaders aside: hands of all seats, whatever is left over."""
    sizes = [rules.num_tiles - rules.hand_size * seat for seat in range(rules.seats)]
    return prod(comb(size, rules.hand_size) for size in sizes)


def is_small(rules: Rules) -> bool:
    """Whether a game can be walked whole: at most 200,000 deals of at most 8 tiles, and a lead by rotation or tile."""
    try:
        _check(rules)
    except ValueError:
        return False
    return True


def _check(rules: Rules) -> None:
    if rules.rows or rules.lead not in ("rotation", "low"):
        raise ValueError(f"{rules.title}: exact figures are for games on an open line whose lead rotates, or of blitz")
    deals, dealt = count_deals(rules), rules.seats * rules.hand_size
    if deals > MOST_DEALS or dealt > MOST_TILES:
        raise ValueError(
            f"{rules.title} has {deals:,} deals of {dealt} tiles; exact figures are for at most {MOST_DEALS:,} deals "
            f"of {MOST_TILES} tiles, as tiny_pairs has"
        )


def all_deals(rules: Rules) -> npt.NDArray[np.uint32]:
    """(deals, seats) uint32 masks of every deal there is, all of them alike likely."""

    @cache
    def hands(tiles: tuple[int, ...], seats: int) -> list[tuple[int, ...]]:
        if not seats:
            return [()]
        found = []
        for hand in combinations(tiles, rules.hand_size):
            left = tuple(tile for tile in tiles if tile not in hand)
            found += [(mask_of(hand), *others) for others in hands(left, seats - 1)]
        return found

    return np.array(hands(rules.tiles, rules.seats), np.uint32)


@dataclass
class Level:
    """All deals that go on after the same number of actions: n nodes, m actions, s information sets, e entries.

    An entry is an action of an information set; entries lie by set, then by action.
    """

    mover: Ints  # (n,) place
    known: Ints  # (n,) information set of the mover
    mate: npt.NDArray[np.uint32]  # (n,) hand of the mover's partner; in games without pairs 0
    node: Ints  # (m,) node of each action, ascending
    entry: Ints  # (m,)
    goes_on: npt.NDArray[np.bool_]  # (m,) those whose deal goes on, in the order of the next level's nodes
    points: Floats  # (m, seats) of deals that end; else 0
    action: Ints  # (e,) of each entry
    of_set: Ints  # (e,) its information set
    who: Ints  # (s,) place that each information set belongs to
    asked: LineEngine  # one table of each information set


class Tree:
    """Every way that every deal of a game can go.

    Args:
        rules: a game that `is_small`.
        hands: (deals, seats) uint32, only these deals, all alike likely; None: all there are.

    Raises:
        ValueError: a game that is too large, or whose lead neither rotates nor is the lowest tile's.
    """

    def __init__(self, rules: str | Rules, hands: npt.NDArray[np.uint32] | None = None) -> None:
        self.rules = get_rules(rules)
        _check(self.rules)
        hands = all_deals(self.rules) if hands is None else hands
        self.deals = len(hands)
        self.levels = list(_levels(self.rules, hands))

    @property
    def nodes(self) -> int:
        """Positions in which a seat moves."""
        return sum(len(level.mover) for level in self.levels)

    @property
    def sets(self) -> int:
        """Information sets."""
        return sum(len(level.who) for level in self.levels)

    def strategy(self, agent: Agent, sample: bool = False) -> Strategy:
        """What an agent does in every information set.

        A network that plays its likeliest action is taken as it plays; with `sample` by its probabilities. All others
        by their probabilities.

        Raises:
            ValueError: an agent without probabilities, or that does not play the game.
        """
        make_agent(agent, self.rules)
        need_probabilities(agent)
        certain = getattr(agent, "sample", True) is False and not sample
        return [_asked(level, agent, certain) for level in self.levels]

    def values(self, strategy: Strategy) -> Floats:
        """(seats,) what each place wins where all play by a strategy."""
        worth = np.zeros((0, self.rules.seats))
        for level, chances in zip(reversed(self.levels), reversed(strategy)):
            after = level.points.copy()
            after[level.goes_on] = worth
            after *= chances[level.entry][:, None]
            worth = np.add.reduceat(after, _starts(level.node))
        return cast(Floats, worth.mean(axis=0))

    def best_response(self, strategy: Strategy, place: int) -> tuple[float, Strategy]:
        """The most that one place can win where all others play by a strategy, and a strategy that wins it."""
        return self._respond(strategy, (place,), shared=False)

    def pair_above(self, strategy: Strategy, pair: int) -> float:
        """No more can a pair win (0 the leader's, 1 the other): it wins this where both partners see both hands."""
        return self._respond(strategy, (pair, pair + 2), shared=True)[0]

    def pair_below(self, strategy: Strategy, pair: int, rounds: int = 50) -> float:
        """So much a pair can win at least: partners who answer in turn, the better of who begins.

        Each answers best to what its partner plays now and the other pair plays by the strategy, until one cannot win
        1e-9 points more: then neither can.
        """
        return max(self._in_turn(strategy, order, rounds) for order in ((pair, pair + 2), (pair + 2, pair)))

    def _in_turn(self, strategy: Strategy, order: tuple[int, int], rounds: int) -> float:
        value, strategy = self.best_response(strategy, order[0])
        for _ in range(rounds):
            before = value
            order = order[::-1]
            value, strategy = self.best_response(strategy, order[0])
            if value <= before + 1e-9:
                break
        return value

    def _respond(self, strategy: Strategy, team: tuple[int, ...], shared: bool) -> tuple[float, Strategy]:
        """The best a team can do; `shared`: each knows the hands of both."""
        ours = [np.isin(level.mover, team) for level in self.levels]
        reach = [np.full(self.deals, 1 / self.deals)]  # of each node, by chance and the others
        for level, chances, mine in zip(self.levels, strategy, ours):
            forth = reach[-1][level.node] * np.where(mine[level.node], 1.0, chances[level.entry])
            reach.append(forth[level.goes_on])
        worth = np.zeros(0)
        answer: Strategy = []
        for level, chances, mine, weight in zip(*(reversed(x) for x in (self.levels, strategy, ours, reach[:-1]))):
            after = level.points[:, team[0]].copy()
            after[level.goes_on] = worth
            choose = mine[level.node]
            share = np.where(choose, 0.0, chances[level.entry])
            entries, of_set = _shared(level) if shared else (level.entry, level.of_set)
            total = np.bincount(entries, weight[level.node] * after * choose, minlength=len(of_set)).astype(np.float64)
            chosen = _first_best(total, of_set)
            share[choose & chosen[entries]] = 1
            worth = np.add.reduceat(after * share, _starts(level.node))
            held = np.isin(level.who, team)[level.of_set]
            answer.append(chances if shared else np.where(held, chosen.astype(float), chances))
        return float(worth.mean()), answer[::-1]


def _levels(rules: Rules, hands: npt.NDArray[np.uint32]) -> Iterator[Level]:
    engine = make_engine(rules, len(hands), seed=0)
    assert isinstance(engine, LineEngine)
    engine.deal(hands, None if rules.lead == "low" else np.zeros(len(hands), np.int64))
    public = engine.leader()  # number of what all have seen
    going = True
    while going:
        each, mover = np.arange(engine.num_envs), engine.to_move()
        held = engine.hands()
        mine = held[each, mover].astype(np.int64)
        _, first, known = np.unique(public << NUM_TILES | mine, return_index=True, return_inverse=True)
        node, action = np.nonzero(engine.legal())
        entries, entry = np.unique(known[node] << 6 | action, return_inverse=True)
        after = engine.take(node)
        points, over = after.step(action, autoreset=False)
        yield Level(
            mover=mover,
            known=known,
            mate=held[each, (mover + 2) % 4] if rules.pairs else np.zeros(len(each), np.uint32),
            node=node,
            entry=entry,
            goes_on=~over,
            points=points.astype(np.float64),
            action=entries & 63,
            of_set=entries >> 6,
            who=mover[first],
            asked=engine.take(first),
        )
        going = not over.all()
        if going:
            public = np.unique(public[node[~over]] << 6 | action[~over], return_inverse=True)[1]
            engine = after.take(~over)


def _asked(level: Level, agent: Agent, certain: bool) -> Floats:
    """(e,) the probability of each entry by an agent."""
    rows = []
    for begin in range(0, len(level.who), _BLOCK):
        block = np.arange(begin, min(begin + _BLOCK, len(level.who)))
        batch = decide(level.asked, agent, rows=block)
        if certain:
            rows.append(one_hot(agent.act(batch), batch.mask.shape[1]))
        else:
            rows.append(np.asarray(cast(Any, agent).probabilities(batch), np.float64))
    table = np.concatenate(rows)
    table /= table.sum(axis=1, keepdims=True)
    return table[level.of_set, level.action]


def _starts(ascending: Ints) -> Ints:
    """Where each run of equal numbers begins."""
    return np.flatnonzero(np.diff(ascending, prepend=-1))


def _first_best(total: Floats, of_set: Ints) -> npt.NDArray[np.bool_]:
    """(e,) bool: of each set the entry of the highest total, of equals the first."""
    starts = _starts(of_set)
    highest = np.repeat(np.maximum.reduceat(total, starts), np.diff(starts, append=len(total)))
    best = np.flatnonzero(total == highest)
    chosen = np.zeros(len(total), np.bool_)
    chosen[best[_starts(of_set[best])]] = True
    return chosen


def _shared(level: Level) -> tuple[Ints, Ints]:
    """Entries (m,) and sets (e,) of a mover who knows its partner's hand too."""
    both = np.unique(level.known << NUM_TILES | level.mate, return_inverse=True)[1]
    entries, entry = np.unique(both[level.node] << 6 | level.action[level.entry], return_inverse=True)
    return entry, entries >> 6


# -- figures --------------------------------------------------------------------------------------------------------


def exact_exploitability(
    agent: str | Agent, rules: str | Rules = "tiny_pairs", *, sample: bool = False, tree: Tree | None = None
) -> dict[str, Any]:
    """What can be won from an agent at most, exactly, in points a deal; this is what `domino exploit` prints.

    Args:
        agent: a name, a folder, or an agent; it plays every seat. It needs probabilities.
        rules: a game that `is_small`.
        sample: take a network by its probabilities, and not by its likeliest action.
        tree: of the same rules, where several agents are asked.

    Returns:
        agent, rules: names; deals, nodes, information_sets: sizes of the tree, for one leader;
        value: of each place, the leader's first, where the agent plays all of them;
        best_response: of each place, what it wins at most, all others as they are; gain: what that is more;
        nash_conv: the sum of the gains; exploitability: their mean;
        and in pairs, for each pair, the leader's first: pair_value, pair_below and pair_above, between which lies what
        the pair wins at most; pair_exploitability_below, pair_exploitability_above: what that is more, mean of the two.

    Raises:
        ValueError: a game that is too large, or an agent that cannot be asked.
    """
    game = get_rules(rules)
    tree = tree or Tree(game)
    player = make_agent(agent, game)
    strategy = tree.strategy(player, sample)
    value = tree.values(strategy)
    best = np.array([tree.best_response(strategy, place)[0] for place in range(game.seats)])
    gain = best - value
    figures = {
        "agent": player.name,
        "rules": game.title,
        "deals": tree.deals,
        "nodes": tree.nodes,
        "information_sets": tree.sets,
        "value": value.tolist(),
        "best_response": best.tolist(),
        "gain": gain.tolist(),
        "nash_conv": float(gain.sum()),
        "exploitability": float(gain.mean()),
    }
    if game.pairs:
        below = np.array([tree.pair_below(strategy, pair) for pair in (0, 1)])
        above = np.array([tree.pair_above(strategy, pair) for pair in (0, 1)])
        figures |= {
            "pair_value": value[:2].tolist(),
            "pair_below": below.tolist(),
            "pair_above": above.tolist(),
            "pair_exploitability_below": float((below - value[:2]).mean()),
            "pair_exploitability_above": float((above - value[:2]).mean()),
        }
    return figures


# -- an equilibrium of two seats -------------------------------------------------------------------------------------


def equilibrium(rules: str | Rules, tree: Tree | None = None) -> tuple[float, Strategy]:
    """An equilibrium of a game of two seats: what the leader wins, and the strategy of both.

    Raises:
        ValueError: a game of other than two seats.
    """
    tree = tree or Tree(rules)
    if tree.rules.seats != 2 or tree.rules.lead != "rotation":
        raise ValueError(f"{tree.rules.title}: an equilibrium is worked out for two seats whose lead rotates")
    from scipy import optimize, sparse

    plan = _sequences(tree)
    payoff, (first, second) = plan.payoff, plan.flows
    sets = second.shape[0]
    # max q_0 with E x = e, F'q <= A'x, x >= 0; the multipliers of the inequality are the second seat's plan.
    answer = optimize.linprog(
        np.concatenate([np.zeros(first.shape[1]), [-1.0], np.zeros(sets - 1)]),
        A_ub=sparse.hstack([-payoff.T, second.T]).tocsr(),
        b_ub=np.zeros(second.shape[1]),
        A_eq=sparse.hstack([first, sparse.csr_matrix((first.shape[0], sets))]).tocsr(),
        b_eq=np.eye(1, first.shape[0])[0],
        bounds=[(0, None)] * first.shape[1] + [(None, None)] * sets,
        method="highs",
    )
    if answer.status:
        raise RuntimeError(f"the linear program of {tree.rules.title} was not solved: {answer.message}")
    plans = [answer.x[: first.shape[1]], -answer.ineqlin.marginals]
    return -float(answer.fun), plan.behaviour(tree, plans)


@dataclass
class _Plan:
    """A game of two seats over sequences: a sequence is a seat's own actions so far, number 0 none."""

    payoff: Any  # sparse (sequences of 0, sequences of 1), chance times the leader's points
    flows: list[Any]  # of each seat, sparse (sets + 1, sequences): what flows on from a set is what flowed into it
    numbers: list[Ints]  # of each level, (e,) the sequence that each entry ends, of its own seat
    before: list[Ints]  # of each level, (s,) the sequence of its own seat before each information set

    def behaviour(self, tree: Tree, plans: Sequence[Floats]) -> Strategy:
        """Probabilities of actions from the flows; sets that are never reached play all alike."""
        strategy = []
        for level, number, before in zip(tree.levels, self.numbers, self.before):
            who = level.who[level.of_set]
            flow = np.maximum(np.where(who == 0, plans[0][number * (who == 0)], plans[1][number * (who == 1)]), 0)
            into = np.bincount(level.of_set, flow, minlength=len(before))[level.of_set]
            alike = 1 / np.bincount(level.of_set, minlength=len(before))[level.of_set]
            strategy.append(np.where(into > 1e-9, flow / np.maximum(into, 1e-300), alike))
        return strategy


def _sequences(tree: Tree) -> _Plan:
    from scipy import sparse

    last = np.zeros((tree.deals, 2), np.int64)  # of each node, each seat's sequence
    count = [1, 1]
    rows: list[list[Any]] = [[], []]  # of each seat, (set, sequence, ±1)
    sets = [1, 1]
    ends: list[Any] = []
    numbers, befores = [], []
    for level in tree.levels:
        number = np.zeros(len(level.action), np.int64)
        before = np.zeros(len(level.who), np.int64)
        before[level.known] = last[np.arange(len(level.known)), level.mover]
        for seat in (0, 1):
            entries = np.flatnonzero(level.who[level.of_set] == seat)
            mine = np.flatnonzero(level.who == seat)
            number[entries] = count[seat] + np.arange(len(entries))
            count[seat] += len(entries)
            place = np.zeros(len(level.who), np.int64)
            place[mine] = sets[seat] + np.arange(len(mine))
            sets[seat] += len(mine)
            rows[seat].append((place[level.of_set[entries]], number[entries], np.ones(len(entries))))
            rows[seat].append((place[mine], before[mine], -np.ones(len(mine))))
        numbers.append(number)
        befores.append(before)
        after = last[level.node]
        after[np.arange(len(level.node)), level.mover[level.node]] = number[level.entry]
        over = ~level.goes_on
        ends.append((after[over, 0], after[over, 1], level.points[over, 0] / tree.deals))
        last = after[level.goes_on]
    flows = []
    for seat in (0, 1):
        at, sequence, sign = (np.concatenate(parts) for parts in zip(*rows[seat], ([0], [0], [1.0])))
        flows.append(sparse.csr_matrix((sign, (at, sequence)), (sets[seat], count[seat])))
    first, second, points = (np.concatenate(parts) for parts in zip(*ends))
    return _Plan(sparse.csr_matrix((points, (first, second)), tuple(count)), flows, numbers, befores)


def as_agent(tree: Tree, strategy: Strategy, name: str = "equilibrium") -> Tabular:
    """A strategy of a tree as a player of its game."""
    table: dict[str, Floats] = {}
    for level, chances in zip(tree.levels, strategy):
        rows = np.zeros((len(level.who), NUM_ACTIONS))
        rows[level.of_set, level.action] = chances
        mine, each = level.asked, np.arange(len(level.who))
        dealt = (mine.hands() | mine.played())[each, level.who]
        events, leader = mine.history(), mine.leader()
        for j in each.tolist():
            past = events[j]
            moves = (past[past >= 0] & 63).tolist()
            table[information_key(int(level.who[j]), int(leader[j]), int(dealt[j]), moves)] = rows[j]
    return Tabular(table.__getitem__, tree.rules, name, by_place=tree.rules.lead == "rotation")
