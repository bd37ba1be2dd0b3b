"""Starting workers from a program: see api."""

# SPDX-License-Identifier: Apache-2.0

from treadle.distributed.launcher.api import LaunchConfig, elastic_launch, launch_agent

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]
