"""How far a side is taken for the model: the two readings of its moves, and which of them its moves speak for."""

from pathlib import Path

import numpy as np
import pytest

from agents.base import decide, make_agent
from agents.search.position import position_at
from agents.search.reading import log_likelihood
from agents.search.worlds import Imagination
from domino_env import make_engine
from tests.agents.search.test_pimc import asked_blindly, with_choice
from tests.agents.search.test_worlds import BOOK, Modelled, keys, played


def test_a_side_is_the_model_or_a_softer_player() -> None:
    """By hand: of each side trust times the model's likelihood, and the rest of a geometric mean with random play."""
    model, other = Modelled(0.3), Modelled(-0.1, "other")
    position = position_at(with_choice(played(BOOK, 30, 14)))
    hands = Imagination(7).draw(position, keys(len(position))).hands
    sure = np.exp(log_likelihood(position, [model] * 4, hands, 0.05))
    instead = np.exp(log_likelihood(position, [other] * 4, hands, 0.05))
    even = np.exp(log_likelihood(position, ["uniform"] * 4, hands))
    wanted, itself = np.empty(hands.shape[:2]), np.empty(hands.shape[:2])
    for row, viewer in enumerate(position.viewer):
        wanted[row] = itself[row] = 0
        for side in ([(viewer + 2) % 4], [(viewer + 1) % 4, (viewer + 3) % 4]):
            told, soft, any_move = (one[row][:, side].prod(axis=1) for one in (sure, instead, even))
            wanted[row] += np.log(0.2 * told + 0.8 * soft ** (1 / 2.5) * any_move ** (1.5 / 2.5))
            itself[row] += np.log(0.2 * told + 0.8 * told ** (1 / 2.5) * any_move ** (1.5 / 2.5))

    def found(**options) -> np.ndarray:
        return Imagination(7, 70, model, floor=0.05, **options)._log_weight(position, hands)

    both = found(temperature=2.5, trust=0.2, other=other)
    assert np.allclose(both, wanted) and both.std(axis=1).max() > 0.3
    assert np.allclose(found(temperature=2.5, trust=0.2), itself) and not np.allclose(itself, wanted)
    parts = [found(temperature=2.5, trust=0.2, other=other, reads=side) for side in ("partner", "opponents")]
    assert np.allclose(parts[0] + parts[1], both)
    assert np.allclose(found(temperature=9.0, trust=1.0), found(temperature=1.0))  # sure of it
    assert np.allclose(found(temperature=1.0, trust=0.0), found(temperature=1.0))  # nothing softened
    assert not found(trust=0.2, temperature=2.5, reads="none").any()


def test_moves_say_whether_a_side_is_the_model() -> None:
    """Of a table that plays as the model does nearly all is read that can be; of another one it is not misled much."""

    def bits(plays: Modelled, **options) -> float:
        """log2 of the weight of the true hands over the mean of those drawn by the rules, the mean over decisions."""
        engine, rng = make_engine(BOOK, 300, seed=8), np.random.default_rng(2)
        for _ in range(16):
            chance = plays.probabilities(decide(engine, plays))
            actions = (chance.cumsum(axis=1) > rng.random((len(chance), 1))).argmax(axis=1)
            _, done = engine.step(actions, autoreset=False)
            engine = engine.take(~done)
        position = position_at(engine)
        drawn = Imagination(300).draw(position, keys(len(position))).hands
        hands = np.concatenate([engine.hands()[:, None], drawn], axis=1)
        log = Imagination(10, 100, Modelled(0.5), floor=0.05, **options)._log_weight(position, hands)
        return float(np.mean(log[:, 0] - np.log(np.exp(log[:, 1:]).mean(axis=1))) / np.log(2))

    model, other = Modelled(0.5), Modelled(-0.2)
    assert bits(model, temperature=1.0) > bits(model, trust=0.1, temperature=3.0) > bits(model, temperature=3.0) > 0.2
    assert bits(other, temperature=1.0) < bits(other, trust=0.1, temperature=3.0) - 0.5


@pytest.mark.parametrize("player", ["lookahead:worlds=4,candidates=40,leaf=mean", "pimc:worlds=4,candidates=40"])
def test_no_world_depends_on_what_the_seat_cannot_see(folder: Path, player: str) -> None:
    assert asked_blindly([f"{player},model={folder},trust=0.1,other=club"], (6, 12, 18), 3) > 50


def test_what_is_said_and_refused(folder: Path) -> None:
    agent = make_agent(f"lookahead:model={folder},trust=0.05,other=club")
    assert "trust=0.05,other=club" in agent.name and "trust" not in make_agent(f"lookahead:model={folder}").name
    for text in (f"lookahead:critic={folder},trust=0.1", "pimc:trust=0.1", "pimc:model=uniform,trust=0.1"):
        with pytest.raises(ValueError, match=r"trust=0\.1 needs a model"):
            make_agent(text)
    for value in ("2", "-0.1", "much", "true"):
        with pytest.raises(ValueError, match=r"trust=.* must be a number in 0..1"):
            make_agent(f"lookahead:model={folder},trust={value}")
    with pytest.raises(ValueError, match=r"trust=0\.1 does not go with known=true"):
        make_agent(f"lookahead:model={folder},known=true,trust=0.1")
    with pytest.raises(ValueError, match=r"temperature=0\.5 must be at least 1 where trust=0\.1"):
        make_agent(f"pimc:model={folder},temperature=0.5,trust=0.1")
    with pytest.raises(ValueError, match="other=club needs trust="):
        make_agent(f"pimc:model={folder},other=club")
    for value, says in (("nobody", "is no agent, no checkpoint$"), ("pimc-10", "pimc-10: .*probabilities")):
        with pytest.raises(ValueError, match=f"other=.*{says}"):
            make_agent(f"lookahead:model={folder},trust=0.1,other={value}")
