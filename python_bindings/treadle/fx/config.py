"""Settings of the tracer of programs."""

# SPDX-License-Identifier: Apache-2.0

# Whether the progress of passes is not shown: there is none to show.
disable_progress = True
# Whether that progress would show more.
verbose_progress = False
# Whether split_module keeps stack traces of the nodes it moves.
do_not_emit_stack_traces = False
