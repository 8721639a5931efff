"""Gymnasium's MuJoCo tasks as compiled environments, equal to Gymnasium's own to the bit.

Only the start is drawn in another way: a point of the unit cube, placed by the inverse of the distribution that
Gymnasium draws from.
"""
