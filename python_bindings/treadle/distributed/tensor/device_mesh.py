"""treadle.distributed.device_mesh by the name that it has here in some programs."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from treadle.distributed.device_mesh import DeviceMesh, init_device_mesh

__all__ = ["DeviceMesh", "init_device_mesh"]
