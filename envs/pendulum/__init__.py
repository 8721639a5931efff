"""The pendulum: one physics (physics.py), two tasks (long.py, nlr.py)."""
