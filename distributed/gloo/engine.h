// The engine "gloo": functions between processes, over Gloo's connections.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "distributed/engine.h"
#include "distributed/gloo/connection.h"

namespace treadle::distributed {

class GlooEngine final : public Engine {
 public:
  GlooEngine(int rank, int size, RendezvousStore store, const Interface& interface,
             milliseconds timeout);
  ~GlooEngine() override;

  std::string name() const override { return "gloo"; }
  void run(const Call& call) override;
  std::unique_ptr<Message> send(const Call& call) override;
  std::unique_ptr<Message> receive(const Call& call) override;
  bool flush(milliseconds timeout) override;
  void abort() override;

 private:
  class Posted;
  std::unique_ptr<Connection> connection_;
  std::mutex mutex_;
  // Small messages that are sent from a copy, so that the sender goes on.
  std::list<std::unique_ptr<Message>> copies_;
};

}  // namespace treadle::distributed
