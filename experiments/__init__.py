"""What a person runs: training, evaluation, benchmarks, and the `domino` command."""
