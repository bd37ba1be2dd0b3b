"""Where a program is in C++."""

# SPDX-License-Identifier: Apache-2.0


def get_cpp_backtrace(frames_to_skip: int = 0, maximum_number_of_frames: int = 64) -> str:
    """The calls in C++ above this one: there are none, as it is called from Python."""
    return ""
