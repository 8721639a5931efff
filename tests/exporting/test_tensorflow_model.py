import subprocess
import sys
from itertools import cycle

import numpy as np
import pytest
from controllers import NETWORKS, make_controller

from tdpo_baselines.exporting import tensorflow_model

TENSORFLOW_ALONE = """
import sys
import numpy as np
import tensorflow as tf
for folder in sys.argv[1:]:
    act = tf.saved_model.load(folder + "/policy").signatures["serving_default"]
    np.save(folder + "/actions.npy", act(observation=tf.constant(np.load(folder + "/rows.npy")))["action"].numpy())
assert not [name for name in sys.modules if name.startswith("tdpo_baselines")]
"""


def test_tensorflow_alone_acts_like_the_policy_with_a_saved_model(tmp_path):
    precisions = cycle(["double", "float"])
    controllers = [make_controller(network, precision=next(precisions), limit=2.5) for network in NETWORKS]
    folders = [tmp_path / str(number) for number in range(len(controllers))]
    for folder, controller in zip(folders, controllers):
        folder.mkdir()
        tensorflow_model.write_saved_model(folder, controller)
        np.save(folder / "rows.npy", controller.observations.astype(controller.dtype))
    subprocess.run([sys.executable, "-I", "-c", TENSORFLOW_ALONE, *map(str, folders)], check=True, capture_output=True)
    for folder, controller in zip(folders, controllers):
        actions = np.load(folder / "actions.npy")
        tolerance = 1e-4 if controller.precision == "float" else 1e-12
        expected = controller.policy.act(controller.observations)
        assert actions.dtype == controller.dtype and np.abs(actions).max() == 2.5
        np.testing.assert_allclose(actions, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.filterwarnings("ignore:.*tf.lite.Interpreter is deprecated")
@pytest.mark.parametrize("network", NETWORKS)
def test_tflite_acts_like_the_policy(network, tmp_path, capfd):
    controller = make_controller(network, precision="float", limit=2.5)
    tensorflow_model.write_tflite(tmp_path, controller)
    assert capfd.readouterr() == ("", "")
    interpreter = tensorflow_model.load_tensorflow().lite.Interpreter(str(tmp_path / "policy.tflite"))
    act = interpreter.get_signature_runner("serving_default")
    rows = controller.observations[:20].astype(np.float32)
    actions = np.concatenate([act(observation=row[None])["action"] for row in rows])
    np.testing.assert_allclose(actions, controller.policy.act(rows), rtol=1e-4, atol=1e-4)
