"""The judge in the envs (J1-J5): what a wrong act does at the table, and that nothing changes where nobody errs."""

import copy
import pickle
import warnings

import gymnasium
import numpy as np
import pettingzoo
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

from domino_env import make_engine
from domino_env.aec import aec_env, raw_aec_env
from domino_env.deals import Deal
from domino_env.judge import DECISIONS, stopped, violation
from domino_env.judged import NUM_JUDGED_ACTIONS, PATIENCE, Referee
from domino_env.match import Header, Played, advance, begin, next_deal
from domino_env.parallel import parallel_env
from domino_env.registration import register_all
from domino_env.single import DominoEnv
from domino_env.solo import make_table
from domino_env.tiles import NUM_TILES, PASS, action_index, mask_of, tile_index
from domino_env.vector import make_vec

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # PettingZoo's tests import an env in PettingZoo's old way
    from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test

# Nobody may be dealt again (S4), and seat 0 holds a tile of every suit, so it can play on every line.
HANDS = [
    ["0-0", "0-1", "1-2", "2-3", "3-4", "4-5", "5-6"],
    ["0-2", "0-3", "1-1", "1-3", "2-2", "4-6", "6-6"],
    ["0-4", "0-5", "1-4", "1-5", "2-4", "3-3", "3-6"],
    ["0-6", "1-6", "2-5", "2-6", "3-5", "4-4", "5-5"],
]
NAMES = ("Ann", "Bob", "Cid", "Dot")
BLOCK = 57


def table(rules="sport_club", judge="club", episode="deal", fours=1, hands=HANDS, **settings):
    """A table with given hands, led by seat 0, and its judge."""
    one = make_table(rules, episode=episode, fours=fours)
    one.reset(seed=1, options={} if hands is None else {"hands": hands, "leader": 0})
    return one, Referee(one, judge, **settings)


def acts(one, referee, *texts):
    """Make some acts in a row; what all were told after the last, with rewards and done."""
    for text in texts:
        result = referee.play(one, BLOCK if text == "block" else action_index(text))
    return result


def kinds(told):
    """Kind, seat, fine and fate of each verdict given in a step."""
    return [(v["violation"]["kind"], v["violation"]["seat"], v["fine"], v["deal"]) for v in told.get("verdicts", ())]


def play_out(one, referee):
    """Play on by the lowest legal action; the last result."""
    done = False
    while not done:
        rewards, done, told = referee.play(one, int(one.legal(None)[0].argmax()))
        if rewards is not None:
            return rewards, done, told


# ----------------------------------------------------------------------------------------------------- each wrong act


def test_wrong_pass__club_fines_it_and_it_stands():
    """J3: 25, and play goes on: the pass is made, the next seat moves, the fine is counted at the end."""
    one, referee = table()
    acts(one, referee, "5-6L")
    before = one.hands().tolist()
    rewards, done, told = acts(one, referee, "pass")
    assert kinds(told) == [("wrong_pass", 1, 25, "continue")] and rewards is None and not done
    assert one.to_move()[0] == 2 and one.hands().tolist() == before and one.plies()[0] == 2
    assert one.passed()[0, 1] == 1 << 5 | 1 << 6, "everybody saw seat 1 pass on 5 and 6"
    rewards, done, told = play_out(one, referee)
    raw, judged = told["deal"], told["judge"]
    assert judged["fines"] == [25, 0] and judged["points"] == [raw["points"][0] + 25, raw["points"][1]]
    net = judged["points"][0] - judged["points"][1]
    assert rewards == [net, -net, net, -net] and done
    assert [one["violation"]["kind"] for one in judged["sanctions"]] == ["wrong_pass"]


def test_wrong_pass__book_loses_the_deal_at_once():
    """J2: 0:10, whatever would have been played."""
    one, referee = table("sport_book", "book")
    rewards, done, told = acts(one, referee, "5-6L", "pass")
    assert rewards == [10, -10, 10, -10] and done and one.over()[0]
    assert kinds(told) == [("wrong_pass", 1, 0, "lost")]
    assert "deal" not in told, "there is no result by play"
    assert told["judge"]["points"] == [10, 0] and told["judge"]["winner"] == 0 and told["judge"]["deal"] == "lost"
    assert one.legal(None)[0].nonzero()[0].tolist() == [PASS]
    for text in ("pass", "0-0L", "block"):
        with pytest.raises(ValueError, match=r"over|after the end"):
            acts(one, referee, text)


def test_wrong_pass__ended_by_decision():
    """J5: a block on the tiles then in hand, and the fine."""
    one, referee = table(decision="end")
    rewards, done, told = acts(one, referee, "5-6L", "6-6R", "pass")
    hands = one.hands()[0].tolist()
    assert told["deal"] == stopped(one.rules, hands, 3, 1), "two tiles and the pass, seat 1 laid last"
    assert kinds(told) == [("wrong_pass", 2, 25, "end")]
    assert told["judge"]["points"] == [told["deal"]["points"][0], told["deal"]["points"][1] + 25]
    assert rewards[1] == told["judge"]["points"][1] - told["judge"]["points"][0] and done


@pytest.mark.parametrize("decision", ["continue", "replay"])
def test_wrong_pass__of_the_leader_is_corrected(decision):
    """J4: before the first tile there is nothing to play on: the fine, and the leader is asked again."""
    one, referee = table(decision=decision)
    rewards, _, told = acts(one, referee, "pass")
    assert kinds(told) == [("wrong_pass", 0, 25, "continue")] and told["verdicts"][0]["clause"] == "J4"
    assert one.to_move()[0] == 0 and one.plies()[0] == 0 and rewards is None
    acts(one, referee, "0-0L")
    assert one.to_move()[0] == 1


def test_wrong_pass__that_nobody_could_play_on_after_is_corrected():
    """J4: with the seat that laid last the round is over. So no deal has more actions than the rules know."""
    one, referee = table()
    acts(one, referee, "5-6L", "pass", "pass", "pass")
    assert one.to_move()[0] == 0
    _, _, told = acts(one, referee, "pass")
    assert told["verdicts"][0]["clause"] == "J4" and one.to_move()[0] == 0
    acts(one, referee, "4-5L")
    assert one.to_move()[0] == 1


