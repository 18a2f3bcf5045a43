"""One seat of one table as a Gymnasium Env: seat_0 learns, agents play the other seats.

It plays, rewards and treats illegal actions as a VectorEnv of one row does; `domino_env.vector` says how.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from domino_env.decisions import Player
from domino_env.engine import make_engine
from domino_env.judge import THOUGHT
from domino_env.judged import action_space, make_referee, observation_space, read
from domino_env.lanes import Lanes
from domino_env.rules import Rules, get_rules
from domino_env.view import (
    RENDER_MODES,
    Observation,
    Window,
    check_illegal,
    check_render_mode,
    check_reset,
    draw,
    seat_space,
)


class Side(int):
    """The number of the side that won.

    Gymnasium's vectorisers make an int array of plain ints, and then fail on the None of a drawn deal in another lane;
    a subclass they keep among objects.
    """


class DominoEnv(gymnasium.Env[Observation, int]):
    """seat_0 of a game.

    Args:
        rules: the name of a preset, or a `Rules`.
        partner: plays seat 2; an object with act(batch) or such a function; default: random legal actions.
        opponents: plays the other seats; the same.
        episode: "deal", or "match" of `fours` times four deals.
        fours: fours of a match.
        history: adds the public events to the observation.
        skip_forced: forced moves of the learner are played for it.
        illegal: an illegal action loses the deal 0:10 and ends the episode ("lose"), or raises ValueError ("raise").
        judge: "book" or "club": wrong acts of all seats are judged instead; `domino_env.aec` says how.
        decision: of the judge: "continue", "end" or "replay".
        clock: actions are pairs (action, seconds); over `thought` seconds are a violation. Agents have no clock.
        thought: seconds that a move may take.
        render_mode: "human", "ansi" or "rgb_array".
        rule_overrides: fields of the rules.

    Raises:
        ValueError: anything unknown, or a combination that cannot be played.
    """

    metadata: dict[str, Any] = {"render_modes": RENDER_MODES, "render_fps": 2}  # noqa: RUF012

    def __init__(
        self,
        rules: str | Rules = "sport_book",
        partner: Player | None = None,
        opponents: Player | None = None,
        *,
        episode: str = "deal",
        fours: int = 1,
        history: bool = False,
        skip_forced: bool = False,
        illegal: str = "lose",
        judge: str | None = None,
        decision: str = "continue",
        clock: bool = False,
        thought: float = THOUGHT,
        render_mode: str | None = None,
        **rule_overrides: Any,
    ) -> None:
        check_illegal(illegal)
        check_render_mode(render_mode)
        engine = make_engine(get_rules(rules, **rule_overrides), 1, episode=episode, fours=fours)
        referee = make_referee(engine, judge, decision, clock, thought, illegal)
        self._lanes = Lanes(engine, "seat", partner, opponents, history, skip_forced, referee=referee)
        self._playing = False  # between a reset and the end
        self._window = Window(engine.rules.name, self.metadata["render_fps"])
        self.rules = engine.rules
        self.illegal = illegal
        self.render_mode = render_mode
        self.observation_space: spaces.Space[Any] = observation_space(seat_space(engine, history), referee)
        self.action_space: spaces.Space[Any] = action_space(engine, referee)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode, up to seat_0's first turn: deal 0 of a seed, or the next deal of the stream.

        Args:
            seed: a whole number >= 0.
            options: `hands` (tile names per seat), `leader`, `stock` (tile names), `deal_index`.

        Raises:
            ValueError: a bad seed or option, or no window to open; the game is then as it was.
        """
        check_reset(seed, options, self.render_mode)
        self._lanes.reset(seed, options)
        super().reset(seed=None if seed is None else int(seed))
        self._playing = True
        self._show()
        return self._observation(), {}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Make seat_0's action, with a clock (action, seconds), and play on until its next turn or the end.

        Returns:
            observation; reward, the points won less the points lost in a deal that ended; terminated; truncated (R8);
            info: `deal` when a deal ended, `illegal` when an illegal action lost it; of the judge `verdicts` that were
            given, and `judge` when a deal ended with sanctions: its record.

        Raises:
            ValueError: an action of a wrong type or out of range, or after the end; an illegal one if illegal="raise".
        """
        number, seconds = read(self._lanes.engine, self._lanes.referee, action)
        if not self._playing:
            raise ValueError(f"action {number} after the end of the episode (or before the first): call reset()")
        thought = None if seconds is None else np.array([seconds])
        rewards, ended, lost, told = self._lanes.step(np.array([number]), self.illegal == "raise", thought)
        judged = self._lanes.judge_info(np.ones(1, np.bool_))
        info: dict[str, Any] = {key: judged[key][0] for key in ("judge", "verdicts") if key in judged}
        if lost[0]:
            info["illegal"] = True
        elif told[0]:
            info["deal"] = self._lanes.last_deal(0)
        for key in ("deal", "judge"):
            if key in info and info[key]["winner"] is not None:
                info[key]["winner"] = Side(info[key]["winner"])
        self._playing = not ended[0]
        self._show()
        broken = bool(self._lanes.broken(ended & ~lost)[0])
        return self._observation(), float(rewards[0]), bool(ended[0]) and not broken, broken, info

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """(actions,) bool legal actions of seat_0: what sb3-contrib's MaskablePPO asks for."""
        return self._lanes.observe()["action_mask"][0].astype(np.bool_)

    def render(self) -> Any:
        """The table as seat_0 sees it: text, (height, width, 3) uint8, or None after showing it in a window."""
        return draw(self._lanes.engine, 0, self.render_mode, 0, self._window)

    def close(self) -> None:
        """Close the window, if there is one."""
        self._window.close()

    def _observation(self) -> Observation:
        return {key: value[0] for key, value in self._lanes.observe().items()}

    def _show(self) -> None:
        if self.render_mode == "human":
            self.render()
