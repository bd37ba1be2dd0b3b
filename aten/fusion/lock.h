// The lock of all nodes. It may be taken again by the thread that holds it: what a node lets go may
// be the last reference of a storage, which then asks to be forgotten.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace treadle::fusion {

class Lock {
 public:
  Lock();
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  bool is_outermost() const { return outermost_; }

 private:
  bool outermost_;
};

}  // namespace treadle::fusion