@pytest.mark.parametrize(
    "text", ["1-1L", "4-6L", "5-5L", "0-1R"], ids=["no end", "the other end", "not held", "not held nor fitting"]
)
def test_misfit__is_taken_back_and_the_seat_asked_again(text):
    """J3: as showing a tile, 25 then 50; a tile that matches must then be laid."""
    one, referee = table()
    acts(one, referee, "5-6L")
    before = copy.deepcopy(one.snapshot(0))
    _, _, told = acts(one, referee, text)
    assert kinds(told) == [("misfit_at_once", 1, 25, "continue")] and told["verdicts"][0]["must_lay"]
    assert one.snapshot(0) == before, "the tile is taken back"
    assert kinds(acts(one, referee, text)[2]) == [("misfit_at_once", 1, 50, "continue")]
    assert kinds(acts(one, referee, "6-6R")[2]) == [] and one.to_move()[0] == 2
    assert kinds(acts(one, referee, "0-0L")[2]) == [("misfit_at_once", 2, 25, "continue")], "the pairs count apart"


def test_misfit__with_nothing_to_lay():
    """S3: a seat that holds no tile that matches passes after it, and that pass is right."""
    hands = [HANDS[0], ["0-2", "0-3", "1-1", "1-3", "2-2", "0-4", "1-4"], HANDS[2], HANDS[3]]
    hands[2] = ["0-5", "1-5", "2-4", "3-3", "3-6", "4-6", "6-6"]
    one, referee = table(hands=hands)
    acts(one, referee, "5-6L", "1-1L")
    assert one.to_move()[0] == 1
    assert kinds(acts(one, referee, "pass")[2]) == [] and one.to_move()[0] == 2


def test_misfit__the_right_action_of_a_tile_that_fits_is_no_error():
    """On the empty line and on equal ends the left action stands for both: the tile matches, and is laid."""
    one, referee = table()
    assert acts(one, referee, "5-6R")[2] == {} and one.record(0).moves == [action_index("5-6L")]
    one, referee = table()
    acts(one, referee, "0-0L")
    assert acts(one, referee, "0-2R")[2] == {} and one.record(0).moves[1] == action_index("0-2L")
    one = make_table("sport_club", labelled_ends=True)
    one.reset(options={"hands": HANDS, "leader": 0})
    referee = Referee(one, "club")
    acts(one, referee, "0-0R")
    assert acts(one, referee, "0-2R")[2] == {} and one.record(0).moves[1] == action_index("0-2R")


def test_misfit__equal_ends_in_blitz():
    """B3, chain="one": the lead tile grows no end, so after a led double the left action stands for both; where the
    turn has grown an end the two are apart, and the other one is wrong."""
    one = make_table("blitz", pairs=True, chain="one")
    one.reset(options={"hands": HANDS})
    referee = Referee(one, "club")
    acts(one, referee, "0-0L")
    assert acts(one, referee, "0-1R")[2] == {} and one.record(0).moves[1] == action_index("0-1L")
    one.reset(options={"hands": HANDS})
    acts(one, referee, "0-0L", "pass", "0-2L", "pass", "2-4L", "0-4L")
    assert one.ends().tolist() == [[0, 0]] and one.snapshot(0)["turn"]["end"] == "left"
    assert kinds(acts(one, referee, "0-5R")[2]) == [("misfit_at_once", 2, 25, "continue")]
    assert acts(one, referee, "0-5L")[2] == {} and one.to_move()[0] == 2


@pytest.mark.parametrize("judge, decision", [("club", "replay"), ("book", "replay")])
def test_misfit__replayed_once(judge, decision):
    """J5, J1: dealt anew with the same leader and number; the sanctions wait; a second time play goes on."""
    one, referee = table(judge=judge, decision=decision, episode="match")
    index, leader = int(one.deal_index()[0]), int(one.leader()[0])
    before = one.hands().tolist()
    rewards, done, told = acts(one, referee, "5-6L", "1-1L")
    assert [kind[3] for kind in kinds(told)] == ["replay"] and rewards is None and not done
    assert "deal" not in told and "judge" not in told
    assert one.hands().tolist() != before and one.plies()[0] == 0
    assert (int(one.deal_index()[0]), int(one.leader()[0])) == (index, leader)
    wrong = NUM_TILES + int(np.flatnonzero(~one.legal(None)[0][:NUM_TILES].astype(bool))[0])
    assert kinds(referee.play(one, wrong)[2])[0][3] == "continue"
    rewards, done, told = play_out(one, referee)
    assert [v["deal"] for v in told["judge"]["sanctions"]] == ["replay", "continue"] and not done
    if judge == "club":
        assert told["judge"]["fines"] == [25, 25], "of seat 1 in the first, of seat 0 in the second"
    assert one.deal_index()[0] == index + 1
    wrong = NUM_TILES + int(np.flatnonzero(~one.legal(None)[0][:NUM_TILES].astype(bool))[0])
    assert kinds(referee.play(one, wrong)[2])[0][3] == "replay", "the next deal may be replayed again"


def test_misfit__ended_by_decision():
    """J5: the tile is taken back first, so it still counts."""
    one, referee = table(decision="end")
    hands = [mask_of(map(tile_index, hand)) for hand in HANDS]
    hands[0] &= ~mask_of([tile_index("5-6")])
    _, done, told = acts(one, referee, "5-6L", "1-1L")
    assert told["deal"] == stopped(one.rules, hands, 1, 0) and done
    assert told["judge"]["fines"] == [25, 0]


def test_false_block__is_played_to_its_result():
    """J3: 25 each time, and the same seat is to move; the book takes it for talk."""
    one, referee = table(decision="end")
    assert kinds(acts(one, referee, "block")[2]) == [("false_block", 0, 25, "continue")]
    assert kinds(acts(one, referee, "block")[2]) == [("false_block", 0, 25, "continue")]
    assert one.to_move()[0] == 0 and one.plies()[0] == 0
    assert play_out(one, referee)[2]["judge"]["fines"] == [0, 50]
    one, referee = table("sport_book", "book")
    found = acts(one, referee, "block")[2]["verdicts"][0]
    assert (found["clause"], found["count"], found["warning"]) == ("J1", 1, True)


