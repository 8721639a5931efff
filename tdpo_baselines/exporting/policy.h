/* $name.h: $title.
 *
 * Written by tdpo_baselines.export. contract.json says what the numbers mean. C99, math.h only: no allocation, no
 * global state, a bounded number of operations.
 *
 *   ${name}_act     return the policy's action for an observation
 *   ${name}_reset   begin at the action that the actuators have now
 *   ${name}_step    return the controller's action: the policy's, with the safety options
 *
 * Double precision gives the bits of the simulation if the compiler does not contract expressions
 * (-ffp-contract=off). Define ${NAME}_NO_FMA on processors without fused multiply-add: faster, other last digits.
 */
#ifndef ${NAME}_H
#define ${NAME}_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

#define ${NAME}_NUM_OBSERVATIONS $num_observations
#define ${NAME}_NUM_ACTIONS $num_actions
#define ${NAME}_SHA256 "$sha256"

typedef $real ${name}_real;

typedef struct {
    ${name}_real last[${NAME}_NUM_ACTIONS];     /* action of the last step */
    ${name}_real filtered[${NAME}_NUM_ACTIONS]; /* state of the low-pass filter */
} ${name}_state;

#ifdef ${NAME}_NO_FMA
#define ${NAME}_FMA(a, b, c) ((a) * (b) + (c))
#else
#define ${NAME}_FMA(a, b, c) fma$f((a), (b), (c))
#endif

$arrays
static inline ${name}_real ${name}_clip(${name}_real x, ${name}_real low, ${name}_real high)
{
    return x < low ? low : x > high ? high : x;
}

/* Fill in y = x W + b, with W [n, m] row by row. */
static inline void ${name}_affine(const ${name}_real *w, const ${name}_real *b, int n, int m, const ${name}_real *x,
                                  ${name}_real *y)
{
    int i, j;
    for (j = 0; j < m; j++)
        y[j] = b[j];
    if (m >= 8) {
        for (i = 0; i < n; i++)
            for (j = 0; j < m; j++)
                y[j] = ${NAME}_FMA(x[i], w[i * m + j], y[j]);
        return;
    }
    for (j = 0; j < m; j++) {
        for (i = 0; i + 4 <= n; i += 4) {
            const ${name}_real *v = w + i * m + j;
            ${name}_real first = ${NAME}_FMA(x[i + 1], v[m], x[i] * v[0]);
            ${name}_real second = ${NAME}_FMA(x[i + 3], v[3 * m], x[i + 2] * v[2 * m]);
            y[j] = y[j] + (first + second);
        }
        for (i = n - n % 4; i < n; i++)
            y[j] = ${NAME}_FMA(x[i], w[i * m + j], y[j]);
    }
}
$functions
static inline void ${name}_act(const ${name}_real *observation, ${name}_real *action)
{
$act
}

static inline void ${name}_reset(${name}_state *state, const ${name}_real *action)
{
    int j;
    for (j = 0; j < ${NAME}_NUM_ACTIONS; j++)
        state->last[j] = state->filtered[j] = $clip_action;
}

/* Return 0; or 1 if the observation or the policy's action is not finite: then the last action is held. */
static inline int ${name}_step(${name}_state *state, const ${name}_real *observation, ${name}_real *action)
{
    ${name}_real wanted[${NAME}_NUM_ACTIONS];
    int j, is_finite = 1;
    ${name}_act(observation, wanted);
    for (j = 0; j < ${NAME}_NUM_OBSERVATIONS; j++)
        is_finite = is_finite && isfinite(observation[j]);
    for (j = 0; j < ${NAME}_NUM_ACTIONS; j++)
        is_finite = is_finite && isfinite(wanted[j]);
    for (j = 0; j < ${NAME}_NUM_ACTIONS; j++) {
        if (is_finite) {
            ${name}_real x = wanted[j];
$step
        }
        action[j] = state->last[j];
    }
    return !is_finite;
}

#endif
