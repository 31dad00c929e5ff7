"""`python -m forensics`: the same as the `forensics` command."""

import sys

from forensics.cli.main import main

sys.exit(main())