def test_time__over_the_limit():
    """J1, J3: exactly 15 s is in time; the act is judged after the thought; a warning, 25, 50."""
    one, referee = table(clock=True)
    assert referee.play(one, action_index("5-6L"), 15.0)[2] == {}
    _, _, told = referee.play(one, action_index("6-6R"), 15.1)
    assert kinds(told) == [("time", 1, 0, "continue")] and one.to_move()[0] == 2
    _, _, told = referee.play(one, BLOCK, 99.0)
    assert kinds(told) == [("time", 2, 0, "continue"), ("false_block", 2, 25, "continue")] and one.to_move()[0] == 2
    assert kinds(referee.play(one, action_index("3-6R"), 16.0)[2]) == [("time", 2, 25, "continue")]
    one, referee = table(clock=True, thought=5)
    assert kinds(referee.play(one, action_index("5-6L"), 5.5)[2]) == [("time", 0, 0, "continue")]
    for limit in (0.1, 0.7):  # one of them float32 rounds up, the other down
        one, referee = table(clock=True, thought=limit)
        acts = [(action_index("5-6L"), limit), (action_index("6-6R"), float(np.float32(limit)))]
        assert [referee.play(one, action, seconds)[2] for action, seconds in acts] == [{}, {}], "the limit is in time"


def test_time__of_all_rows():
    """The rows that err are judged, the others play in the same step."""
    engine = make_engine("sport_book", 50, 3)
    referee = Referee(engine, "book", clock=True)
    rng = np.random.default_rng(3)
    seconds = rng.uniform(0, 20, 50)
    out = referee.step(engine, np.arange(50), engine.sample_legal(rng), seconds)
    assert sorted(out.verdicts) == np.flatnonzero(seconds > 15).tolist() and (engine.plies() == 1).all()


# ----------------------------------------------------------------------------------------------------- J1 at the table


def test_warnings__by_the_book_at_the_table():
    """J1: four in one deal: noted, and with the fourth the deal is lost 0:40 at once."""
    one, referee = table("sport_book", "book")
    counts = [acts(one, referee, "block")[2]["verdicts"][0]["count"] for _ in range(3)]
    rewards, done, told = acts(one, referee, "block")
    assert counts == [1, 2, 3] and kinds(told) == [("false_block", 0, 0, "lost")]
    assert rewards == [-40, 40, -40, 40] and done


def test_time__the_fourth_warning_comes_before_the_act():
    """J1: the deal is lost before anything is laid."""
    one, referee = table("sport_book", "book", clock=True)
    for _ in range(3):
        referee.play(one, BLOCK, 1.0)
    _, done, told = referee.play(one, action_index("0-0L"), 20.0)
    assert kinds(told) == [("time", 0, 0, "lost")] and done and one.plies()[0] == 0


def test_warnings__count_over_the_match_and_the_fifth_ends_it():
    """J1, S10: the fourth loses a deal, the next is dealt, the fifth loses it too and removes the pair."""
    one, referee = table("sport_book", "book", episode="match", fours=4)
    acts(one, referee, "block", "block", "block")
    rewards, done, told = acts(one, referee, "block")
    assert rewards[0] == -40 and not done and one.deal_index()[0] == 1 and one.leader()[0] == 1
    assert one.score()[0].tolist() == [0, 40]
    rewards, done, told = acts(one, referee, "block")  # seat 1: the first of its pair
    assert kinds(told) == [("false_block", 1, 0, "continue")] and not done
    referee.play(one, int(one.legal(None)[0].argmax()))
    rewards, done, told = acts(one, referee, "block")  # seat 2: the fifth of pair 0
    assert done and rewards == [-40, 40, -40, 40] and told["judge"]["removed"] == [0]
    assert one.score()[0].tolist() == [0, 80] and one.over()[0]


def test_deals__count_apart():
    """A new episode begins without violations (S10): of a deal, or of a match."""
    one, referee = table("sport_book", "book")
    acts(one, referee, "block", "block", "block")
    one.reset()
    referee.forget()
    assert acts(one, referee, "block")[2]["verdicts"][0]["count"] == 1


def test_second_warning__flips_a_won_deal_at_the_table():
    """J1: in a deal that the warned pair wins by play it is taken to hold 20."""
    flipped = 0
    for seed in range(40):
        one = make_table("sport_book")
        one.reset(seed=seed)
        referee = Referee(one, "book")
        acts(one, referee, "block", "block")
        rewards, _, told = play_out(one, referee)
        raw = told["deal"]
        if raw["winner"] == 0:
            others = raw["pips_left"][1] + raw["pips_left"][3]
            assert rewards[0] == others - 20
            flipped += others < 20
        else:
            assert rewards[0] == raw["points"][0] - raw["points"][1] - 10
    assert flipped


# ------------------------------------------------------------------------------------------------ being asked for ever


@pytest.mark.parametrize("act", ["block", "1-1R", "pass"])
def test_patience__a_tile_is_laid_in_the_end(act):
    """After ten wrong acts at one decision the judge has the lowest legal action made: no player can stop a game."""
    one, referee = table()
    for n in range(1, PATIENCE + 1):
        legal = one.legal(None)[0]
        _, _, told = acts(one, referee, act)
        assert len(told["verdicts"]) == 1 and one.plies()[0] == (n == PATIENCE)
    assert one.record(0).moves == [int(legal.argmax())]
    assert kinds(acts(one, referee, "block")[2]) == [("false_block", 1, 25, "continue")], "counted anew"


@pytest.mark.parametrize(
    "rules, judge, episode, decision",
    [
        ("sport_book", "book", "match", "continue"),
        ("sport_club", "club", "deal", "continue"),
        ("tiny_pairs", "club", "match", "end"),
        ("tiny_pairs", "club", "match", "replay"),
    ],
)
def test_patience__every_constant_player_ends_its_episode(rules, judge, episode, decision):
    """Whatever one action all seats make for ever, an episode is over after a bounded number of acts."""
    for action in (0, 50, PASS, BLOCK):
        one = make_table(rules, episode=episode)
        one.reset(seed=action)
        referee = Referee(one, judge, decision)
        for _ in range(4 * 2 * PATIENCE * one.rules.max_plies):
            rewards, done, _ = referee.play(one, action)
            assert rewards is None or sum(rewards) == 0
            if done:
                break
        assert done


