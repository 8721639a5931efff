"""The policy in TensorFlow: what is differentiated. `mlp.act` is the same network as compiled code.

Sums over rows are made block by block: a block is a fixed number of rows, the graph handles one at a
time in a loop of variable length, and the sums are returned one per block. So a block's sum is a
function of that block alone, computed by the same machine code whatever a rank's share is.

    theta          [P]         parameters
    observations   [B, R, O]   rows in blocks
    weights        [B, R, A]   of each row's outputs in an expectation
"""

import tensorflow as tf

from . import mlp


def actions(theta: tf.Tensor, observations: tf.Tensor, sizes: tuple[int, ...], style: mlp.Style = mlp.PLAIN):
    """Policy output [R, A] for observations [R, O]. `theta` is flat, or `layers` of it."""
    *hidden, (weights, biases) = theta if isinstance(theta, list) else layers(theta, sizes)
    activation = {"tanh": tf.tanh, "relu": tf.nn.relu}[style.hidden]
    x = observations
    for hidden_weights, hidden_biases in hidden:
        x = activation(x @ hidden_weights + hidden_biases)
    x = x @ weights + biases
    x = tf.tanh(x) if style.is_squashed else x
    return tf.constant(style.centre, x.dtype) + tf.constant(style.scale, x.dtype) * x if style.scale else x


def sensitivities(theta: tf.Tensor, observations: tf.Tensor, sizes: tuple[int, ...]) -> tf.Tensor:
    """Jacobian of the action with respect to the observation [R, O, A], by the chain rule forward."""
    *hidden, (weights, _) = layers(theta, sizes)
    x = observations
    jacobian = tf.eye(sizes[0], batch_shape=[observations.shape[0]], dtype=observations.dtype)  # [R, O, O]
    for hidden_weights, hidden_biases in hidden:
        x = tf.tanh(x @ hidden_weights + hidden_biases)
        jacobian = (jacobian @ hidden_weights) * (1.0 - x * x)[:, None, :]
    return jacobian @ weights


def layers(theta: tf.Tensor, sizes: tuple[int, ...]) -> list[tuple[tf.Tensor, tf.Tensor]]:
    """Weights [in, out] and biases [out] of each layer."""
    return mlp.layers(theta, sizes, tf.reshape)


def weighted_gradient(function, theta: tf.Tensor, cotangents: tf.Tensor) -> tf.Tensor:
    """sum_r J_r^T cotangents_r for function(theta) [R, ...]."""
    with tf.GradientTape() as tape:
        tape.watch(theta)
        output = function(theta)
    return tape.gradient(output, theta, output_gradients=cotangents)


def gauss_newton_product(function, theta: tf.Tensor, vector: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """sum_r J_r^T diag(weights_r) J_r vector for function(theta) [R, ..., A]: forward (J v), then reverse (J^T)."""
    with tf.GradientTape() as tape:
        tape.watch(theta)
        with tf.autodiff.ForwardAccumulator(theta, vector) as forward:
            output = function(theta)
        image = forward.jvp(output)
    weights = tf.reshape(weights, [weights.shape[0]] + [1] * (len(output.shape) - 2) + [weights.shape[1]])
    return tape.gradient(output, theta, output_gradients=weights * image)


class PolicyDerivatives:
    """Compiled derivatives of an MLP policy. Each function takes and returns arrays: sums [B, P], one
    per block of the share (first, last) and zero elsewhere."""

    def __init__(self, sizes: tuple[int, ...], num_blocks: int, rows_per_block: int):
        num_parameters = mlp.num_parameters(sizes)
        theta = tf.TensorSpec([num_parameters], tf.float64)
        observations = tf.TensorSpec([num_blocks, rows_per_block, sizes[0]], tf.float64)
        cotangents = tf.TensorSpec([num_blocks, rows_per_block, sizes[-1]], tf.float64)
        weights = cotangents
        share = tf.TensorSpec([2], tf.int32)

        def blockwise(block_sum, *signature):
            def sums(first_last, *arguments):
                def body(i, sums):
                    return i + 1, tf.tensor_scatter_nd_update(sums, [[i]], block_sum(i, *arguments)[None])

                zeros = tf.zeros([num_blocks, num_parameters], tf.float64)
                return tf.while_loop(lambda i, _: i < first_last[1], body, (first_last[0], zeros))[1]

            compiled = tf.function(sums, input_signature=[share, *signature], jit_compile=True, autograph=False)
            concrete = compiled.get_concrete_function()  # called directly: half of a call's cost is finding it
            return lambda *arrays: concrete(*self.tensors(*arrays)).numpy()

        def gradient(i, theta, observations, cotangents):
            return weighted_gradient(lambda p: actions(p, observations[i], sizes), theta, cotangents[i])

        def wasserstein(i, theta, vector, observations, weights):
            return gauss_newton_product(lambda p: actions(p, observations[i], sizes), theta, vector, weights[i])

        def sensitivity(i, theta, vector, observations, weights):
            return gauss_newton_product(lambda p: sensitivities(p, observations[i], sizes), theta, vector, weights[i])

        self.gradient = blockwise(gradient, theta, observations, cotangents)
        """(share, theta, observations, cotangents): sum_r J_r^T cotangents_r"""
        self.wasserstein_product = blockwise(wasserstein, theta, theta, observations, weights)
        """(share, theta, vector, observations, weights): sum_r J_r^T diag(weights_r) J_r vector"""
        self.sensitivity_product = blockwise(sensitivity, theta, theta, observations, weights)
        """The same for the Jacobian of the action with respect to the observation."""

    @staticmethod
    def tensors(*arrays) -> list[tf.Tensor]:
        """Arrays as tensors, for calls that share them."""
        return [tf.constant(array) for array in arrays]
