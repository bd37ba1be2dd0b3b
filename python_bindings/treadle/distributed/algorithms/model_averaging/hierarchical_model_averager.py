"""Averages over small groups of processes often, and over large ones now and then."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional

from treadle import distributed as dist

from . import averagers, utils


class HierarchicalModelAverager(averagers.ModelAverager):
    """`period_group_size_dict` has, for each period in steps, the number of processes that average
    then: ascending, the last one all of the group. A step of several periods is of the longest.

    ValueError for an empty dictionary, a period below 1, or another last number.
    """

    def __init__(
        self,
        period_group_size_dict: Optional[Mapping[int, int]] = None,
        warmup_steps: int = 0,
        process_group: Any = None,
    ) -> None:
        super().__init__(process_group)
        name = type(self).__name__
        if not period_group_size_dict:
            raise ValueError(f"{name}: expected period_group_size_dict with a period, got none")
        periods, size = list(period_group_size_dict), dist.get_world_size(self.process_group)
        if min(periods) < 1:
            raise ValueError(f"{name}: expected periods >= 1, got {min(periods)}")
        if periods[-1] == 1:
            averagers.warn_of_every_step(name)
        last = period_group_size_dict[periods[-1]]
        if last != size:
            raise ValueError(
                f"{name}: expected the last group to have all {size} processes, got {last}"
            )
        self.warmup_steps = averagers.check_warmup(name, warmup_steps)
        self.period_process_group_dict: Dict[int, Any] = {}
        for period, members in period_group_size_dict.items():
            group = self.process_group
            if members != size:
                group = dist.new_subgroups(group_size=members, group=self.process_group)[0]
            self.period_process_group_dict[period] = group

    def average_parameters(self, params: utils.Parameters) -> None:
        """Average those parameters, or the parameters in those groups, that have a gradient."""
        if self.step >= self.warmup_steps:
            for period, group in reversed(self.period_process_group_dict.items()):
                if self.step % period == 0:
                    utils.average_parameters_or_parameter_groups(params, group)
                    break
        self.step += 1


__all__ = ["HierarchicalModelAverager"]
