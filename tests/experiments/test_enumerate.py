"""Exact figures of small games against a plain walk, all pure strategies, and OpenSpiel's own figures."""

import json
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from agents import decide, make_agent
from domino_env import get_rules, make_engine
from domino_env.tree import CHANCE, OVER, Setup, make_setup
from experiments import cli
from experiments.enumerate import (
    Tree,
    all_deals,
    as_agent,
    count_deals,
    equilibrium,
    exact_exploitability,
    is_small,
)
from experiments.evaluate import evaluate

DUEL = get_rules("tiny_pairs", seats=2, pairs=False, max_pip=2)
PAIRS = get_rules("tiny_pairs")
BLITZ = get_rules("blitz", max_pip=3, hand_size=2)


@pytest.fixture(scope="module")
def duel():
    return Tree(DUEL)


@pytest.fixture(scope="module")
def pairs():
    """The 90 deals in which seats 0 and 1 hold 0-0 0-1 and 0-2 0-3: what seats 2 and 3 hold is not known to them."""
    deals = all_deals(PAIRS)
    return Tree(PAIRS, deals[(deals[:, 0] == 0b11) & (deals[:, 1] == 0b1100)])


def plain(rules, hands, leader, chances):
    """What each seat wins in one deal, by walking it: `chances(position)` are pairs (action, probability)."""

    def walk(here):
        if here.mover == OVER:
            return np.array(here.returns())
        return sum(share * walk(here.after(action)) for action, share in chances(here) if share)

    return walk(Setup(rules).dealt(hands, leader))


def lopsided(here):
    """What `Lopsided` plays."""
    weights = {action: 1 + 5 * action % 8 for action in here.legal_actions()}
    return [(action, weight / sum(weights.values())) for action, weight in weights.items()]


class Lopsided:
    """Prefers some actions to others, so that what was played tells of the hand."""

    name = "lopsided"

    def act(self, batch):
        """The likeliest action."""
        return self.probabilities(batch).argmax(axis=1)

    def probabilities(self, batch):
        """Weights of 1 to 8 by action id."""
        weights = batch.mask * (1 + 5 * np.arange(batch.mask.shape[1]) % 8)
        return weights / weights.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("rules", [DUEL, PAIRS, BLITZ], ids=lambda r: r.name)
