"""Opponents who are known to be the model: how their moves are read, and that nothing hidden is seen for it."""

from pathlib import Path

import numpy as np
import pytest

from agents.base import decide, make_agent
from agents.search.position import position_at
from agents.search.reading import AsPlayed, log_likelihood
from agents.search.worlds import KNOWN_FLOOR, Imagination
from domino_env import make_engine
from tests.agents.search.test_pimc import asked_blindly, with_choice
from tests.agents.search.test_worlds import BOOK, Modelled, keys, played


def by_seat(position, hands, agent, floor: float) -> np.ndarray:
    return log_likelihood(position, [agent] * 4, hands, floor)


def test_opponents_are_read_as_they_play_and_the_partner_as_ever(folder: Path) -> None:
    position = position_at(with_choice(played(BOOK, 30, 14)))
    hands = Imagination(7).draw(position, keys(len(position))).hands
    agent = make_agent(str(folder))
    seats = np.arange(4)
    certain, soft = by_seat(position, hands, AsPlayed(agent), KNOWN_FLOOR), by_seat(position, hands, agent, 0.05)
    away = (seats - position.viewer[:, None]) % 4
    wanted = (certain * (away % 2 == 1)[:, None]).sum(axis=2) + (soft * (away == 2)[:, None]).sum(axis=2) / 1.7
    found = Imagination(7, 70, agent, 1.7, 0.05, known=True)._log_weight(position, hands)
    assert np.allclose(found, wanted) and found.std(axis=1).max() > 0.5
    opponents = Imagination(7, 70, agent, reads="opponents", known=True)._log_weight(position, hands)
    partner = Imagination(7, 70, agent, 1.7, 0.05, reads="partner", known=True)._log_weight(position, hands)
    assert np.allclose(opponents + partner, wanted)
    plain = Imagination(7, 70, agent)._log_weight(position, hands)
    assert not np.allclose(plain, wanted)


def test_a_player_without_a_network_is_read_by_its_probabilities() -> None:
    position = position_at(played(BOOK, 20, 9))
    hands = Imagination(5).draw(position, keys(len(position))).hands
    model = Modelled(0.3)
    found = Imagination(5, 50, model, 1.7, 0.05, "opponents", known=True)._log_weight(position, hands)
    away = (np.arange(4) - position.viewer[:, None]) % 4
    wanted = (by_seat(position, hands, model, KNOWN_FLOOR) * (away % 2 == 1)[:, None]).sum(axis=2)
    assert np.allclose(found, wanted)


def test_what_a_network_played_is_certain(folder: Path) -> None:
    """Of a table where all play as the network does, the true hands explain every move; others do not."""
    agent = make_agent(str(folder))
    engine = make_engine(BOOK, 40, seed=3)
    for _ in range(12):
        engine.step(agent.act(decide(engine, agent)), autoreset=False)
    position, hands = position_at(engine), engine.hands()[:, None]
    sharp = by_seat(position, hands, AsPlayed(agent), 0.0)
    assert (sharp == 0).mean() > 0.99  # a rounding may decide between two moves that are alike
    slow = AsPlayed(agent)
    del slow.chances  # by `act`, one question after the other
    assert (by_seat(position, hands, slow, 0.0) == sharp).mean() > 0.99
    others = Imagination(1).draw(position, keys(40)).hands
    assert (by_seat(position, others, AsPlayed(agent), 0.0).sum(axis=2) == 0).mean() < 0.9


@pytest.mark.parametrize("player", ["lookahead:worlds=4,candidates=40,leaf=mean", "pimc:worlds=4,candidates=40"])
def test_no_world_depends_on_what_the_seat_cannot_see(folder: Path, player: str) -> None:
    assert asked_blindly([f"{player},model={folder},known=true"], (6, 12, 18), 3) > 50


def test_what_is_said_and_refused(folder: Path) -> None:
    agent = make_agent(f"lookahead:model={folder},known=true")
    assert "known=true" in agent.name and "known" not in make_agent(f"lookahead:model={folder}").name
    for text in (f"lookahead:critic={folder},known=true", "pimc:known=true", "pimc:model=uniform,known=true"):
        with pytest.raises(ValueError, match="known=true needs a model"):
            make_agent(text)
    with pytest.raises(ValueError, match="known=3 must be true or false"):
        make_agent(f"lookahead:model={folder},known=3")
