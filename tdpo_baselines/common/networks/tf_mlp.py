"""The network of mlp.py in TensorFlow, for automatic differentiation."""

from ..parallel.tensorflow_setup import load_tensorflow
from . import mlp


def apply(theta, observations, sizes: tuple[int, ...], style: mlp.Style = mlp.PLAIN):
    """Return the outputs [R, A] for observations [R, O]. `theta` is flat, or split into layers."""
    tf = load_tensorflow()
    *hidden, (weights, biases) = theta if isinstance(theta, list) else split_layers(theta, sizes)
    activation = {"tanh": tf.tanh, "relu": tf.nn.relu}[style.hidden]
    x = observations
    for hidden_weights, hidden_biases in hidden:
        x = activation(x @ hidden_weights + hidden_biases)
    x = x @ weights + biases
    if style.has_linear_part:
        x += observations @ tf.reshape(mlp.linear_part(theta, sizes), (sizes[0], sizes[-1]))
    x = tf.tanh(x) if style.is_squashed else x
    return tf.constant(style.centre, x.dtype) + tf.constant(style.scale, x.dtype) * x if style.scale else x


def split_layers(theta, sizes: tuple[int, ...]) -> list[tuple]:
    """Return the weights [in, out] and biases [out] of each layer."""
    return mlp.split_layers(theta, sizes, load_tensorflow().reshape)
