"""Parts for environments of all kinds: motors, delay lines, random numbers, spectra."""
