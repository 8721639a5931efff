
/* Return 2^k x for rounded = k + ROUND, by adding k to the exponent of x. */
static inline ${name}_real ${name}_times_power(${name}_real x, ${name}_real rounded)
{
    $bits a, b;
    memcpy(&a, &x, sizeof a);
    memcpy(&b, &rounded, sizeof b);
    a += b << $mantissa_bits;
    memcpy(&x, &a, sizeof x);
    return x;
}

/* Return tanh(x). With y = -2|x| = k ln 2 + r: expm1(y) = 2^k expm1(r) + (2^k - 1), tanh|x| = -expm1(y)/(2+expm1(y)). */
static inline ${name}_real ${name}_tanh(${name}_real x)
{
    const ${name}_real ROUND = $round; /* adding it rounds to an integer, kept in the low bits */
    ${name}_real size = fabs$f(x), y, rounded, k, r, r2, r4, p0, p4, p8, p, e;
    if (size > 20)
        size = 20;
    y = -(size + size);
    rounded = ${NAME}_FMA(y, (${name}_real)1.4426950408889634, ROUND);
    k = rounded - ROUND;
    r = ${NAME}_FMA(k, -$ln2_low, ${NAME}_FMA(k, -$ln2_high, y));
    r2 = r * r;
    r4 = r2 * r2;
    p0 = ${NAME}_FMA(${NAME}_FMA(r, (${name}_real)(1.0 / 120.0), (${name}_real)(1.0 / 24.0)), r2,
                     ${NAME}_FMA(r, (${name}_real)(1.0 / 6.0), (${name}_real)0.5));
    p4 = ${NAME}_FMA(${NAME}_FMA(r, (${name}_real)(1.0 / 362880.0), (${name}_real)(1.0 / 40320.0)), r2,
                     ${NAME}_FMA(r, (${name}_real)(1.0 / 5040.0), (${name}_real)(1.0 / 720.0)));
    p8 = ${NAME}_FMA(${NAME}_FMA(r, (${name}_real)(1.0 / 6227020800.0), (${name}_real)(1.0 / 479001600.0)), r2,
                     ${NAME}_FMA(r, (${name}_real)(1.0 / 39916800.0), (${name}_real)(1.0 / 3628800.0)));
    p = ${NAME}_FMA(${NAME}_FMA(p8, r4 * r4, ${NAME}_FMA(p4, r4, p0)), r2, r);
    e = ${name}_times_power(p, rounded) + (${name}_times_power(1, rounded) - 1);
    return copysign$f(e / (2 + e), x);
}
