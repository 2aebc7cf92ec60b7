"""Commands and options that earlier releases had, each with a sentence for whoever still asks for it."""

REMOVED_COMMANDS: dict[str, str] = {
    "micro": "`code-a1 cpu` makes its tiny models and questions itself",
    "eval table": "`code-a1 eval compare FIRST SECOND` shows two evaluations and their difference",
    "eval mutants": "`code-a1 eval test FILE --own-tests --output FOLDER` measures a file's own tests on mutants",
    "eval run": "`code-a1 validate RUN --output FOLDER` runs a run's own validation again",

}
"""Words of a command line behind `code-a1`, such as `eval table` -> what takes the command's place."""

REMOVED_OPTIONS: dict[str, str] = {
    "report --serve": "`code-a1 watch RUN` follows a run in the terminal; in a browser TensorBoard or wandb does",
    "report --port": "`code-a1 watch RUN` follows a run in the terminal; in a browser TensorBoard or wandb does",
}
"""A command and its option, such as `report --serve` -> what takes the option's place."""
