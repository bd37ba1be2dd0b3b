// A library without code of its own: one of the names by which extensions ask for PyTorch. What
// they want of it is in libtorch_cpu.so, on which it depends.
//
// SPDX-License-Identifier: Apache-2.0
