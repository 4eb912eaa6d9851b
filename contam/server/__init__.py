"""The HTTP service: the same verdicts as the command line, over the network."""

from contam.extras import require

require("serve")