# -------------------------------------------------------------------------------- the record of a match says the same

GAMES = [
    ("sport_club", "club", {}),
    ("sport_book", "book", {}),
    ("sport_book", "club", {"labelled_ends": True}),
    ("puerto_rico", "book", {}),
    ("tiny_pairs", "club", {}),
    ("blitz", "club", {"pairs": True}),
    ("blitz", "book", {"pairs": True, "chain": "one"}),
]


def act_played(legal, action, told):
    """What an act, which did not break the deal off, put on the table: an action, or nothing."""
    verdicts = told.get("verdicts", [])
    if legal[action % 57] and action < BLOCK:
        return action
    if not verdicts or verdicts[-1]["violation"]["kind"] == "time":
        return action - NUM_TILES
    last = verdicts[-1]["violation"]
    return PASS if last["kind"] == "wrong_pass" and not last["corrected"] else None


@pytest.mark.parametrize("decision", DECISIONS)
@pytest.mark.parametrize("rules, judge, overrides", GAMES)
def test_match__is_that_of_the_record(rules, judge, overrides, decision):
    """J, S10: a match of players who often err, entered deal by deal in a match record: the same hands, results, sums
    and end follow from what was played and done wrong."""
    rng = np.random.default_rng(5)
    ended = 0
    for seed in range(1):
        one = make_table(rules, episode="match", fours=2, **overrides)
        one.reset(seed=seed)
        referee = Referee(one, judge, decision, clock=True)
        standing = begin(Header(one.rules, NAMES, fours=2, judge=judge))
        done, found, moves, dealt = False, [], [], next_deal(standing, seed)
        while not done:
            assert one.score()[0].tolist() == list(standing.sums) and one.deal_index()[0] == standing.deals
            legal = one.legal(None)[0]
            error = rng.random() < 0.08
            action = int(rng.integers(NUM_JUDGED_ACTIONS)) if error else int(rng.choice(legal.nonzero()[0]))
            rewards, done, told = referee.play(one, action, 20.0 if rng.random() < 0.02 else 1.0)
            found += [violation(v["violation"]) for v in told.get("verdicts", ())]
            over = rewards is not None or any(v["deal"] == "replay" for v in told.get("verdicts", ()))
            broken = bool(told.get("verdicts")) and told["verdicts"][-1]["deal"] != "continue"
            made = act_played(legal, action, told)
            if not broken and made is not None:
                moves.append(made)
            elif broken and made == PASS:
                moves.append(PASS)  # a wrong pass for which the deal ended was made
            if not over:
                assert one.record(0) == Deal(one.rules, dealt.leader, dealt.hands, moves)
                continue
            standing, line = advance(standing, Played(Deal(one.rules, dealt.leader, dealt.hands, moves), tuple(found)))
            assert line["raw"] == told.get("deal")
            if line["recorded"]["deal"] != "replay":
                assert rewards[0] == line["recorded"]["points"][0] - line["recorded"]["points"][1] == -rewards[1]
            if "judge" in told:
                assert {key: told["judge"][key] for key in line["recorded"]} == line["recorded"]
            elif rewards is not None:
                assert line["raw"]["points"] == line["recorded"]["points"] and not found
            assert done == standing.over
            if not done:
                found, moves, dealt = [], [], next_deal(standing, seed)
                ended += 1
        assert one.over()[0] and one.score()[0].tolist() == list(standing.sums)
    assert ended


# ----------------------------------------------------------------------------------------------------------- every env

JUDGED = [
    {"rules": "sport_book", "judge": "book"},
    {"rules": "sport_club", "judge": "club"},
    {"rules": "sport_book", "judge": "club", "episode": "match"},
    {"rules": "puerto_rico", "judge": "book", "episode": "match"},
    {"rules": "tiny_pairs", "judge": "club", "episode": "match"},
    {"rules": "blitz", "pairs": True, "judge": "club", "episode": "match"},
]
DECIDED = [  # every decision to every judge; one each time, and all in the slow tests
    pytest.param(
        {**settings, "decision": decision},
        marks=[] if d == i % 3 else [pytest.mark.slow],
        id="-".join(str(value) for value in [*settings.values(), decision]),
    )
    for i, settings in enumerate(JUDGED)
    for d, decision in enumerate(DECISIONS)
]
every_decision = pytest.mark.parametrize("settings", DECIDED)
every_judge = pytest.mark.parametrize("settings", JUDGED, ids=lambda s: "-".join(str(value) for value in s.values()))


def unjudged(settings):
    """The same without a judge."""
    return {key: value for key, value in settings.items() if key != "judge"}


