"""The libraries beneath the operators, and the switches that programs set on them.

    treadle.backends.cudnn.benchmark = True      # remembered; there is no cuDNN to tell
    treadle.backends.mkldnn.is_available()       # True: convolutions run on oneDNN

A switch of a library that is not there keeps what a program sets.
"""

from treadle import _names

__getattr__ = _names.attributes_of(__name__)
