"""Programs that go on when processes fail, or machines come and go: the parts of
treadle.distributed.run.

An agent on each machine starts the processes of that machine, its workers, and watches them. The
agents meet at a store (elastic.rendezvous), which numbers the workers. Where a worker fails, or a
machine comes or goes, the agents end their workers, meet again, and start new ones.
"""

# SPDX-License-Identifier: Apache-2.0

from treadle import _names

__getattr__ = _names.attributes_of(__name__)
