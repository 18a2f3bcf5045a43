"""Small compiled pieces that several modules of this package use, and the cores that their loops run on."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numba import extending, njit, types

# Any: the types that Numba declares are not those of what it makes.
compiled: Any = njit(cache=True, nogil=True)
_intrinsic: Any = extending.intrinsic

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2 ** 64 over the golden ratio: the step of SplitMix64
UNIT = 2.0**-53  # (mix(x) >> S11) * UNIT is a uniform number in [0, 1)
S11 = np.uint64(11)
_MIX_A, _MIX_B = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31 = np.uint64(27), np.uint64(30), np.uint64(31)


@_intrinsic
def popcount(typing: Any, x: Any) -> Any:
    """Set bits of an int64."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.int64), build


@_intrinsic
def lowest(typing: Any, x: Any) -> Any:
    """Place of the lowest set bit of an int64 that is not 0."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], context.get_constant(types.boolean, True))

    return types.int64(types.int64), build


@compiled
def mix(x):  # type: ignore[no-untyped-def]
    """SplitMix64's finaliser (Steele, Lea and Flood 2014; Stafford's variant 13) of a uint64."""
    x = (x ^ x >> _S30) * _MIX_A
    x = (x ^ x >> _S27) * _MIX_B
    return x ^ x >> _S31


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
