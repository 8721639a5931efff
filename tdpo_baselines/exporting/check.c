/* ${name}_check.c: compare $name.h with what the simulation computes. Exit code 0: it agrees.
 *
 *   cc -std=c99 -O2 -ffp-contract=off ${name}_check.c -lm -o ${name}_check && ./${name}_check
 */
#include "$name.h"

#include <stdio.h>

#define NUM_ROWS $num_rows
#ifdef ${NAME}_NO_FMA
#define TOLERANCE $tolerance_without_fma
#else
#define TOLERANCE $tolerance
#endif

static const ${name}_real observations[NUM_ROWS][${NAME}_NUM_OBSERVATIONS] = {
$observations
};

/* Of ${name}_act, and of ${name}_step called row by row after a reset to zeros. */
static const ${name}_real expected[NUM_ROWS][2][${NAME}_NUM_ACTIONS] = {
$expected
};

int main(void)
{
    ${name}_real actions[2][${NAME}_NUM_ACTIONS] = {{0}};
    ${name}_state state;
    double largest = 0;
    int row, kind, j, is_finite = 1;
    ${name}_reset(&state, actions[0]);
    for (row = 0; row < NUM_ROWS; row++) {
        ${name}_act(observations[row], actions[0]);
        is_finite = ${name}_step(&state, observations[row], actions[1]) == 0 && is_finite;
        for (kind = 0; kind < 2; kind++)
            for (j = 0; j < ${NAME}_NUM_ACTIONS; j++)
                largest = fmax(largest, fabs((double)actions[kind][j] - (double)expected[row][kind][j]));
    }
    printf("$name: %d observations, largest difference %g, tolerance %g: %s\n", NUM_ROWS, largest, TOLERANCE,
           is_finite && largest <= TOLERANCE ? "passed" : "FAILED");
    return !(is_finite && largest <= TOLERANCE);
}
