"""Listening and influence: zero to the bit where nobody listens, what is known where somebody does, and by hand."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from agents import make_agent
from agents.planted import Planted
from agents.search.asking import answers
from agents.search.lookahead import Lookahead
from agents.search.pimc import Pimc
from domino_env.tiles import HIGH, LOW, NUM_TILES, PASS, PIPS, pips_of, tiles_of
from experiments.signaling.listening import _played, changes, influences, listening, mutual, twins
from experiments.signaling.record import play
from tests.agents.search.test_worlds import Modelled

TILES = range(8, 17)


@pytest.fixture(scope="module")
def loud() -> Any:
    """A pair of speakers and listeners in all seats."""
    return play(Planted(4, listen=3), deals=50, seed=1, tiles=TILES)


def test_a_speaker_whom_nobody_reads_is_not_listened_to() -> None:
    """Moves tell and change what the next may do, and yet nothing is heard: 0 to the bit (Lowe's trap)."""
    speaker = Planted(8)
    record = play(speaker, deals=40, seed=1, tiles=TILES)
    found = listening(record, speaker, make_agent(twins(speaker.name)["all"]))
    for one in (found.divergence, found.variation, found.flips):
        assert (one.mean, one.error) == (0, 0) and one.covers(0)
    assert found.influence.keys() == {"left", "partner"}
    for part in found.influence.values():
        assert part.informational.mean == 0 == part.informational.error
        assert part.total.mean > 0.1 and part.total.told and part.total.mean == part.physical.mean


def test_flips__that_never_came_are_not_known_to_be_none() -> None:
    """Ten deals without one say that they are few, not that there are none; of players without probabilities, too."""
    record = play("club", deals=10, seed=4, tiles=[14])
    agent = Pimc(worlds=2, candidates=10, model=make_agent("club"), temperature=1, floor=0.1, reads="none")
    for player, seats in ((make_agent("club"), None), (agent, range(4))):
        found = listening(record, player, player, seats=seats, places=())
        for one in (found.flips, *([] if seats is None else found.by_tiles.values())):
            assert (one.mean, one.low) == (0, 0) and one.high == pytest.approx(1 - 0.025 ** (1 / one.units))


def test_a_listener_listens_and_to_its_partner_alone(loud: Any) -> None:
    agent = loud.table[0]
    names = twins(agent.name)
    found = {who: listening(loud, agent, make_agent(name), places=(1, 2, 3)) for who, name in names.items()}
    for who in ("all", "partner"):
        assert found[who].divergence.low > 0.1 and found[who].variation.low > 0.05 and found[who].flips.low > 0.05
        for place in ("left", "partner", "right"):
            assert found[who].influence[place].informational.low > 0.05
    assert found["opponents"].divergence.mean == 0 == found["opponents"].influence["partner"].informational.mean
    assert found["all"].divergence.units == 50 and set(found["all"].by_tiles) <= set(TILES)
    assert found["all"].to_dict()["influence"]["partner"]["informational"]["mean"] > 0.05
    assert len(found["all"].rows()) == 3 + 9


def test_a_listener_of_noise_changes_its_play() -> None:
    agent = Planted(0, noise=2)
    record = play(agent, deals=30, seed=2, tiles=TILES)
    assert listening(record, agent, make_agent(twins(agent.name)["all"]), places=()).divergence.low > 0.05


def test_changes__are_those_of_the_probabilities(loud: Any) -> None:
    moments, hearing, deaf = loud.moments, Planted(4, listen=3), Planted(4)
    found = changes(moments, hearing, deaf, floor=0.1)
    rows = np.arange(len(moments))
    p, q = (answers(moments.position, agent, rows, moments.hand(), 0.1)[0] for agent in (hearing, deaf))
    for row in range(0, len(moments), 17):
        pairs = [(a, b) for a, b in zip(p[row], q[row]) if a > 0]
        assert found.divergence is not None and found.variation is not None
        assert found.divergence[row] == pytest.approx(sum(a * math.log2(a / b) for a, b in pairs))
        assert found.variation[row] == pytest.approx(sum(max(a - b, 0) for a, b in pairs))
        assert found.flip[row] == (p[row].argmax() != q[row].argmax())


def outer(tile: int, end: int) -> int:
    return int(LOW[tile]) + int(HIGH[tile]) - end


def moves(hand: int, ends: tuple[int, int]) -> dict[int, tuple[int, int]]:
    """Legal actions of a game without labelled ends, and the ends after them."""
    found = {}
    for tile in tiles_of(hand):
        for side in (0, 1) if ends[0] != ends[1] else (0,):
            if ends[side] in (LOW[tile], HIGH[tile]):
                new = [*ends]
                new[side] = outer(tile, ends[side])
                found[tile + NUM_TILES * side] = (new[0], new[1])
    return found


def heavy(options: Any) -> dict[int, float]:
    """What `Planted(0)` plays: softmax of pips."""
    if not options:
        return {PASS: 1.0}
    worth = {a: math.exp(int(PIPS[a % NUM_TILES])) for a in options}
    return {a: w / sum(worth.values()) for a, w in worth.items()}


def gained(arms: list[tuple[float, dict[Any, float]]]) -> float:
    """Mutual information by its other formula: H(answer) - mean H(answer | action)."""

    def entropy(answer: dict[Any, float]) -> float:
        return -sum(x * math.log2(x) for x in answer.values() if x > 0)

    mean: dict[Any, float] = {}
    for weight, answer in arms:
        for a, x in answer.items():
            mean[a] = mean.get(a, 0) + weight * x
    return entropy(mean) - sum(weight * entropy(answer) for weight, answer in arms)


def test_influence__by_hand() -> None:
    """Partner-blind players of heavy tiles, played out by another program: what the next two seats answer."""
    agent = Planted(0)
    moments = play(agent, deals=25, seed=4, tiles=[9, 13]).moments
    found = {place: influences([agent] * 4, moments, agent, agent, place) for place in (1, 2)}
    seen = 0
    for row in range(len(moments)):
        seat, ends = int(moments.seat[row]), tuple(moments.position.ends[row].tolist())
        hands = moments.hands[row].tolist()
        one, two = (hands[(seat + k) % 4] for k in (1, 2))
        rest = [hands[(seat + k) % 4] for k in range(4)]
        arms: dict[int, list[tuple[float, dict[Any, float]]]] = {1: [], 2: []}
        ended = False
        for action, weight in heavy(options := moves(hands[seat], ends)).items():
            left = rest[0] & ~(1 << action % NUM_TILES)
            after = options[action]
            if not left or not any(moves(hand, after) for hand in (left, *rest[1:])):
                ended = True
                break
            arms[1].append((weight, dict(heavy(moves(one, after)))))
            answer: dict[Any, float] = {}
            for reply, chance in heavy(replies := moves(one, after)).items():
                now = replies.get(reply, after)
                less = one & ~(1 << reply % NUM_TILES) if reply != PASS else one
                if not less or not any(moves(hand, now) for hand in (left, less, *rest[2:])):
                    ended = True
                    break
                for a, x in heavy(moves(two, now)).items():
                    answer[a] = answer.get(a, 0) + chance * x
            arms[2].append((weight, answer))
        if ended:
            continue
        seen += 1
        for place in (1, 2):
            assert found[place].total[row] == pytest.approx(gained(arms[place]), abs=1e-9)
            assert found[place].informational[row] == 0
    assert seen > 15


def test_influence__after_a_move_that_ends_the_deal() -> None:
    """Late in the deal an action may leave the listener no turn: that is an answer, too, and figures stay finite."""
    agent = Planted(1, listen=1)
    moments = play(agent, deals=60, seed=5, tiles=range(20, 26)).moments
    assert len(moments) > 20
    for place in (1, 2, 3):
        found = influences([agent] * 4, moments, agent, Planted(1), place)
        for one in (found.total, found.physical, found.informational):
            assert np.isfinite(one).all() and (one >= 0).all()
            assert (found.total <= np.log2(np.bitwise_count(moments.legal)) + 1e-9).all()


def test_influence__of_players_whose_moves_are_certain() -> None:
    """By its own policy club would do nothing else: only `do="uniform"` asks what comes of its other moves."""
    club = make_agent("club")
    deaf = make_agent(twins("club")["all"])
    record = play(club, deals=20, seed=3, tiles=TILES)
    own, even = (
        influences(record.table, record.moments, club, deaf, 1, do=do, floor=0.02) for do in ("policy", "uniform")
    )
    assert even.physical.mean() > 2 * own.physical.mean() > 0
    with pytest.raises(ValueError, match="give a floor above 0"):
        changes(record.moments, club, deaf)
    assert changes(record.moments, club, deaf, floor=0.02).flip.any()


def test_mutual__is_a_sum_and_not_a_mean() -> None:
    """A listener that ignores four messages alike scores 0, and not log2 of 4; one that repeats them scores 2 bits."""
    row, weight = np.zeros(4, int), np.full(4, 0.25)
    assert mutual(row, weight, np.tile([0.1, 0.2, 0.7], (4, 1)))[0] == pytest.approx(0, abs=1e-15)
    assert mutual(row, weight, np.eye(4))[0] == pytest.approx(2)
    row, weight = np.array([0, 1, 1]), np.array([1, 0.9, 0.1])
    found = mutual(row, weight, np.array([[0.5, 0.5], [1, 0], [0, 1]]))
    assert found == pytest.approx([0, -0.9 * math.log2(0.9) - 0.1 * math.log2(0.1)])


def test_players_that_search_are_asked_twice_with_one_chance() -> None:
    """The same player plays the same as at the table; one that reads nobody sometimes another move."""
    record = play("club", deals=8, seed=4, tiles=[14, 16])
    moments, model = record.moments, Modelled(2.0)

    def player(reads: str) -> Any:
        return Pimc(worlds=10, candidates=100, model=model, temperature=1, floor=0.01, reads=reads)

    hearing = player("all")
    mine = play([hearing, make_agent("club")], deals=1, seed=4, tiles=[14, 16, 18])
    same = mine.moments.take(mine.moments.seat % 2 == 0)
    assert np.array_equal(_played(same, hearing, 4), same.action)
    assert not changes(moments, hearing, player("all"), seed=4).flip.any()
    found = changes(moments, hearing, player("none"), seed=4)
    assert found.divergence is None and found.variation is None and 0 < found.flip.mean() < 1
    alone = listening(record, hearing, player("partner"), seats=range(4))
    assert math.isnan(alone.divergence.mean) and alone.flips.mean > 0 and not alone.influence
    assert alone.by_tiles.keys() == {14, 16}


class Pips:
    """A judge: pips in the others' hands less those of the mover's side."""

    def values(self, engine: Any) -> np.ndarray:
        pips = pips_of(engine.hands()).astype(np.int64)
        net = (pips * np.array([-1, 1, -1, 1])).sum(axis=1)
        return np.where(engine.to_move() % 2 == 0, net, -net)


def test_lookahead_reads_nobody_or_some() -> None:
    moments, model = play("club", deals=25, seed=4, tiles=[14, 16]).moments, Modelled(2.0)
    hearing, partner, deaf = (
        Lookahead(model, 10, 100, temperature=1, floor=0.01, reads=reads, critic=Pips())
        for reads in ("all", "partner", "none")
    )
    assert not changes(moments, hearing, hearing).flip.any()
    flips = [changes(moments, *pair).flip for pair in ((hearing, deaf), (hearing, partner), (partner, deaf))]
    assert all(0 < flip.mean() < 0.7 for flip in flips)
    assert (flips[0] <= flips[1] | flips[2]).all()  # who plays as both does not change between them


def test_twins__are_known_by_name(tmp_path: Any) -> None:
    assert twins("planted:strength=4") == dict.fromkeys(("all", "partner", "opponents"), "planted:strength=4")
    assert twins("greedy") == dict.fromkeys(("all", "partner", "opponents"), "greedy")
    assert twins("planted:strength=4,listen=2")["partner"] == "planted:strength=4,listen=0"
    assert twins("planted:strength=4,noise=2")["opponents"] == "planted:strength=4,noise=0"
    assert twins("planted:strength=4,listen=2")["opponents"] == "planted:strength=4,listen=2"
    assert twins("club:play_heavy=2")["partner"] == "club:play_heavy=2,repeat_partner=0,spare_partner=0"
    assert twins("pimc-30:model=club")["opponents"] == "pimc-30:model=club,reads=partner"
    assert twins("champion-search:worlds=5")["partner"] == "champion-search:worlds=5,reads=opponents"
    assert twins(str(tmp_path)) == {"all": f"deaf:model={tmp_path}"}
    for player in ("club", "pimc:worlds=3,model=club", "planted", "pimc-5"):
        for name in twins(player).values():
            make_agent(name)
    with pytest.raises(ValueError, match=r"twin of counter is known: nothing shuts its ears.*train hearing"):
        twins("counter")
    with pytest.raises(ValueError, match=r"twin of champion .* never was deaf.*domino train hearing.*--deaf RUN"):
        twins("champion")
    with pytest.raises(ValueError, match="unknown agent"):
        twins("nobody")
    with pytest.raises(ValueError, match="does not read all others"):
        twins("pimc:model=club,reads=partner")


def test_club_hears_by_four_maxims_alone() -> None:
    """Without them the past is nothing to it: the same answers to any past of the same board."""
    deaf = make_agent(twins("club")["all"])
    moments = play("club", deals=10, seed=6).moments
    position, rows, hands = moments.position, np.arange(len(moments)), moments.hand()
    assert position.events is not None
    past = np.where(position.events < 0, -1, position.events & ~0o7777 | 0o3305)  # all lay 0-5 at an end 3
    other = dataclasses.replace(position, events=past)
    told, untold = (answers(one, deaf, rows, hands)[0] for one in (position, other))
    assert np.array_equal(told, untold)
    told, untold = (answers(one, make_agent("club"), rows, hands)[0] for one in (position, other))
    assert not np.array_equal(told, untold)


def test_progress_of_players_that_search() -> None:
    """While they play and while they are asked, and chunks change nothing."""
    told: list[tuple[int, int]] = []
    hearing, deaf = (make_agent(f"pimc-2:model=club,reads={who}") for who in ("all", "none"))
    record = play(hearing, "tiny_pairs", deals=150, seed=1, progress=lambda *now: told.append(now))
    assert told == sorted(told) and len(set(told)) > 4 and told[-1] == (150, 150)
    told.clear()
    found = listening(record, hearing, deaf, progress=lambda *now: told.append(now))
    moments = record.moments
    assert told == sorted(told) and told[0] == (128, len(moments)) and told[-1] == (len(moments),) * 2
    flip = changes(moments, hearing, deaf, seed=record.seed).flip
    assert flip.any() and found.flips.mean == pytest.approx(flip.mean())
    order = np.random.default_rng(0).permutation(len(moments))
    assert (changes(moments.take(order), hearing, deaf, seed=record.seed).flip == flip[order]).all()


def test_refusals(loud: Any) -> None:
    moments, agent = loud.moments, Planted(4, listen=3)
    with pytest.raises(ValueError, match=r"place=4 must be 1\.\.3"):
        influences(loud.table, moments, agent, agent, 4)
    with pytest.raises(ValueError, match="do='never' is unknown"):
        influences(loud.table, moments, agent, agent, 1, do="never")
    with pytest.raises(ValueError, match="pimc-2 has no probabilities"):
        changes(moments, agent, make_agent("pimc-2"))
    with pytest.raises(ValueError, match="plays by the clock: give worlds="):
        changes(moments, make_agent("pimc:ms=5"), make_agent("pimc:ms=5"))
    with pytest.raises(ValueError, match="cheat sees all hands"):
        changes(moments, make_agent("cheat"), make_agent("cheat"))
    with pytest.raises(ValueError, match="club does not sit at this table"):
        listening(loud, make_agent("club"), agent)
    with pytest.raises(ValueError, match=r"seats=\[7\] must be of"):
        listening(loud, agent, agent, seats=[7])
    none = influences(loud.table, moments.take(np.zeros(0, int)), agent, agent)
    assert len(none.total) == 0


def test_influence__is_the_speakers_own_with_a_twin_that_is_deaf_to_it(loud: Any) -> None:
    """The left opponent listens to its own partner, not to the speaker: only the twin that hears nobody shows bits."""
    agent, names = loud.table[0], twins(loud.table[0].name)
    found = {who: influences(loud.table, loud.moments, agent, make_agent(name), 1) for who, name in names.items()}
    assert not found["opponents"].informational.any() and found["all"].informational.mean() > 0.05
