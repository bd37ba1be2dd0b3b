// c10::Float8_e5m2fnuz, by the name of its header.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/headeronly/util/Float8.h>
