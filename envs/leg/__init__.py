"""The robot leg: the paper's drop at 4 kHz, simple and stochastic. docs/leg.md has the equations."""
