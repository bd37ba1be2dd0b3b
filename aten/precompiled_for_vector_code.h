// The headers that vector code begins with, parsed once (tools/bazel/cc.bzl): those of the standard
// library, and Highway for every target. No source includes this file itself.
//
// SPDX-License-Identifier: Apache-2.0

#include "aten/backend/cpu/highway.h"
#include "core/precompiled.h"
