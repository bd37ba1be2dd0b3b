// The engine of oneDNN, which all kernels on it share.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

namespace treadle::cpu::onednn {

const dnnl::engine& engine();

// oneDNN writes the code of a primitive to pages that it takes for granted: std::bad_alloc where
// the system would refuse them. Called before a primitive is made.
void require_room_for_code();

}  // namespace treadle::cpu::onednn
