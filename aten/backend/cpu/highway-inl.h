// The headers of Highway that vector code includes, for one target. Included by
// aten/backend/cpu/highway.h only, once per target.
//
// SPDX-License-Identifier: Apache-2.0
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
