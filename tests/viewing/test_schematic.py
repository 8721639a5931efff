"""The drawing without OpenGL."""

from types import SimpleNamespace

import numpy as np

from tdpo_baselines.viewing import schematic

SIZE = (200, 100)


def rod(*ends):
    """Return a scene of a rod from the origin to each of the ends, in a view of 2 m."""
    chain = np.array([[[0.0, 0.0], end] for end in ends])
    return SimpleNamespace(chain=chain, marks={"ground": np.array([[-1, -0.5], [1, -0.5]])}, view=(-1, 1, -1, 1))


def colour(picture, x, y):
    """Return whether red, green and blue are near a colour of the drawing."""
    return np.asarray(picture)[y, x]


def test_link_points_where_the_scene_says():
    up, right = schematic.draw_frames(rod([0, 0.9], [0.9, 0]), SIZE, left=0, trail=0)
    assert colour(up, 100, 25)[2] > 150 > colour(up, 100, 25)[0]  # blue, above the middle
    assert colour(right, 125, 50)[2] > 150 > colour(right, 125, 50)[0]
    assert colour(right, 100, 25)[0] > 240  # background


def test_ground_reaches_from_edge_to_edge_and_down():
    (picture,) = schematic.draw_frames(rod([0, 0.9]), SIZE, left=0, trail=0)
    ground = tuple(int(schematic.GROUND[i : i + 2], 16) for i in (1, 3, 5))
    for x, y in ((0, 99), (199, 99), (3, 80)):
        assert tuple(colour(picture, x, y)) == ground


def test_margin_moves_the_drawing_to_the_right():
    (picture,) = schematic.draw_frames(rod([0, 0.9]), SIZE, left=100, trail=0)
    assert colour(picture, 150, 25)[2] > 150 > colour(picture, 150, 25)[0]


def test_trail_shows_where_the_free_end_was():
    scene = rod([-0.9, 0.5], [0.9, 0.5])
    with_trail, without = (schematic.draw_frame(scene, 1, SIZE, left=0, trail=trail) for trail in (1, 0))
    assert colour(without, 90, 25)[2] > 240 > colour(with_trail, 90, 25)[2]