def same(one, other):
    """Whether two things that envs give are equal, to the byte; a mask may have one place more, which is 0."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray) and one.dtype == object:
        return same(one.tolist(), other.tolist())
    if isinstance(one, np.ndarray):
        if one.dtype == np.int8 and one.shape[-1] == NUM_JUDGED_ACTIONS == other.shape[-1] + 1:
            other = np.concatenate([other, np.zeros((*other.shape[:-1], 1), np.int8)], axis=-1)
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    return one == other


def random_acts(rng, masks, error):
    """An act a row: legal by the mask, or, as often as `error` says, any of the 58."""
    legal = (rng.random(masks.shape) * masks).argmax(axis=-1)
    return np.where(rng.random(legal.shape) < error, rng.integers(0, NUM_JUDGED_ACTIONS, legal.shape), legal)


@every_judge
def test_aec__players_who_never_err_see_no_difference(settings):
    """J: the same deals, rewards, infos and observations, and nothing else."""
    envs = aec_env(**settings, history=True), aec_env(**unjudged(settings), history=True)
    rng = np.random.default_rng(4)
    for seed in range(1 if "episode" in settings else 8):
        for env in envs:
            env.reset(seed=seed)
        for agent in envs[1].agent_iter():
            seen = [env.last() for env in envs]
            assert same(*seen) and envs[0].agent_selection == agent
            action = None if seen[1][2] else int(random_acts(rng, seen[1][0]["action_mask"], 0))
            for env in envs:
                env.step(action)
        assert envs[0].agents == []


@every_judge
def test_parallel__players_who_never_err_see_no_difference(settings):
    envs = parallel_env(**settings), parallel_env(**unjudged(settings))
    rng = np.random.default_rng(5)
    for seed in range(1 if "episode" in settings else 8):
        for env in envs:
            seen = env.reset(seed=seed)
        while envs[1].agents:
            actions = {agent: int(random_acts(rng, view["action_mask"], 0)) for agent, view in seen[0].items()}
            results = [env.step(actions) for env in envs]
            assert same(*results)
            seen = results[1]
        assert envs[0].agents == []


@pytest.mark.parametrize("rows, fours", [(8, 1), pytest.param(100, 5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("learner", ["seat", "pair"])
@every_judge
def test_vector__players_who_never_err_see_no_difference(settings, learner, rows, fours):
    """J: deals by the hundred, equal byte for byte."""
    envs = [make_vec(num_envs=rows, learner=learner, history=True, **one) for one in (settings, unjudged(settings))]
    seen = [env.reset(seed=6) for env in envs]
    rng = np.random.default_rng(6)
    ended = 0
    while ended < rows * fours:
        assert same(*seen)
        actions = random_acts(rng, seen[1][0]["action_mask"], 0)
        seen = [env.step(actions) for env in envs]
        ended += int(seen[1][2].sum())


@every_judge
def test_single__players_who_never_err_see_no_difference(settings):
    envs = DominoEnv(**settings), DominoEnv(**unjudged(settings))
    rng = np.random.default_rng(7)
    for seed in range(1 if "episode" in settings else 8):
        seen = [env.reset(seed=seed) for env in envs]
        done = False
        while not done:
            assert same(*seen)
            action = int(random_acts(rng, envs[1].action_masks(), 0))
            seen = [env.step(action) for env in envs]
            done = seen[1][2]
        assert same(*seen)


def test_nobody_errs__and_no_row_is_looked_at(monkeypatch):
    """Rows in which nobody errs are never judged one by one."""

    def never(*_):
        raise AssertionError("a row was looked at")

    monkeypatch.setattr(Referee, "_act", never)
    monkeypatch.setattr(Referee, "_record", never)
    env = make_vec("sport_club", 64, judge="club", clock=True)
    view, _ = env.reset(seed=1)
    rng = np.random.default_rng(1)
    for _ in range(40):
        view = env.step((random_acts(rng, view["action_mask"], 0), rng.uniform(0, 15, 64)))[0]


WRONG = [  # what seat 1 does after 5-6L; kind, what becomes of the deal by the book and by the club
    ("pass", "wrong_pass", "lost", "continue"),
    ("1-1L", "misfit_at_once", "continue", "continue"),
    ("0-0L", "misfit_at_once", "continue", "continue"),
    ("block", "false_block", "continue", "continue"),
]
GIVEN = {"hands": HANDS, "leader": 0}


def act_of(text):
    """The action of a text."""
    return BLOCK if text == "block" else action_index(text)


@pytest.mark.parametrize("judge", ["book", "club"])
@pytest.mark.parametrize("text, kind, by_book, by_club", WRONG)
def test_aec__each_wrong_act(judge, text, kind, by_book, by_club):
    """J: judged, not raised; all seats are told; the same agent is selected again where it is asked again."""
    for make in (aec_env, raw_aec_env):
        env = make(f"sport_{judge}", judge=judge)
        env.reset(options=GIVEN)
        env.step(act_of("5-6L"))
        env.step(act_of(text))
        fate = by_book if judge == "book" else by_club
        found = [env.infos[f"seat_{seat}"]["verdicts"] for seat in range(4)]
        assert all(one == found[0] for one in found)
        assert kinds({"verdicts": found[0]}) == [(kind, 1, 25 if judge == "club" else 0, fate)]
        if fate == "lost":
            assert all(env.terminations.values()) and env.rewards == {f"seat_{i}": (10, -10)[i % 2] for i in range(4)}
            assert env.infos["seat_0"]["judge"]["points"] == [10, 0] and "deal" not in env.infos["seat_0"]
            assert [env.step(None) for _ in env.agent_iter()] and env.agents == []
            continue
        assert env.rewards == dict.fromkeys(env.agents, 0.0) and not any(env.terminations.values())
        again = text != "pass"
        assert env.agent_selection == ("seat_1" if again else "seat_2")
        assert env.last()[4]["verdicts"] == found[0]
        if again:
            env.step(act_of("6-6R"))
            assert env.agent_selection == "seat_2" and "verdicts" not in env.infos["seat_1"]
        assert env.last()[4]["verdicts"] == found[0], "seat 2 is told when its turn comes"
        while not any(env.terminations.values()):
            env.step(int(env.observe(env.agent_selection)["action_mask"].argmax()))
        info = env.infos["seat_3"]
        assert list(info["deal"]) == ["outcome", "winner", "points", "pips_left", "by", "plies"]
        assert info["judge"]["sanctions"] == found[0] and sum(env.rewards.values()) == 0
        net = info["judge"]["points"][0] - info["judge"]["points"][1]
        assert env.rewards["seat_0"] == net and (judge == "book" or info["judge"]["fines"] == [25, 0])


def test_aec__what_was_told_is_kept_until_it_is_read():
    """A seat keeps its results and verdicts until its next turn, also where others err in between."""
    env = raw_aec_env("tiny_pairs", "match", judge="club")
    env.reset(seed=3)
    while not any("deal" in info for info in env.infos.values()):
        env.step(int(env.observe(env.agent_selection)["action_mask"].argmax()))
    deal = env.infos["seat_0"]["deal"]
    first = env.agent_selection
    env.step(BLOCK)
    env.step(BLOCK)
    for agent in env.agents:
        info = env.infos[agent]
        assert len(info["verdicts"]) == (1 if agent == first else 2)
        assert "deal" not in info if agent == first else info["deal"] == deal


@pytest.mark.parametrize("judge", ["book", "club"])
@pytest.mark.parametrize("text, kind, by_book, by_club", WRONG)
def test_parallel__each_wrong_act(judge, text, kind, by_book, by_club):
    """J: judged, not raised; what seats off turn send is no act."""
    env = parallel_env(f"sport_{judge}", judge=judge)
    env.reset(options=GIVEN)
    env.step({"seat_0": act_of("5-6L")})
    _, rewards, terminated, truncated, infos = env.step({"seat_0": BLOCK, "seat_1": act_of(text), "seat_2": 0})
    fate = by_book if judge == "book" else by_club
    assert all(kinds(info) == [(kind, 1, 25 if judge == "club" else 0, fate)] for info in infos.values())
    assert set(terminated.values()) == {fate == "lost"} and not any(truncated.values())
    assert rewards == {f"seat_{i}": (10.0, -10.0)[i % 2] if fate == "lost" else 0.0 for i in range(4)}
    if fate != "lost":
        mover = "seat_2" if text == "pass" else "seat_1"
        views = env.step({mover: act_of("6-6R" if mover == "seat_1" else "3-6R")})[0]
        assert views["seat_3" if mover == "seat_2" else "seat_2"]["action_mask"].sum() >= 1


class Says:
    """A player who gives the same answer at its first question of each deal, then the lowest legal action."""

    def __init__(self, action):
        self.action, self.met = action, set()

    def act(self, batch):
        new = np.array([key not in self.met for key in batch.key.tolist()])
        self.met |= set(batch.key.tolist())
        return np.where(new, self.action, batch.mask.argmax(axis=1))


@pytest.mark.parametrize("judge", ["book", "club"])
@pytest.mark.parametrize("text, kind, by_book, by_club", WRONG)
def test_single_and_vector__each_wrong_act_of_the_learner(judge, text, kind, by_book, by_club):
    """J: judged instead of lost; where the learner is asked again, it sees the same."""
    fate = by_book if judge == "book" else by_club
    hands = [*HANDS[1:], HANDS[0]]  # seat 3 leads, the learner comes after it
    single = DominoEnv(f"sport_{judge}", judge=judge, opponents=Says(act_of("5-6L")))
    vector = make_vec(f"sport_{judge}", 3, judge=judge, opponents=Says(act_of("5-6L")))
    options = {"hands": hands, "leader": 3}
    view, _ = single.reset(options=options)
    views, _ = vector.reset(options=options)
    assert same(list(views["observation"]), [view["observation"]] * 3)
    after, reward, done, _, info = single.step(act_of(text))
    assert kinds(info) == [(kind, 0, 25 if judge == "club" else 0, fate)]
    assert (reward, done) == ((-10.0, True) if fate == "lost" else (0.0, False))
    batch = vector.step(np.array([act_of(text), act_of("6-6R"), act_of(text)]))
    where = batch[4]["final_info"] if fate == "lost" else batch[4]
    assert [row is not None for row in where["verdicts"]] == where["_verdicts"].tolist() == [True, False, True]
    assert where["verdicts"][0] == where["verdicts"][2] == info["verdicts"]
    assert batch[1].tolist()[::2] == [reward] * 2 and batch[2].tolist() == [done, False, done]
    if fate == "lost":
        assert info["judge"]["points"] == [0, 10] and "illegal" not in info and "deal" not in info
        assert where["judge"][0] == info["judge"] and where["_judge"].tolist() == [True, False, True]
        assert where.keys() == {"judge", "_judge", "verdicts", "_verdicts"}
    elif text != "pass":
        assert same(after, view) and same({key: value[0] for key, value in batch[0].items()}, view)


@pytest.mark.parametrize("judge", ["book", "club"])
@pytest.mark.parametrize("action", [0, 30, PASS, BLOCK])
def test_vector__wrong_acts_of_the_agents(judge, action):
    """J: those of the learner's partner and opponents are judged too, and an agent that never stops holds nobody up."""
    always = make_vec(f"sport_{judge}", 3, judge=judge, opponents=lambda batch: np.full(len(batch.seat), action))
    once = make_vec(f"sport_{judge}", 8, judge=judge, partner=Says(action), episode="match")
    for env, guilty in ((always, {1, 3}), (once, {2})):
        view, infos = env.reset(seed=2)
        seats = set()
        for _ in range(9):
            view, _, _, _, infos = env.step(view["action_mask"].argmax(axis=1))
            for part in (infos, infos.get("final_info", {})):
                seats |= {v["violation"]["seat"] for row in part.get("verdicts", ()) if row for v in row}
        assert seats == guilty


