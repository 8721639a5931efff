"""Return to the best parameters after a step that was too large."""

from typing import Any, NamedTuple

import numpy as np

LEAST_TRUST = 1 / 8


class Safeguard(NamedTuple):
    """The parameters to return to, the best so far, and the fraction of the trust region in use since the last return.

    Field names are names in checkpoints.
    """

    theta: np.ndarray  # [P]
    payoff: Any = -np.inf
    trust: Any = 1.0

    def update(self, theta: np.ndarray, payoff: float, max_drop: float | None) -> tuple["Safeguard", bool]:
        """Return the safeguard after `theta` had this payoff, and whether to return to the best parameters.

        If small steps drop repeatedly too, the best payoff was a fluke, and the best is replaced.
        """
        trust = min(1.0, 1.1 * self.trust)
        if max_drop is None or payoff > self.payoff:
            return Safeguard(theta, payoff, trust), False
        if self.payoff - payoff <= max_drop * abs(self.payoff):
            return self._replace(trust=trust), False
        if self.trust / 2 >= LEAST_TRUST:
            return self._replace(trust=self.trust / 2), True
        return Safeguard(theta, payoff, self.trust), False
