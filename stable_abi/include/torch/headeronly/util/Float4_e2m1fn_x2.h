// c10::Float4_e2m1fn_x2, by the name of its header.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/headeronly/util/Float8.h>