def test_vector__what_agents_do_before_the_learner_s_first_decision():
    """It is told by the learner's first step, also where it ended the episode."""
    options = {"hands": HANDS, "leader": 1}
    for judge, action, reward, given in (("club", BLOCK, 0.0, 1), ("book", PASS, 10.0, 0)):
        vector = make_vec(f"sport_{judge}", 2, judge=judge, opponents=Says(action))
        single = DominoEnv(f"sport_{judge}", judge=judge, opponents=Says(action))
        view, _ = vector.reset(seed=1, options=options)
        assert same(single.reset(seed=1, options=options)[0], {key: value[0] for key, value in view.items()})
        if judge == "book":
            assert view["action_mask"][0].nonzero()[0].tolist() == [PASS], "lost, and waits to be told"
        _, rewards, ended, _, infos = vector.step(view["action_mask"].argmax(axis=1))
        told = infos["final_info"] if judge == "book" else infos
        assert told["verdicts"][1][0]["violation"]["seat"] == 1 and told["_verdicts"].all()
        assert rewards.tolist() == [reward] * 2 and ended.tolist() == [judge == "book"] * 2
        info = single.step(int(view["action_mask"][0].argmax()))[4]
        assert info["verdicts"][0]["violation"]["kind"] == ("false_block" if given else "wrong_pass")


