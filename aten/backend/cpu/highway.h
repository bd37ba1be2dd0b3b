// Highway's operations on vectors, for every target that aten/backend/cpu/targets.h names. They
// take a second or two to parse, so libraries of vector code begin with this header precompiled.
//
// A source that is compiled for each target includes aten/backend/cpu/foreach_target.h instead.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/backend/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "aten/backend/cpu/highway-inl.h"
#include "hwy/foreach_target.h"

#include "aten/backend/cpu/highway-inl.h"
