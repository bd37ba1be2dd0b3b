"""Timer: how long a statement takes, without the noise of a first run."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import enum
import timeit
from typing import Any, Callable, Dict, List, Optional

from treadle import _names
from treadle.utils.benchmark.utils.common import Measurement, TaskSpec, set_torch_threads


def timer() -> float:
    """A clock in seconds, after the work of devices is done."""
    from treadle import accelerator

    if accelerator.is_available():
        accelerator.synchronize()
    return timeit.default_timer()


class Language(enum.Enum):
    """The language of a statement."""

    PYTHON = 0
    CPP = 1


class Timer:
    """Times `stmt`, with the names in `globals`, after `setup`. Operators have `num_threads`
    threads. NotImplementedError for statements in C++."""

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: Optional[Dict[str, Any]] = None,  # noqa: A002
        label: Optional[str] = None,
        sub_label: Optional[str] = None,
        description: Optional[str] = None,
        env: Optional[str] = None,
        num_threads: int = 1,
        language: Any = Language.PYTHON,
    ) -> None:
        if language not in (Language.PYTHON, "py", "python") or global_setup:
            raise NotImplementedError("Timer: expected a statement in Python, got one in C++")
        names = dict(globals or {})
        names.setdefault("torch", _names.package())
        self._timer = timeit.Timer(stmt, setup, timer, names)
        self._task_spec = TaskSpec(
            stmt, setup, global_setup, label, sub_label, description, env, num_threads
        )

    def _timeit(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number: int = 1000000) -> Measurement:
        """The time of `number` runs, once, after a few to warm up."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(number // 100, 1))
            return Measurement(number, [self._timeit(number)], self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """NotImplementedError: blocked_autorange() repeats."""
        raise NotImplementedError("Timer.repeat: expected a call of blocked_autorange(), got it")

    def _runs_for(self, seconds: float) -> int:
        """How many runs take at least so long."""
        number = 1
        while self._timeit(number) < seconds and number < 10**9:
            number *= 10
        return number

    def autorange(self, callback: Optional[Callable[[int, float], Any]] = None) -> Measurement:
        """The time of as many runs as take 0.2 seconds; `callback` is given each try."""
        with set_torch_threads(self._task_spec.num_threads):
            number = 1
            while True:
                taken = self._timeit(number)
                if callback is not None:
                    callback(number, taken)
                if taken >= 0.2:
                    return Measurement(number, [taken], self._task_spec)
                number *= 10

    def _measured(
        self, number: int, stop: Callable[[List[float]], bool], callback: Any
    ) -> Measurement:
        times: List[float] = []
        while not stop(times):
            times.append(self._timeit(number))
            if callback is not None:
                callback(number, times[-1])
        return Measurement(number, times, self._task_spec)

    def blocked_autorange(
        self, callback: Optional[Callable[[int, float], Any]] = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Measurements for `min_run_time` seconds, each of as many runs as take a thousandth of
        that."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(1)
            number = self._runs_for(min_run_time / 1000)
            return self._measured(number, lambda times: sum(times) >= min_run_time, callback)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Optional[Callable[[int, float], Any]] = None,
    ) -> Measurement:
        """Measurements until the middle half is narrower than `threshold` of the median, for
        `max_run_time` seconds at most."""

        def stop(times: List[float]) -> bool:
            total = sum(times)
            if total < min_run_time or len(times) < 4:
                return total >= max_run_time and len(times) > 0
            found = Measurement(1, times, self._task_spec)
            return found.iqr / found.median < threshold or total >= max_run_time

        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(1)
            return self._measured(self._runs_for(min_run_time / 10), stop, callback)