@pytest.mark.parametrize("mode", ["sync", "vector_entry_point"])
def test_gymnasium_vectorizes_a_judged_env(mode):
    """Results of the judge go through Gymnasium's own vectorisers, also where a drawn deal ends beside others."""
    envs = gymnasium.make_vec("Domino/TinyPairs-v0", num_envs=8, vectorization_mode=mode, judge="club")
    winners, rng = set(), np.random.default_rng(1)
    views, _ = envs.reset(seed=5)
    for _ in range(200):
        legal = views["action_mask"].argmax(axis=1)
        views, _, _, _, infos = envs.step(np.where(rng.random(8) < 0.4, BLOCK, legal))
        if mode == "sync" and "judge" in infos:
            winners |= set(infos["judge"]["winner"][infos["_judge"]])
        elif mode != "sync":
            winners |= {one["winner"] for one in infos.get("final_info", {}).get("judge", ()) if one is not None}
    envs.close()
    assert winners == {0, 1, None}


def test_vector__an_agent_s_answer_out_of_range_is_still_an_error():
    env = make_vec("sport_book", 4, judge="book", opponents=lambda batch: np.full(len(batch.seat), 58))
    with pytest.raises(ValueError, match="58"):
        env.reset(seed=1)


@every_decision
def test_vector__its_rows_are_single_envs(settings):
    """A row of erring players gives what a single env of its seed gives, step by step, whatever the other rows do."""
    settings = {**settings, "clock": True}
    rows = 3
    vector = make_vec(num_envs=rows, opponents=err, partner=err, **settings)
    singles = [DominoEnv(opponents=err, partner=err, **settings) for _ in range(rows)]
    views, _ = vector.reset(seed=list(range(rows)), options={"deal_index": 0})
    for seed, env in enumerate(singles):
        env.reset(seed=seed)  # deal 0
    rng = np.random.default_rng(9)
    told = set()
    for _ in range(50):
        actions, seconds = random_acts(rng, views["action_mask"], 0.1), rng.exponential(5, rows)
        views, rewards, ended, _, infos = vector.step((actions, seconds))
        for i, env in enumerate(singles):
            view, reward, done, _, info = env.step((actions[i], seconds[i]))
            where = infos["final_info"] if done else infos
            assert (reward, done) == (rewards[i], ended[i])
            for key in ("verdicts", "judge"):
                assert (key in info) == (key in where and bool(where[f"_{key}"][i]))
                assert key not in info or info[key] == where[key][i]
                told |= {key} & info.keys()
            assert ("deal" in info) == ("deal" in where and bool(where["_deal"][i]))
            if "deal" in info:
                assert info["deal"] == {key: where["deal"][key][i] for key in info["deal"]}
            if done:
                assert same(view, infos["final_obs"][i])
                view, _ = env.reset()
            assert same(view, {key: value[i] for key, value in views.items()})
    assert told == {"verdicts", "judge"}


def err(batch):
    """A player who errs in one act of ten, by each row's own chance."""
    legal = batch.mask.astype(bool)
    draws = batch.rng.random(len(legal))
    return np.where(draws < 0.1, (draws * 580).astype(np.int64), legal.argmax(axis=1))


@every_decision
def test_random_players__who_know_no_mask_end_their_episodes(settings):
    """J: every episode ends, and rewards sum to zero."""
    rng = np.random.default_rng(8)
    env = raw_aec_env(**settings)
    env.reset(seed=1)
    acts, told = 0, None
    while not any(env.terminations.values()):
        env.step(int(rng.integers(NUM_JUDGED_ACTIONS)))
        acts += 1
        assert sum(env.rewards.values()) == 0
        told = env.infos[env.agent_selection]
    assert acts <= 4 * 2 * PATIENCE * env.rules.max_plies and "judge" in told
    parallel, single = parallel_env(**settings), DominoEnv(**settings)
    parallel.reset(seed=1)
    while parallel.agents:
        rewards = parallel.step({agent: int(rng.integers(NUM_JUDGED_ACTIONS)) for agent in parallel.agents})[1]
        assert sum(rewards.values()) == 0
    single.reset(seed=1)
    while not single.step(rng.integers(NUM_JUDGED_ACTIONS))[2]:
        pass


# --------------------------------------------------------------------------------------------------------------- clock


def test_clock__in_every_env():
    """J3: thought over the limit, given with the action; the first time a warning, then 25."""
    seat, over = act_of("5-6L"), (act_of("5-6L"), 15.5)
    for make in (aec_env, raw_aec_env):
        env = make("sport_club", judge="club", clock=True)
        env.reset(options=GIVEN)
        env.step((seat, np.float32(15)))
        assert env.infos["seat_0"] == {}
        env.step((act_of("6-6R"), 16))
        assert kinds(env.infos["seat_3"]) == [("time", 1, 0, "continue")] and env.agent_selection == "seat_2"
    env = parallel_env("sport_club", judge="club", clock=True)
    env.reset(options=GIVEN)
    assert kinds(env.step({"seat_0": over, "seat_1": (PASS, 99.0)})[4]["seat_2"]) == [("time", 0, 0, "continue")]
    env = DominoEnv("sport_book", judge="book", clock=True, thought=30)
    env.reset(options=GIVEN)
    assert "verdicts" not in env.step((seat, np.array(30.0)))[4]
    env.reset(options=GIVEN)
    assert env.step((seat, 31))[4]["verdicts"][0]["warning"]
    vector = make_vec("sport_club", 3, judge="club", clock=True)
    vector.reset(options=GIVEN)
    infos = vector.step((np.full(3, seat), [1, 16, 20]))[4]
    assert infos["_verdicts"].tolist() == [False, True, True]


@pytest.mark.parametrize(
    "action", [3, (3,), (3, -1.0), (3, float("nan")), (3, "1"), (58, 1.0), (3.0, 1.0), (True, 1.0), None, (3, None)]
)
def test_clock__bad_input(action):
    """One line that says what is wanted; the game is as it was."""
    for env in (raw_aec_env("sport_book", judge="book", clock=True), DominoEnv("sport_book", judge="book", clock=True)):
        env.reset(options=GIVEN)
        with pytest.raises(ValueError, match=r"seconds|0\.\.57"):
            env.step(action)
    vector = make_vec("sport_book", 2, judge="book", clock=True)
    vector.reset(options=GIVEN)
    pair = action if not isinstance(action, tuple) else tuple([part] * 2 for part in action)
    with pytest.raises(ValueError, match=r"seconds|0\.\.57|whole"):
        vector.step(pair)
    assert not vector._lanes.engine.plies().any()