def test_values__are_those_of_a_plain_walk(rules):
    deals = all_deals(rules)
    deals = deals[:: max(1, len(deals) // 90)]
    tree = Tree(rules, deals)
    leader = -1 if rules.lead == "low" else 0
    expected = np.mean([plain(rules, hands, leader, lopsided) for hands in deals], axis=0)
    assert np.allclose(tree.values(tree.strategy(Lopsided())), expected, atol=1e-12)
    assert expected.any()


def test_deals__each_once():
    assert count_deals(get_rules("tiny_pairs")) == 113_400 and count_deals(DUEL) == 90
    deals = all_deals(DUEL)
    assert deals.shape == (90, 2) and len(np.unique(deals, axis=0)) == 90
    assert (np.bitwise_count(deals) == 2).all() and not (deals[:, 0] & deals[:, 1]).any()
    assert not (deals & ~np.uint32(sum(1 << t for t in DUEL.tiles))).any()


def pure_strategies(rules, deals, seats, shared):
    """The best mean of the first of `seats` over all ways in which they can play, by trying every one.

    Others are lopsided. `shared`: what a seat does may hang on the hands of all of `seats`.
    """

    def known(here):
        others = tuple(here.dealt[seat] for seat in seats) if shared else ()
        return here.key(here.mover), others

    choices = {}

    def collect(here):
        if here.mover != OVER:
            if here.mover in seats:
                choices[known(here)] = here.legal_actions()
            for action in here.legal_actions():
                collect(here.after(action))

    for hands in deals:
        collect(Setup(rules).dealt(hands, 0))
    open_choices = {key: actions for key, actions in choices.items() if len(actions) > 1}
    assert 2 <= np.prod([len(actions) for actions in open_choices.values()]) <= 40_000
    best = -np.inf
    for actions in product(*open_choices.values()):
        chosen = dict(zip(open_choices, actions))

        def chances(here, chosen=chosen):
            if here.mover not in seats:
                return lopsided(here)
            return [(chosen.get(known(here), here.legal_actions()[0]), 1.0)]

        best = max(best, np.mean([plain(rules, hands, 0, chances)[seats[0]] for hands in deals]))
    return best


@pytest.mark.parametrize(("place", "some"), [(0, [0, 1, 30, 31]), (1, [57, 26, 13, 82])])
def test_best_response__is_the_best_of_all_pure_strategies(place, some):
    """Two seats, four deals, the responder holding the same in some: it cannot tell them apart.

    In the second, what the leader played tells which deal is likely, and its best answer hangs on that.
    """
    deals = all_deals(DUEL)[some]
    assert len(np.unique(deals[:, place])) < 4
    tree = Tree(DUEL, deals)
    others = tree.strategy(Lopsided())
    value, answer = tree.best_response(others, place)
    assert value == pytest.approx(pure_strategies(DUEL, deals, (place,), shared=False), abs=1e-12)
    assert value > tree.values(others)[place] + 1e-6
    assert tree.values(answer)[place] == pytest.approx(value, abs=1e-12)  # it wins what it promises


@pytest.mark.parametrize("place", [0, 1])
def test_best_response__does_not_hang_on_what_the_place_itself_played(place):
    """A place whose play is certain never comes to most of its decisions; there the best answer is known, too."""
    tree = Tree(get_rules("tiny_pairs", seats=2, pairs=False, max_pip=2, hand_size=3))
    others = tree.strategy(Lopsided())
    player = Lopsided()
    player.sample = False  # it plays its likeliest action
    certain = tree.strategy(player)
    own = [np.where(a.who[a.of_set] == place, x, y) for a, x, y in zip(tree.levels, certain, others)]
    assert tree.best_response(own, place)[0] == pytest.approx(tree.best_response(others, place)[0], abs=1e-12)
    assert not np.allclose(tree.values(own), tree.values(others))


def test_pair__its_bounds_are_those_of_all_pure_strategies(pairs):
    """Below <= best of all joint strategies <= above, and above is the best of a pair that sees both hands."""
    deals = all_deals(PAIRS)
    some = deals[[84, 68, 1793]]  # chosen so that the three differ
    tree = Tree(PAIRS, some)
    others = tree.strategy(Lopsided())
    best = pure_strategies(PAIRS, some, (1, 3), shared=False)
    below, above = tree.pair_below(others, 1), tree.pair_above(others, 1)
    assert above == pytest.approx(pure_strategies(PAIRS, some, (1, 3), shared=True), abs=1e-12)
    alone = max(tree.best_response(others, place)[0] for place in (1, 3))
    assert alone + 1e-6 < below <= best + 1e-12
    assert best + 1e-6 < above


def spiel(rules):
    """The game in OpenSpiel."""
    pytest.importorskip("pyspiel")
    from domino_env.openspiel import load_game

    return load_game(rules)


@pytest.mark.parametrize("name", ["random", "club"])
def test_exploitability__is_openspiels(name, duel):
    """Two seats: the same to 1e-9, who leads being chance there."""
    game = spiel(DUEL)
    from open_spiel.python.algorithms import exploitability

    from domino_env.openspiel import AgentPolicy

    theirs = exploitability.exploitability(game, AgentPolicy(game, make_agent(name)))
    ours = exact_exploitability(name, DUEL, tree=duel)
    assert ours["exploitability"] == pytest.approx(theirs, abs=1e-9) and theirs > 0.1
    assert ours["nash_conv"] == pytest.approx(2 * theirs, abs=1e-9)


def test_best_response__is_openspiels_in_pairs(pairs):
    """Four seats, from two hands that are given on: what each seat wins alone, partner as it is."""
    game = spiel(PAIRS)
    from open_spiel.python.algorithms.best_response import BestResponsePolicy

    from domino_env.openspiel import AgentPolicy

    root = game.new_initial_state()
    for outcome in (0, 0, 0):  # seat 0 leads; it gets 0-0 0-1, then seat 1 of the rest 0-2 0-3
        root.apply_action(outcome)
    assert pairs.deals == 90
    ours = pairs.strategy(make_agent("club"))
    theirs = AgentPolicy(game, make_agent("club"))
    gains = 0.0
    for place in range(4):
        value = BestResponsePolicy(game, place, theirs, root).value(root)
        assert pairs.best_response(ours, place)[0] == pytest.approx(value, abs=1e-9)
        gains += value
    assert gains > 0.1  # no seat can be held to what all lose together


def test_equilibrium__cannot_be_exploited(duel):
    """Its own best responses win the value and no more; as an agent it stays so, here and in OpenSpiel."""
    value, strategy = equilibrium(DUEL, duel)
    assert duel.values(strategy)[0] == pytest.approx(value, abs=1e-9)
    assert duel.best_response(strategy, 0)[0] == pytest.approx(value, abs=1e-9)
    assert duel.best_response(strategy, 1)[0] == pytest.approx(-value, abs=1e-9)
    agent = as_agent(duel, strategy)
    assert exact_exploitability(agent, DUEL, tree=duel)["exploitability"] == pytest.approx(0, abs=1e-9)
    game = spiel(DUEL)
    from open_spiel.python.algorithms import exploitability

    from domino_env.openspiel import AgentPolicy

    assert exploitability.exploitability(game, AgentPolicy(game, agent)) == pytest.approx(0, abs=1e-9)


def test_equilibrium__gains_nothing_by_another_player(duel):
    """Against it the leader wins at most its value, whoever leads (minimax)."""
    value, strategy = equilibrium(DUEL, duel)
    for name in ("greedy", "club", "random"):
        other = duel.strategy(make_agent(name))
        leads = [np.where(a.who[a.of_set] == 0, x, y) for a, x, y in zip(duel.levels, other, strategy)]
        follows = [np.where(a.who[a.of_set] == 0, y, x) for a, x, y in zip(duel.levels, other, strategy)]
        assert duel.values(leads)[0] <= value + 1e-9 <= duel.values(follows)[0] + 2e-9


def test_equilibrium__plays_at_our_tables(duel):
    """As an agent it sits at the engine, in every seat: over `random` it wins what the tree says."""
    value, strategy = equilibrium(DUEL, duel)
    agent = as_agent(duel, strategy)
    result = evaluate(agent, "random", rules=DUEL, boards=3000, seed=1)
    other = duel.strategy(make_agent("random"))
    leads = [np.where(a.who[a.of_set] == 0, y, x) for a, x, y in zip(duel.levels, other, strategy)]
    follows = [np.where(a.who[a.of_set] == 0, x, y) for a, x, y in zip(duel.levels, other, strategy)]
    exact = (duel.values(leads)[0] + duel.values(follows)[1]) / 2
    assert result.low - 0.1 < exact < result.high + 0.1
    assert exact > 0.2 and value > 1


def test_figures__are_named_and_agree(duel, pairs):
    found = exact_exploitability("greedy", DUEL, tree=duel)
    assert (found["agent"], found["rules"], found["deals"]) == ("greedy", DUEL.title, 90)
    assert found["nodes"] > found["information_sets"] > 100
    assert np.allclose(np.subtract(found["best_response"], found["value"]), found["gain"])
    assert found["nash_conv"] == pytest.approx(sum(found["gain"]))
    assert sum(found["value"]) == pytest.approx(0, abs=1e-12) and min(found["gain"]) >= -1e-12
    assert "pair_above" not in found
    pairs = exact_exploitability("random", PAIRS, tree=pairs)
    assert pairs["pair_exploitability_below"] <= pairs["pair_exploitability_above"] + 1e-12
    for low, high, one in zip(pairs["pair_below"], pairs["pair_above"], pairs["best_response"]):
        assert one - 1e-12 <= low <= high + 1e-12


def test_network__is_taken_as_it_plays():
    """One that plays its likeliest action is certain, unless asked for its probabilities."""

    class Leaning:
        """Prefers the lowest id, and says so with 0.6."""

        name = "leaning"
        sample = False

        def act(self, batch):
            return batch.mask.argmax(axis=1)

        def probabilities(self, batch):
            legal = batch.mask / batch.mask.sum(axis=1, keepdims=True)
            lowest = np.eye(batch.mask.shape[1])[self.act(batch)]
            return 0.4 * legal + 0.6 * lowest

    tree = Tree(DUEL)
    for sample, certain in ((False, True), (True, False)):
        strategy = tree.strategy(Leaning(), sample)
        assert all(np.isin(level, (0, 1)).all() for level in strategy) is certain


def test_games__that_are_too_large_are_refused(pairs):
    assert is_small(get_rules("tiny_pairs")) and is_small(DUEL)
    for rules in ("sport_book", "kozyol", "blind"):
        assert not is_small(get_rules(rules))
    with pytest.raises(ValueError, match=r"sport_book has .* deals of 28 tiles; exact figures are for at most 200,000"):
        exact_exploitability("random", "sport_book")
    with pytest.raises(ValueError, match="open line whose lead rotates"):
        Tree("kozyol")
    with pytest.raises(ValueError, match="pimc has no probabilities"):
        exact_exploitability(SimpleNamespace(name="pimc", act=lambda batch: batch.mask.argmax(axis=1)), DUEL)
    with pytest.raises(ValueError, match="an equilibrium is worked out for two seats"):
        equilibrium(PAIRS, pairs)


def test_openspiel__its_chance_is_the_same(duel):
    """The mean over OpenSpiel's chance nodes is the mean over deals and leaders."""

    def walk(here):
        if here.mover == OVER:
            return np.array(here.returns())
        if here.mover == CHANCE:
            return sum(share * walk(here.after(outcome)) for outcome, share in here.outcomes())
        return sum(share * walk(here.after(action)) for action, share in lopsided(here))

    places = duel.values(duel.strategy(Lopsided()))
    assert np.allclose(walk(make_setup(DUEL, 1).start()), places[::-1], atol=1e-12)
    assert np.allclose(walk(make_setup(DUEL).start()), 0, atol=1e-12) and places[0] > 1


def test_command(capsys):
    """`domino exploit NAME --exact` prints the figures, and refuses a large game in one line."""
    words = ["exploit", "random", "--exact", "--rules", "tiny_pairs seats=2 pairs=False max_pip=2"]
    assert cli.main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == exact_exploitability("random", DUEL)
    assert cli.main(words) == 0
    shown = capsys.readouterr().out
    assert "90 deals" in shown and "place 1" in shown and "0.5611" in shown
    assert cli.main(["exploit", "random", "--exact"]) == 2
    caught = capsys.readouterr()
    assert (
        "exact figures are for at most 200,000 deals" in caught.err and caught.err.count("\n") == 1 and not caught.out
    )


@pytest.mark.slow
def test_tiny_pairs__every_deal():
    """All 113,400 deals: figures against games that were really played, and the order of the bounds."""
    rules = get_rules("tiny_pairs")
    found = exact_exploitability("club", rules)
    assert found["deals"] == 113_400 and found["information_sets"] == 53_019
    engine = make_engine(rules, 40_000, seed=9)
    club, total, dealt = make_agent("club"), 0.0, 0
    engine.reset(options={"leader": 0})
    rng = np.random.default_rng(1)
    while engine.num_envs and dealt < 40_000:
        rewards, done = engine.step(club.act(decide(engine, None, rng)), autoreset=False)
        total += rewards[done, 0].sum()
        dealt += done.sum()
        if done.all():
            break
        engine = engine.take(~done)
    assert dealt == 40_000
    assert total / dealt == pytest.approx(found["value"][0], abs=0.15)
    assert found["pair_exploitability_below"] < found["pair_exploitability_above"]
    for pair in (0, 1):
        assert max(found["best_response"][pair::2]) <= found["pair_below"][pair] <= found["pair_above"][pair]
