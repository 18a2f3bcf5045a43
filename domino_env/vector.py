"""N tables as a Gymnasium VectorEnv for one learner: a seat, or the two seats of a pair in turn.

All other seats are played by agents, asked in batches; one `step` makes the learner's actions and plays on until every
row waits for the learner again. Autoreset is SAME_STEP: a row whose episode ends already shows the next one, and its
last observation and info are in `infos["final_obs"]` and `infos["final_info"]`. An illegal action loses the deal 0:10
(J2), or is judged (J), as is that of an agent. Only the learner's thought is timed: agents have no clock.

An episode that ends before the learner has decided anything waits at its end with only the pass legal, and is reported
by the next step: no result is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from domino_env.decisions import Player
from domino_env.engine import make_engine
from domino_env.judge import THOUGHT
from domino_env.judged import action_space, make_referee, observation_space, read_all
from domino_env.lanes import Lanes, Options, Seeds
from domino_env.rules import Rules
from domino_env.view import Observation, check_illegal, check_render_mode, draw, seat_space


class DominoVectorEnv(VectorEnv[Observation, npt.NDArray[np.int64], npt.NDArray[Any]]):
    """The learner's view of N tables; made by `make_vec`, whose arguments it has."""

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(
        self,
        rules: str | Rules = "sport_book",
        num_envs: int = 1024,
        learner: str = "seat",
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
        seed: int | Sequence[int] | None = None,
        **rule_overrides: Any,
    ) -> None:
        check_illegal(illegal)
        check_render_mode(render_mode)
        if render_mode == "human":
            raise ValueError("a batch of tables has no window: choose render_mode 'ansi', 'rgb_array' or None")
        engine = make_engine(rules, num_envs, seed, episode=episode, fours=fours, **rule_overrides)
        referee = make_referee(engine, judge, decision, clock, thought, illegal)
        self._lanes = Lanes(engine, learner, partner, opponents, history, skip_forced, seed, referee)
        self.rules = engine.rules
        self.num_envs = engine.num_envs
        self.illegal = illegal
        self.render_mode = render_mode
        self.single_observation_space = observation_space(seat_space(engine, history), referee)
        self.single_action_space = action_space(engine, referee)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    @property
    def seats(self) -> npt.NDArray[np.int64]:
        """(N,) seat whose turn each row shows; always 0 for learner="seat"."""
        return self._lanes.seats()

    def reset(self, *, seed: Seeds = None, options: Options = None) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode in every row.

        Args:
            seed: an int (row i plays its i-th stream), a list of one int a row (row i then plays the deals of a single
                env of that seed), or None: the next episode of each row's stream. A seeded row i begins with deal i mod
                4 (S2).
            options: `hands`, `leader`, `stock`, `deal_index`: one dict for all rows or a list of one a row.

        Returns:
            observation (N, bits) uint8 and action_mask (N, num_actions) int8 (and history (N, T) int16) in a dict;
            infos.

        Raises:
            ValueError: bad seeds or options; the rows are as they were.
        """
        self._lanes.reset(seed, options)
        if isinstance(seed, int | np.integer):
            super().reset(seed=int(seed))
        return self._lanes.observe(), {}

    def step(
        self, actions: Any
    ) -> tuple[Observation, npt.NDArray[np.float32], npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]]:
        """Make one action of the learner in every row.

        Args:
            actions: (N,) integers in 0..56, in the blind games 0..58; with a judge in 0..57, and with a clock a pair
                of these and the seconds of thought, (N,) numbers >= 0.

        Returns:
            observations; rewards (N,) float32, the learner's points; terminations (N,) bool; truncations (N,) bool,
            deals that the guard of R8 broke off; infos: `deal` where a deal of a match ended, `final_obs` and
            `final_info` where the episode did; with a judge `verdicts` that were given since the last step and `judge`,
            the record of a deal that ended with sanctions.

        Raises:
            ValueError: wrong shape, dtype or range, or an illegal action if illegal="raise"; the rows are as they were.
        """
        lanes = self._lanes
        numbers, seconds = read_all(lanes.engine, lanes.referee, actions)
        rewards, ended, lost, told = lanes.step(numbers, self.illegal == "raise", seconds)
        infos: dict[str, Any] = lanes.judge_info(~ended)
        going = told & ~ended
        if going.any():
            infos["deal"], infos["_deal"] = lanes.deal_info(going), going
        rows, broken = np.flatnonzero(ended), lanes.broken(ended & ~lost)
        if len(rows):
            self._add_final(infos, rows, ended, lost, told & ended & ~lost)
            lanes.restart(rows)
        return lanes.observe(), rewards, ended & ~broken, broken, infos

    def _add_final(
        self,
        infos: dict[str, Any],
        rows: npt.NDArray[np.int64],
        ended: npt.NDArray[np.bool_],
        lost: npt.NDArray[np.bool_],
        told: npt.NDArray[np.bool_],
    ) -> None:
        view = self._lanes.observe(rows)
        final = np.full(self.num_envs, None, object)
        # Gymnasium wants one dict a finished row here.
        final[rows] = [dict(zip(view, parts, strict=True)) for parts in zip(*view.values(), strict=True)]
        info: dict[str, Any] = {}
        if told.any():
            info["deal"], info["_deal"] = self._lanes.deal_info(told), told
        info |= self._lanes.judge_info(ended)
        if lost.any():
            info["illegal"], info["_illegal"] = lost.copy(), lost
        infos |= {"final_obs": final, "_final_obs": ended.copy(), "final_info": info, "_final_info": ended.copy()}

    def render(self) -> tuple[Any, ...] | None:
        """A frame a row, the learner's hand open: text, or (height, width, 3) uint8."""
        if self.render_mode is None:
            return None
        seats = self.seats.tolist()
        return tuple(draw(self._lanes.engine, i, self.render_mode, seats[i], None) for i in range(self.num_envs))


def make_vec(
    rules: str | Rules = "sport_book",
    num_envs: int = 1024,
    learner: str = "seat",
    partner: Player | None = None,
    opponents: Player | None = None,
    **settings: Any,
) -> DominoVectorEnv:
    """A VectorEnv of N tables.

    Args:
        rules: the name of a preset, or a `Rules`.
        num_envs: tables, N.
        learner: "seat" (seat_0; the lead rotates, so it meets every role) or "pair" (seats 0 and 2 in turn).
        partner: plays seat 2 for learner="seat"; an object with act(batch) or such a function; default: random legal.
        opponents: plays the other pair, or all other seats where there are no pairs; default: random legal.
        settings: `episode` ("deal" or "match"), `fours`, `history`, `skip_forced` (forced moves of the learner are
            played for it), `illegal` ("lose" or "raise"), `judge` ("book" or "club"; then wrong acts of all seats are
            judged), `decision`, `clock` and `thought` of the judge (see `domino_env.aec`), `render_mode` ("ansi" or
            "rgb_array"), `seed`, and any field of the rules.

    Raises:
        ValueError: anything unknown, or a combination that cannot be played.
    """
    return DominoVectorEnv(rules, num_envs, learner, partner, opponents, **settings)
