"""Compiled environments from MuJoCo models: `task.mujoco_task` makes one from an MJCF and a few small functions."""
