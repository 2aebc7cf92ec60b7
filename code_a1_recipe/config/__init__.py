"""The configuration: YAML files, their composition, and the checked result."""
