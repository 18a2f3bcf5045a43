"""Fixtures that several test modules share."""

import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

# A shell that runs the tests in the background makes them, and what they start, deaf to Ctrl-C; some tests press it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def fingerprint() -> Callable[[Any], tuple[Any, ...]]:
    """A function: engine -> all that can be asked of its present state, for "the engine is as it was"."""

    def of(engine: Any) -> tuple[Any, ...]:
        seats = range(engine.rules.seats)
        arrays = [engine.hands(), engine.ends(), engine.to_move(), engine.leader(), engine.plies(), engine.over()]
        arrays += [engine.deal_index(), engine.score(), engine.legal_bits(), engine.legal()]
        arrays += [engine.observe(seat, packed=True) for seat in seats] + [engine.history(seat) for seat in seats]
        return tuple((array.dtype.str, array.shape, np.ascontiguousarray(array).tobytes()) for array in arrays)

    return of