@pytest.mark.parametrize("action", [58, -1, 1.0, "3", None, True, (3, 1.0)])
def test_without_clock__bad_input(action):
    """What is no action at all is no act, and raises."""
    for env in (raw_aec_env("sport_book", judge="book"), DominoEnv("sport_book", judge="book")):
        env.reset(options=GIVEN)
        with pytest.raises(ValueError, match=r"0\.\.57"):
            env.step(action)


# ------------------------------------------------------------------------------------------------- settings and suites

MAKERS = [aec_env, raw_aec_env, parallel_env, DominoEnv, lambda *rules, **settings: make_vec(*rules, 4, **settings)]
every_env = pytest.mark.parametrize("make", MAKERS, ids=["aec", "raw_aec", "parallel", "single", "vector"])


@every_env
@pytest.mark.parametrize(
    "rules, settings, named",
    [
        ("kozyol", {"judge": "club"}, "kozyol leads or matches go by results.*sport_book"),
        ("sport_book", {"judge": "book", "pairs": False}, "each seat plays for itself; judged are sport_book"),
        ("blitz", {"judge": "club"}, "blitz each seat plays for itself"),
        ("blind", {"judge": "club"}, "blind each seat"),
        ("sport_book", {"judge": "book", "match_to": 50}, "by results"),
        ("sport_book", {"judge": "home"}, "choose from book, club"),
        ("sport_book", {"judge": "book", "decision": "stop"}, "continue, end, replay"),
        ("sport_book", {"judge": "book", "clock": 1}, "clock=1 must be True or False"),
        ("sport_book", {"judge": "book", "clock": True, "thought": 0}, "thought=0 must be"),
        ("sport_book", {"judge": "book", "thought": 9}, "is for clock=True"),
        ("sport_book", {"clock": True}, "add judge="),
        ("sport_book", {"decision": "end"}, "add judge="),
    ],
)
def test_bad_settings(make, rules, settings, named):
    with pytest.raises(ValueError, match=named):
        make(rules, **settings)


@pytest.mark.parametrize("make", MAKERS[3:])
def test_bad_settings__a_judge_lets_nothing_raise(make):
    with pytest.raises(ValueError, match="leave illegal out"):
        make("sport_book", judge="book", illegal="raise")


def test_spaces():
    """58 actions where somebody judges; the mask never allows the false declaration, and is never all zero."""
    env = aec_env("sport_book", judge="book")
    env.reset(seed=1)
    assert env.action_space("seat_0") == spaces.Discrete(58)
    for agent in env.agents:
        view = env.observe(agent)
        assert view in env.observation_space(agent) and view["action_mask"].shape == (58,)
        assert not view["action_mask"][BLOCK] and view["action_mask"].any()
    timed = aec_env("sport_book", judge="book", clock=True).action_space("seat_0")
    assert timed == spaces.Tuple((spaces.Discrete(58), spaces.Box(0, np.inf, (), np.float32)))
    assert (3, 1.5) in timed and (3, np.float32(2)) in timed and timed.sample() in timed
    for wrong in ((3, -1.0), 3, (58, 1.0), (3, "1"), (3, [1.0])):
        assert wrong not in timed
    assert timed.sample(env.observe("seat_0")["action_mask"])[0] in HELD
    vector = make_vec("sport_book", 3, judge="book", clock=True)
    assert vector.action_space.sample() in vector.action_space
    views, _ = vector.reset(seed=1)
    assert views in vector.observation_space
    assert make_vec("sport_book", 3, judge="book").action_space == spaces.MultiDiscrete([58] * 3)


HELD = range(NUM_TILES)  # the leader lays by left actions


@pytest.mark.filterwarnings("ignore:Observation is not a NumPy array")
@pytest.mark.filterwarnings("ignore:Observation space for each agent probably should be")
@pytest.mark.filterwarnings("ignore:Action space for each agent probably should be")  # with a clock it is a Tuple
@pytest.mark.filterwarnings("ignore:.*A Box action space maximum value is infinity")  # of seconds
@pytest.mark.parametrize("clock", [False, True])
@every_judge
def test_suites__of_pettingzoo_and_gymnasium(settings, clock):
    """Their own tests pass, with every warning an error."""
    settings = {**settings, "clock": clock}
    api_test(aec_env(**settings), num_cycles=120)
    api_test(raw_aec_env(**settings), num_cycles=120)
    seed_test(lambda: aec_env(**settings), num_cycles=30)
    parallel_api_test(parallel_env(**settings), num_cycles=120)
    parallel_seed_test(lambda: parallel_env(**settings), num_cycles=30)
    check_env(DominoEnv(**settings), skip_render_check=True)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_copies_keep_the_future(copied):
    """A copy amid a match that is being judged goes on as the env does, with the violations so far."""
    envs = [make_vec("sport_club", 5, episode="match", judge="club", opponents=err, seed=4)]
    views, _ = envs[0].reset(seed=4)
    rng = np.random.default_rng(2)
    for step in range(50):
        if step == 20:
            envs.append(copied(envs[0]))
        actions = random_acts(rng, views["action_mask"], 0.1)
        results = [env.step(actions) for env in envs]
        views = results[0][0]
        assert same(results[0], results[-1])


def test_render__of_a_deal_that_the_judge_broke_off():
    """It is drawn as it stood."""
    env = raw_aec_env("sport_book", judge="book", render_mode="ansi")
    env.reset(options=GIVEN)
    env.step(act_of("5-6L"))
    env.step(PASS)
    assert env.terminations["seat_0"] and "5|6" in env.render()


def test_made_by_id():
    """The registered ids take a judge."""
    register_all()
    env = gymnasium.make("Domino/SportClub-v0", judge="club", clock=True)
    env.reset(seed=1)
    assert kinds(env.step((BLOCK, 1.0))[4])[0][0] == "false_block"
    assert gymnasium.make_vec("Domino/SportClub-v0", num_envs=2, judge="club").reset(seed=1)[0][
        "action_mask"
    ].shape == (2, 58)
    aec = pettingzoo.make("aec", "domino/sport_book-v0", judge="book")
    aec.reset(seed=1)
    aec.step(BLOCK)
    assert kinds(aec.infos["seat_0"]) == [("false_block", 0, 0, "continue")]
