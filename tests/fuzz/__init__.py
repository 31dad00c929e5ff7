"""Generated logs through the whole pipeline."""
