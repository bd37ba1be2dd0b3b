// The name by which some extensions include torch/csrc/stable/generator.h.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/csrc/stable/generator.h>
