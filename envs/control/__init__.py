"""Eight small control tasks: local and non-local rewards, delays, resonance, unstable plants, several inputs."""
